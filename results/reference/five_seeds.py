"""Differences from GRPO with the fifth seed of the rival rules, which was run apart from the first four.

    python results/reference/five_seeds.py > results/reference/five_seeds.md

It reads seeds 10 to 13 from summary.json and seed 14 from raw/fifth_seed.tar.xz; a rival and GRPO are compared within
the same one. The mean of the five differences has Student's interval.
"""

from __future__ import annotations

import json
import tarfile
import tempfile
from pathlib import Path
from statistics import fmean
from typing import Any

from taspo_bench.evaluation.late_training import LATE
from taspo_bench.evaluation.results import read_run
from taspo_bench.evaluation.statistics import t_estimate

HERE = Path(__file__).parent
SEEDS = (10, 11, 12, 13, 14)
COLUMNS = ("late training", "valid_seen", "valid_unseen")
ENVS = ("alfworld", "searchqa", "webshop")

Successes = dict[tuple[str, str, str, int], float]
"""Success by column, benchmark, method and seed."""


def first_seeds() -> Successes:
    """All but the last seed, as published."""
    summary: dict[str, Any] = json.loads((HERE / "summary.json").read_text(encoding="utf-8"))
    return {
        (row.get("split", COLUMNS[0]), row["env"], row["method"], seed): value
        for row in (*summary["late_training"], *summary["results"])
        for seed, value in zip(row["seeds"], row["per_seed"], strict=True)
        if seed in SEEDS[:-1]
    }


def fifth_seed() -> Successes:
    """The last seed, from its raw results."""
    found: Successes = {}
    with tempfile.TemporaryDirectory() as folder, tarfile.open(HERE / "raw/fifth_seed.tar.xz") as archive:
        archive.extractall(folder, filter="data")
        for cell in read_run(Path(folder, "fifth_seed")).cells:
            if log := cell.metrics():
                late = fmean(record["success"] for record in log[-(len(log) // LATE) :])
                values = (late, *(cell.splits[split]["success"] for split in COLUMNS[1:]))
                found |= {
                    (column, cell.env, cell.method, cell.seed): v for column, v in zip(COLUMNS, values, strict=True)
                }
    return found


def main() -> None:
    """Print a table for each benchmark, in points of success."""
    success = first_seeds() | fifth_seed()
    rivals = list(dict.fromkeys(method for _, _, method, seed in success if seed == SEEDS[-1] and method != "grpo"))
    for env in ENVS:
        print(f"### {env}\n\n| method - grpo | {' | '.join(COLUMNS)} |\n| --- | ---: | ---: | ---: |")
        for rival in rivals:
            cells = []
            for column in COLUMNS:
                pairs = [(success[column, env, rival, n], success[column, env, "grpo", n]) for n in SEEDS]
                estimate = t_estimate([100 * (ours - theirs) for ours, theirs in pairs])
                cells.append(f"{estimate.value:+.1f} [{estimate.low:.1f}, {estimate.high:.1f}]")
            print(f"| {rival} | {' | '.join(cells)} |")
        print()


if __name__ == "__main__":
    main()
