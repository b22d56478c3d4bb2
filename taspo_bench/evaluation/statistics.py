"""How sure a figure is: intervals, aggregates, tests. Pure functions of arrays; every random draw is seeded.

Two sources of chance are told apart. Tasks are a sample of the tasks one could ask; seeds are a sample of the
training runs one could make. Figures of one run carry a Wilson interval (tasks alone). Figures of several runs
carry a bootstrap in which seeds are drawn anew and, crossed with them, tasks within their family. Aggregates over
benchmarks follow Agarwal et al. (arXiv 2108.13264): the interquartile mean, runs drawn within each benchmark (and
here tasks too, so that a single seed does not look certain).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Array = NDArray[np.float64]
Counts = NDArray[np.uint8]
Statistic = Callable[[Array], Array]
CONFIDENCE = 0.95
REPS = 4000


@dataclass(frozen=True)
class Estimate:
    """A figure and its 95 % interval."""

    value: float
    low: float
    high: float


def wilson(successes: float, n: float) -> tuple[float, float]:
    """Wilson score interval of a proportion; (0, 1) where nothing was tried."""
    if n == 0:
        return 0.0, 1.0
    z = float(stats.norm.ppf(0.5 + CONFIDENCE / 2))
    rate = successes / n
    centre = (rate + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    low = 0.0 if successes == 0 else centre - half
    high = 1.0 if successes == n else centre + half
    return low, high


def mean(values: Array) -> Array:
    """Mean over the last axis."""
    return np.asarray(values.mean(axis=-1))


def iqm(values: Array) -> Array:
    """Interquartile mean over the last axis: the mean of the middle half (arXiv 2108.13264)."""
    return np.asarray(stats.trim_mean(values, 0.25, axis=-1))


def percentile_interval(draws: Array) -> tuple[float, float]:
    """The central 95 % of bootstrap draws; undefined draws (nan) are left out."""
    tail = 50 * (1 - CONFIDENCE)
    low, high = np.nanpercentile(draws, [tail, 100 - tail])
    return float(low), float(high)


def t_estimate(values: Sequence[float], low: float = -math.inf, high: float = math.inf) -> Estimate:
    """Mean over runs of values between two bounds, with Student's interval; undefined values (nan) are left out.

    Runs that are all alike say nothing of their spread: their interval is all that is possible, if that is bounded,
    else the value alone. One run has no interval (nan), none has no mean.
    """
    array = np.asarray([value for value in values if np.isfinite(value)], dtype=np.float64)
    if not len(array):
        return Estimate(math.nan, math.nan, math.nan)
    centre = float(array.mean())
    if len(array) == 1:
        return Estimate(centre, math.nan, math.nan)
    if is_alike(array):
        return Estimate(centre, low, high) if math.isfinite(high - low) else Estimate(centre, centre, centre)
    reach = float(stats.sem(array)) * float(stats.t.ppf(0.5 + CONFIDENCE / 2, len(array) - 1))
    return Estimate(centre, max(low, centre - reach), min(high, centre + reach))


def stratified_draws(scores: Array, rng: np.random.Generator, reps: int = REPS) -> Array:
    """Bootstrap samples of ``scores`` (runs, strata): runs drawn with replacement in each stratum by itself.

    Returns (reps, runs, strata).
    """
    runs, strata = scores.shape
    drawn = rng.integers(runs, size=(reps, runs, strata))
    return scores[drawn, np.arange(strata)]


def task_weights(families: Sequence[str], rng: np.random.Generator) -> Counts:
    """How often each task stands in each bootstrap sample (REPS, tasks), tasks drawn within their family."""
    names = np.asarray(families)
    weights = np.zeros((REPS, len(names)), dtype=np.uint8)
    for family in np.unique(names):
        members = np.flatnonzero(names == family)
        for rows in _chunks(REPS, len(members)):
            drawn = rng.integers(len(members), size=(len(rows), len(members)))
            places = drawn + len(members) * np.arange(len(rows))[:, None]
            counts = np.bincount(places.ravel(), minlength=drawn.size)
            weights[np.ix_(rows, members)] = counts.reshape(drawn.shape)
    return weights


def _chunks(reps: int, tasks: int) -> list[NDArray[np.int64]]:
    """Rows of (reps, tasks) a few million numbers at a time: the full Search-QA sets hold 50,000 tasks."""
    return np.array_split(np.arange(reps), -(-reps * tasks // 4_000_000))


def macro_scale(families: Sequence[str]) -> Array:
    """Factor of each task (tasks,) that turns the mean over tasks (micro) into the mean over families (macro)."""
    names, member, sizes = np.unique(np.asarray(families), return_inverse=True, return_counts=True)
    return np.asarray(len(member) / (len(names) * sizes[member]), dtype=np.float64)


def seed_draws(outcomes: Array, weights: Counts, drawn: NDArray[np.int64]) -> Array:
    """Crossed bootstrap of ``outcomes`` (seeds, tasks).

    Task ``weights`` are (reps, tasks), the seeds ``drawn`` (reps, seeds). Returns the mean over the drawn tasks of
    each drawn seed (reps, seeds). Methods that share ``weights`` are drawn on the same tasks, so that their
    differences are paired.
    """
    return np.asarray(np.take_along_axis(task_draws(outcomes, weights), drawn, axis=1))


def task_draws(outcomes: Array, weights: Counts) -> Array:
    """Mean over the drawn tasks of each seed (reps, seeds), of ``outcomes`` (seeds, tasks)."""
    reps, tasks = weights.shape
    return np.asarray(np.concatenate([weights[rows] @ outcomes.T for rows in _chunks(reps, tasks)]) / tasks)


def crossed_estimate(
    outcomes: Array,
    weights: Counts,
    drawn: NDArray[np.int64],
    statistic: Statistic = mean,
    scale: Array | None = None,
) -> Estimate:
    """A statistic over seeds of the mean over tasks, with the interval of :func:`seed_draws`.

    One run of wins and losses has Wilson's interval; a bootstrap that would be empty is :func:`settled_estimate`'s.

    Args:
        outcomes: (seeds, tasks), in [0, 1].
        scale: factor of each task (tasks,), as :func:`macro_scale` gives it; the mean is over tasks if None.
    """
    if scale is None and len(outcomes) == 1 and np.isin(outcomes, (0.0, 1.0)).all():
        won, tasks = float(outcomes.sum()), outcomes.size
        return Estimate(won / tasks, *wilson(won, tasks))
    scaled = outcomes if scale is None else outcomes * scale
    value = float(statistic(scaled.mean(axis=1)[None])[0])
    draws = statistic(seed_draws(scaled, weights, drawn))
    if is_alike(draws):
        return settled_estimate(value, outcomes.shape[1] if scale is None else effective_tasks(scale))
    low, high = percentile_interval(draws)
    return Estimate(min(1.0, value), low, min(1.0, high))


def settled_estimate(value: float, tasks: float) -> Estimate:
    """A mean of outcomes in [0, 1] whose bootstrap draws are all the same, with Wilson's interval of one run.

    Every outcome was the same, or every one of a family: the draws say nothing of the tasks that were not asked. No
    outcomes of that mean vary more than wins and losses do, so the interval of wins and losses is wide enough.
    """
    value = round(value, 12)
    return Estimate(value, *wilson(value * tasks, tasks))


def effective_tasks(weights: Array) -> float:
    """How many tasks of equal weight say as much as these of unequal ones (Kish 1965)."""
    return float(weights.sum() ** 2 / (weights**2).sum())


def is_alike(values: Array) -> bool:
    """Whether all values are the same up to rounding, so that a bootstrap of them would say nothing."""
    return bool(np.ptp(values) < 1e-9)


def difference_interval(ours: Estimate, theirs: Estimate) -> tuple[float, float]:
    """Interval of a difference, recovered from the two intervals (Newcombe 1998, method 10)."""
    value = ours.value - theirs.value
    down = math.hypot(ours.value - ours.low, theirs.high - theirs.value)
    up = math.hypot(ours.high - ours.value, theirs.value - theirs.low)
    return value - down, value + up


def probability_of_improvement(ours: Array, theirs: Array) -> float:
    """Chance that a run of ours beats a run of theirs on a benchmark drawn at random; a tie counts one half.

    Args:
        ours, theirs: (runs, benchmarks); the numbers of runs may differ. Source: arXiv 2108.13264, section 4.3.
    """
    return float(improvement_draws(ours[None], theirs[None])[0])


def improvement_draws(ours: Array, theirs: Array) -> Array:
    """:func:`probability_of_improvement` of many samples: (reps, runs, benchmarks) in, (reps,) out."""
    gaps = np.sign(ours[:, :, None, :] - theirs[:, None, :, :])
    return np.asarray((gaps.mean(axis=(1, 2, 3)) + 1) / 2)


def sign_flip_test(differences: Sequence[int]) -> float:
    """Exact two-sided p of the paired permutation test: are the differences symmetric around 0?

    Under the null each task's difference could as well have had the other sign. All 2^n sign patterns are counted
    (by convolution, so any n will do), hence whole numbers: differences in wins on the same tasks.
    """
    sizes, counts = np.unique(np.abs(np.asarray(differences, dtype=np.int64)), return_counts=True)
    chance = np.ones(1)
    for size, count in zip(sizes, counts, strict=True):
        if size:
            steps = np.zeros(2 * int(size) * int(count) + 1)
            steps[:: 2 * int(size)] = stats.binom.pmf(np.arange(count + 1), count, 0.5)
            chance = np.convolve(chance, steps)
    reach = (len(chance) - 1) // 2
    sums = np.abs(np.arange(-reach, reach + 1))
    return min(1.0, float(chance[sums >= abs(int(np.sum(differences)))].sum()))


def holm(p_values: Sequence[float]) -> list[float]:
    """P values adjusted for their number (Holm's step-down), in the order given."""
    order = np.argsort(p_values, kind="stable")
    raised = np.asarray(p_values, dtype=np.float64)[order] * np.arange(len(order), 0, -1)
    adjusted = np.empty(len(order))
    adjusted[order] = np.minimum(np.maximum.accumulate(raised), 1.0)
    return [float(value) for value in adjusted]


def relative_gain(ours: Array, baseline: Array) -> Array:
    """Gain over a baseline in percent of the baseline; nan where the baseline is 0."""
    ours, baseline = np.broadcast_arrays(np.asarray(ours, dtype=np.float64), baseline)
    defined = baseline > 0
    return np.where(defined, 100 * (ours - baseline) / np.where(defined, baseline, 1.0), np.nan)
