"""One look for every plot: colours that the colour-blind tell apart, markers that survive a grey print."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, ParamSpec, TypeVar

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

P = ParamSpec("P")
T = TypeVar("T")

# Okabe and Ito's palette, its yellow and light blue left out: too pale on paper
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7A4FA3", "#8C6D31")
MARKERS = ("s", "^", "D", "v", "P", "X", "p", "h")
LINES = ("-", "--", "-.", ":")
BASELINE = "#555555"
INK = "#222222"
NARROWEST = 4.8
LEGEND_ROW = 0.19
MUTED = "#6b6b6b"
STYLE = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelcolor": MUTED,
    "axes.edgecolor": "#b0b0b0",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.7,
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "lines.linewidth": 1.8,
    "svg.fonttype": "none",
    "svg.hashsalt": "taspo-bench",
    "figure.constrained_layout.use": True,
    "text.parse_math": False,
}


class Look(NamedTuple):
    """How one method is drawn in every plot."""

    colour: str
    marker: str
    line: str


def looks(methods: Sequence[str], baseline: str | None) -> dict[str, Look]:
    """A look for each method: the baseline grey and dashed, the others by their order."""
    others = [method for method in methods if method != baseline]
    drawn = {
        method: Look(
            COLOURS[index % len(COLOURS)], MARKERS[index % len(MARKERS)], LINES[index // len(COLOURS) % len(LINES)]
        )
        for index, method in enumerate(others)
    }
    if baseline is not None:
        drawn[baseline] = Look(BASELINE, "o", "--")
    return drawn


def styled(draw: Callable[P, T]) -> Callable[P, T]:
    """Run a plot function in the suite's style, leaving matplotlib's global settings as they were."""

    @wraps(draw)
    def inside(*args: P.args, **kwargs: P.kwargs) -> T:
        from matplotlib import rc_context

        with rc_context(STYLE):  # type: ignore[arg-type]
            return draw(*args, **kwargs)

    return inside


def panels(columns: int, width: float, height: float) -> tuple[Figure, list[Axes]]:
    """A row of axes with one y axis, each ``width`` x ``height`` inches, outside pyplot's global state."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(max(width * columns, NARROWEST), height))
    return figure, list(figure.subplots(1, columns, sharey=True, squeeze=False)[0])


def label_rows(ax: Axes, labels: Sequence[str]) -> None:
    """Rows from the top down, named in ink."""
    ax.set_yticks(range(len(labels)), labels, color=INK)
    ax.set_ylim(len(labels) - 0.5, -0.5)
    ax.grid(visible=False, axis="y")
    ax.tick_params(axis="y", length=0)


def legend_below(figure: Figure, handles: Sequence[Artist], labels: Sequence[str]) -> None:
    """One legend for all panels, under them; the figure grows by its rows, so that the panels keep their height."""
    longest = max(map(len, labels), default=0)
    fitting = int(figure.get_figwidth() / (0.55 + 0.075 * longest))
    columns = max(1, min(len(labels), fitting, 6))
    figure.set_figheight(figure.get_figheight() + LEGEND_ROW * (math.ceil(len(labels) / columns) - 1))
    figure.legend(handles, labels, loc="outside lower center", ncols=columns)


@styled
def save(figure: Figure, folder: Path, name: str) -> None:
    """Write ``name``.png and ``name``.svg, whole or not at all; equal figures give equal bytes."""
    for kind, metadata in (("png", {"Software": None}), ("svg", {"Date": None, "Creator": None})):
        path = folder / f"{name}.{kind}"
        temporary = path.with_name(f".{path.name}.tmp")
        try:
            figure.savefig(temporary, format=kind, dpi=200, metadata=metadata)
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
