"""Rank verified submissions, per benchmark and over all: with intervals, and with ties where there are some."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from taspo_bench import registry
from taspo_bench.evaluation.outcomes import Outcomes, gather
from taspo_bench.evaluation.statistics import (
    Array,
    Estimate,
    crossed_estimate,
    difference_interval,
    is_alike,
    percentile_interval,
)
from taspo_bench.leaderboard.manifest import Manifest
from taspo_bench.leaderboard.replay_sample import ShownEpisode
from taspo_bench.leaderboard.verdict import board_name, cells
from taspo_bench.leaderboard.verify import Verdict

KINDS = ("unseen", "seen")
OVERALL = "overall"


@dataclass(frozen=True)
class Entry:
    """A verified submission: its key (file name on the site), its verdict, and a few of its episodes."""

    key: str
    manifest: Manifest
    verdict: Verdict
    episodes: tuple[ShownEpisode, ...]

    @property
    def environment_steps(self) -> int | None:
        """Training budget over all its benchmarks; None unless each declares its own."""
        return _total([benchmark.budget.environment_steps for benchmark in self.manifest.benchmarks.values()])

    @property
    def response_tokens(self) -> int | None:
        return _total([benchmark.budget.response_tokens for benchmark in self.manifest.benchmarks.values()])


def _total(counts: Sequence[int | None]) -> int | None:
    return sum(count for count in counts if count is not None) if None not in counts else None


@dataclass(frozen=True)
class Row:
    """A submission on a board.

    rank: 1 + the number of ranked submissions whose lead is told apart from 0, made monotone in the figure that is
        ranked by; None for references, and where a main split of the board is missing.
    tied: another submission has the same rank.
    parts: on the overall board, the ranked-by figure of each benchmark.
    """

    entry: Entry
    rank: int | None
    tied: bool
    unseen: Estimate | None
    seen: Estimate | None
    environment_steps: int | None
    response_tokens: int | None
    notes: tuple[str, ...] = ()
    parts: dict[str, Estimate] = field(default_factory=dict)


@dataclass(frozen=True)
class Board:
    """Submissions that may be compared: one benchmark on one data version, or all benchmarks of one kind of data."""

    name: str
    ranked_by: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class _Figure:
    """A success rate with its bootstrap draws (reps,), so that differences can be paired.

    alike: all outcomes of a part of it are the same, so that its bootstrap says too little of its doubt.
    """

    estimate: Estimate
    draws: Array
    alike: bool


def boards(entries: Sequence[Entry]) -> list[Board]:
    """The overall boards, then each benchmark's."""
    outcomes = gather([cell for entry in entries for cell in cells(entry.verdict, entry.key)])
    figures = {
        (entry.key, board, kind): figure
        for entry in entries
        for board in _boards_of(entry)
        for kind in KINDS
        if (figure := _figure(entry, board, kind, outcomes)) is not None
    }
    names = {board: env for entry in entries for board, env in _boards_of(entry).items()}
    order = sorted(names, key=lambda board: (board != names[board], board))
    single = [_single(board, names[board], entries, figures) for board in order]
    return [*_overall(entries, names, figures), *single]


def _boards_of(entry: Entry) -> dict[str, str]:
    """Board -> benchmark of everything that an entry hands in."""
    return {board_name(env, benchmark.data): env for env, benchmark in entry.verdict.benchmarks.items()}


def _figure(entry: Entry, board: str, kind: str, outcomes: Sequence[Outcomes]) -> _Figure | None:
    """Success over the main splits of one kind, each split weighing the same; None if one is missing."""
    benchmark = entry.verdict.benchmarks[_boards_of(entry)[board]]
    wanted = {split for split, own in benchmark.main_splits.items() if own == kind}
    if not wanted or not wanted <= benchmark.splits.keys():
        return None
    own = [
        outcome
        for outcome in outcomes
        if (outcome.method, outcome.bench.env) == (entry.key, board) and outcome.bench.split in wanted
    ]
    parts = [
        _Figure(
            crossed_estimate(outcome.won, outcome.bench.weights, outcome.drawn_seeds),
            outcome.draws.mean(axis=1),
            is_alike(outcome.draws.mean(axis=1)),
        )
        for outcome in own
    ]
    return parts[0] if len(parts) == 1 else _mean(parts)


def _single(board: str, env: str, entries: Sequence[Entry], figures: dict[tuple[str, str, str], _Figure]) -> Board:
    there = [entry for entry in entries if board in _boards_of(entry)]
    differing = _differing(there, [env])
    kind = _ranking_kind([entry.key for entry in there], board, figures)
    rows = [
        Row(
            entry=entry,
            rank=None,
            tied=False,
            unseen=_estimate(figures.get((entry.key, board, "unseen"))),
            seen=_estimate(figures.get((entry.key, board, "seen"))),
            environment_steps=entry.manifest.benchmarks[env].budget.environment_steps,
            response_tokens=entry.manifest.benchmarks[env].budget.response_tokens,
            notes=(*_notes(entry, env), *_temperature_notes(entry, differing)),
        )
        for entry in there
    ]
    own = {entry.key: figures[entry.key, board, kind] for entry in there if (entry.key, board, kind) in figures}
    return Board(board, kind, tuple(_rank(rows, own)))


def _ranking_kind(keys: Sequence[str], board: str, figures: dict[tuple[str, str, str], _Figure]) -> str:
    return "unseen" if any((key, board, "unseen") in figures for key in keys) else "seen"


