"""Intervals, aggregates and tests: values from the field, and agreement with scipy, statsmodels and rliable."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from taspo_bench.evaluation import statistics
from taspo_bench.evaluation.statistics import Array


def scores(runs: int, strata: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).beta(2, 3, size=(runs, strata))


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [(120, 134, 0.832, 0.937), (134, 134, 0.972, 1), (0, 134, 0, 0.028), (450, 500, 0.871, 0.923)],
)
def test_wilson_interval_of_known_counts(successes: int, n: int, low: float, high: float) -> None:
    assert tuple(round(bound, 3) for bound in statistics.wilson(successes, n)) == (low, high)


def test_wilson_bounds_are_exact_at_both_ends_and_without_tasks() -> None:
    assert statistics.wilson(0, 134)[0] == 0.0
    assert statistics.wilson(134, 134)[1] == 1.0
    assert statistics.wilson(0, 0) == (0.0, 1.0)


@given(st.integers(1, 400), st.data())
def test_wilson_agrees_with_scipy(n: int, data: st.DataObject) -> None:
    successes = data.draw(st.integers(0, n))
    theirs = stats.binomtest(successes, n).proportion_ci(method="wilson")
    assert statistics.wilson(successes, n) == pytest.approx((theirs.low, theirs.high), abs=1e-6)


def test_wilson_and_holm_agree_with_statsmodels() -> None:
    proportion = pytest.importorskip("statsmodels.stats.proportion", reason="statsmodels is not installed")
    multitest = pytest.importorskip("statsmodels.stats.multitest", reason="statsmodels is not installed")
    for successes in range(0, 135, 9):
        theirs = proportion.proportion_confint(successes, 134, method="wilson")
        assert statistics.wilson(successes, 134) == pytest.approx(theirs, abs=1e-6)
    p_values = [0.04, 0.001, 0.2, 0.011, 0.011, 0.9]
    assert statistics.holm(p_values) == pytest.approx(multitest.multipletests(p_values, method="holm")[1], abs=1e-6)


def test_holm_of_nothing_is_nothing() -> None:
    assert statistics.holm([]) == []


def test_aggregates_agree_with_rliable() -> None:
    metrics = pytest.importorskip("rliable.metrics", reason="rliable is not installed")
    ours, theirs = scores(5, 7), scores(6, 7, seed=1)
    assert float(statistics.iqm(ours.reshape(-1))) == pytest.approx(metrics.aggregate_iqm(ours), abs=1e-6)
    assert float(statistics.mean(ours.reshape(-1))) == pytest.approx(metrics.aggregate_mean(ours), abs=1e-6)
    expected = metrics.probability_of_improvement(ours, theirs)
    assert statistics.probability_of_improvement(ours, theirs) == pytest.approx(expected, abs=1e-6)


def test_stratified_intervals_agree_with_rliable_within_bootstrap_error() -> None:
    metrics = pytest.importorskip("rliable.metrics", reason="rliable is not installed")
    try:
        from rliable import library
    except Exception as error:  # arch, below it, breaks on import beside some versions of pandas
        pytest.skip(f"rliable does not import here: {error}")
    ours = scores(8, 6)
    _, theirs = library.get_interval_estimates(
        {"a": ours}, lambda x: np.array([metrics.aggregate_iqm(x)]), reps=4000, random_state=np.random.RandomState(0)
    )
    low, high = statistics.percentile_interval(statistics.iqm(seeds_drawn(ours, reps=4000)))
    assert (low, high) == pytest.approx(theirs["a"][:, 0], abs=0.06 * (high - low))


def seeds_drawn(scores: Array, reps: int) -> Array:
    """The crossed bootstrap of runs that hold one task each benchmark, so that only the runs are drawn."""
    rng = np.random.default_rng(0)
    runs, strata = scores.shape
    once = np.ones((reps, 1), dtype=np.uint8)
    columns = [scores[:, [stratum]] for stratum in range(strata)]
    return np.concatenate(
        [statistics.seed_draws(c, once, rng.integers(runs, size=(reps, runs))) for c in columns], axis=1
    )


def test_bootstrap_of_the_mean_agrees_with_scipy_within_bootstrap_error() -> None:
    values = scores(12, 1)
    theirs = stats.bootstrap(
        (values[:, 0],), np.mean, n_resamples=20000, method="percentile", rng=np.random.default_rng(0)
    ).confidence_interval
    ours = statistics.percentile_interval(statistics.mean(seeds_drawn(values, reps=20000)))
    assert ours == pytest.approx((theirs.low, theirs.high), abs=0.01)


def test_difference_interval_agrees_with_statsmodels() -> None:
    proportion = pytest.importorskip("statsmodels.stats.proportion", reason="statsmodels is not installed")
    for ours, theirs in ((20, 0), (20, 20), (15, 4), (0, 0)):
        estimates = [statistics.Estimate(won / 20, *statistics.wilson(won, 20)) for won in (ours, theirs)]
        expected = proportion.confint_proportions_2indep(ours, 20, theirs, 20, method="newcomb", compare="diff")
        assert statistics.difference_interval(*estimates) == pytest.approx(expected, abs=1e-6)


def test_bootstrap_draws_runs_within_each_stratum() -> None:
    values = np.array([[1.0, 10.0, 100.0], [2.0, 20.0, 200.0]])
    draws = statistics.stratified_draws(values, np.random.default_rng(0), reps=50)
    for stratum in range(3):
        assert set(np.unique(draws[:, :, stratum])) <= set(values[:, stratum])


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=25))
def test_tasks_are_drawn_within_their_family(families: list[str]) -> None:
    weights = statistics.task_weights(families, np.random.default_rng(0))
    for family in set(families):
        members = [index for index, name in enumerate(families) if name == family]
        assert (weights[:, members].sum(axis=1) == len(members)).all()


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=25))
def test_macro_scale_turns_the_mean_over_tasks_into_the_mean_over_families(families: list[str]) -> None:
    won = np.random.default_rng(len(families)).integers(0, 2, size=len(families)).astype(float)
    shares = [np.mean([w for w, name in zip(won, families, strict=True) if name == f]) for f in sorted(set(families))]
    assert float((won * statistics.macro_scale(families)).mean()) == pytest.approx(float(np.mean(shares)))


GAMES = [name for name, size in zip("abcdef", (18, 24, 31, 23, 21, 17), strict=True) for _ in range(size)]
"""The families of ALFWorld's 134 unseen games."""


