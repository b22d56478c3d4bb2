"""Runs on disk: which there are, how far each has come, and what of a finished one can go."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from taspo_bench.config import WARM_START
from taspo_bench.errors import InputError
from taspo_bench.evaluation.results import Cell, Run, read_json, read_run
from taspo_bench.run import LOCK, is_run, locked

State = Literal["finished", "failed", "running", "left"]


@dataclass(frozen=True)
class CellStatus:
    """How far a cell has come. ``seconds`` of training and evaluation are known once it is finished, else None."""

    cell: Cell
    state: State
    updates: int
    seconds: float | None


@dataclass(frozen=True)
class RunStatus:
    """How far a run has come. ``size`` in bytes; ``changed``: Unix time when anything in it was last written."""

    run: Run
    is_held: bool
    cells: tuple[CellStatus, ...]
    size: int
    changed: float

    def count(self) -> Counter[State]:
        return Counter(cell.state for cell in self.cells)

    @property
    def shape(self) -> str:
        """Methods x benchmarks x seeds; the warm start is not a method."""
        keys = [cell.cell.key for cell in self.cells if cell.cell.method != WARM_START]
        return " x ".join(str(len({key[part] for key in keys})) for part in range(3))


@dataclass(frozen=True)
class Garbage:
    """What :func:`collect` removed, or would: paths of both kinds, and their bytes."""

    checkpoints: tuple[Path, ...]
    leftovers: tuple[Path, ...]
    size: int


def find_runs(folder: Path) -> list[Path]:
    """The run folders in and below a folder, by name.

    Raises:
        InputError: there is no such folder.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; name the one that holds the runs")
    return sorted(_walk(folder))


def _walk(folder: Path) -> Iterator[Path]:
    for place, folders, files in os.walk(folder):
        if "config.json" in files and is_run(Path(place)):
            folders.clear()
            yield Path(place)


def read_status(folder: Path) -> RunStatus:
    """Read how far a run has come.

    Raises:
        DataError: no run folder, or a file in it that is not what its name says.
    """
    run = read_run(folder)
    is_held = _is_held(folder)
    known = {cell.key for cell in run.cells}
    for env in run.config.get("envs", []):
        for seed in run.config.get("seeds", []):
            if (WARM_START, env, seed) not in known:
                place = folder / "cells" / WARM_START / env / f"seed-{seed}"
                run.cells.insert(0, Cell(WARM_START, env, seed, place, error="not finished"))
    stats = list(_stats(folder))
    return RunStatus(
        run,
        is_held,
        tuple(_cell_status(cell, is_held) for cell in run.cells),
        sum(stat.st_size for stat in stats),
        max(stat.st_mtime for stat in stats),
    )


def _stats(folder: Path) -> Iterator[os.stat_result]:
    for place, _, files in os.walk(folder):
        for name in files:
            with suppress(FileNotFoundError):  # a run at work renames and removes
                yield os.stat(os.path.join(place, name))


def _cell_status(cell: Cell, is_held: bool) -> CellStatus:
    state: State = "left"
    seconds = None
    if not cell.error:
        state = "finished"
        seconds = sum(read_json(cell.path / "eval.json")["seconds"].values())
    elif (cell.path / "failed.json").is_file():
        state = "failed"
    elif is_held and (cell.path / "config.json").is_file():
        state = "running"
    return CellStatus(cell, state, len(cell.metrics()), seconds)


def _is_held(folder: Path) -> bool:
    """Whether a process works in a run's folder."""
    try:
        with (folder / LOCK).open() as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def collect(folders: Sequence[Path], dry_run: bool) -> dict[Path, Garbage]:
    """Remove what no later command needs: the trainer's checkpoints of finished cells, and files that a kill left
    half written. Results, episodes and the policies ``policy-last`` and ``policy-best`` stay.

    Raises:
        InputError: not a run folder, or a process works in it; then nothing is touched in any of them.
    """
    for folder in folders:
        if not is_run(folder):
            raise InputError(f"{folder}: not a run folder; see `taspo-bench runs list`")
        if _is_held(folder):
            raise InputError(f"{folder}: a process is working in this run; wait for its end")
    collected = {}
    for folder in folders:
        with nullcontext() if dry_run else locked(folder):
            garbage = _garbage(folder)
            for path in () if dry_run else (*garbage.checkpoints, *garbage.leftovers):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        collected[folder] = garbage
    return collected


def _garbage(folder: Path) -> Garbage:
    finished = [
        cell
        for cell in sorted(folder.glob("cells/*/*/seed-*"))
        if (cell / "eval.json").is_file() and not (cell / "failed.json").exists()
    ]
    checkpoints = tuple(cell / "checkpoint" for cell in finished if (cell / "checkpoint").is_dir())
    leftovers = tuple(
        path
        for path in sorted(folder.rglob("*.tmp"))
        if not any(parent in checkpoints or parent.suffix == ".tmp" for parent in path.parents)
    )
    return Garbage(checkpoints, leftovers, sum(map(_size, (*checkpoints, *leftovers))))


def _size(path: Path) -> int:
    return sum(stat.st_size for stat in _stats(path)) if path.is_dir() else path.stat().st_size
