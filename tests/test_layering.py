"""Imports go one way: benchmarks and baselines know the contracts, the harness knows neither by name."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CONTRACTS = ("api", "cache", "credit", "episode", "errors", "phrases", "registry", "text_space")
HEAVY = ("torch", "transformers", "tokenizers", "matplotlib", "scipy", "pydantic", "jinja2", "httpx")
HELP = f"""
import sys
from taspo_bench.cli import main
sys.argv = ["taspo-bench", "--help"]
try:
    main()
except SystemExit as end:
    assert not end.code
loaded = [name for name in {HEAVY} if name in sys.modules]
sys.exit("--help imports " + ", ".join(loaded) if loaded else 0)
"""


def imported(path: Path) -> set[str]:
    """Modules that a file imports anywhere in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return names


def files(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


@pytest.mark.parametrize("path", files("envs/taspo_envs"), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_benchmark_knows_the_contract_and_no_torch(path):
    foreign = {name for name in imported(path) if name.partition(".")[0] in ("taspo_bench", "torch", "transformers")}
    assert foreign <= {"taspo_bench.api", "taspo_bench.cache", "taspo_bench.errors"}


@pytest.mark.parametrize("path", files("baselines/taspo_baselines"), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_baseline_knows_the_contracts_of_credit_and_no_torch(path):
    foreign = {name for name in imported(path) if name.partition(".")[0] in ("taspo_bench", "taspo_envs", "torch")}
    assert foreign <= {"taspo_bench.api", "taspo_bench.credit", "taspo_bench.episode"}


@pytest.mark.parametrize("path", files("taspo_bench"), ids=lambda path: str(path.relative_to(ROOT)))
def test_the_harness_imports_no_benchmark_and_no_baseline(path):
    assert not {name for name in imported(path) if name.partition(".")[0] in ("taspo_envs", "taspo_baselines")}


@pytest.mark.parametrize("name", CONTRACTS)
def test_a_contract_knows_only_contracts(name):
    own = {module for module in imported(ROOT / "taspo_bench" / f"{name}.py") if module.startswith("taspo_bench")}
    assert own <= {f"taspo_bench.{contract}" for contract in CONTRACTS}


def test_help_imports_nothing_heavy():
    result = subprocess.run([sys.executable, "-c", HELP], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert "Usage" in result.stdout
