"""Plots of the results: seen against unseen, gain over the baseline, performance profiles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from taspo_bench.config import WARM_START
from taspo_bench.evaluation.outcomes import Outcomes
from taspo_bench.evaluation.plot_style import INK, MUTED, Look, label_rows, legend_below, looks, panels, styled
from taspo_bench.evaluation.statistics import Array, Estimate, percentile_interval, stratified_draws
from taspo_bench.evaluation.summary import Summary

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ROW = 0.42
FILLS = {"seen": True, "unseen": False}


@styled
def generalization(summary: Summary) -> Figure | None:
    """Success on seen (filled) and unseen (open) tasks, with intervals: a row per method, a panel per benchmark."""
    results = [*summary.warm_start, *summary.results]
    if not results:
        return None
    methods = list(dict.fromkeys(result.method for result in results))
    starts = {result.method: Look("#9a9a9a", "o", "-") for result in summary.warm_start}
    style = {**looks(summary.methods, summary.baseline), **starts}
    figure, axes = panels(len(summary.envs), 3.1, 1.35 + ROW * len(methods))
    for ax, env in zip(axes, summary.envs, strict=True):
        for result in results:
            if result.env == env:
                row = methods.index(result.method)
                _point(ax, row, _scaled(result.success, 100), style[result.method], result.kind)
        ax.set(title=env, xlabel="success (%)", xlim=(-3, 103))
        label_rows(ax, [m.replace(WARM_START, "before training", 1) if m in starts else m for m in methods])
    _kind_legend(figure)
    return figure


@styled
def gain(summary: Summary) -> Figure | None:
    """Gain over the baseline in percent of its success, with 95 % intervals, per benchmark and averaged."""
    methods = list(dict.fromkeys(gain.method for gain in summary.gains if gain.relative))
    if not methods:
        return None
    panels_of = [*summary.envs, "average"] if len(summary.envs) > 1 else list(summary.envs)
    points = [(gain.env, gain.method, gain.kind, gain.relative) for gain in summary.gains]
    points += [("average", row.method, row.kind, row.relative) for row in summary.aggregates]
    style = looks(summary.methods, summary.baseline)
    figure, axes = panels(len(panels_of), 2.6, 1.35 + ROW * len(methods))
    for ax, panel in zip(axes, panels_of, strict=True):
        ax.axvline(0, color=INK, linewidth=0.8)
        for env, method, kind, estimate in points:
            if env == panel and estimate is not None and method in methods:
                _point(ax, methods.index(method), estimate, style[method], kind)
        ax.set(title=panel, xlabel=f"gain over {summary.baseline} (%)")
        label_rows(ax, methods)
    _kind_legend(figure)
    return figure


def _point(ax: Axes, row: int, estimate: Estimate, look: Look, kind: str) -> None:
    height = row + (-0.13 if kind == "seen" else 0.13)
    ax.plot([estimate.low, estimate.high], [height, height], color=look.colour, linewidth=1.4, solid_capstyle="butt")
    face = look.colour if FILLS.get(kind, True) else "white"
    ax.plot(estimate.value, height, marker=look.marker, color=look.colour, markerfacecolor=face, markersize=6)


def _kind_legend(figure: Figure) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], marker="o", color=MUTED, markerfacecolor=MUTED if filled else "white", markersize=6)
        for filled in FILLS.values()
    ]
    legend_below(figure, handles, [f"{kind} tasks" for kind in FILLS])


@styled
def profiles(outcomes: Sequence[Outcomes], summary: Summary) -> Figure | None:
    """Performance profiles: share of (run, task family) pairs whose success is above each threshold.

    One panel per kind of split; bands are 95 % stratified bootstrap intervals, runs drawn within each family
    (arXiv 2108.13264). A method whose benchmarks differ in their number of runs is left out.
    """
    kinds = list(dict.fromkeys(outcome.bench.kind for outcome in outcomes))
    if not kinds:
        return None
    style = looks(summary.methods, summary.baseline)
    thresholds = np.linspace(0, 1, 101)
    figure, axes = panels(len(kinds), 4.2, 3.2)
    drawn = {}
    for ax, kind in zip(axes, kinds, strict=True):
        for method in summary.methods:
            own = [outcome for outcome in outcomes if outcome.method == method and outcome.bench.kind == kind]
            if len({len(outcome.seeds) for outcome in own}) == 1:
                scores = np.concatenate([_family_scores(outcome) for outcome in own], axis=1)
                drawn[method] = _profile(ax, scores, thresholds, style[method])
        ax.set(title=f"{kind} tasks", xlabel="success threshold τ (%)", xlim=(0, 100), ylim=(-0.02, 1.02))
    axes[0].set_ylabel("share of runs x families above τ")
    legend_below(figure, list(drawn.values()), list(drawn))
    return figure


def _profile(ax: Axes, scores: Array, thresholds: Array, look: Look) -> Artist:
    draws = stratified_draws(scores, np.random.default_rng(0), 400)
    bands = np.array([percentile_interval((draws > threshold).mean(axis=(1, 2))) for threshold in thresholds])
    share = [(scores > threshold).mean() for threshold in thresholds]
    ax.fill_between(
        100 * thresholds, bands[:, 0], bands[:, 1], color=look.colour, alpha=0.15, linewidth=0, step="post"
    )
    (line,) = ax.step(100 * thresholds, share, color=look.colour, linestyle=look.line, where="post")
    return line


def _family_scores(outcome: Outcomes) -> Array:
    """Success of each run in each task family (seeds, families)."""
    names = np.asarray(outcome.bench.families)
    return np.stack([outcome.won[:, names == name].mean(axis=1) for name in np.unique(names)], axis=1)


def _scaled(estimate: Estimate, factor: float) -> Estimate:
    return Estimate(factor * estimate.value, factor * estimate.low, factor * estimate.high)
