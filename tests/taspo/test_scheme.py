"""TASPO, its token-level ablation and its two controls as credit schemes on groups."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixed_scorer import FixedScorer, arrays, episode, guided
from taspo_bench.credit import Credit
from taspo_bench.episode import Episode, Group
from taspo_bench.taspo.oracle_credit import OracleCredit, progress
from taspo_bench.taspo.random_weights import RandomWeights
from taspo_bench.taspo.scheme import TASPO
from taspo_bench.taspo.token_taspo import TokenTASPO

D = [0.6, 0.0, -0.8, -0.2]
WEIGHTS = [1.177, 1.039, 0.823, 0.961]
ACTION = (1, 3)
SPAN_ROWS = arrays([[9.0, d - 0.1, d + 0.1] for d in D])


def pair(scores: tuple[float, float] = (1.0, 0.0)) -> Group:
    return guided([episode(score, [ACTION] * 4, seed=seed) for seed, score in enumerate(scores)])


def test_a_success_and_a_failure_get_the_check_weights() -> None:
    scorer = FixedScorer({0: SPAN_ROWS, 1: SPAN_ROWS})
    won, lost = TASPO().credit(pair(), scorer)
    np.testing.assert_allclose(won.per_turn() / won.advantage, WEIGHTS, atol=5e-4)
    np.testing.assert_allclose(lost.per_turn() / lost.advantage, 2 - np.array(WEIGHTS), atol=5e-4)
    assert won.advantage == pytest.approx(0.7071, abs=1e-4) and lost.advantage == -won.advantage
    assert won.fallback == lost.fallback == ""


def test_one_request_serves_the_whole_group() -> None:
    scorer = FixedScorer({0: SPAN_ROWS, 1: SPAN_ROWS})
    TASPO().credit(pair(), scorer)
    assert scorer.requests == ["shift"]


def test_a_group_without_guidance_asks_for_nothing_and_is_plain_grpo() -> None:
    scorer = FixedScorer()
    group = Group("key-2", pair().episodes)
    credits = TASPO().credit(group, scorer)
    assert scorer.requests == []
    assert [credit.fallback for credit in credits] == ["no guidance", "no guidance"]
    assert all(credit.turns == [credit.advantage] * 4 for credit in credits)


def test_a_turn_without_a_text_takes_part_as_zero() -> None:
    group = pair()
    group.guidance[0].texts[1] = None  # type: ignore[union-attr]
    (won, _) = TASPO().credit(group, FixedScorer({0: SPAN_ROWS, 1: SPAN_ROWS}))
    np.testing.assert_allclose(won.per_turn() / won.advantage, WEIGHTS, atol=5e-4)


def test_one_turn_without_an_action_makes_the_whole_episode_fall_back() -> None:
    group = guided([episode(1.0, [ACTION, None, ACTION, ACTION]), episode(0.0, [ACTION] * 4, seed=1)])
    won, lost = TASPO().credit(group, FixedScorer({0: SPAN_ROWS, 1: SPAN_ROWS}))
    assert won.fallback == "turn 1: no action span" and won.turns == [won.advantage] * 4
    assert lost.fallback == ""


def test_equal_returns_give_no_credit() -> None:
    for credit in TASPO().credit(pair((1.0, 1.0)), FixedScorer({0: SPAN_ROWS, 1: SPAN_ROWS})):
        assert credit.turns == [0.0] * 4


def test_random_weights_are_taspos_own_in_another_order() -> None:
    scorer = FixedScorer({0: SPAN_ROWS, 1: SPAN_ROWS})
    for ours, random in zip(TASPO().credit(pair(), scorer), RandomWeights().credit(pair(), scorer), strict=True):
        assert sorted(ours.turns) == sorted(random.turns)  # type: ignore[type-var]


def test_random_weights_do_permute_and_are_reproducible() -> None:
    rows = arrays([[0.0, d, d] for d in np.linspace(-1, 1, 12)])
    group = guided([episode(1.0, [ACTION] * 12), episode(0.0, [ACTION] * 12, seed=1)])
    scorer = FixedScorer({0: rows, 1: rows})
    first, again = RandomWeights().credit(group, scorer), RandomWeights().credit(group, scorer)
    assert first[0].turns == again[0].turns != TASPO().credit(group, scorer)[0].turns


def test_token_level_weights_follow_steps_5_to_7_over_tokens() -> None:
    rows = arrays([[0.6, 0.0], [-0.8, -0.2]])
    group = guided([episode(1.0, [(0, 2)] * 2, tokens=2), episode(0.0, [(0, 2)] * 2, tokens=2, seed=1)])
    won, _ = TokenTASPO().credit(group, FixedScorer({0: rows, 1: rows}))
    np.testing.assert_allclose(np.concatenate(won.turns) / won.advantage, WEIGHTS, atol=5e-4)  # type: ignore[arg-type]


def test_a_token_that_was_not_sampled_or_has_no_finite_shift_keeps_weight_one() -> None:
    rows = arrays([[0.6, 0.0, 50.0], [np.nan, -0.2, -50.0]])
    group = guided([episode(1.0, [(0, 2)] * 2), episode(0.0, [(0, 2)] * 2, seed=1)])
    for member in group.episodes:
        for turn in member.turns:
            turn.sampled = 2
    won, _ = TokenTASPO().credit(group, FixedScorer({0: rows, 1: rows}))
    weights = np.array(won.turns) / won.advantage
    assert weights[0, 2] == weights[1, 2] == weights[1, 0] == 1.0
    assert weights.mean() == pytest.approx(1.0)


def test_progress_counts_optimal_steps_saved() -> None:
    assert progress(np.array([3.0, 2.0, 2.0, 3.0, np.inf, np.inf])).tolist() == [1.0, 0.0, -1.0, -1.0, 0.0]
    assert progress(np.array([np.inf, np.inf])).tolist() == [0.0]


def test_oracle_credit_favours_progress_in_success_and_spares_it_in_failure() -> None:
    remaining = {0: np.array([3.0, 2.0, 2.0, 1.0, 0.0]), 1: np.array([3.0, 2.0, 3.0, 3.0, 3.0])}
    scorer = FixedScorer(remaining=remaining)
    won, lost = OracleCredit().credit(Group("key-2", pair().episodes), scorer)
    assert won.per_turn()[1] < won.advantage < won.per_turn()[0]
    assert lost.per_turn()[1] < lost.advantage < lost.per_turn()[0] < 0
    q = np.tanh(np.array([0.25, -0.75, 0.25, 0.25]) / 0.5)
    np.testing.assert_allclose(won.per_turn() / won.advantage, 1 + 0.2 * (q - q.mean()))


any_shift = st.floats(allow_nan=True, allow_infinity=True)
spans = st.sampled_from([(0, 3), (1, 3), (0, 1), (2, 2), None])


@st.composite
def groups(draw: st.DrawFn) -> tuple[Group, FixedScorer]:
    scores = draw(st.lists(st.sampled_from([0.0, 0.25, 1.0]), min_size=1, max_size=5))
    episodes = [episode(score, draw(st.lists(spans, max_size=6)), seed=seed) for seed, score in enumerate(scores)]
    rows = st.lists(any_shift, min_size=3, max_size=3)
    shifts = {member.seed: arrays([draw(rows) for _ in member.turns]) for member in episodes}
    steps = st.sampled_from([0.0, 1.0, 2.0, 7.0, np.inf])
    remaining = {member.seed: np.array([draw(steps) for _ in range(len(member.turns) + 1)]) for member in episodes}
    return guided(episodes), FixedScorer(shifts, remaining)


def _bounded(credit: Credit, member: Episode) -> None:
    values = [np.broadcast_to(value, 3) for value in credit.turns]
    assert len(values) == len(member.turns)
    weights = np.concatenate(values) / credit.advantage if values and credit.advantage else np.ones(1)
    assert np.isfinite(weights).all()
    assert abs(weights.mean() - 1) < 1e-9
    assert (np.abs(weights - 1) < 0.4).all()


@pytest.mark.parametrize("scheme", [TASPO, TokenTASPO, RandomWeights, OracleCredit])
@given(case=groups())
def test_no_group_breaks_mean_bound_or_sign(
    scheme: Callable[[], TASPO | OracleCredit], case: tuple[Group, FixedScorer]
) -> None:
    group, scorer = case
    for credit, member in zip(scheme().credit(group, scorer), group.episodes, strict=True):
        _bounded(credit, member)


@given(case=groups())
def test_a_fallback_is_plain_grpo(case: tuple[Group, FixedScorer]) -> None:
    group, scorer = case
    for credit in TASPO().credit(group, scorer):
        if credit.fallback:
            assert credit.turns == [credit.advantage] * len(credit.turns)
