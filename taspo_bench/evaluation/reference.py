"""Figures that the TASPO paper reports (arXiv 2608.31077), in percent, as reference rows beside our own.

They were made with billion-parameter models on the official data and are no target for the embedded policies.
ALFWorld is a macro average over six task families on the 140 seen games, Search-QA a macro average of exact match
over seven sets, WebShop the success rate.
"""

from __future__ import annotations

from typing import NamedTuple


class PaperRow(NamedTuple):
    """One published row: base model, method, and success in percent by environment."""

    model: str
    method: str
    success: dict[str, float]
    webshop_score: float


def _row(model: str, method: str, alfworld: float, searchqa: float, score: float, webshop: float) -> PaperRow:
    return PaperRow(model, method, {"alfworld": alfworld, "searchqa": searchqa, "webshop": webshop}, score)


PAPER = (
    _row("Qwen2.5-3B-Instruct", "GRPO", 71.8, 36.4, 79.8, 63.3),
    _row("Qwen2.5-3B-Instruct", "GiGPO", 84.1, 42.6, 83.8, 70.3),
    _row("Qwen2.5-3B-Instruct", "SDAR", 80.1, 43.4, 85.0, 68.0),
    _row("Qwen2.5-3B-Instruct", "OPID", 84.3, 45.0, 85.0, 74.2),
    _row("Qwen2.5-3B-Instruct", "TASPO", 86.2, 46.4, 88.5, 78.1),
    _row("Qwen2.5-7B-Instruct", "GRPO", 77.0, 48.1, 85.7, 75.0),
    _row("Qwen2.5-7B-Instruct", "TASPO", 90.1, 49.8, 87.7, 76.4),
    _row("Qwen3-1.7B", "GRPO", 40.1, 43.6, 55.8, 43.0),
    _row("Qwen3-1.7B", "TASPO", 69.6, 46.6, 77.6, 67.1),
)
