"""Plots of the training: learning curves, where the time went, and the credit along a trajectory."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from taspo_bench.episode import Episode
from taspo_bench.evaluation.plot_style import COLOURS, INK, Look, label_rows, legend_below, looks, panels, styled
from taspo_bench.evaluation.statistics import Array
from taspo_bench.evaluation.summary import Summary

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Log = list[dict[str, Any]]
PHASES = ("rollout", "guidance", "scoring", "update")
HATCHES = ("", "//", "..", "xx", "\\\\")


@styled
def learning_curves(logs: Mapping[tuple[str, str, int], Log], summary: Summary) -> Figure | None:
    """Training success by update: mean over seeds of a running mean, with a 95 % bootstrap band over seeds.

    Runs that failed or did not finish are left out, and the legend says how many: their curves would end the others'.

    Args:
        logs: (method, environment, seed) -> the cell's metrics.
    """
    lost = {(cell.method, cell.env, cell.seed) for cell in summary.failed}
    envs = [
        env for env in summary.envs if any(key[1] == env and log and key not in lost for key, log in logs.items())
    ]
    if not envs:
        return None
    from matplotlib.ticker import MaxNLocator

    style = looks(summary.methods, summary.baseline)
    figure, axes = panels(len(envs), 3.3, 3.0)
    drawn: dict[str, Artist] = {}
    windows = set()
    for ax, env in zip(axes, envs, strict=True):
        for method in summary.methods:
            curves = [
                _curve(log) for key, log in logs.items() if key[:2] == (method, env) and log and key not in lost
            ]
            if curves:
                length = min(len(curve) for curve in curves)
                window = max(1, length // 10)
                windows.add(window)
                success = np.stack([_running_mean(curve[:length], window) for curve in curves])
                drawn[method] = _band(ax, 100 * success, style[method])
        ax.set(title=env, xlabel="update", ylim=(-2, 102))
        ax.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    smoothing = f"\nrunning mean of {'/'.join(map(str, sorted(windows)))} updates" if windows != {1} else ""
    axes[0].set_ylabel(f"training success (%){smoothing}")
    legend_below(figure, list(drawn.values()), [_with_missing(method, envs, lost) for method in drawn])
    return figure


def _with_missing(method: str, envs: Sequence[str], lost: Collection[tuple[str, str, int]]) -> str:
    missing = sum(key[0] == method and key[1] in envs for key in lost)
    return f"{method} (without {missing} failed run{'s' if missing > 1 else ''})" if missing else method


def _curve(log: Log) -> Array:
    return np.array([float(record.get("success", np.nan)) for record in log])


def _running_mean(curve: Array, window: int) -> Array:
    """Mean of the last ``window`` values, of fewer at the start."""
    total = np.cumsum(np.concatenate([[0.0], curve]))
    ends = np.arange(1, len(curve) + 1)
    starts = np.maximum(0, ends - window)
    return (total[ends] - total[starts]) / (ends - starts)


def _band(ax: Axes, success: Array, look: Look) -> Artist:
    seeds, length = success.shape
    updates = np.arange(1, length + 1)
    if seeds > 1:
        drawn = np.random.default_rng(0).integers(seeds, size=(1000, seeds))
        low, high = np.percentile(success[drawn].mean(axis=1), [2.5, 97.5], axis=0)
        ax.fill_between(updates, low, high, color=look.colour, alpha=0.16, linewidth=0)
    (line,) = ax.plot(
        updates,
        success.mean(axis=0),
        color=look.colour,
        linestyle=look.line,
        marker=look.marker,
        markevery=max(1, length // 6),
        markersize=4.5,
    )
    return line


def phase_seconds(logs: Mapping[tuple[str, str, int], Log]) -> dict[tuple[str, str], dict[str, float]]:
    """Mean seconds per update of each phase, over seeds: (method, environment) -> phase -> seconds."""
    pooled: dict[tuple[str, str], Log] = {}
    for (method, env, _), log in logs.items():
        pooled.setdefault((method, env), []).extend(record.get("seconds") or {} for record in log)
    return {
        key: {
            phase: float(np.mean([record.get(phase, 0.0) for record in records]))
            for phase in dict.fromkeys((*PHASES, *(phase for record in records for phase in record)))
        }
        for key, records in pooled.items()
        if any(records)
    }


@styled
def wall_clock(seconds: Mapping[tuple[str, str], Mapping[str, float]], summary: Summary) -> Figure | None:
    """Seconds per update by phase, stacked, a bar per method and a panel per benchmark."""
    envs = [env for env in summary.envs if any(key[1] == env for key in seconds)]
    if not envs:
        return None
    phases = list(dict.fromkeys(phase for parts in seconds.values() for phase in parts))
    methods = [method for method in summary.methods if any(key[0] == method for key in seconds)]
    figure, axes = panels(len(envs), 3.1, 1.35 + 0.36 * len(methods))
    bars: list[Any] = []
    for ax, env in zip(axes, envs, strict=True):
        left = np.zeros(len(methods))
        bars = []
        for index, phase in enumerate(phases):
            width = np.array([seconds.get((method, env), {}).get(phase, 0.0) for method in methods])
            bars.append(
                ax.barh(
                    range(len(methods)),
                    width,
                    left=left,
                    height=0.62,
                    color=COLOURS[index % len(COLOURS)],
                    edgecolor="white",
                    hatch=HATCHES[index % len(HATCHES)],
                    linewidth=0.5,
                )
            )
            left += width
        ax.set(title=env, xlabel="seconds per update")
        label_rows(ax, methods)
    legend_below(figure, bars, phases)
    return figure


@styled
def credit(episodes: Sequence[tuple[str, Episode]]) -> Figure | None:
    """Credit weights along trajectories: the actions as rows, w - 1 as bars, a panel per (method, episode)."""
    if not episodes:
        return None
    from matplotlib.figure import Figure

    rows = max(len(episode.turns) for _, episode in episodes)
    figure = Figure(figsize=(5.0 * len(episodes), 1.1 + 0.25 * rows))
    reach = max(0.05, *(abs(weight - 1) for _, episode in episodes for weight in episode.weights))
    for ax, (method, episode) in zip(figure.subplots(1, len(episodes), squeeze=False)[0], episodes, strict=True):
        weights = np.asarray(episode.weights)
        colours = [COLOURS[0] if weight >= 1 else COLOURS[1] for weight in weights]
        ax.barh(range(len(weights)), weights - 1, left=1, height=0.66, color=colours)
        ax.axvline(1, color=INK, linewidth=0.8)
        label_rows(ax, [_short(f"{step}. {turn.action}") for step, turn in enumerate(episode.turns, 1)])
        ax.set_ylim(rows - 0.5, -0.5)
        ax.set_xlim(1 - 1.15 * reach, 1 + 1.15 * reach)
        advantage = f", A = {episode.advantage:+.2f}" if episode.advantage is not None else ""
        ax.set_title(f"{method}, {episode.env}: {'won' if episode.won else 'lost'}{advantage}")
        ax.set_xlabel("weight w of the action (1: plain outcome credit)")
    return figure


def _short(text: str, limit: int = 38) -> str:
    text = " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 1] + "…"
