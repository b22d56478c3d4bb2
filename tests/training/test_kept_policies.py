"""The policies that a cell leaves: what is kept, which is best, and that they can be used."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rich.console import Console
from safetensors.torch import load_file

from taspo_bench.config import resolve
from taspo_bench.evaluation.command import evaluate_policy
from taspo_bench.registry import make_env
from taspo_bench.training.cell import run_cell
from taspo_bench.training.kept_policies import BEST, LAST, keep_best
from taspo_bench.training.starting_policy import load_policy

SMALL = {
    "updates": 3,
    "tasks_per_update": 2,
    "group_size": 4,
    "eval_tasks": 5,
    "save_every": 1,
    "learning_rate": 0.01,
}


def settings(**overrides):
    return resolve("smoke", {}, {**SMALL, **overrides}, method="grpo", env="searchqa", seed=2)


@pytest.fixture(scope="module")
def cell(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("cell")
    run_cell(settings(), folder)
    return folder


def evaluated(cell: Path) -> dict:
    return json.loads((cell / "eval.json").read_text())["splits"]


def test_a_finished_cell_holds_the_last_and_the_best_policy_and_one_checkpoint(cell):
    assert sorted(path.name for path in cell.iterdir() if path.is_dir()) == [
        "checkpoint", "episodes", BEST, LAST,
    ]  # fmt: skip
    assert [path.name for path in (cell / "checkpoint").iterdir()] == ["update-00003"]


def test_the_last_policy_evaluated_from_its_folder_gives_the_cells_own_results(cell, tmp_path):
    records = evaluate_policy(Console(quiet=True), "searchqa", str(cell / LAST), [], "embedded", 5, 2, 0.4, tmp_path)
    assert records == evaluated(cell)


def test_a_cell_that_starts_from_the_last_policy_starts_with_its_weights(cell):
    policy = load_policy(settings(warm_start=str(cell / LAST)))
    trained = load_file(cell / "checkpoint/update-00003/model.safetensors")
    own = policy.model.state_dict()
    assert all((own[name] == value).all() for name, value in trained.items())


def test_best_is_the_checkpoint_after_the_window_of_most_success_and_the_first_of_equals(tmp_path):
    config = settings(updates=8, save_every=2)
    policy, env = load_policy(config), make_env("searchqa")
    success = [0.25, 0.25, 0.5, 0.25, 0.25, 0.5, 0.0, 1.0]  # means 0.25, 0.375, 0.375, 0.5
    best = []
    for done in range(1, 9):
        with (tmp_path / "metrics.jsonl").open("a") as file:
            file.write(json.dumps({"success": success[done - 1]}) + "\n")
        if done % 2 == 0:
            keep_best(tmp_path, config, policy, env, done)
            best.append(json.loads((tmp_path / BEST / "card.json").read_text())["updates"])
    assert best == [2, 4, 4, 8]


def test_a_last_window_cut_short_by_the_end_counts_too(tmp_path):
    config = settings(updates=3, save_every=2)
    policy, env = load_policy(config), make_env("searchqa")
    for done, lines in ((2, [0.5, 0.5]), (3, [0.75])):
        with (tmp_path / "metrics.jsonl").open("a") as file:
            file.writelines(json.dumps({"success": value}) + "\n" for value in lines)
        keep_best(tmp_path, config, policy, env, done)
    assert json.loads((tmp_path / BEST / "card.json").read_text())["updates"] == 3


def test_a_resumed_cell_keeps_the_same_best_policy(cell, tmp_path):
    class Killed(BaseException):
        pass

    def kill(phase: str, done: int, total: int) -> None:
        if phase == "train" and done == 2:
            raise Killed

    with pytest.raises(Killed):
        run_cell(settings(), tmp_path, kill)
    run_cell(settings(), tmp_path)
    for name in (BEST, LAST):
        for file in ("model.safetensors", "card.json"):
            assert (tmp_path / name / file).read_bytes() == (cell / name / file).read_bytes()
