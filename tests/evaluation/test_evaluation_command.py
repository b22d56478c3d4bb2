"""`taspo-bench eval`: where it may write, what a broken-off one leaves, and what it says of episodes that broke."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rich.console import Console

from taspo_bench.api import Split
from taspo_bench.engines import ray_cluster
from taspo_bench.episode import Episode
from taspo_bench.errors import InputError
from taspo_bench.evaluation import command
from taspo_bench.evaluation.command import evaluate_policy
from taspo_bench.evaluation.evaluate import evaluate


def evaluated(out: Path | None, policy: str = "random", split: str = "valid_seen") -> None:
    evaluate_policy(Console(width=200), "searchqa", policy, [split], "embedded", 2, 0, 1.0, out)


@pytest.mark.parametrize("name", ["config.json", "cells"])
def test_a_run_and_its_cells_are_no_place_for_an_evaluation(tmp_path: Path, name: str) -> None:
    (tmp_path / "eval.json").write_text("{}")
    (tmp_path / name).mkdir() if name == "cells" else (tmp_path / name).write_text("{}")
    with pytest.raises(InputError, match=f"--out {tmp_path}: holds a run"):
        evaluated(tmp_path)
    assert (tmp_path / "eval.json").read_text() == "{}" and len(list(tmp_path.iterdir())) == 2


def test_a_file_in_the_way_is_found_before_anything_is_played(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "policy_by_name", None)
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InputError, match=f"--out {tmp_path / 'file'}: cannot write there"):
        evaluated(tmp_path / "file")


def test_an_evaluation_that_is_broken_off_leaves_no_record_of_an_earlier_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluated(tmp_path, "expert")
    assert json.loads((tmp_path / "eval.json").read_text())["method"] == "expert"

    def break_off(*args: object, **more: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "evaluate", break_off)
    with pytest.raises(KeyboardInterrupt):
        evaluated(tmp_path)
    assert not (tmp_path / "eval.json").exists()


@pytest.mark.parametrize(("policy", "said"), [("warm-start", 1.0), ("random", None)])
def test_the_record_says_the_temperature_of_a_policy_that_samples(
    tmp_path: Path, policy: str, said: float | None
) -> None:
    evaluated(tmp_path, policy)
    assert json.loads((tmp_path / "eval.json").read_text()).get("temperature") == said


def test_episodes_that_broke_are_counted_in_a_column_of_their_own_and_the_first_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluated(None)
    assert "error" not in capsys.readouterr().out

    def with_an_error(make_env, policy, split: Split, *args, **more) -> list[Episode]:  # type: ignore[no-untyped-def]
        episodes = evaluate(make_env, policy, split, *args, **more)
        episodes[1].error = "ValueError: no\n[shelf]"
        return episodes

    monkeypatch.setattr(command, "evaluate", with_an_error)
    evaluated(None)
    out = capsys.readouterr().out
    assert "errors" in out
    [line] = [line for line in out.splitlines() if "1 of 2 episodes ended with an error" in line]
    assert line.endswith("ValueError: no [shelf]")


def test_without_a_cluster_there_is_nothing_to_check() -> None:
    assert ray_cluster.check("") == ""
    with pytest.raises(InputError, match="give ray"):
        ray_cluster.check("slurm")
