"""GRPO, Dr. GRPO, RLOO and GiGPO against values computed by hand."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixed_scorer import FixedScorer, episode
from taspo_baselines.dr_grpo import DrGRPO
from taspo_baselines.gigpo import GiGPO
from taspo_baselines.grpo import GRPO
from taspo_baselines.rloo import RLOO
from taspo_bench.credit import CreditScheme
from taspo_bench.episode import Group

PLAIN = [GRPO, DrGRPO, RLOO]


def group(*scores: float, turns: int = 2) -> Group:
    return Group("key-2", [episode(score, [(0, 3)] * turns, seed=seed) for seed, score in enumerate(scores)])


@pytest.mark.parametrize(("scheme", "won", "lost"), [(GRPO, 1.5, -0.5), (DrGRPO, 0.75, -0.25), (RLOO, 1.0, -1 / 3)])
def test_one_success_in_four(scheme: Callable[[], CreditScheme], won: float, lost: float) -> None:
    credits = scheme().credit(group(1, 0, 0, 0), FixedScorer())
    assert [credit.advantage for credit in credits] == pytest.approx([won, lost, lost, lost], abs=1e-5)
    assert all(credit.turns == [credit.advantage] * 2 for credit in credits)


@pytest.mark.parametrize("scheme", [*PLAIN, GiGPO])
@pytest.mark.parametrize("scores", [(1.0,), (0.1, 0.1, 0.1), (0.3, 0.1 + 0.2 - 5.551115123125783e-17)])
def test_equal_returns_and_a_group_of_one_give_zero(scheme: Callable[[], CreditScheme], scores: tuple[float]) -> None:
    for credit in scheme().credit(group(*scores), FixedScorer()):
        assert credit.advantage == 0 and not np.any(credit.turns)


@pytest.mark.parametrize("scheme", PLAIN)
@given(scores=st.lists(st.floats(0, 1), min_size=1, max_size=16))
def test_plain_advantages_add_up_to_zero_and_keep_the_order_of_returns(
    scheme: Callable[[], CreditScheme], scores: list[float]
) -> None:
    advantages = np.array([credit.advantage for credit in scheme().credit(group(*scores), FixedScorer())])
    assert abs(advantages.sum()) < 1e-6
    assert (np.diff(advantages[np.argsort(scores)]) >= -1e-9).all()


def test_the_baseline_does_not_weigh_trajectories_by_their_turns() -> None:
    short, long = episode(10.0, [(0, 3)] * 3), episode(0.0, [(0, 3)] * 27)
    credits = DrGRPO().credit(Group("key-2", [short, long]), FixedScorer())
    assert [credit.advantage for credit in credits] == [5.0, -5.0]


def test_gigpo_compares_turns_that_met_the_same_state() -> None:
    cases = group(1, 0)
    first, second = cases.episodes
    first.turns[0].state_key = second.turns[0].state_key = "hall"
    first.turns[1].state_key, second.turns[1].state_key = "cellar", "attic"
    won, lost = GiGPO().credit(cases, FixedScorer())
    outcome = 0.5 / (np.std([1, 0], ddof=1) + 1e-6)
    step = 0.475 / (np.std([0.95, 0], ddof=1) + 1e-6)
    np.testing.assert_allclose(won.per_turn(), [outcome + step, outcome])
    np.testing.assert_allclose(lost.per_turn(), [-outcome - step, -outcome])


def test_gigpo_groups_equal_states_inside_one_episode_too() -> None:
    cases = group(1, 0)
    first, second = cases.episodes
    first.turns[0].state_key = first.turns[1].state_key = "hall"
    second.turns[0].state_key, second.turns[1].state_key = "cellar", "attic"
    steps = GiGPO().step_advantages(cases)
    expected = 0.025 / (np.std([0.95, 1.0], ddof=1) + 1e-6)
    np.testing.assert_allclose(steps[0], [-expected, expected])
    assert not steps[1].any()


def test_gigpo_discounts_later_rewards() -> None:
    member = episode(1.0, [(0, 3)] * 3)
    member.turns[0].reward = 0.5
    np.testing.assert_allclose(GiGPO(gamma=0.9).discounted_returns(member), [0.5 + 0.81, 0.9, 1.0])


def test_gigpo_without_its_step_term_is_grpo() -> None:
    cases = group(1, 0, 0.5)
    ours, plain = GiGPO(omega=0.0).credit(cases, FixedScorer()), GRPO().credit(cases, FixedScorer())
    assert [credit.turns for credit in ours] == [credit.turns for credit in plain]
