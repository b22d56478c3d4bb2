"""One cell from settings to evaluation: same seed same bytes, and a broken-off cell ends where a whole one does."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import torch

from chat_world import chat_policy
from taspo_bench.config import WARM_START, resolve
from taspo_bench.episode import read_episodes
from taspo_bench.registry import make_env
from taspo_bench.training.cell import bank_note, run_cell, warm_start_note

SMALL = {"updates": 3, "tasks_per_update": 3, "group_size": 4, "eval_tasks": 4, "save_every": 1}


def settings(**overrides):
    return resolve("smoke", {}, {**SMALL, **overrides}, method="taspo", env="searchqa", seed=3)


def metrics(folder: Path) -> list[str]:
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [json.dumps({key: value for key, value in line.items() if key != "seconds"}) for line in lines]


def results(folder: Path) -> dict:
    record = json.loads((folder / "eval.json").read_text())
    record.pop("seconds")
    return record


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    run_cell(settings(), folder)
    return folder


def test_the_same_seed_gives_byte_equal_metrics_apart_from_times(whole, tmp_path):
    run_cell(settings(), tmp_path)
    assert metrics(tmp_path) == metrics(whole) and len(metrics(whole)) == 3
    assert results(tmp_path) == results(whole)


class Killed(BaseException):
    """Stands for a kill between two updates."""


def test_a_cell_that_was_broken_off_ends_with_the_same_numbers(whole, tmp_path):
    def kill(phase: str, done: int, total: int) -> None:
        if phase == "train" and done == 2:
            raise Killed

    with pytest.raises(Killed):
        run_cell(settings(), tmp_path, kill)
    assert not (tmp_path / "eval.json").exists()
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"update": 2, "half a li')
    run_cell(settings(), tmp_path)
    assert metrics(tmp_path) == metrics(whole)
    assert results(tmp_path) == results(whole)
    phases = [json.loads(line)["seconds"] for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    trained = json.loads((tmp_path / "eval.json").read_text())["seconds"]["train"]
    assert trained == pytest.approx(sum(sum(phase.values()) for phase in phases))  # before the kill and after it


def test_only_the_last_checkpoint_is_kept(whole):
    assert [path.name for path in (whole / "checkpoint").iterdir()] == ["update-00003"]


def test_every_evaluation_task_is_played_once_and_stored(whole):
    for name, record in results(whole)["splits"].items():
        episodes = list(read_episodes(whole / "episodes" / f"eval-{name}.jsonl.gz"))
        assert len(episodes) == len({episode.task_id for episode in episodes}) == record["n"] == 4


def test_stored_training_episodes_carry_credit_and_guidance(whole):
    episodes = [e for path in sorted((whole / "episodes").glob("train-*")) for e in read_episodes(path)]
    credited = [episode for episode in episodes if episode.credit]
    assert len(episodes) == 3 * 3 * 4 and credited
    assert all(len(episode.credit) == len(episode.turns) for episode in credited)
    assert any(episode.guidance for episode in credited)


def test_the_configuration_names_data_splits_and_warm_start(whole):
    record = json.loads((whole / "config.json").read_text())
    env = make_env("searchqa")
    assert record["data_stamp"]["sha256"] == env.data_stamp().sha256
    assert record["splits"]["valid_seen"]["sha256"] == env.splits()["valid_seen"].sha256
    assert record["max_turns"] == env.max_steps
    assert record["note"] == ""
    assert record["processor"].endswith(torch.backends.cpu.get_cpu_capability())


def test_a_warm_start_cell_is_evaluated_and_not_trained(tmp_path):
    run_cell(settings().model_copy(update={"method": WARM_START}), tmp_path)
    assert not (tmp_path / "metrics.jsonl").exists()
    assert results(tmp_path)["method"] == WARM_START


def test_a_model_that_is_only_evaluated_gets_nothing_to_train(tmp_path, monkeypatch):
    policy = chat_policy()
    policy.model.save_pretrained(tmp_path / "model")
    policy.format.tokenizer.save_pretrained(tmp_path / "model")
    monkeypatch.setitem(sys.modules, "peft", None)  # as if it were not installed
    config = settings(policy=str(tmp_path / "model"), max_turns=1, eval_tasks=1, eval_splits=["valid_seen"])
    run_cell(config.model_copy(update={"method": WARM_START}), tmp_path / "cell")
    assert results(tmp_path / "cell")["splits"]["valid_seen"]["n"] == 1


@pytest.mark.parametrize("name", ["alfworld", "webshop", "searchqa"])
def test_the_shipped_warm_start_fits_the_embedded_data(name):
    assert warm_start_note(settings().model_copy(update={"env": name}), make_env(name)) == ""


def test_a_warm_start_for_other_data_is_said_so():
    class Elsewhere(type(make_env("searchqa"))):
        def data_stamp(self):
            stamp = super().data_stamp()
            return type(stamp)("official", "1", "f" * 64)

    note = warm_start_note(settings(), Elsewhere())
    assert "trained on embedded data" in note and "taspo-bench warm-start" in note


def test_a_bank_that_stays_empty_is_noted():
    config = settings().model_copy(update={"guidance_bank": 4, "updates": 5, "tasks_per_update": 2})
    assert "guidance_bank 4 has no effect: 10 groups of 10" in bank_note(config, 10)
    assert bank_note(config, 9) == "" and bank_note(config.model_copy(update={"guidance_bank": 0}), 10) == ""