def _notes(entry: Entry, env: str) -> tuple[str, ...]:
    benchmark = entry.verdict.benchmarks[env]
    notes = []
    if benchmark.max_turns != benchmark.own_max_turns:
        notes.append(f"{benchmark.max_turns} steps instead of {benchmark.own_max_turns}")
    if missing := sum(split.missing for split in benchmark.splits.values()):
        notes.append(f"{missing} episodes missing, counted 0")
    return tuple(notes)


def _differing(entries: Sequence[Entry], envs: Iterable[str]) -> list[str]:
    """The benchmarks that these entries were not all evaluated on at one temperature, as far as they say it."""
    return [env for env in envs if len({entry.manifest.benchmarks[env].temperature for entry in entries}) > 1]


def _temperature_notes(entry: Entry, envs: Sequence[str]) -> list[str]:
    """What an entry says of its temperature on these benchmarks, one note for those that are alike."""
    found: dict[float | None, list[str]] = {}
    for env in envs:
        found.setdefault(entry.manifest.benchmarks[env].temperature, []).append(env)
    if len(found) == 1:
        return [f"temperature {as_said(temperature)}" for temperature in found]
    return [f"temperature {as_said(temperature)} ({', '.join(alike)})" for temperature, alike in found.items()]


def as_said(temperature: float | None) -> str:
    """A temperature as it is declared."""
    return "not said" if temperature is None else f"{temperature:g}"


def _overall(
    entries: Sequence[Entry], names: dict[str, str], figures: dict[tuple[str, str, str], _Figure]
) -> list[Board]:
    """One board per kind of data (embedded, and what users install) that holds the whole suite."""
    found = []
    for embedded in (True, False):
        parts = sorted(board for board, env in names.items() if (board == env) == embedded)
        if sorted(names[board] for board in parts) == sorted(registry.suite_names()):
            name = OVERALL if embedded else f"{OVERALL} (official data)"
            found.append(_combined(name, {part: names[part] for part in parts}, entries, figures))
    return [board for board in found if board.rows]


def _combined(
    name: str, names: dict[str, str], entries: Sequence[Entry], figures: dict[tuple[str, str, str], _Figure]
) -> Board:
    """The board over all parts; ``names`` is board -> benchmark of each."""
    parts = list(names)
    whole = [entry for entry in entries if set(parts) <= _boards_of(entry).keys()]
    kinds = {part: _ranking_kind([entry.key for entry in whole], part, figures) for part in parts}
    differing = _differing(whole, names.values())
    rows, ranked = [], {}
    for entry in whole:
        by_kind = {}
        for kind in KINDS:
            own = [figures[key] for part in parts if (key := (entry.key, part, kind)) in figures]
            by_kind[kind] = _mean(own) if len(own) == len(parts) else None
        own_parts = {part: figures.get((entry.key, part, kinds[part])) for part in parts}
        if None not in own_parts.values():
            ranked[entry.key] = _mean([figure for figure in own_parts.values() if figure is not None])
        rows.append(
            Row(
                entry=entry,
                rank=None,
                tied=False,
                unseen=_estimate(by_kind["unseen"]),
                seen=_estimate(by_kind["seen"]),
                environment_steps=entry.environment_steps,
                response_tokens=entry.response_tokens,
                notes=(
                    *(note for env in entry.verdict.benchmarks for note in _notes(entry, env)),
                    *_temperature_notes(entry, differing),
                ),
                parts={part: figure.estimate for part, figure in own_parts.items() if figure is not None},
            )
        )
    return Board(name, "unseen" if "unseen" in kinds.values() else "seen", tuple(_rank(rows, ranked)))


def _mean(figures: Sequence[_Figure]) -> _Figure:
    estimates = [figure.estimate for figure in figures]
    value = float(np.mean([estimate.value for estimate in estimates]))
    draws = np.asarray(np.mean([figure.draws for figure in figures], axis=0))
    if not any(figure.alike for figure in figures):
        return _Figure(Estimate(value, *percentile_interval(draws)), draws, False)
    # the interval of a sum recovered from those of its parts (as statistics.difference_interval does)
    down = math.hypot(*(estimate.value - estimate.low for estimate in estimates)) / len(estimates)
    up = math.hypot(*(estimate.high - estimate.value for estimate in estimates)) / len(estimates)
    return _Figure(Estimate(value, value - down, value + up), draws, True)


def _estimate(figure: _Figure | None) -> Estimate | None:
    return figure.estimate if figure else None


def _rank(rows: Sequence[Row], figures: dict[str, _Figure]) -> list[Row]:
    """Rows from the best down, ranks given, those without a figure last."""
    ordered = sorted(
        rows,
        key=lambda row: (
            -figures[row.entry.key].estimate.value if row.entry.key in figures else 1.0,
            row.entry.manifest.name,
            row.entry.key,
        ),
    )
    ranked = [row.entry.key for row in ordered if row.entry.manifest.ranked and row.entry.key in figures]
    ranks: dict[str, int] = {}
    highest = 1
    for key in ranked:
        better = sum(_leads(figures[other], figures[key]) for other in ranked)
        highest = max(highest, 1 + better)
        ranks[key] = highest
    shared = list(ranks.values())
    return [
        replace(row, rank=rank, tied=rank is not None and shared.count(rank) > 1)
        for row in ordered
        for rank in [ranks.get(row.entry.key)]
    ]


def _leads(ours: _Figure, theirs: _Figure) -> bool:
    if ours.alike or theirs.alike:
        return difference_interval(ours.estimate, theirs.estimate)[0] > 0
    return percentile_interval(ours.draws - theirs.draws)[0] > 0
