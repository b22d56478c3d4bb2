"""What a run folder holds: the record of one evaluated split, the cells of a run, and how both are read.

A cell is one (method, environment, seed). One that failed or never finished stands in every table, as 0. Cells of
the method ``warm_start`` hold the policies before training.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from taspo_bench.ablations import TABLES
from taspo_bench.api import Split
from taspo_bench.episode import Episode
from taspo_bench.errors import DataError, SplitError
from taspo_bench.evaluation.statistics import wilson

SCHEMA = 1


class TaskResult(TypedDict):
    """How one task ended. ``error`` is empty unless the episode broke; then the task counts as lost."""

    family: str
    won: bool
    score: float
    steps: int
    error: str


class FamilyResult(TypedDict):
    """Means over the tasks of one family."""

    n: int
    success: float
    score: float


class SplitRecord(TypedDict):
    """One policy on one split. ``success`` = ``micro``: mean over tasks; ``macro``: mean over families."""

    kind: str
    n: int
    success: float
    score: float
    errors: int
    wilson: list[float]
    macro: float
    micro: float
    families: dict[str, FamilyResult]
    tasks: dict[str, TaskResult]


def split_record(episodes: Iterable[Episode], split: Split) -> SplitRecord:
    """Sum up one episode per task of ``split``.

    Only ``won`` is success; reaching the step limit is not. An episode with an error counts as lost, with score 0,
    and is flagged.

    Raises:
        SplitError: a task of the split is missing, stands there twice, or is not of the split.
    """
    tasks: dict[str, TaskResult] = {}
    for episode in episodes:
        if episode.task_id in tasks:
            raise SplitError(
                f"split {split.name!r}: task {episode.task_id!r} was evaluated twice; evaluate each once"
            )
        broken = bool(episode.error)
        tasks[episode.task_id] = TaskResult(
            family=episode.family,
            won=episode.won and not broken,
            score=0.0 if broken else float(episode.score),
            steps=len(episode.turns),
            error=episode.error,
        )
    _check_complete(tasks, split)
    ordered = {task_id: tasks[task_id] for task_id in split.task_ids}
    families = _by_family(ordered)
    won = sum(task["won"] for task in ordered.values())
    micro = won / len(ordered)
    return SplitRecord(
        kind=split.kind,
        n=len(ordered),
        success=micro,
        score=float(np.mean([task["score"] for task in ordered.values()])),
        errors=sum(bool(task["error"]) for task in ordered.values()),
        wilson=list(wilson(won, len(ordered))),
        macro=float(np.mean([family["success"] for family in families.values()])),
        micro=micro,
        families=families,
        tasks=ordered,
    )


def evaluation_record(
    method: str,
    env: str,
    seed: int,
    splits: Mapping[str, SplitRecord],
    seconds: Mapping[str, float],
    data_stamp: Mapping[str, Any],
) -> dict[str, Any]:
    """What ``eval.json`` says of one policy on one benchmark."""
    return {
        "schema": SCHEMA,
        "method": method,
        "env": env,
        "seed": seed,
        "splits": dict(splits),
        "seconds": dict(seconds),
        "data_stamp": dict(data_stamp),
    }


def _check_complete(tasks: dict[str, TaskResult], split: Split) -> None:
    if not split.task_ids:
        raise SplitError(f"split {split.name!r} is empty: there is nothing to evaluate")
    if missing := [task_id for task_id in split.task_ids if task_id not in tasks]:
        raise SplitError(
            f"split {split.name!r}: {len(missing)} of {len(split)} tasks were not evaluated, first {missing[0]!r}; "
            "every task must be played once"
        )
    if strange := sorted(tasks.keys() - set(split.task_ids)):
        raise SplitError(f"split {split.name!r}: {len(strange)} tasks are not of it, first {strange[0]!r}")


def _by_family(tasks: dict[str, TaskResult]) -> dict[str, FamilyResult]:
    members: dict[str, list[TaskResult]] = {}
    for task in tasks.values():
        members.setdefault(task["family"], []).append(task)
    return {
        family: FamilyResult(
            n=len(results),
            success=sum(task["won"] for task in results) / len(results),
            score=float(np.mean([task["score"] for task in results])),
        )
        for family, results in sorted(members.items())
    }


@dataclass
class Cell:
    """One (method, environment, seed) of a run. ``error`` says why it has no result; then ``splits`` is empty.

    preset: the run's. start: of a warm start in a comparison, the runs that began from it where others did not.
    """

    method: str
    env: str
    seed: int
    path: Path
    config: dict[str, Any] = field(default_factory=dict)
    splits: dict[str, SplitRecord] = field(default_factory=dict)
    data_stamp: dict[str, Any] = field(default_factory=dict)
    error: str = ""
    preset: str = ""
    start: str = ""

    @property
    def key(self) -> tuple[str, str, int]:
        return self.method, self.env, self.seed

    @property
    def row(self) -> str:
        """The name of its row in a table."""
        return f"{self.method} of {self.start}" if self.start else self.method

    def metrics(self) -> list[dict[str, Any]]:
        """The training log, one record per update; a last line cut short by a kill is left out."""
        path = self.path / "metrics.jsonl"
        if not path.is_file():
            return []
        lines = path.read_text(encoding="utf-8").split("\n")
        records = [_parse(path, line) for line in lines[:-1] if line]
        if strange := [record for record in records if not isinstance(record, dict)]:
            raise DataError(f"{path}: a line holds {str(strange[0])[:40]!r}, not an object; run the cell again")
        return records

    def episode_files(self, prefix: str) -> list[Path]:
        """Stored episodes by the beginning of their file name: ``train`` or ``eval``."""
        return episode_files(self.path / "episodes", prefix)


def episode_files(folder: Path, prefix: str) -> list[Path]:
    """Whole files of episodes in a folder, by the beginning of their names; what a kill left half written is not."""
    return sorted(path for path in folder.glob(f"{prefix}-*") if path.name.endswith((".jsonl", ".jsonl.gz")))


@dataclass
class Run:
    """A run folder as read: its configuration and every cell that it should have, in the configured order."""

    path: Path
    config: dict[str, Any]
    cells: list[Cell]


def read_run(path: Path) -> Run:
    """Read a run folder; cells that the configuration names and the disk lacks come back as unfinished.

    Raises:
        DataError: no run folder, or a file in it that is not what its name says.
    """
    if not (path / "config.json").is_file():
        raise DataError(f"{path}: no config.json in it; give the folder that `taspo-bench run --out` wrote")
    config = read_json(path / "config.json")
    if "methods" not in config:
        raise DataError(
            f"{path}: its config.json is not that of a run; give the whole folder that `taspo-bench run --out` wrote"
        )
    found = {cell.key: cell for cell in map(_read_cell, sorted(path.glob("cells/*/*/seed-*")))}
    wanted = [
        (label, str(env), int(seed))
        for label in _rows(config, found.values())
        for env in config.get("envs", [])
        for seed in config.get("seeds", [])
    ]
    keys = [*wanted, *sorted(found.keys() - set(wanted))]
    cells = [found.get(key) or _unfinished(path, *key) for key in keys]
    for cell in cells:
        cell.preset = str(config.get("preset") or "")
    return Run(path, config, cells)


def _rows(config: dict[str, Any], found: Iterable[Cell]) -> list[str]:
    """The rows that a run should have: those of its ablation table, else its methods."""
    if table := TABLES.get(config.get("table", "")):
        return [variant.label for variant in table]
    # a scheme given as a file is configured by its path and stored under its own name
    names = {cell.config.get("method"): cell.method for cell in found}
    return [names.get(method, str(method).rpartition(":")[2]) for method in config.get("methods", [])]


def _unfinished(run: Path, method: str, env: str, seed: int) -> Cell:
    return Cell(method, env, seed, run / "cells" / method / env / f"seed-{seed}", error="not finished")


def _read_cell(path: Path) -> Cell:
    config = read_json(path / "config.json") if (path / "config.json").is_file() else {}
    method, env, seed = path.parent.parent.name, path.parent.name, path.name.removeprefix("seed-")
    cell = Cell(
        method=method,
        env=env,
        seed=int(seed),
        path=path,
        config=config,
        data_stamp=config.get("data_stamp") or {},
    )
    if (path / "failed.json").is_file():
        cell.error = str(read_json(path / "failed.json").get("error") or "failed")
    elif (path / "eval.json").is_file():
        _add_evaluation(cell, path / "eval.json")
    else:
        cell.error = "not finished"
    return cell


def _add_evaluation(cell: Cell, path: Path) -> None:
    record = read_json(path)
    if record.get("schema") != SCHEMA:
        raise DataError(f"{path}: schema {record.get('schema')!r}; this version reads schema {SCHEMA}")
    try:
        if (record["env"], record["seed"]) != (cell.env, cell.seed):
            raise DataError(
                f"{path}: the evaluation of {record['env']} seed {record['seed']}, not of the cell of this folder; "
                "remove it and run again with --resume"
            )
        cell.splits = record["splits"]
        cell.data_stamp = record.get("data_stamp") or cell.data_stamp
        for name, split in cell.splits.items():
            if len(split["tasks"]) != split["n"]:
                raise DataError(f"{path}: split {name!r} says n = {split['n']} and holds {len(split['tasks'])} tasks")
    except (KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{path}: not an evaluation record ({error!r}); run the cell again with --resume") from error


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a file; :class:`DataError` if it holds anything else."""
    record = _parse(path, path.read_text(encoding="utf-8"))
    if not isinstance(record, dict):
        raise DataError(f"{path}: a JSON object was expected, not a {type(record).__name__}")
    return record


def _parse(path: Path, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise DataError(f"{path}: not JSON ({error}); remove it and run again with --resume") from error
