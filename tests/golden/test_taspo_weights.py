"""Parity with the credit rule that the method's authors released: turn scores and weights to 1e-6."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from taspo_bench.taspo.weights import WeightRule, fallback_reason

ROOT = Path(__file__).parents[2]
GOLDEN = Path(os.environ.get("TASPO_GOLDEN", ROOT.parent / "shared" / "golden"))
COPIES = ROOT / "tests" / "golden_copies" / "taspo"
FILES = sorted(GOLDEN.glob("taspo_weights*.json")) + sorted(COPIES.glob("*.json"))


def floats(values: list[float | None]) -> np.ndarray:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def batches() -> list[Any]:
    return [
        pytest.param(case, id=f"{path.parent.name}/{path.stem}-{number}")
        for path in FILES
        for number, case in enumerate(json.loads(path.read_text())["cases"])
    ]


@pytest.mark.parametrize("case", batches())
def test_turn_scores_and_weights_equal_the_reference(case: dict[str, Any]) -> None:
    rule = WeightRule(eps=case["epsilon"], tau=case["tau"])
    for trajectory in case["trajectories"]:
        spans = [
            (floats(turn["privileged"]) - floats(turn["clean"]))[np.array(turn["action_mask"], dtype=bool)]
            for turn in trajectory["turns"]
        ]
        scores = rule.turn_scores(spans)
        weights = rule.weights(scores, trajectory["advantage"])
        if fallback_reason(spans, trajectory["guidance"]):
            weights = np.ones(len(spans))
        np.testing.assert_allclose(np.nan_to_num(scores), trajectory["turn_scores"], rtol=0, atol=1e-6)
        np.testing.assert_allclose(weights, trajectory["weights"], rtol=0, atol=1e-6)


def test_golden_batches_are_there() -> None:
    assert any(COPIES.glob("*.json")), "tests/golden_copies/taspo holds the project's own copy"
