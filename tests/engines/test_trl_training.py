"""Training through TRL as a cell does it: KL to the start, and going on from a checkpoint."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

pytest.importorskip("trl", reason="trl is not installed: pip install 'taspo-bench[trl]'")

from graded_world import CONFIG, TASKS, make_graded
from taspo_baselines.grpo import GRPO
from taspo_bench.config import CellConfig
from taspo_bench.engines.trl_training import train
from taspo_bench.training import record
from taspo_bench.training.loggers import CellLog
from taspo_bench.training.loop import Trainer
from tiny_world import corridor_policy

COUNTED = ("env_steps", "score", "loss", "kl", "entropy", "grad_norm")


class Killed(Exception):
    """Stands for the end of the process."""


def trained(
    folder: Path, killed_at: int | None = None, **settings: int
) -> tuple[dict[str, torch.Tensor], list[dict[str, float]]]:
    """Weights after training in a folder, and its lines of metrics."""
    config = CellConfig(**{**CONFIG, **settings}, engine="trl")
    policy = corridor_policy()
    folder.joinpath("episodes").mkdir(parents=True, exist_ok=True)

    def notify(phase: str, done: int, total: int) -> None:
        if done == killed_at:
            raise Killed

    with CellLog(config, folder) as log:
        train(config, folder, policy, GRPO(), None, make_graded, TASKS, notify, log)
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return policy.model.state_dict(), lines


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return trained(tmp_path_factory.mktemp("whole"))


def test_a_run_broken_off_before_a_checkpoint_ends_at_the_same_weights(whole, tmp_path):
    with pytest.raises(Killed):
        trained(tmp_path, killed_at=2)
    weights, lines = trained(tmp_path)
    for name, weight in whole[0].items():
        torch.testing.assert_close(weights[name], weight, atol=1e-6, rtol=0, msg=name)
    assert [line["update"] for line in lines] == [0, 1]
    for line, before in zip(lines, whole[1], strict=True):
        assert [line[key] for key in COUNTED] == pytest.approx([before[key] for key in COUNTED], rel=1e-4, abs=1e-6)


def test_two_updates_with_kl_and_entropy_are_those_of_the_own_loop(whole):
    own = Trainer(CellConfig(**CONFIG), corridor_policy(), GRPO(), None, make_graded, TASKS)
    expected = [own.update(number).metrics for number in range(2)]
    weights, lines = whole
    assert lines[1]["kl"] > 1e-6
    for line, metrics in zip(lines, expected, strict=True):
        learned = [metrics[key] for key in ("kl", "entropy", "env_steps")]
        assert [line[key] for key in ("kl", "entropy", "env_steps")] == pytest.approx(learned, rel=2e-2, abs=1e-6)
    start, after = corridor_policy().model.state_dict(), own.policy.model.state_dict()
    travelled = torch.cat([(after[name] - start[name]).flatten() for name in after])
    apart = torch.cat([(weights[name] - after[name]).flatten() for name in after])
    assert float(travelled.norm()) > 0 and float(apart.norm()) < 0.02 * float(travelled.norm())


def test_no_updates_leave_an_empty_log_for_the_cell_to_sum_up(tmp_path):
    assert trained(tmp_path, updates=0)[1] == []
    assert record.seconds(tmp_path) == 0.0