def crossed(outcomes: Array, families: list[str] | None = None, macro: bool = False) -> statistics.Estimate:
    rng = np.random.default_rng(0)
    names = families or ["all"] * outcomes.shape[1]
    weights = statistics.task_weights(names, rng)
    drawn = rng.integers(len(outcomes), size=(4000, len(outcomes)))
    scale = statistics.macro_scale(names) if macro else None
    return statistics.crossed_estimate(outcomes, weights, drawn, scale=scale)


def test_a_single_run_of_wins_and_losses_gets_its_wilson_interval() -> None:
    outcomes = np.array([[1.0] * 120 + [0.0] * 14])
    estimate = crossed(outcomes)
    assert (round(estimate.low, 3), round(estimate.high, 3)) == (0.832, 0.937)


def test_runs_that_all_lose_do_not_get_an_empty_interval() -> None:
    estimate = crossed(np.zeros((3, 134)))
    assert (estimate.value, estimate.low, round(estimate.high, 3)) == (0.0, 0.0, 0.028)


@pytest.mark.parametrize("seeds", [1, 3])
@pytest.mark.parametrize(("outcome", "low", "high"), [(1.0, 0.97, 1.0), (0.0, 0.0, 0.03)])
def test_a_macro_average_of_runs_that_all_end_alike_does_not_look_certain(
    seeds: int, outcome: float, low: float, high: float
) -> None:
    micro, macro = (crossed(np.full((seeds, 134), outcome), GAMES, macro) for macro in (False, True))
    assert (macro.value, round(macro.low, 2), round(macro.high, 2)) == (outcome, low, high)
    # families of unequal size say a little less of their mean than as many tasks of one family
    assert macro.high - macro.low == pytest.approx(micro.high - micro.low, rel=0.05)


