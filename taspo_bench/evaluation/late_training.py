"""Success at the end of training: far more episodes than an evaluation has, on tasks that methods share by seed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from taspo_bench.config import WARM_START
from taspo_bench.evaluation.results import Cell
from taspo_bench.evaluation.statistics import Estimate, t_estimate

LATE = 4
"""The last 1 / LATE of the updates counts."""


@dataclass(frozen=True)
class LateTraining:
    """A method's success in the last quarter of its updates, a share in [0, 1]; failed cells count as 0.

    difference: from the baseline, paired by seed (equal seeds play equal tasks), over the ``pairs`` seeds that both
    have; None for the baseline itself and where fewer than two are common.
    """

    method: str
    env: str
    seeds: tuple[int, ...]
    success: Estimate
    per_seed: tuple[float, ...]
    pairs: int
    difference: Estimate | None


def late_training(cells: Sequence[Cell], baseline: str | None) -> list[LateTraining]:
    """What the logs of the cells say; methods with fewer than two seeds on an environment are left out."""
    found: dict[tuple[str, str], dict[int, float]] = {}
    for cell in cells:
        if cell.method == WARM_START:
            continue
        logged = (record.get("success") for record in cell.metrics())
        success = [float(value) for value in logged if isinstance(value, (int, float)) and math.isfinite(value)]
        if cell.error or success:
            late = success[-max(1, len(success) // LATE) :]
            found.setdefault((cell.method, cell.env), {})[cell.seed] = 0.0 if cell.error else float(np.mean(late))
    rows = []
    for (method, env), ours in found.items():
        if len(ours) < 2:
            continue
        theirs = found.get((baseline, env), {}) if baseline not in (None, method) else {}
        common = [seed for seed in ours if seed in theirs]
        gaps = [ours[seed] - theirs[seed] for seed in common]
        difference = t_estimate(gaps, -1.0, 1.0) if len(gaps) > 1 else None
        values = tuple(ours.values())
        mean = t_estimate(values, 0.0, 1.0)
        rows.append(LateTraining(method, env, tuple(ours), mean, values, len(common), difference))
    return rows
