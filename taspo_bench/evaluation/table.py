"""A table in no particular format, and how figures are put into words in it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from taspo_bench.evaluation.statistics import Estimate
from taspo_bench.evaluation.summary import Result, Summary

NONE = "-"
TIED = "†"
FAILED = "‡"
ERRORED = "§"


@dataclass(frozen=True)
class Entry:
    """One cell of a table: best of its column, not told apart from the best, made with failed runs in it, or with
    episodes that broke."""

    text: str
    best: bool = False
    tied: bool = False
    failed: bool = False
    errored: bool = False

    @property
    def marks(self) -> str:
        return TIED * self.tied + FAILED * self.failed + ERRORED * self.errored


@dataclass(frozen=True)
class Table:
    """A table in no particular format. The first ``labels`` columns name the row, the others hold figures."""

    name: str
    title: str
    note: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Entry, ...], ...]
    labels: int = 1


def split_headings(summary: Summary) -> dict[tuple[str, str], str]:
    """(environment, split) -> heading: the kind of the split where it is the only one of its kind."""
    splits = list(dict.fromkeys((result.env, result.split, result.kind) for result in summary.results))
    kinds = [(env, kind) for env, _, kind in splits]
    return {
        (env, split): f"{env} {kind if kinds.count((env, kind)) == 1 else split}"
        for env in summary.envs
        for other, split, kind in splits
        if other == env
    }


def errors_note(summary: Summary, results: Iterable[Result]) -> str:
    """What the mark of errored episodes stands for, with their numbers; "" where there are none."""
    headings = split_headings(summary)
    counts = [
        f"{result.method} on {headings.get((result.env, result.split), result.env)} {result.errors} of "
        f"{result.n * (len(result.seeds) - len(result.failed))}"
        for result in results
        if result.errors
    ]
    return f" {ERRORED}: episodes that ended with an error, lost: {', '.join(counts)}." if counts else ""


def plain_row(*texts: str) -> tuple[Entry, ...]:
    """A row of plain entries."""
    return tuple(Entry(text) for text in texts)


def share(estimate: Estimate) -> str:
    """A rate in percent with its interval."""
    return f"{100 * estimate.value:.1f} {interval(estimate, 100, 1)}"


def points(estimate: Estimate | None) -> str:
    """A difference in percentage points with its interval."""
    return f"{100 * estimate.value:+.1f} {interval(estimate, 100, 1)}" if estimate else NONE


def percent_gain(estimate: Estimate | None) -> str:
    """A relative gain, already in percent, with its interval."""
    return f"{estimate.value:+.1f} {interval(estimate, 1, 1)}" if estimate else NONE


def interval(estimate: Estimate, scale: float, digits: int) -> str:
    """The bounds alone, rounded."""
    # adding 0 turns a rounded -0.0 into 0.0
    low, high = (round(scale * bound, digits) + 0.0 for bound in (estimate.low, estimate.high))
    return f"[{low:.{digits}f}, {high:.{digits}f}]"


def p_value(value: float) -> str:
    """A p value to three digits."""
    return "<0.001" if value < 0.001 else f"{value:.3f}"