def test_families_that_each_end_alike_do_not_look_certain() -> None:
    won = np.array([[1.0] * 18 + [0.0] * 116] * 3)
    for macro in (False, True):
        estimate = crossed(won, GAMES, macro)
        assert 0 <= estimate.low < estimate.value - 0.03 and estimate.value + 0.03 < estimate.high <= 1


def test_partial_scores_that_are_all_alike_get_the_interval_of_wins_and_losses_of_that_rate() -> None:
    for seeds in (1, 3):
        estimate = crossed(np.full((seeds, 100), 0.5))
        assert (estimate.value, estimate.low, estimate.high) == (0.5, *statistics.wilson(50, 100))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 134), st.sampled_from([1, 3]))
def test_no_interval_of_a_rate_leaves_zero_to_one(won: int, seeds: int) -> None:
    outcomes = np.array([[1.0] * won + [0.0] * (134 - won)] * seeds)
    for estimate in (crossed(outcomes, GAMES), crossed(outcomes, GAMES, macro=True)):
        assert 0 <= estimate.low <= estimate.value <= estimate.high <= 1
        assert estimate.low < estimate.high


def test_students_interval_of_one_run_or_of_unbounded_runs_that_are_alike() -> None:
    nan = math.nan
    one, none, alike = (statistics.t_estimate(values) for values in ([0.3, nan], [nan], [0.3, 0.3, nan]))
    assert one.value == 0.3 and math.isnan(one.low) and math.isnan(none.value)
    assert alike == statistics.Estimate(0.3, 0.3, 0.3)


def test_crossed_interval_covers_the_truth_at_least_as_often_as_it_says() -> None:
    rng = np.random.default_rng(3)
    covered = 0
    for _ in range(120):
        difficulty = rng.beta(2, 2, size=60)
        luck = rng.normal(0, 0.05, size=5)
        outcomes = (rng.random((5, 60)) < np.clip(difficulty + luck[:, None], 0, 1)).astype(float)
        estimate = crossed(outcomes)
        covered += estimate.low <= 0.5 <= estimate.high
    assert covered / 120 >= 0.92


@given(st.lists(st.integers(-3, 3), max_size=9))
def test_sign_flip_test_counts_every_sign_pattern(differences: list[int]) -> None:
    sums = [
        abs(sum(sign * value for sign, value in zip(signs, differences, strict=True)))
        for signs in product((-1, 1), repeat=len(differences))
    ]
    expected = np.mean([total >= abs(sum(differences)) for total in sums])
    assert statistics.sign_flip_test(differences) == pytest.approx(expected, abs=1e-9)


def test_sign_flip_test_agrees_with_scipys_permutation_test() -> None:
    differences = [2, -1, 0, 1, 3, 1, -2, 2, 1, 0, 3]
    theirs = stats.permutation_test(
        (differences,), np.sum, permutation_type="samples", n_resamples=math.inf, alternative="two-sided"
    )
    assert statistics.sign_flip_test(differences) == pytest.approx(theirs.pvalue, abs=1e-6)


def test_sign_flip_test_of_single_runs_is_mcnemars_exact_test() -> None:
    differences = [1] * 17 + [-1] * 6 + [0] * 80
    assert statistics.sign_flip_test(differences) == pytest.approx(stats.binomtest(6, 23).pvalue, abs=1e-9)


def test_sign_flip_test_is_exact_for_many_tasks() -> None:
    assert statistics.sign_flip_test([0] * 1000) == 1.0
    assert 0 < statistics.sign_flip_test([3] * 300 + [-3] * 100 + [1] * 100) < 1e-10


def test_relative_gain_is_in_percent_and_undefined_over_zero() -> None:
    gains = statistics.relative_gain(np.array([0.6, 0.2]), np.array([0.5, 0.0]))
    assert gains[0] == pytest.approx(20.0)
    assert np.isnan(gains[1])


def test_probability_of_improvement_counts_a_tie_one_half() -> None:
    assert statistics.probability_of_improvement(np.array([[1.0]]), np.array([[1.0]])) == 0.5
    assert statistics.probability_of_improvement(np.array([[1.0], [0.0]]), np.array([[0.5]])) == 0.5
    assert statistics.probability_of_improvement(np.array([[0.9]]), np.array([[0.5]])) == 1.0
