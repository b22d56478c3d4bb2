"""TRL's loss is ours: the same episodes and scheme give the loss and the gradients of the own loop."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

pytest.importorskip("trl", reason="trl is not installed: pip install 'taspo-bench[trl]'")

from corridor import Corridor
from taspo_baselines.grpo import GRPO
from taspo_baselines.rlsd import RLSD
from taspo_bench.config import CellConfig
from taspo_bench.engines.trl_settings import make_config
from taspo_bench.engines.trl_trainer import AgentGRPOTrainer
from taspo_bench.episode import Episode
from taspo_bench.taspo.analyzers.replay import ReplayAnalyzer
from taspo_bench.taspo.scheme import TASPO
from taspo_bench.training.loop import Trained, Trainer, grouped
from tiny_world import corridor_policy, make_corridor

TASKS = ["key-1", "key-2", "key-3"]
CONFIG = {
    "updates": 1, "tasks_per_update": 3, "group_size": 4, "learning_rate": 1e-3, "env": "corridor", "seed": 5,
    "kl_coef": 0.0, "entropy_coef": 0.0, "grad_clip": 1e9, "engine": "trl",
}  # fmt: skip
OFFSETS = (0.0, 0.1, -0.1, 0.5, -0.5, -2.0)


def settled(episodes: list[Episode]) -> list[Episode]:
    """Unequal returns for two groups of three; rollout log-probabilities so far off that every kind of clip acts."""
    for place, episode in enumerate(episodes):
        episode.score, episode.won = (float(place % 3), place % 3 == 2) if place < 8 else (0.0, False)
        for number, turn in enumerate(episode.turns):
            turn.logprobs = [
                value + OFFSETS[(place + number + token) % len(OFFSETS)] if token < turn.sampled else value
                for token, value in enumerate(turn.logprobs)
            ]
        del episode.turns[1 + place % 4 :]
    return episodes


def scheme_with_analyzer(scheme: str):
    analyzer = ReplayAnalyzer(Corridor(), scope="trajectory", reveal=True, source="generic")
    return {"grpo": (GRPO(), None), "taspo": (TASPO(), analyzer), "rlsd": (RLSD(), analyzer)}[scheme]


def own(config: CellConfig, scheme: str) -> tuple[float, dict[str, torch.Tensor], Trained]:
    """Loss and gradients of one step of the own loop."""
    trainer = Trainer(config, corridor_policy(), *scheme_with_analyzer(scheme), make_corridor, TASKS)
    play = trainer.play
    trainer.play = lambda number: grouped(
        settled([episode for group in play(number) for episode in group.episodes]), config, number
    )
    trained = trainer.update(0)
    gradients = {name: weight.grad.clone() for name, weight in trainer.policy.model.named_parameters()}
    return trained.metrics["loss"], gradients, trained


def through_trl(config: CellConfig, scheme: str, folder: Path) -> tuple[float, dict[str, torch.Tensor], Trained]:
    """Loss and gradients, summed over its steps, of one update of the TRL engine, from a whole training run."""
    from transformers import TrainerCallback

    reports: list[Trained] = []
    gradients: dict[str, torch.Tensor] = {}
    policy = corridor_policy()

    class Keep(TrainerCallback):
        def on_pre_optimizer_step(self, args, state, control, **_):
            for name, weight in policy.model.named_parameters():
                gradients[name] = gradients.get(name, 0) + weight.grad

    args = make_config(config, folder, 1)
    args.save_strategy = "no"
    trainer = AgentGRPOTrainer(
        config, policy, *scheme_with_analyzer(scheme), make_corridor, TASKS, args, reports.append
    )
    play = trainer.play
    trainer.play = lambda number: settled(play(number))
    trainer.add_callback(Keep())
    trainer.train()
    return reports[0].metrics["loss"], gradients, reports[0]


CASES = [("taspo", 3)]
SLOW_CASES = [("grpo", 12), ("taspo", 12), ("taspo", 1), ("rlsd", 3)]


@pytest.mark.parametrize(
    ("scheme", "rows"), [*CASES, *(pytest.param(*case, marks=pytest.mark.slow) for case in SLOW_CASES)]
)
def test_loss_and_gradients_agree_with_the_own_loop(scheme, rows, tmp_path):
    config = CellConfig(**CONFIG, trl={"per_device_train_batch_size": rows})
    loss, gradients, trained = own(config, scheme)
    trl_loss, trl_gradients, trl_trained = through_trl(config, scheme, tmp_path)
    assert abs(loss) > 1e-2 and trl_loss == pytest.approx(loss, abs=1e-4)
    assert_close(trl_gradients, gradients)
    credits = [episode.credit for episode in trained.episodes]
    assert [episode.credit for episode in trl_trained.episodes] == [pytest.approx(given) for given in credits]
    assert trained.metrics["clip_fraction"] > 0.1 and trl_trained.metrics["clip_fraction"] > 0.1
    weights = [weight for episode in trained.episodes for weight in episode.weights]
    assert scheme == "grpo" or max(abs(weight - 1) for weight in weights) > 1e-4


def test_the_entropy_bonus_weighs_tokens_as_the_loss_does(tmp_path):
    config = CellConfig(**CONFIG | {"entropy_coef": 5.0}, trl={"per_device_train_batch_size": 3})
    _, gradients, _ = own(config, "grpo")
    _, without, _ = own(CellConfig(**CONFIG), "grpo")
    _, trl_gradients, _ = through_trl(config, "grpo", tmp_path)
    assert_close(trl_gradients, gradients)
    assert max(float((gradients[name] - without[name]).abs().max()) for name in gradients) > 1e-3


def test_the_gradients_of_two_minibatches_have_the_whole_update_as_their_mean(tmp_path):
    still = CONFIG | {"learning_rate": 1e-12}
    _, gradients, _ = own(CellConfig(**still), "grpo")
    _, halves, trained = through_trl(CellConfig(**still | {"minibatches": 2}), "grpo", tmp_path)
    assert_close({name: gradient / 2 for name, gradient in halves.items()}, gradients)
    assert trained.metrics["update"] == 0


def assert_close(found: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]) -> None:
    """Gradients agree to 1e-4 of the largest entry of all."""
    largest = max(float(gradient.abs().max()) for gradient in expected.values())
    assert largest > 1e-2
    for name, gradient in expected.items():
        torch.testing.assert_close(found[name], gradient, atol=1e-4 * largest, rtol=0, msg=name)
