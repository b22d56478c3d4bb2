"""RLSD, SERL, StepOPSD and AgentOPSD against values computed by hand."""

from __future__ import annotations

from collections.abc import Callable
from math import exp, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixed_scorer import FixedScorer, arrays, episode, guided
from taspo_baselines.agent_opsd import AgentOPSD
from taspo_baselines.rlsd import RLSD
from taspo_baselines.serl import SERL
from taspo_baselines.step_opsd import StepOPSD
from taspo_bench.credit import Array, Credit, CreditScheme
from taspo_bench.episode import Group

GUIDED = [RLSD, SERL, StepOPSD, AgentOPSD]


def credits_of(
    scheme: CreditScheme, rows: list[list[float]], span: tuple[int, int] = (1, 2), update: int = 0
) -> tuple[Credit, Credit]:
    """Credit of a success and of a failure with the same shifts, two tokens a turn."""
    spans = [span] * len(rows)
    group = guided([episode(1.0, spans, tokens=2), episode(0.0, spans, tokens=2, seed=1)], update)
    shifts = arrays(rows)
    won, lost = scheme.credit(group, FixedScorer({0: shifts, 1: shifts}))
    return won, lost


def weights(credit: Credit) -> Array:
    return np.array(credit.turns) / credit.advantage


def test_rlsd_mixes_the_clipped_likelihood_ratio_into_the_advantage() -> None:
    won, lost = credits_of(RLSD(), [[0.1, 3.0], [-0.1, -3.0]])
    np.testing.assert_allclose(weights(won), [[0.5 + 0.5 * exp(0.1), 1.1], [0.5 + 0.5 * exp(-0.1), 0.9]])
    np.testing.assert_allclose(weights(lost), [[0.5 + 0.5 * exp(-0.1), 0.9], [0.5 + 0.5 * exp(0.1), 1.1]])


@pytest.mark.parametrize(("update", "mix"), [(0, 0.5), (25, 0.25), (50, 0.0), (90, 0.0)])
def test_rlsd_fades_out_over_50_updates(update: int, mix: float) -> None:
    won, _ = credits_of(RLSD(), [[9.0, 9.0], [0.0, 0.0]], update=update)
    np.testing.assert_allclose(weights(won), [[1 + 0.2 * mix] * 2, [1.0] * 2])


def test_serl_leaves_reasoning_tokens_alone() -> None:
    won, _ = credits_of(SERL(), [[3.0, 3.0], [-3.0, -3.0]])
    np.testing.assert_allclose(weights(won), [[1.0, 1.1], [1.0, 0.9]])


def test_serl_leaves_a_turn_without_an_action_alone() -> None:
    group = guided([episode(1.0, [None, (0, 2)], tokens=2), episode(0.0, [(0, 2)] * 2, tokens=2, seed=1)])
    shifts = arrays([[3.0, 3.0], [3.0, 3.0]])
    won, _ = SERL().credit(group, FixedScorer({0: shifts, 1: shifts}))
    np.testing.assert_allclose(weights(won), [[1.0, 1.0], [1.1, 1.1]])


def test_step_opsd_gives_every_step_the_same_mean_absolute_change() -> None:
    won, _ = credits_of(StepOPSD(), [[0.1, -0.2], [5.0, -5.0]])
    small = [1 / (1 + exp(-0.1)) * 2 - 1, 1 / (1 + exp(0.2)) * 2 - 1]
    raw = np.array([[0.5 * small[0], 0.5 * small[1]], [0.1, -0.1]])
    strengths = np.abs(raw).mean(axis=1)
    np.testing.assert_allclose(weights(won), 1 + raw * (strengths.mean() / strengths)[:, None])
    np.testing.assert_allclose(np.abs(weights(won) - 1).mean(axis=1), [strengths.mean()] * 2)


def test_step_opsd_leaves_a_step_without_a_shift_alone() -> None:
    won, _ = credits_of(StepOPSD(), [[0.0, 0.0], [5.0, -5.0]])
    np.testing.assert_allclose(weights(won), [[1.0, 1.0], [1.05, 0.95]])


def test_agent_opsd_follows_the_belief() -> None:
    won, lost = credits_of(AgentOPSD(), [[0.2, 0.2], [-0.5, -0.1], [0.9, 0.0]])
    e = [0.4, -0.6, 0.9]
    c = [e[0], 0.95 * e[0] + e[1], 0.95 * (0.95 * e[0] + e[1]) + e[2]]
    belief = np.array([0.5, *(1 / (1 + exp(-value)) for value in c)])
    change = np.diff(belief)
    z = (change - change.mean()) / change.std()
    np.testing.assert_allclose(weights(won), 0.5 + 0.5 * np.clip(1 + 0.2 * z, 0.8, 1.2), atol=1e-6)
    np.testing.assert_allclose(weights(lost), 0.5 + 0.5 * np.clip(1 - 0.2 * z, 0.8, 1.2), atol=1e-6)


def test_agent_opsd_starts_from_the_success_rate_kept_away_from_certainty() -> None:
    even = AgentOPSD().weights(np.array([1.0, 1.0]), 0.5, 1.0)
    sure = AgentOPSD().weights(np.array([1.0, 1.0]), 1.0, 1.0)
    np.testing.assert_allclose(sure, AgentOPSD().weights(np.array([1.0, 1.0]), 0.999, 1.0))
    assert even.tolist() == pytest.approx([1.2, 0.8], abs=1e-6)
    start = log(0.999 / 0.001)
    belief = 1 / (1 + np.exp(-np.array([start, start + 1, start + 1.95])))
    assert np.diff(belief)[0] > np.diff(belief)[1] and sure[0] > sure[1]


@pytest.mark.parametrize("scheme", GUIDED)
def test_equal_shifts_of_zero_are_plain_grpo(scheme: Callable[[], CreditScheme]) -> None:
    for credit in credits_of(scheme(), [[0.0, 0.0]] * 3):
        np.testing.assert_allclose(weights(credit), np.ones_like(weights(credit)))


@pytest.mark.parametrize("scheme", GUIDED)
def test_without_guidance_the_advantage_stays(scheme: Callable[[], CreditScheme]) -> None:
    scorer = FixedScorer()
    group = Group("key-2", [episode(1.0, [(0, 1)]), episode(0.0, [(0, 1)])])
    for credit in scheme().credit(group, scorer):
        assert credit.fallback == "no guidance" and credit.turns == [credit.advantage]
    assert scorer.requests == []


shift = st.floats(allow_nan=True, allow_infinity=True)


@pytest.mark.parametrize(("scheme", "bound"), [(RLSD, 0.1), (SERL, 0.1), (AgentOPSD, 0.1)])
@given(rows=st.lists(st.lists(shift, min_size=2, max_size=2), min_size=1, max_size=6))
def test_no_shift_moves_a_weight_past_its_bound(
    scheme: Callable[[], CreditScheme], bound: float, rows: list[list[float]]
) -> None:
    for credit in credits_of(scheme(), rows):
        assert (np.abs(weights(credit) - 1) <= bound + 1e-12).all()


@given(rows=st.lists(st.lists(shift, min_size=2, max_size=2), min_size=1, max_size=6))
def test_step_opsd_is_finite_whatever_the_shifts(rows: list[list[float]]) -> None:
    for credit in credits_of(StepOPSD(), rows):
        assert np.isfinite(weights(credit)).all()
