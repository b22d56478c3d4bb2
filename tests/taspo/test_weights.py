"""Invariants of the TASPO rule under inputs that are out to break it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taspo_bench.errors import InputError
from taspo_bench.taspo.weights import WeightRule, fallback_reason

any_float = st.floats(allow_nan=True, allow_infinity=True, width=64)
finite = st.floats(allow_nan=False, allow_infinity=False, width=64)
usual = st.floats(-20, 20)
rules = st.builds(
    WeightRule,
    eps=st.floats(0, 1).filter(lambda eps: eps == 0 or eps > 1e-9),
    tau=st.floats(1e-3, 100),
    kappa=st.floats(0, 1),
    orient=st.booleans(),
)
advantages = st.floats(-1e6, 1e6)


def test_check_vector_of_a_failure() -> None:
    weights = WeightRule(eps=0.4, tau=1.0).weights(np.array([0.6, 0.0, -0.8, -0.2]), advantage=-1.0)
    np.testing.assert_allclose(weights, [0.879, 0.980, 1.121, 1.020], atol=5e-4)


def test_check_vector_of_a_success() -> None:
    weights = WeightRule(eps=0.4, tau=0.5).weights(np.array([0.6, 0.0, -0.8, -0.2]), advantage=1.0)
    np.testing.assert_allclose(weights, [1.177, 1.039, 0.823, 0.961], atol=5e-4)


@given(rules, st.lists(usual, min_size=1, max_size=50), advantages)
def test_weights_average_one_and_stay_within_eps(rule: WeightRule, scores: list[float], advantage: float) -> None:
    weights = rule.weights(np.array(scores), advantage)
    assert abs(weights.mean() - 1) < 1e-12
    assert (np.abs(weights - 1) < rule.eps).all() or (weights == 1).all()


@given(rules, st.lists(any_float, min_size=1, max_size=50), any_float)
def test_no_input_breaks_mean_bound_or_sign(rule: WeightRule, scores: list[float], advantage: float) -> None:
    weights = rule.weights(np.array(scores), advantage)
    assert np.isfinite(weights).all()
    assert abs(weights.mean() - 1) < 1e-12
    assert (np.abs(weights - 1) <= rule.eps).all()
    assert (weights > 0).all() or rule.eps == 1


@given(st.lists(usual, min_size=2, max_size=30), st.floats(0.1, 10))
def test_a_failure_mirrors_a_success(scores: list[float], advantage: float) -> None:
    rule = WeightRule()
    gained = rule.weights(np.array(scores), advantage) - 1
    blamed = rule.weights(np.array(scores), -advantage) - 1
    np.testing.assert_allclose(gained, -blamed, atol=1e-12)


@given(st.lists(usual, min_size=2, max_size=30), st.floats(0.1, 10))
def test_a_better_supported_turn_of_a_success_never_weighs_less(scores: list[float], advantage: float) -> None:
    weights = WeightRule().weights(np.array(scores), advantage)
    order = np.argsort(scores, kind="stable")
    assert (np.diff(weights[order]) >= -1e-12).all()


@given(finite, st.integers(2, 40), advantages)
def test_equal_shifts_change_nothing(shift: float, turns: int, advantage: float) -> None:
    weights = WeightRule().weights(np.full(turns, shift), advantage)
    np.testing.assert_allclose(weights, 1.0, atol=1e-12)


@given(st.lists(any_float, min_size=2, max_size=30))
def test_zero_advantage_keeps_weight_one(scores: list[float]) -> None:
    assert (WeightRule().weights(np.array(scores), 0.0) == 1).all()


def test_huge_shifts_saturate_without_overflow() -> None:
    rule = WeightRule()
    scores = rule.turn_scores([np.array([1.7e308, 1.7e308]), np.array([-1.7e308]), np.array([0.0])])
    assert np.isfinite(scores).all()
    np.testing.assert_allclose(rule.weights(scores, 1.0), [1.2, 0.8, 1.0])


def test_one_turn_keeps_weight_one() -> None:
    assert WeightRule().weights(np.array([3.0]), 1.0).tolist() == [1.0]


def test_no_turns_give_no_weights() -> None:
    assert WeightRule().weights(np.array([]), 1.0).tolist() == []


def test_without_orientation_the_sign_of_the_advantage_does_not_matter() -> None:
    rule = WeightRule(orient=False)
    scores = np.array([0.6, 0.0, -0.8, -0.2])
    assert rule.weights(scores, -1.0).tolist() == rule.weights(scores, 1.0).tolist()


def test_without_mean_preservation_weights_are_half_as_far_at_most() -> None:
    weights = WeightRule(preserve_mean=False).weights(np.array([5.0, 5.0, -90.0]), 1.0)
    assert abs(weights.mean() - 1) > 1e-3
    assert (np.abs(weights - 1) <= 0.2).all()


def test_a_non_finite_shift_is_dropped_from_its_span() -> None:
    scores = WeightRule().turn_scores([np.array([1.0, np.nan, 3.0, np.inf])])
    assert scores.tolist() == [2.0]


def test_the_margin_counts_small_shifts_as_zero() -> None:
    scores = WeightRule(kappa=0.5).turn_scores([np.array([0.4, -0.49, 0.5, -1.5])])
    assert scores.tolist() == [-0.25]


@pytest.mark.parametrize(
    ("spans", "has_guidance", "reason"),
    [
        ([np.array([1.0]), np.array([2.0])], False, "no guidance"),
        ([np.array([1.0])], True, "one turn"),
        ([], True, "one turn"),
        ([np.array([1.0]), None], True, "turn 1: no action span"),
        ([np.array([]), np.array([1.0])], True, "turn 0: no action span"),
        ([np.array([1.0]), np.array([np.nan, -np.inf])], True, "turn 1: no finite shift"),
        ([np.array([1.0]), np.array([np.nan, 2.0])], True, ""),
        ([np.array([0.0]), np.array([0.0])], True, ""),
    ],
)
def test_what_is_missing_makes_the_whole_trajectory_fall_back(
    spans: list[np.ndarray | None], has_guidance: bool, reason: str
) -> None:
    assert fallback_reason(spans, has_guidance) == reason


@pytest.mark.parametrize(
    "setting", [{"eps": 1.1}, {"eps": -0.1}, {"eps": float("nan")}, {"tau": 0.0}, {"kappa": -1.0}]
)
def test_settings_that_could_change_a_sign_are_refused(setting: dict[str, float]) -> None:
    with pytest.raises(InputError, match=next(iter(setting))):
        WeightRule(**setting)
