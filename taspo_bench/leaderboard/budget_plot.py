"""Success against training budget, as numbers that the page's SVG is drawn from."""

from __future__ import annotations

import math
from dataclasses import dataclass

from taspo_bench.evaluation.statistics import Estimate
from taspo_bench.leaderboard.board import Board

WIDTH, HEIGHT = 900, 380
LEFT, RIGHT, TOP, BOTTOM = 56, 190, 16, 52
ZERO_GAP = 70
UNDECLARED_GAP = 110
LABEL_GAP = 15
LABEL_LENGTH = 24


@dataclass(frozen=True)
class Point:
    """One submission, in pixels; ``label_y`` keeps labels apart."""

    key: str
    label: str
    ranked: bool
    x: float
    y: float
    low: float
    high: float
    label_y: float
    figure: str


@dataclass(frozen=True)
class BudgetPlot:
    """Points, and the ticks of both axes as (position, text)."""

    points: tuple[Point, ...]
    x_ticks: tuple[tuple[float, str], ...]
    y_ticks: tuple[tuple[float, str], ...]
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    right: int = WIDTH - RIGHT
    top: int = TOP
    bottom: int = HEIGHT - BOTTOM


def budget_plot(board: Board) -> BudgetPlot | None:
    """The plot of a board; None if nothing on it has the figure that the board ranks by.

    The axis of environment steps is logarithmic; 0 stands left of it, and budgets that are not declared right of it.
    """
    rows = [(row, estimate) for row in board.rows if (estimate := _ranked_figure(row.unseen, row.seen, board))]
    if not rows:
        return None
    decades = [math.log10(row.environment_steps) for row, _ in rows if row.environment_steps]
    low, high = (math.floor(min(decades)), math.ceil(max(decades))) if decades else (3, 6)
    high = max(high, low + 1)
    zero, undeclared = LEFT + 20, WIDTH - RIGHT - 20

    def place(steps: int | None) -> float:
        if steps is None:
            return undeclared
        if steps == 0:
            return zero
        span = undeclared - zero - ZERO_GAP - UNDECLARED_GAP
        return round(zero + ZERO_GAP + span * (math.log10(steps) - low) / (high - low), 1)

    budgets = {row.environment_steps for row, _ in rows}
    labels = _spread([_height(estimate.value) for _, estimate in rows])
    points = tuple(
        Point(
            key=row.entry.key,
            label=_short(row.entry.manifest.name),
            ranked=row.entry.manifest.ranked,
            x=place(row.environment_steps),
            y=_height(estimate.value),
            low=_height(estimate.low),
            high=_height(estimate.high),
            label_y=label,
            figure=f"{100 * estimate.value:.1f}",
        )
        for (row, estimate), label in zip(rows, labels, strict=True)
    )
    ticks = [(place(10**exponent), f"{10**exponent:,}") for exponent in range(low, high + 1)]
    return BudgetPlot(
        points,
        tuple([(zero, "0")] * (0 in budgets) + ticks + [(undeclared, "not declared")] * (None in budgets)),
        tuple((_height(share / 100), str(share)) for share in range(0, 101, 20)),
    )


def _ranked_figure(unseen: Estimate | None, seen: Estimate | None, board: Board) -> Estimate | None:
    return unseen if board.ranked_by == "unseen" else seen


def _short(name: str) -> str:
    return name if len(name) <= LABEL_LENGTH else f"{name[: LABEL_LENGTH - 1]}…"


def _height(share: float) -> float:
    return round(HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM), 1)


def _spread(heights: list[float]) -> list[float]:
    """Label heights, from the top down, moved so that no two lie over each other and none lies below the plot."""
    placed: list[float] = []
    for height in heights:
        placed.append(max(height, placed[-1] + LABEL_GAP) if placed else height)
    overflow = max(0.0, placed[-1] - (HEIGHT - BOTTOM))
    for index in range(len(placed) - 1, -1, -1):
        limit = placed[index + 1] - LABEL_GAP if index + 1 < len(placed) else placed[index] - overflow
        placed[index] = min(placed[index], limit)
    return [round(height, 1) for height in placed]
