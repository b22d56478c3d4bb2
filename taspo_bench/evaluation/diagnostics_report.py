"""Table and plot of a credit diagnosis."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from taspo_bench.evaluation.diagnostics import Diagnosis
from taspo_bench.evaluation.plot_style import INK, label_rows, looks, panels, styled
from taspo_bench.evaluation.statistics import Estimate
from taspo_bench.evaluation.summary import BASELINE
from taspo_bench.evaluation.table import NONE, Entry, Table, interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS = {
    "spearman": "correlation with progress",
    "spearman_chance": "with chance of success",
    "credit_on_progress": "credit on progress",
    "credit_on_nothing": "credit on no-ops",
    "credit_on_regression": "credit on regressions",
    "blame_on_progress": "blame on progress",
    "blame_on_nothing": "blame on no-ops",
    "blame_on_regression": "blame on regressions",
    "information_credit": "information against even",
    "oracle_gap": "gap to the oracle",
}
PLOTTED = ("spearman", "credit_on_progress", "blame_on_progress", "information_credit", "oracle_gap")
EXPECTED = ("oracle_credit", "taspo", BASELINE)


def diagnosis_table(diagnosis: Diagnosis) -> Table:
    """A row per scheme, the best correlation first; columns without a figure are left out."""
    shown = [
        figure
        for figure in COLUMNS
        if any(np.isfinite(diagnosis.estimate(scheme, figure).value) for scheme in diagnosis.schemes)
    ]
    rows = tuple(
        (Entry(scheme), *(Entry(_text(diagnosis.estimate(scheme, figure))) for figure in shown))
        for scheme in diagnosis.ranking()
    )
    return Table(
        name="diagnosis",
        title=f"Credit against the true effect of actions, {diagnosis.env}",
        note=f"Means over {len(diagnosis.seeds)} seeds with 95 % t intervals. Correlations are inside trajectories; "
        "credit is shared out over successes, blame over failures; `even` is GRPO.",
        columns=("scheme", *(COLUMNS[figure] for figure in shown)),
        rows=rows,
    )


def ranking_line(diagnosis: Diagnosis) -> str:
    """Whether the schemes come in the expected order of their correlation with progress, neighbours compared by
    paired differences over seeds."""
    present = [scheme for scheme in EXPECTED if scheme in diagnosis.schemes]
    words = []
    for better, worse in pairwise(present):
        gap = diagnosis.difference(better, worse, "spearman")
        verdict = "above" if gap.value > 0 else "not above"
        doubt = "" if gap.low > 0 or gap.high < 0 else ", not told apart"
        words.append(f"{better} is {verdict} {worse} by {_text(gap)}{doubt}")
    return "; ".join(words) or "fewer than two schemes to rank"


def _text(estimate: Estimate) -> str:
    if not np.isfinite(estimate.value):
        return NONE
    # adding 0 turns a rounded -0.0 into 0.0
    value = f"{round(estimate.value, 3) + 0.0:.3f}"
    return f"{value} {interval(estimate, 1, 3)}" if np.isfinite(estimate.low) else value


@styled
def diagnosis_plot(diagnosis: Diagnosis) -> Figure:
    """A row per scheme, a panel per figure, intervals over seeds."""
    schemes = diagnosis.ranking()
    style = looks(diagnosis.schemes, BASELINE)
    figure, axes = panels(len(PLOTTED), 2.6, 1.35 + 0.42 * len(schemes))
    for ax, name in zip(axes, PLOTTED, strict=True):
        ax.axvline(0, color=INK, linewidth=0.8)
        for row, scheme in enumerate(schemes):
            estimate = diagnosis.estimate(scheme, name)
            look = style[scheme]
            if np.isfinite(estimate.low):
                ax.plot([estimate.low, estimate.high], [row, row], color=look.colour)
            ax.plot([estimate.value], [row], look.marker, color=look.colour)
        ax.set(title=COLUMNS[name])
        label_rows(ax, schemes)
    figure.suptitle(diagnosis.env)
    return figure
