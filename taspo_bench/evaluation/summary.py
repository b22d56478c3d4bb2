"""What a run says, as figures: every method on every benchmark, against the baseline, seen against unseen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np

from taspo_bench.config import WARM_START
from taspo_bench.evaluation.late_training import LateTraining, late_training
from taspo_bench.evaluation.outcomes import Outcomes, gather, gather_warm_start
from taspo_bench.evaluation.results import Cell
from taspo_bench.evaluation.run_settings import Settings, run_settings
from taspo_bench.evaluation.statistics import (
    Estimate,
    Statistic,
    crossed_estimate,
    difference_interval,
    effective_tasks,
    holm,
    improvement_draws,
    iqm,
    is_alike,
    macro_scale,
    mean,
    percentile_interval,
    probability_of_improvement,
    relative_gain,
    settled_estimate,
    sign_flip_test,
    wilson,
)

SCHEMA = 1
BASELINE = "grpo"
AVERAGING = "arithmetic mean of the benchmarks' relative gains, each benchmark weighing the same"


@dataclass(frozen=True)
class Result:
    """One method on one split. Rates are shares in [0, 1]; ``success`` is micro, over tasks, then over seeds.

    best: no method does better on this split, and some method does worse. tied: its difference from the best is not
    told apart from 0 (the best is tied with itself). errors: episodes that broke, over all seeds; they count as lost.
    """

    method: str
    env: str
    split: str
    kind: str
    n: int
    seeds: tuple[int, ...]
    failed: tuple[int, ...]
    errors: int
    success: Estimate
    iqm: Estimate
    macro: Estimate
    score: Estimate
    per_seed: tuple[float, ...]
    wilson: tuple[tuple[float, float], ...]
    families: dict[str, float]
    families_per_seed: dict[str, tuple[float, ...]]
    best: bool = False
    tied: bool = False


@dataclass(frozen=True)
class Gain:
    """A method against the baseline on the same tasks of one split.

    difference: success minus the baseline's, a share. relative: percent of the baseline's success, None where that
    is 0. p, p_holm: exact sign-flip test over tasks of wins summed over seeds; adjusted over the whole table.
    p_seeds: the same test over the seeds that both have, of wins summed over tasks; None for fewer than two.
    """

    method: str
    env: str
    split: str
    kind: str
    difference: Estimate
    relative: Estimate | None
    p: float
    p_holm: float
    p_seeds: float | None


@dataclass(frozen=True)
class Gap:
    """Success on seen minus success on unseen tasks, of the same runs."""

    method: str
    env: str
    seen: str
    unseen: str
    gap: Estimate


@dataclass(frozen=True)
class Aggregate:
    """A method over all benchmarks at once; None where there is no baseline to compare with.

    best, tied: as in :class:`Result`, of the mean.
    """

    method: str
    kind: str
    envs: tuple[str, ...]
    mean: Estimate
    iqm: Estimate
    relative: Estimate | None
    improvement: Estimate | None
    best: bool = False
    tied: bool = False


@dataclass(frozen=True)
class CellState:
    """Whether a cell has a result; ``error`` says why not. ``errors`` of its evaluation episodes broke."""

    method: str
    env: str
    seed: int
    error: str
    errors: int


@dataclass(frozen=True)
class Summary:
    """All figures of a run (or of several), free of times and paths: equal results give equal bytes.

    settings: what was run on each benchmark, as :func:`taspo_bench.evaluation.run_settings.run_settings` finds it.
    """

    settings: dict[str, Settings]
    baseline: str | None
    methods: tuple[str, ...]
    envs: tuple[str, ...]
    results: tuple[Result, ...]
    warm_start: tuple[Result, ...]
    gains: tuple[Gain, ...]
    gaps: tuple[Gap, ...]
    late_training: tuple[LateTraining, ...]
    aggregates: tuple[Aggregate, ...]
    cells: tuple[CellState, ...]

    @property
    def failed(self) -> tuple[CellState, ...]:
        return tuple(cell for cell in self.cells if cell.error)

    def to_json(self) -> dict[str, Any]:
        return {"schema": SCHEMA, "averaging": AVERAGING, **asdict(self)}


def summarize(cells: Sequence[Cell], baseline: str = BASELINE) -> Summary:
    """All figures of these cells. A cell without a result counts as 0 on every task of its environment."""
    outcomes = gather(cells)
    methods = tuple(dict.fromkeys(cell.method for cell in cells if cell.method != WARM_START))
    reference = baseline if baseline in methods else None
    results = [_result(outcome) for outcome in outcomes]
    return Summary(
        settings=run_settings(cells),
        baseline=reference,
        methods=methods,
        envs=tuple(dict.fromkeys(cell.env for cell in cells)),
        results=tuple(_mark_best(results, outcomes)),
        warm_start=tuple(_result(outcome) for outcome in _warm_starts(cells)),
        gains=tuple(_gains(outcomes, reference)),
        gaps=tuple(_gaps(outcomes)),
        late_training=tuple(late_training(cells, reference)),
        aggregates=tuple(_aggregates(outcomes, reference)),
        cells=tuple(_state(cell) for cell in cells),
    )


def _warm_starts(cells: Sequence[Cell]) -> list[Outcomes]:
    """The policies before training; where runs began from different ones, each is named with its runs."""
    found = []
    for name in dict.fromkeys(cell.row for cell in cells if cell.method == WARM_START):
        own = [cell for cell in cells if cell.method != WARM_START or cell.row == name]
        found += [replace(outcome, method=name) for outcome in gather_warm_start(own)]
    return found


def _state(cell: Cell) -> CellState:
    errors = sum(record["errors"] for record in cell.splits.values())
    return CellState(cell.row, cell.env, cell.seed, cell.error, errors)


def _result(outcome: Outcomes) -> Result:
    bench, weights, drawn = outcome.bench, outcome.bench.weights, outcome.drawn_seeds
    names = np.asarray(bench.families)
    by_family = {str(name): outcome.won[:, names == name] for name in np.unique(names)}
    wins = outcome.won.sum(axis=1)
    return Result(
        method=outcome.method,
        env=bench.env,
        split=bench.split,
        kind=bench.kind,
        n=bench.n,
        seeds=outcome.seeds,
        failed=outcome.failed,
        errors=outcome.errors,
        success=_success(outcome),
        iqm=_success(outcome, iqm),
        macro=crossed_estimate(outcome.won, weights, drawn, scale=macro_scale(bench.families)),
        score=crossed_estimate(outcome.score, weights, drawn),
        per_seed=tuple(float(value) for value in outcome.won.mean(axis=1)),
        wilson=tuple(wilson(int(won), len(bench.task_ids)) for won in wins),
        families={name: float(won.mean()) for name, won in by_family.items()},
        families_per_seed={name: tuple(won.mean(axis=1).tolist()) for name, won in by_family.items()},
    )


def _mark_best(results: Sequence[Result], outcomes: Sequence[Outcomes]) -> list[Result]:
    marked = []
    for result, outcome in zip(results, outcomes, strict=True):
        rivals = [rival for rival in outcomes if rival.bench is outcome.bench]
        top = max(rivals, key=lambda rival: float(rival.won.mean()))
        contested = len({float(rival.won.mean()) for rival in rivals}) > 1
        best = contested and float(top.won.mean()) == float(outcome.won.mean())
        low, high = _difference(outcome, top)
        marked.append(replace(result, best=best, tied=best or (contested and low <= 0 <= high)))
    return marked


def _difference(ours: Outcomes, theirs: Outcomes) -> tuple[float, float]:
    if is_alike(mean(ours.draws)) or is_alike(mean(theirs.draws)):
        return difference_interval(_success(ours), _success(theirs))
    draws = mean(ours.draws) - mean(theirs.draws_beside(ours))
    if is_alike(draws):
        # they won the same tasks, as far as was asked: as many may differ as a run that never wins may win
        value, reach = float(draws.mean()), wilson(0, ours.won.shape[1])[1]
        return value - reach, value + reach
    return percentile_interval(draws)


def _success(outcome: Outcomes, statistic: Statistic = mean) -> Estimate:
    return crossed_estimate(outcome.won, outcome.bench.weights, outcome.drawn_seeds, statistic)


def _gains(outcomes: Sequence[Outcomes], baseline: str | None) -> list[Gain]:
    references = {outcome.bench: outcome for outcome in outcomes if outcome.method == baseline}
    pairs = [
        (outcome, references[outcome.bench])
        for outcome in outcomes
        if outcome.method != baseline and outcome.bench in references
    ]
    p_values = [sign_flip_test(_win_differences(ours, theirs)) for ours, theirs in pairs]
    return [
        Gain(
            method=ours.method,
            env=ours.bench.env,
            split=ours.bench.split,
            kind=ours.bench.kind,
            difference=Estimate(float(ours.won.mean() - theirs.won.mean()), *_difference(ours, theirs)),
            relative=_relative([(ours, theirs)]),
            p=p,
            p_holm=p_holm,
            p_seeds=_test_over_seeds(ours, theirs),
        )
        for (ours, theirs), p, p_holm in zip(pairs, p_values, holm(p_values), strict=True)
    ]


def _win_differences(ours: Outcomes, theirs: Outcomes) -> list[int]:
    # wins per task on a common denominator, so that unequal numbers of seeds weigh the same
    common = np.lcm(len(ours.seeds), len(theirs.seeds))
    wins = ours.won.sum(axis=0) * (common // len(ours.seeds)) - theirs.won.sum(axis=0) * (common // len(theirs.seeds))
    return [int(value) for value in wins]


def _test_over_seeds(ours: Outcomes, theirs: Outcomes) -> float | None:
    shared = [seed for seed in ours.seeds if seed in theirs.seeds]
    if len(shared) < 2:
        return None
    wins = [
        dict(zip(outcome.seeds, outcome.won.sum(axis=1).astype(int).tolist(), strict=True))
        for outcome in (ours, theirs)
    ]
    return sign_flip_test([wins[0][seed] - wins[1][seed] for seed in shared])


def _relative(pairs: Sequence[tuple[Outcomes, Outcomes]]) -> Estimate | None:
    """Mean over benchmarks of the gain in percent of the baseline; None where a baseline never wins."""
    value = np.mean([relative_gain(ours.won.mean(), theirs.won.mean()) for ours, theirs in pairs])
    if not np.isfinite(value):
        return None
    gains = [relative_gain(mean(ours.draws), mean(theirs.draws_beside(ours))) for ours, theirs in pairs]
    draws = np.mean(gains, axis=0)
    if is_alike(draws[np.isfinite(draws)]):  # a baseline that wins nothing in a draw has no gain there
        bounds = [100 * np.array(_difference(ours, theirs)) / theirs.won.mean() for ours, theirs in pairs]
        low, high = np.mean(bounds, axis=0)
        return Estimate(float(value), max(-100.0, float(low)), float(high))
    return Estimate(float(value), *percentile_interval(draws))


def _gaps(outcomes: Sequence[Outcomes]) -> list[Gap]:
    gaps = []
    for (method, env), group in groupby(outcomes, key=lambda outcome: (outcome.method, outcome.bench.env)):
        kinds: dict[str, Outcomes] = {}
        for outcome in group:
            kinds.setdefault(outcome.bench.kind, outcome)
        if {"seen", "unseen"} <= kinds.keys():
            seen, unseen = kinds["seen"], kinds["unseen"]
            value = float(seen.won.mean() - unseen.won.mean())
            gap = Estimate(value, *_difference(seen, unseen))
            gaps.append(Gap(method, env, seen.bench.split, unseen.bench.split, gap))
    return gaps


def _aggregates(outcomes: Sequence[Outcomes], baseline: str | None) -> list[Aggregate]:
    """Over the benchmarks of one kind; a method that lacks a benchmark or a seed on one has no aggregate."""
    rows = []
    for kind in dict.fromkeys(outcome.bench.kind for outcome in outcomes):
        table = _first_of_kind(outcomes, kind)
        envs = list(dict.fromkeys(env for columns in table.values() for env in columns))
        complete = {
            method: [columns[env] for env in envs]
            for method, columns in table.items()
            if columns.keys() == set(envs) and len({len(column.seeds) for column in columns.values()}) == 1
        }
        reference = complete.get(baseline) if baseline else None
        contested = len(set(map(_mean_success, complete.values()))) > 1
        top = max(complete.values(), key=_mean_success) if contested else None
        for method, columns in complete.items():
            against = reference if method != baseline else None
            rows.append(_aggregate(method, kind, tuple(envs), columns, against, top))
    return rows


def _mean_success(columns: Sequence[Outcomes]) -> float:
    return float(np.mean([column.won.mean() for column in columns]))


def _first_of_kind(outcomes: Iterable[Outcomes], kind: str) -> dict[str, dict[str, Outcomes]]:
    table: dict[str, dict[str, Outcomes]] = {}
    for outcome in outcomes:
        if outcome.bench.kind == kind:
            table.setdefault(outcome.method, {}).setdefault(outcome.bench.env, outcome)
    return table


def _aggregate(
    method: str,
    kind: str,
    envs: tuple[str, ...],
    columns: list[Outcomes],
    reference: list[Outcomes] | None,
    top: list[Outcomes] | None,
) -> Aggregate:
    best = top is not None and _mean_success(columns) == _mean_success(top)
    return Aggregate(
        method=method,
        kind=kind,
        envs=envs,
        mean=_pooled(columns, mean),
        iqm=_pooled(columns, iqm),
        relative=_relative(list(zip(columns, reference, strict=True))) if reference else None,
        improvement=_improvement(columns, reference) if reference else None,
        best=best,
        tied=best or (top is not None and _is_tied(columns, top)),
    )


def _is_tied(columns: Sequence[Outcomes], top: Sequence[Outcomes]) -> bool:
    differences = [
        mean(ours.draws) - mean(theirs.draws_beside(ours)) for ours, theirs in zip(columns, top, strict=True)
    ]
    low, high = percentile_interval(np.mean(differences, axis=0))
    return low <= 0 <= high


def _pooled(columns: Sequence[Outcomes], statistic: Statistic) -> Estimate:
    """A statistic over all runs on all benchmarks, each benchmark weighing the same."""
    scores = np.concatenate([column.won.mean(axis=1) for column in columns])
    value = float(statistic(scores[None])[0])
    draws = statistic(np.concatenate([column.draws for column in columns], axis=1))
    if is_alike(draws):
        weights = np.concatenate([np.full(len(c.bench.task_ids), 1 / len(c.bench.task_ids)) for c in columns])
        return settled_estimate(value, effective_tasks(weights))
    return Estimate(value, *percentile_interval(draws))


def _improvement(ours: Sequence[Outcomes], theirs: Sequence[Outcomes]) -> Estimate:
    """Probability of improvement over a random benchmark, with its interval."""
    ours_won, theirs_won = (np.stack([c.won.mean(axis=1) for c in columns], axis=1) for columns in (ours, theirs))
    ours_drawn, theirs_drawn = (np.stack([c.draws for c in columns], axis=2) for columns in (ours, theirs))
    draws = improvement_draws(ours_drawn, theirs_drawn)
    return Estimate(probability_of_improvement(ours_won, theirs_won), *percentile_interval(draws))
