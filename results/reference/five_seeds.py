"""Differences from GRPO with the fifth seed of the rival rules, which was run apart from the first four.

    python results/reference/five_seeds.py > results/reference/five_seeds.md

It reads the seeds 10 to 13 from summary.json and seed 14 from fifth_seed/summary.json; GRPO's own seed comes from the same file
as the rival's. Differences of seeds have Student's interval.
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
    early, late = successes(HERE / "summary.json"), successes(HERE / "fifth_seed/summary.json")
    rivals = list(dict.fromkeys(method for _, _, method, _ in late if method not in ("grpo", "warm_start")))
    for env in dict.fromkeys(env for _, env, _, _ in late):
        print(f"### {env}\n\n| method - grpo | {' | '.join(COLUMNS)} |\n| --- | ---: | ---: | ---: |")
        for rival in rivals:
            cells = []
            for column in COLUMNS:
                sources = [(late if seed == SEEDS[-1] else early, seed) for seed in SEEDS]
                estimate = t_estimate([100 * (s[column, env, rival, n] - s[column, env, "grpo", n]) for s, n in sources])
                cells.append(f"{estimate.value:+.1f} [{estimate.low:.1f}, {estimate.high:.1f}]")
            print(f"| {rival} | {' | '.join(cells)} |")
        print()


if __name__ == "__main__":
    main()
