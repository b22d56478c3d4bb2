"""What was run: the settings that figures depend on, by benchmark, so that a table says what it is a table of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from taspo_bench.evaluation.results import Cell

DIGITS = 12
"""Of a hash."""
LABELS = {
    "preset": "preset",
    "data": "data",
    "data_sha256": "sha256",
    "policy": "policy",
    "warm_start": "warm start",
    "eval_temperature": "evaluation temperature",
    "max_turns": "step limit",
    "updates": "updates",
    "tasks_per_update": "tasks an update",
    "group_size": "rollouts a task",
    "processor": "processor",
}

Settings = dict[str, tuple[Any, ...]]
"""Setting -> its values in all cells, more than one where they differ, none where no cell says it."""


def run_settings(cells: Sequence[Cell]) -> dict[str, Settings]:
    """The settings of each benchmark."""
    found: dict[str, list[dict[str, Any]]] = {}
    for cell in cells:
        found.setdefault(cell.env, []).append(_settings(cell))
    return {
        env: {
            name: tuple(dict.fromkeys(own[name] for own in everyone if own[name] not in (None, "")))
            for name in LABELS
        }
        for env, everyone in found.items()
    }


def _settings(cell: Cell) -> dict[str, Any]:
    stamp = cell.data_stamp
    return {
        **{name: cell.config.get(name) for name in LABELS},
        "preset": cell.preset,
        "data": f"{stamp.get('source')} {stamp.get('version')}" if stamp else None,
        "data_sha256": str(stamp.get("sha256") or "")[:DIGITS],
        "warm_start": warm_start_hash(cell),
    }


def warm_start_hash(cell: Cell) -> str:
    """The first digits of the hash of the weights that a cell began from; "" where it says none."""
    card = cell.config.get("warm_start_card") or {}
    hashes = card.get("sha256") or {}
    return next((str(hashes[name])[:DIGITS] for name in sorted(hashes) if name.endswith(".safetensors")), "")


def settings_line(env: str, settings: Mapping[str, Sequence[Any]]) -> str:
    """One line on what was run on a benchmark."""
    said = (f"{label} {_values(settings[name])}" for name, label in LABELS.items() if settings[name])
    return f"{env}: {'; '.join(said)}"


def _values(values: Sequence[Any]) -> str:
    texts = [f"{value:g}" if isinstance(value, float) else str(value) for value in values]
    return texts[0] if len(texts) == 1 else f"differs ({', '.join(texts)})"
