"""``taspo-bench runs``: what is on disk, how far it has come, and what of it can go."""

from __future__ import annotations

import fcntl
from pathlib import Path

import pytest
from rich.console import Console
from run_builder import build_run
from typer.testing import CliRunner

from taspo_bench import runs_command
from taspo_bench.errors import InputError
from taspo_bench.run_folders import collect, find_runs, read_status
from taspo_bench.runs_command import runs_app

FAILED = ("grpo", "searchqa", 1)


@pytest.fixture
def run(tmp_path) -> Path:
    folder = build_run(tmp_path / "runs/first", envs=("searchqa",), seeds=(0, 1), n=4, updates=2, failed=[FAILED])
    for cell in folder.glob("cells/*/*/seed-*"):
        for name in ("checkpoint/update-00002/optimizer.safetensors", "policy-last/model.safetensors"):
            (cell / name).parent.mkdir(parents=True)
            (cell / name).write_bytes(b"x" * 1000)
    (folder / "summary.json").write_text("{}")
    return folder


def tree(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def said(*args: object) -> str:
    result = CliRunner().invoke(runs_app, [str(arg) for arg in args], env={"COLUMNS": "200"}, catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


def test_runs_are_found_in_subfolders_and_their_cells_are_no_runs(run, tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "other/config.json").write_text("not JSON")
    assert find_runs(tmp_path) == [run] == find_runs(run)


def test_a_folder_that_is_not_there_is_bad_input(tmp_path):
    with pytest.raises(InputError, match="nowhere"):
        find_runs(tmp_path / "nowhere")


def test_cells_are_finished_failed_or_left(run):
    (run / "cells/taspo/searchqa/seed-0/eval.json").unlink()
    count = read_status(run).count()
    assert (count["finished"], count["failed"], count["left"], count["running"]) == (4, 1, 1, 0)


def test_the_cell_at_work_in_a_held_run_is_running(run):
    (run / "cells/taspo/searchqa/seed-0/eval.json").unlink()
    with (run / ".lock").open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert read_status(run).count()["running"] == 1
    assert read_status(run).count()["running"] == 0


def test_a_cell_that_was_never_begun_is_left_the_warm_start_too(run):
    for method in ("warm_start", "taspo"):
        place = run / "cells" / method / "searchqa/seed-1"
        for path in sorted(place.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        place.rmdir()
    status = read_status(run)
    assert status.count()["left"] == 2 and len(status.cells) == 6
    assert status.shape == "2 x 1 x 2"


def test_list_and_show_name_runs_states_and_reasons(run, monkeypatch):
    monkeypatch.setattr(runs_command, "console", Console(width=300))
    assert "runs/first" in said("list", run.parent)
    shown = said("show", run)
    assert "loss is <not> finite" in shown and "2/2" in shown
    assert "5 finished, 1 failed" in shown.replace("1 failed, 5 finished", "5 finished, 1 failed")


def test_gc_removes_checkpoints_of_finished_cells_and_leftovers_and_nothing_else(run):
    cell = run / "cells/taspo/searchqa/seed-0"
    (cell / "eval.json.tmp").write_text("{")
    (cell / "policy-best.tmp").mkdir()
    (cell / "policy-best.tmp/model.safetensors").write_bytes(b"half")
    before = tree(run)
    said("gc", run)
    gone = before - tree(run)
    kept = "cells/grpo/searchqa/seed-1/checkpoint/update-00002/optimizer.safetensors"
    assert kept in tree(run), "a failed cell goes on from its checkpoint"
    assert {name for name in before if "/checkpoint/" in name} - {kept} | {
        "cells/taspo/searchqa/seed-0/eval.json.tmp",
        "cells/taspo/searchqa/seed-0/policy-best.tmp/model.safetensors",
    } == gone
    assert not list(run.rglob("*.tmp"))


def test_a_dry_run_says_the_same_and_removes_nothing(run):
    before = tree(run)
    would = said("gc", run, "--dry-run")
    assert tree(run) == before
    assert would.replace("would remove", "removed") == said("gc", run)
    assert tree(run) - {".lock"} < before


def test_a_run_that_is_held_is_left_alone_and_so_are_those_named_with_it(run, tmp_path):
    other = build_run(tmp_path / "second", envs=("searchqa",), seeds=(0,), n=4, updates=2)
    (other / "eval.json.tmp").write_text("{")
    with (run / ".lock").open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(InputError, match="a process is working in this run"):
            collect([other, run], dry_run=False)
    assert (other / "eval.json.tmp").exists()


def test_a_folder_that_is_no_run_is_refused(tmp_path):
    with pytest.raises(InputError, match="not a run folder"):
        collect([tmp_path], dry_run=False)
