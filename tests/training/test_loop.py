"""The training loop: it learns from the group's outcomes, repeats itself, and knows no scheme by name."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest
import torch

from corridor import Corridor
from taspo_baselines.gigpo import GiGPO
from taspo_baselines.grpo import GRPO
from taspo_bench.config import CellConfig
from taspo_bench.credit import Credit, group_advantages
from taspo_bench.episode import Guidance
from taspo_bench.taspo.analyzers.replay import ReplayAnalyzer
from taspo_bench.taspo.scheme import TASPO
from taspo_bench.training.loop import Trainer, update_starts
from tiny_world import corridor_policy, make_corridor

CONFIG = {"updates": 3, "tasks_per_update": 3, "group_size": 4, "learning_rate": 1e-2, "env": "corridor", "seed": 5}


class EvenTokens:
    """Made-up credit, token by token: +1 for even ids, -1 for odd ones."""

    name = "even_tokens"
    uses_guidance = False

    def credit(self, group, scorer):
        return [
            Credit([1.0 - 2.0 * (np.array(turn.response_ids) % 2) for turn in episode.turns], 1.0)
            for episode in group.episodes
        ]


def trainer_of(scheme, analyzer=None, **settings) -> Trainer:
    config = CellConfig(**{**CONFIG, "kl_coef": 0.0, "entropy_coef": 0.0, **settings})
    return Trainer(config, corridor_policy(), scheme, analyzer, make_corridor, ["key-1", "key-2", "key-3"])


def without_times(metrics: dict[str, object]) -> str:
    return json.dumps({key: value for key, value in metrics.items() if key != "seconds"})


def spread_outcomes(trainer: Trainer) -> None:
    """Give the untrained policy's episodes unequal returns, so that there is something to learn."""
    play = trainer.play

    def spread(number):
        groups = play(number)
        for group in groups:
            for place, episode in enumerate(group.episodes):
                episode.score, episode.won = float(place % 2), bool(place % 2)
        return groups

    trainer.play = spread


class Advised:
    """The same hint for every turn."""

    name = "advised"

    def guide(self, group):
        return [Guidance(["take key"] * len(episode.turns), "turn") for episode in group.episodes]


def test_scoring_reuses_the_contexts_of_the_rollout_and_learning_does_not_keep_them():
    trainer = trainer_of(TASPO(), Advised())
    spread_outcomes(trainer)
    known = []
    shift = trainer.scorer.shift
    trainer.scorer.shift = lambda episodes, guidance: (
        known.extend(id(episode) in trainer.scorer._contexts for episode in episodes) or shift(episodes, guidance)
    )
    assert trainer.update(0).metrics["weighted"] > 0
    assert known and all(known) and not trainer.scorer._contexts

    in_front = trainer_of(TASPO(), Advised(), guidance_scope="trajectory")
    in_front.play(0)
    assert not in_front.scorer._contexts


def test_the_same_seed_gives_the_same_metrics():
    runs = []
    for _ in range(2):
        trainer = trainer_of(GRPO())
        spread_outcomes(trainer)
        runs.append([without_times(trainer.update(number).metrics) for number in range(3)])
    assert runs[0] == runs[1]
    assert json.loads(runs[0][0])["grad_norm"] > 0


def test_a_group_with_equal_returns_moves_nothing():
    trainer = trainer_of(GRPO())
    before = {name: value.clone() for name, value in trainer.policy.model.state_dict().items()}
    trained = trainer.update(0)
    assert trained.metrics["groups_skipped"] == 1.0
    assert all(torch.equal(value, before[name]) for name, value in trainer.policy.model.state_dict().items())


@pytest.mark.parametrize("is_rewarded", [True, False])
def test_a_scheme_may_learn_from_equal_returns_where_it_finds_credit(is_rewarded):
    trainer = trainer_of(GiGPO())
    play = trainer.play

    def rewarded(number):
        groups = play(number)
        for place, episode in enumerate(groups[0].episodes):
            episode.turns[place % 2].reward = float(is_rewarded)
        return groups

    trainer.play = rewarded
    trained = trainer.update(0)
    assert trained.metrics["groups_skipped"] == 1.0
    assert (trained.metrics["grad_norm"] > 0) is is_rewarded
    credited = [episode for episode in trained.episodes if any(episode.credit)]
    assert {episode.task_id for episode in credited} == ({trained.episodes[0].task_id} if is_rewarded else set())


def test_credited_tokens_become_more_likely():
    trainer = trainer_of(EvenTokens(), learning_rate=3e-3)
    spread_outcomes(trainer)

    def even(number: int) -> float:
        turns = [turn for group in trainer.play(number) for episode in group.episodes for turn in episode.turns]
        return float(np.mean([token % 2 == 0 for turn in turns for token in turn.response_ids[: turn.sampled]]))

    before = even(100)
    for number in range(20):
        trainer.update(number)
    assert even(100) > before + 0.2


def test_gradient_touches_only_what_sampled_tokens_need():
    trainer = trainer_of(GRPO())
    spread_outcomes(trainer)
    groups = trainer.play(0)
    for group in groups:
        for episode in group.episodes:
            for turn in episode.turns:
                turn.sampled = 0
    credits = [[Credit.uniform(episode, 1.0) for episode in group.episodes] for group in groups]
    before = {name: value.clone() for name, value in trainer.policy.model.state_dict().items()}
    assert trainer.learn(0, groups, credits)["grad_norm"] == 0.0
    assert all(torch.equal(value, before[name]) for name, value in trainer.policy.model.state_dict().items())


def test_every_training_task_is_played_once_before_any_is_played_again():
    config = CellConfig(**CONFIG | {"tasks_per_update": 2})
    starts = [start for number in range(3) for start in update_starts(config, ["key-1", "key-2", "key-3"], number)]
    tasks = [start.task_id for start in starts[:: config.group_size]]
    assert Counter(tasks) == {"key-1": 2, "key-2": 2, "key-3": 2}
    assert set(tasks[:3]) == {"key-1", "key-2", "key-3"}


def test_members_of_a_group_share_the_task_and_draw_apart():
    trainer = trainer_of(GRPO())
    for group in trainer.play(0):
        assert {episode.task_id for episode in group.episodes} == {group.task_id}
        assert len({tuple(episode.actions) for episode in group.episodes}) > 1


def test_a_guided_scheme_runs_and_keeps_credit_with_the_episodes():
    trainer = trainer_of(TASPO(), ReplayAnalyzer(Corridor(), scope="turn"))
    spread_outcomes(trainer)
    trained = trainer.update(0)
    assert trained.metrics["sign_flips"] == 0.0
    advantages = group_advantages([0.0, 1.0, 0.0, 1.0])
    for place, episode in enumerate(trained.episodes):
        assert episode.advantage == pytest.approx(advantages[place % 4])
        assert np.mean(episode.credit) == pytest.approx(episode.advantage)


def test_kl_to_the_start_is_zero_at_first_and_grows():
    trainer = trainer_of(GRPO(), kl_coef=0.1, learning_rate=1e-2)
    spread_outcomes(trainer)
    divergence = [trainer.update(number).metrics["kl"] for number in range(3)]
    assert divergence[0] == pytest.approx(0.0, abs=1e-6)
    assert divergence[2] > 1e-4
