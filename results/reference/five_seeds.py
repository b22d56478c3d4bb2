"""Differences from GRPO with the fifth seed of the rival rules, which was run apart from the first four.

    python results/reference/five_seeds.py > results/reference/five_seeds.md

It reads the seeds 10 to 13 from summary.json and seed 14 from fifth_seed/summary.json; a rival and GRPO are compared
within the same file. The mean of the five differences has Student's interval.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from taspo_bench.evaluation.statistics import t_estimate

HERE = Path(__file__).parent
SEEDS = (10, 11, 12, 13, 14)
COLUMNS = ("late training", "valid_seen", "valid_unseen")


def successes(path: Path) -> dict[tuple[str, str, str, int], float]:
    """Success by column, benchmark, method and seed."""
    summary: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    rows = [(row.get("split", "late training"), row) for row in (*summary["late_training"], *summary["results"])]
    return {
        (column, row["env"], row["method"], seed): value
        for column, row in rows
        for seed, value in zip(row["seeds"], row["per_seed"], strict=True)
    }


def main() -> None:
    """Print a table for each benchmark, in points of success."""
    first, fifth = successes(HERE / "summary.json"), successes(HERE / "fifth_seed/summary.json")
    success = {key: value for key, value in first.items() if key[3] != SEEDS[-1]} | fifth
    rivals = list(dict.fromkeys(method for _, _, method, _ in fifth if method != "grpo"))
    for env in dict.fromkeys(env for _, env, _, _ in fifth):
        print(f"### {env}\n\n| method - grpo | {' | '.join(COLUMNS)} |\n| --- | ---: | ---: | ---: |")
        for rival in rivals:
            cells = []
            for column in COLUMNS:
                keys = [(column, env, rival, seed) for seed in SEEDS]
                gains = [100 * (success[key] - success[column, env, "grpo", key[3]]) for key in keys]
                estimate = t_estimate(gains)
                cells.append(f"{estimate.value:+.1f} [{estimate.low:.1f}, {estimate.high:.1f}]")
            print(f"| {rival} | {' | '.join(cells)} |")
        print()


if __name__ == "__main__":
    main()
