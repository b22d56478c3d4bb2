"""Figures that the TASPO paper reports (arXiv 2608.31077), in percent, for a table of reference beside our own.

They were made with billion-parameter models on the official data and are no target for the embedded policies.
ALFWorld is a macro average over six task families on the 140 seen games, Search-QA a macro average of exact match
over seven sets, WebShop the success rate, a micro average over tasks, and the mean score.
"""

from __future__ import annotations

from typing import NamedTuple

PAPER_FIGURES = (("alfworld", "macro"), ("searchqa", "macro"), ("webshop", "success"), ("webshop", "score"))
"""Benchmark and figure of each column: fields of :class:`taspo_bench.evaluation.summary.Result`."""


class PaperRow(NamedTuple):
    """One published row: base model, method, and the figures in percent, in the order of ``PAPER_FIGURES``."""

    model: str
    method: str
    figures: tuple[float, float, float, float]


PAPER = (
    PaperRow("Qwen2.5-3B-Instruct", "GRPO", (71.8, 36.4, 63.3, 79.8)),
    PaperRow("Qwen2.5-3B-Instruct", "GiGPO", (84.1, 42.6, 70.3, 83.8)),
    PaperRow("Qwen2.5-3B-Instruct", "SDAR", (80.1, 43.4, 68.0, 85.0)),
    PaperRow("Qwen2.5-3B-Instruct", "OPID", (84.3, 45.0, 74.2, 85.0)),
    PaperRow("Qwen2.5-3B-Instruct", "TASPO", (86.2, 46.4, 78.1, 88.5)),
    PaperRow("Qwen2.5-7B-Instruct", "GRPO", (77.0, 48.1, 75.0, 85.7)),
    PaperRow("Qwen2.5-7B-Instruct", "TASPO", (90.1, 49.8, 76.4, 87.7)),
    PaperRow("Qwen3-1.7B", "GRPO", (40.1, 43.6, 43.0, 55.8)),
    PaperRow("Qwen3-1.7B", "TASPO", (69.6, 46.6, 67.1, 77.6)),
)
