"""The main tables of a run. How they are written (Markdown, LaTeX, ...) is in table_formats.py."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter

from taspo_bench.config import WARM_START
from taspo_bench.evaluation.breakdowns import cell_table, family_tables, paired_table
from taspo_bench.evaluation.late_training import LateTraining
from taspo_bench.evaluation.reference import PAPER, PAPER_FIGURES
from taspo_bench.evaluation.statistics import Estimate
from taspo_bench.evaluation.summary import AVERAGING, Aggregate, Result, Summary
from taspo_bench.evaluation.table import (
    NONE,
    Entry,
    Table,
    errors_note,
    interval,
    percent_gain,
    plain_row,
    points,
    share,
    split_headings,
)


def all_tables(summary: Summary, paper: bool = False) -> list[Table]:
    """Every table that has something to say, the main one first."""
    tables = [
        success_table(summary),
        *([paper_table(summary)] if paper else []),
        aggregate_table(summary),
        gain_table(summary),
        gap_table(summary),
        late_training_table(summary),
        score_table(summary),
        *family_tables(summary),
        paired_table(summary),
        cell_table(summary),
    ]
    return [table for table in tables if table.rows]


def success_table(summary: Summary) -> Table:
    """Success of every method on every split, the policy before training, and the averages."""
    means = {(row.method, row.kind): row for row in summary.aggregates}
    return _result_table(
        summary,
        name="success",
        title="Success (%)",
        note=(
            "Share of tasks won (micro average over tasks), mean over seeds, with 95 % interval: seeds and, within "
            "family, tasks drawn anew; Wilson for a single run. Errored episodes and failed runs count as lost "
            "(‡: some runs failed). Bold: highest of its column, unless all methods are equal; †: not told apart "
            "from it, since the 95 % interval of their difference holds 0."
            f"{_start_note(summary)}"
        ),
        figure=lambda result: result.success,
        extra={f"mean {kind}": {m: means.get((m, kind)) for m in summary.methods} for kind in _kinds(summary)},
        mark=True,
    )


def _start_note(summary: Summary) -> str:
    envs = list(dict.fromkeys(result.env for result in summary.warm_start if result.method != WARM_START))
    if not envs:
        return ""
    return (
        f" The runs began from different policies on {', '.join(envs)}: a difference between methods of different "
        "runs is not of the methods alone."
    )


def score_table(summary: Summary) -> Table:
    """Mean score of every method on every split, where it says more than success does."""
    table = _result_table(
        summary,
        name="score",
        title="Score (%)",
        note="Mean verified score, with partial credit where the benchmark gives it, and its 95 % interval.",
        figure=lambda result: result.score,
    )
    partial = any(result.score.value != result.success.value for result in summary.results)
    return table if partial else Table(table.name, table.title, table.note, table.columns, ())


def _result_table(
    summary: Summary,
    name: str,
    title: str,
    note: str,
    figure: Callable[[Result], Estimate],
    extra: dict[str, dict[str, Aggregate | None]] | None = None,
    mark: bool = False,
) -> Table:
    columns = split_headings(summary)
    extra = extra or {}
    rows = []
    for start in dict.fromkeys(result.method for result in summary.warm_start):
        own = {(result.env, result.split): result for result in summary.warm_start if result.method == start}
        entries = [_entry(own.get(key), figure, False) for key in columns]
        label = f"{start.replace(WARM_START, 'warm start', 1)} (before training)"
        rows.append((Entry(label), *entries, *plain_row(*[NONE] * len(extra))))
    for method in summary.methods:
        own = {(result.env, result.split): result for result in summary.results if result.method == method}
        entries = [_entry(own.get(key), figure, mark) for key in columns]
        means = [_mean_entry(column.get(method)) for column in extra.values()]
        rows.append((Entry(method), *entries, *means))
    note += errors_note(summary, [*summary.warm_start, *summary.results])
    return Table(name, title, note, ("method", *columns.values(), *extra), tuple(rows))


def _entry(result: Result | None, figure: Callable[[Result], Estimate], mark: bool) -> Entry:
    if result is None:
        return Entry(NONE)
    best, tied = mark and result.best, mark and result.tied and not result.best
    return Entry(share(figure(result)), best, tied, failed=bool(result.failed), errored=bool(result.errors))


def _mean_entry(row: Aggregate | None) -> Entry:
    return Entry(share(row.mean), row.best, row.tied and not row.best) if row else Entry(NONE)


def _kinds(summary: Summary) -> list[str]:
    return list(dict.fromkeys(row.kind for row in summary.aggregates if len(row.envs) > 1))


def paper_table(summary: Summary) -> Table:
    """Our figures beside those of the paper, the same average in each column."""
    shown = [place for place, (env, _) in enumerate(PAPER_FIGURES) if env in summary.envs]
    seen = {(r.method, r.env): r for r in reversed(summary.results) if r.kind == "seen"}
    rows = []
    for method in summary.methods:
        entries = []
        for env, figure in (PAPER_FIGURES[place] for place in shown):
            entries.append(_entry(seen.get((method, env)), attrgetter(figure), False))
        rows.append((Entry(method), *entries))
    for row in PAPER:
        rows.append(
            plain_row(f"{row.method}, {row.model} (paper)", *(f"{row.figures[place]:.1f}" for place in shown))
        )
    names = {"macro": "macro", "success": "success (micro)", "score": "score"}
    return Table(
        "paper",
        "Beside the paper (%)",
        "Rows marked (paper): arXiv 2608.31077, other models and the official data. Macro: mean over families, in "
        "the paper the six of ALFWorld's 140 seen games and the seven sets of Search-QA; micro: mean over tasks. "
        f"Ours: seen tasks, with 95 % interval. For reference, not for ranking.{errors_note(summary, seen.values())}",
        ("method", *(f"{env} seen, {names[figure]}" for env, figure in (PAPER_FIGURES[place] for place in shown))),
        tuple(rows) if shown else (),
    )


def aggregate_table(summary: Summary) -> Table:
    """All benchmarks at once."""
    against = summary.baseline or "baseline"
    return Table(
        "aggregate",
        "All benchmarks together",
        "Mean and interquartile mean (IQM) of the runs' success over seeds and benchmarks (arXiv 2108.13264); 95 % "
        "intervals: stratified bootstrap, seeds drawn within each benchmark and tasks within each family. "
        f"P(better): chance that a run beats one of {against} on a random benchmark. Average gain: {AVERAGING}.",
        ("method", "split", "mean (%)", "IQM (%)", f"P(better than {against})", f"average gain over {against} (%)"),
        tuple(_aggregate_row(row) for row in summary.aggregates if len(row.envs) > 1),
        labels=2,
    )


def _aggregate_row(row: Aggregate) -> tuple[Entry, ...]:
    better = f"{row.improvement.value:.2f} {interval(row.improvement, 1, 2)}" if row.improvement else NONE
    return plain_row(row.method, row.kind, share(row.mean), share(row.iqm), better, percent_gain(row.relative))


def gain_table(summary: Summary) -> Table:
    """Relative gain over the baseline per benchmark and averaged."""
    columns = split_headings(summary)
    gains = {(gain.method, gain.env, gain.split): gain.relative for gain in summary.gains}
    averages = {(row.method, row.kind): row.relative for row in summary.aggregates}
    kinds = _kinds(summary)
    rows = [
        plain_row(
            method,
            *(percent_gain(gains.get((method, *key))) for key in columns),
            *(percent_gain(averages.get((method, kind))) for kind in kinds),
        )
        for method in dict.fromkeys(gain.method for gain in summary.gains if gain.relative)
    ]
    return Table(
        "gain",
        f"Gain over {summary.baseline} (% of its success)",
        f"100 x (success - success of {summary.baseline}) / success of {summary.baseline}, same tasks, with 95 % "
        f"interval; - where {summary.baseline} never wins. Average: {AVERAGING}.",
        ("method", *columns.values(), *(f"average {kind}" for kind in kinds)),
        tuple(rows),
    )


def gap_table(summary: Summary) -> Table:
    """How much success falls from seen to unseen tasks."""
    gaps = {(gap.method, gap.env): gap.gap for gap in summary.gaps}
    rows = [
        plain_row(method, *(points(gaps.get((method, env))) for env in summary.envs))
        for method in dict.fromkeys(gap.method for gap in summary.gaps)
    ]
    return Table(
        "gap",
        "Seen minus unseen (points)",
        "Success on seen tasks minus success on unseen tasks of the same runs, in percentage points, with 95 % "
        "interval; near 0: the policy generalizes as well as it fits.",
        ("method", *summary.envs),
        tuple(rows),
    )


def late_training_table(summary: Summary) -> Table:
    """Success in training, in the last quarter of the updates."""
    rows = {(row.method, row.env): row for row in summary.late_training}
    envs = list(dict.fromkeys(row.env for row in summary.late_training))
    lines = []
    for method in dict.fromkeys(row.method for row in summary.late_training):
        own = [rows.get((method, env)) for env in envs]
        entries = [(share(row.success), _late_difference(row)) if row else (NONE, NONE) for row in own]
        lines.append(plain_row(method, *(text for pair in entries for text in pair)))
    return Table(
        "late training",
        "Success in training (%)",
        "Share of episodes won in the last quarter of the updates, mean over seeds with Student's 95 % interval, and "
        f"the difference from {summary.baseline or 'the baseline'} in points, paired by seed (n: how many seeds both "
        "have): runs of one seed play the same training tasks in the same order.",
        ("method", *(f"{env}{what}" for env in envs for what in ("", " difference"))),
        tuple(lines),
    )


def _late_difference(row: LateTraining) -> str:
    return f"{points(row.difference)}, n = {row.pairs}" if row.difference else NONE
