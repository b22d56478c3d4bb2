# make demo: environment, install, main job. make test: environment, install, tests.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test test-slow bench lint docs clean

demo: $(READY)
	$(BIN)/taspo-bench run --method grpo --method taspo --env all --preset quick --out runs/demo --overwrite

test: $(READY)
	$(BIN)/pytest -n auto --dist worksteal -m "not slow"

test-slow: $(READY)
	$(BIN)/pytest -m slow

bench: $(READY)
	for script in benchmarks/bench_*.py; do $(BIN)/python $$script || exit 1; done

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy taspo_bench envs/taspo_envs baselines/taspo_baselines

docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(0 if (3, 11) <= sys.version_info < (3, 14) else "taspo-bench needs Python 3.11 to 3.13, this is " + sys.version.split()[0] + ": name one with make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $(READY)

clean:
	rm -rf $(VENV)
