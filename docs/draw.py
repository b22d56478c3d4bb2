"""Draw the pictures of the documentation, as SVG, into docs/pictures.

    python docs/draw.py                                draw them from what is kept
    python docs/draw.py --cell FOLDER --episode 30     first take another trajectory from a cell's stored episodes

The numbers of the trajectory are kept in docs/pictures/trajectory.json, so that drawing needs no training run.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from taspo_bench import registry
from taspo_bench.config import CellConfig
from taspo_bench.episode import Group, read_episodes
from taspo_bench.evaluation.diagnose_command import StoredScorer
from taspo_bench.evaluation.plot_style import BASELINE, COLOURS, INK, MUTED, label_rows, panels, save, styled
from taspo_bench.taspo.weights import WeightRule

PICTURES = Path(__file__).parent / "pictures"
SCHEMES = {"grpo": (BASELINE, "o"), "taspo": (COLOURS[0], "s"), "oracle_credit": (COLOURS[2], "D")}
TURNS = 8


def take_trajectory(cell: Path, number: int) -> dict[str, Any]:
    """One stored training episode: its actions, which turns had guidance, and its credit under each scheme."""
    config = CellConfig(
        **{
            key: value
            for key, value in json.loads((cell / "config.json").read_text(encoding="utf-8")).items()
            if key in CellConfig.model_fields
        }
    )
    episodes = list(read_episodes(sorted((cell / "episodes").glob("train-*"))[0]))
    first = number - number % config.group_size
    members = episodes[first : first + config.group_size]
    group = Group(members[0].task_id, members, [episode.guidance for episode in members])
    env = registry.make_env(config.env, data=config.data, max_steps=config.max_turns)
    env.reset(options={"task_id": group.task_id})
    credit = {
        name: registry.method_class(name)().credit(group, StoredScorer(env))[number - first].per_turn().tolist()
        for name in SCHEMES
    }
    chosen = episodes[number]
    texts = chosen.guidance.texts if chosen.guidance else [None] * len(chosen.turns)
    return {
        "env": config.env,
        "task": chosen.task_id,
        "instruction": env.instruction,
        "won": chosen.won,
        "actions": chosen.actions,
        "guided": [text is not None for text in texts],
        "credit": credit,
    }


@styled
def trajectory(record: dict[str, Any]) -> Figure:
    """Each turn's credit under each scheme, an action a row."""
    rows = range(len(record["actions"]))
    figure, (ax,) = panels(1, 7.2, 1.5 + 0.3 * len(rows))
    for name, (colour, marker) in SCHEMES.items():
        values = record["credit"][name]
        ax.plot(values, rows, marker, color=colour, label=name, markersize=6, alpha=0.9)
    for row in rows:
        span = [record["credit"][name][row] for name in SCHEMES]
        ax.hlines(row, min(span), max(span), color="#c8c8c8", linewidth=1, zorder=0)
    marks = ["•" if guided else " " for guided in record["guided"]]
    label_rows(ax, [f"{action} {mark}" for action, mark in zip(record["actions"], marks, strict=True)])
    outcome = "won" if record["won"] else "lost"
    ax.set(title=f"{record['env']}, {outcome}: {record['instruction']}", xlabel="credit of the turn")
    figure.legend(loc="outside lower center", ncols=len(SCHEMES))
    figure.text(0.005, 0.005, "•: this turn had guidance", color=MUTED, fontsize=8)
    return figure


@styled
def weights() -> Figure:
    """Weight of one turn whose shift moves while the trajectory's others stay at 0, for both outcomes."""
    shifts = np.linspace(-3, 3, 121)
    figure, axes = panels(2, 3.5, 3.0)
    for ax, advantage, title in zip(axes, (1.0, -1.0), ("in a success", "in a failure"), strict=True):
        for tau, colour, line in ((0.5, COLOURS[0], "-"), (1.0, COLOURS[1], "--")):
            rule = WeightRule(tau=tau)
            scores = np.zeros((len(shifts), TURNS))
            scores[:, 0] = shifts
            moved = [rule.weights(row, advantage) for row in scores]
            ax.plot(shifts, [row[0] for row in moved], line, color=colour, label=f"this turn, tau {tau}")
            ax.plot(shifts, [row[1] for row in moved], line, color=colour, linewidth=0.9, alpha=0.6)
        ax.axhline(1, color=INK, linewidth=0.8)
        for bound in (1 - rule.eps, 1 + rule.eps):
            ax.axhline(bound, color=MUTED, linewidth=0.8, linestyle=":")
        ax.set(title=title, xlabel="score d of one turn of eight (nats)")
    axes[0].set(ylabel="weight w", ylim=(0.55, 1.45))
    axes[0].text(-2.9, 1.415, "bounds 1 ± eps; thin: each of the other turns", color=MUTED, fontsize=7.5)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2)
    return figure


def main() -> None:
    """Draw all pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cell", type=Path, help="folder cells/METHOD/ENV/seed-N of a run that used guidance")
    parser.add_argument("--episode", type=int, default=0, help="number of the episode in its first stored update")
    parser.add_argument("--out", type=Path, default=PICTURES, help="folder of the pictures")
    args = parser.parse_args()
    kept = PICTURES / "trajectory.json"
    if args.cell:
        kept.write_text(json.dumps(take_trajectory(args.cell, args.episode), indent=1) + "\n", encoding="utf-8")
    save(trajectory(json.loads(kept.read_text(encoding="utf-8"))), args.out, "trajectory")
    save(weights(), args.out, "weights")


if __name__ == "__main__":
    main()
