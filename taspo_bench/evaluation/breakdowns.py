"""Tables of the parts: task families, paired differences, single runs, time; and all results as plain numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from taspo_bench.evaluation.summary import Result, Summary
from taspo_bench.evaluation.table import (
    NONE,
    Entry,
    Table,
    errors_note,
    p_value,
    percent_gain,
    plain_row,
    points,
    share,
    split_headings,
)


def family_tables(summary: Summary) -> list[Table]:
    """Per split: success in every task family, with both averages named."""
    tables = []
    for (env, split), heading in split_headings(summary).items():
        results = [result for result in summary.results if (result.env, result.split) == (env, split)]
        families = list(dict.fromkeys(family for result in results for family in result.families))
        rows = [
            (
                Entry(result.method),
                Entry(f"{100 * result.success.value:.1f}", errored=bool(result.errors)),
                Entry(share(result.macro), errored=bool(result.errors)),
                *plain_row(
                    *(
                        f"{100 * result.families[family]:.1f}" if family in result.families else NONE
                        for family in families
                    )
                ),
            )
            for result in results
        ]
        tables.append(
            Table(
                f"families {heading}",
                f"Families of {heading} (%)",
                f"{results[0].n} tasks. Micro: mean over tasks. Macro: mean over families, each weighing the same."
                f"{errors_note(summary, results)}",
                ("method", "micro", "macro", *families),
                tuple(rows),
            )
        )
    return tables


def paired_table(summary: Summary) -> Table:
    """Every method against the baseline on the same tasks, with the permutation tests."""
    columns = split_headings(summary)
    rows = [
        plain_row(
            gain.method,
            columns[gain.env, gain.split],
            points(gain.difference),
            percent_gain(gain.relative),
            p_value(gain.p),
            p_value(gain.p_holm),
            NONE if gain.p_seeds is None else p_value(gain.p_seeds),
        )
        for gain in summary.gains
    ]
    return Table(
        "paired",
        f"Paired differences from {summary.baseline}",
        "Difference in success on the same tasks, in percentage points, with 95 % interval (seeds and tasks drawn "
        "anew). p over tasks: exact sign-flip permutation test of the wins of all seeds, so it speaks of these "
        "trained policies; Holm: adjusted for the number of rows. p over seeds: the same test of each seed's wins, "
        "so it speaks of the methods; not adjusted, and never below 2 / 2^seeds.",
        ("method", "split", "difference (points)", "relative (%)", "p over tasks", "Holm", "p over seeds"),
        tuple(rows),
        labels=2,
    )


def cell_table(summary: Summary) -> Table:
    """Every single run with its Wilson intervals, and why it failed if it did."""
    columns = {key: heading.removeprefix(f"{key[0]} ") for key, heading in split_headings(summary).items()}
    headings = list(dict.fromkeys(columns.values()))
    figures = {
        (result.method, result.env, seed, columns[result.env, result.split]): (
            f"{100 * value:.1f} [{100 * low:.1f}, {100 * high:.1f}]"
        )
        for result in summary.results
        for seed, value, (low, high) in zip(result.seeds, result.per_seed, result.wilson, strict=True)
        if seed not in result.failed
    }
    rows = []
    for cell in summary.cells:
        state = f"failed: {cell.error}" if cell.error else "done"
        state += f", {cell.errors} episodes ended with an error" if cell.errors else ""
        name, blank = (cell.method, cell.env, cell.seed), "0.0" if cell.error else NONE
        success = (figures.get((*name, heading), blank) for heading in headings)
        rows.append(plain_row(cell.method, cell.env, str(cell.seed), state, *success))
    return Table(
        "runs",
        "Single runs (%)",
        "Success of each run with its Wilson 95 % interval. Runs that failed or did not finish count as 0.",
        ("method", "environment", "seed", "state", *headings),
        tuple(rows),
        labels=4,
    )


CREDIT_FIGURES = {  # heading, factor and digits of each figure of the training log
    "groups_skipped": ("groups without signal (%)", 100.0, 1),
    "guidance_coverage": ("episodes guided (%)", 100.0, 1),
    "guided_turns": ("turns guided (%)", 100.0, 1),
    "weighted": ("episodes weighted (%)", 100.0, 1),
    "weight_spread": ("spread of weights", 1.0, 3),
    "sign_flips": ("sign flips", 1.0, 2),
}


def credit_table(logs: Mapping[tuple[str, str, int], Sequence[Mapping[str, Any]]]) -> Table:
    """What each method's credit rested on; (method, environment, seed) -> the cell's metrics."""
    pooled: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for (method, env, _), log in logs.items():
        pooled.setdefault((method, env), []).extend(
            record for record in log if CREDIT_FIGURES.keys() <= record.keys()
        )
    rows = [
        plain_row(
            *key,
            *(
                f"{factor * sum(float(record[name]) for record in records) / len(records):.{digits}f}"
                for name, (_, factor, digits) in CREDIT_FIGURES.items()
            ),
        )
        for key, records in pooled.items()
        if records
    ]
    return Table(
        "credit",
        "Credit in training",
        "Means over updates and seeds. Groups whose episodes all ended alike carry no signal and are skipped; the "
        "other figures are of the rest. A weight is a turn's credit over its trajectory's advantage; the spread is "
        "its standard deviation within weighted trajectories. Sign flips: turns an update whose credit has the other "
        "sign than their trajectory's advantage.",
        ("method", "environment", *(heading for heading, _, _ in CREDIT_FIGURES.values())),
        tuple(rows),
        labels=2,
    )


def wall_clock_table(seconds: dict[tuple[str, str], dict[str, float]]) -> Table:
    """Seconds per update of each phase; (method, environment) -> phase -> seconds."""
    phases = list(dict.fromkeys(phase for parts in seconds.values() for phase in parts))
    rows = [
        plain_row(method, env, *(f"{parts.get(phase, 0.0):.2f}" for phase in phases), f"{sum(parts.values()):.2f}")
        for (method, env), parts in seconds.items()
    ]
    return Table(
        "wall clock",
        "Wall-clock time (seconds per update)",
        "Mean over updates and seeds, as measured on the machine of the run.",
        ("method", "environment", *phases, "all"),
        tuple(rows),
        labels=2,
    )


def result_records(results: Iterable[Result]) -> tuple[tuple[str, ...], Sequence[tuple[object, ...]]]:
    """The results as a tidy table of numbers: one row per method and split over all seeds, then one per seed."""
    columns = ("method", "env", "split", "kind", "seed", "tasks", "errors", "status", "interval")
    figures = ("success", "success_low", "success_high", "iqm", "macro", "score")
    rows: list[tuple[object, ...]] = []
    for result in results:
        name = (result.method, result.env, result.split, result.kind)
        success = (result.success.value, result.success.low, result.success.high)
        means = (result.iqm.value, result.macro.value, result.score.value)
        interval = "bootstrap" if len(result.seeds) > 1 else "wilson"
        state = f"{len(result.failed)} of {len(result.seeds)} failed" if result.failed else "done"
        rows.append((*name, "all", result.n, result.errors, state, interval, *success, *means))
        for seed, value, bounds in zip(result.seeds, result.per_seed, result.wilson, strict=True):
            state = "failed" if seed in result.failed else "done"
            rows.append((*name, seed, result.n, "", state, "wilson", value, *bounds, "", "", ""))
    return (*columns, *figures), rows
