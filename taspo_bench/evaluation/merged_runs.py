"""Several runs as one set of cells, for a comparison: what stands in several is named, settings have to agree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from taspo_bench.config import WARM_START
from taspo_bench.errors import DataError
from taspo_bench.evaluation.results import Cell, Run
from taspo_bench.evaluation.run_settings import warm_start_hash

MUST_AGREE = {"max_turns": "step limit", "eval_temperature": "evaluation temperature"}
"""Settings that decide what a success is worth; other settings are what a comparison may be about."""


def merged_cells(runs: Sequence[Run]) -> list[Cell]:
    """The cells of all runs. A method that stands in several is named with its run; equal warm starts stand once,
    different ones are named with the runs that began from them.

    Raises:
        DataError: runs of other data, another step limit, or another evaluation temperature on one benchmark.
    """
    names = [run.path.resolve().name for run in runs]
    labels = names if len(set(names)) == len(names) else [str(run.path) for run in runs]
    homes: dict[str, set[str]] = {}
    for run, label in zip(runs, labels, strict=True):
        for cell in run.cells:
            homes.setdefault(cell.method, set()).add(label)
    starts = _starts(runs, labels)
    cells: dict[tuple[str, tuple[str, str, int]], Cell] = {}
    for run, label in zip(runs, labels, strict=True):
        for cell in run.cells:
            if cell.method == WARM_START:
                cell.start = starts[cell.env].get(label, "")
            elif len(homes[cell.method]) > 1:
                cell.method = f"{cell.method} ({label})"
            cells.setdefault((cell.start, cell.key), cell)
    _check(list(cells.values()))
    return list(cells.values())


def _starts(runs: Sequence[Run], labels: Sequence[str]) -> dict[str, dict[str, str]]:
    """Benchmark -> run -> the runs that began from the same policy; "" for all where there is one policy only."""
    policies: dict[str, dict[str, tuple[Any, str]]] = {}
    for run, label in zip(runs, labels, strict=True):
        for cell in run.cells:
            known = policies.setdefault(cell.env, {})
            if cell.config:
                known[label] = (cell.config.get("policy"), warm_start_hash(cell))
    return {
        env: {
            label: ", ".join(other for other in known if known[other] == policy)
            if len(set(known.values())) > 1
            else ""
            for label, policy in known.items()
        }
        for env, known in policies.items()
    }


def _check(cells: Sequence[Cell]) -> None:
    first: dict[tuple[str, str], tuple[Cell, Any]] = {}
    for cell in cells:
        values = {name: cell.config.get(name) for name in MUST_AGREE} | {"sha256": cell.data_stamp.get("sha256")}
        for name, value in values.items():
            if value is None:
                continue
            other, known = first.setdefault((cell.env, name), (cell, value))
            if known == value:
                continue
            if name == "sha256":
                raise DataError(
                    f"{cell.path} and {other.path} were made with other data of {cell.env}; "
                    "compare runs with one data stamp"
                )
            raise DataError(
                f"{cell.path} has {MUST_AGREE[name]} {value} on {cell.env}, {other.path} has {known}; "
                f"compare runs of one {MUST_AGREE[name]}"
            )
