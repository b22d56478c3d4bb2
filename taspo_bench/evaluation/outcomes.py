"""The cells of a run as arrays (seeds, tasks), and the bootstrap that is drawn over them."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from taspo_bench.config import WARM_START
from taspo_bench.errors import DataError
from taspo_bench.evaluation.results import Cell, SplitRecord
from taspo_bench.evaluation.statistics import REPS, Array, Counts, task_draws, task_weights

NOT_EVALUATED = "not evaluated"


@dataclass(frozen=True)
class Bench:
    """One evaluation split of one environment: what every method is measured on."""

    env: str
    split: str
    kind: str
    task_ids: tuple[str, ...]
    families: tuple[str, ...]

    @property
    def n(self) -> int:
        """Number of tasks; 0 where no run of the environment got as far as its evaluation."""
        return 0 if self.task_ids == (NOT_EVALUATED,) else len(self.task_ids)

    @cached_property
    def weights(self) -> Counts:
        """Bootstrap samples of the tasks (reps, tasks): the same for every method."""
        return task_weights(self.families, _generator(self.env, self.split))


@dataclass(frozen=True)
class Outcomes:
    """One method on one bench: ``won`` and ``score`` are (seeds, tasks). A failed seed is a row of zeros."""

    method: str
    bench: Bench
    seeds: tuple[int, ...]
    failed: tuple[int, ...]
    errors: int
    won: Array
    score: Array

    @cached_property
    def drawn_seeds(self) -> NDArray[np.int64]:
        """Bootstrap samples of the seeds (reps, seeds): the same for every split of the environment."""
        rng = _generator(self.method, self.bench.env)
        return rng.integers(len(self.seeds), size=(REPS, len(self.seeds)))

    @cached_property
    def task_draws(self) -> Array:
        """Success of each seed on the tasks of each bootstrap sample (reps, seeds)."""
        return task_draws(self.won, self.bench.weights)

    @cached_property
    def draws(self) -> Array:
        """Bootstrap samples of each seed's success (reps, seeds)."""
        return np.take_along_axis(self.task_draws, self.drawn_seeds, axis=1)

    def draws_beside(self, other: Outcomes) -> Array:
        """:attr:`draws` with the seeds that were drawn for ``other``, where both have the same seeds."""
        if self.seeds != other.seeds or self.bench.env != other.bench.env:
            return self.draws
        return np.take_along_axis(self.task_draws, other.drawn_seeds, axis=1)


def _generator(*names: str) -> np.random.Generator:
    # by name, not by position: a figure does not depend on what else stands in the run
    return np.random.default_rng(zlib.crc32("\n".join(names).encode()))


def gather(cells: Sequence[Cell]) -> list[Outcomes]:
    """Outcomes of every (method, environment, split), in the order of the cells.

    Raises:
        DataError: two cells evaluated the same split on other tasks, so that their figures cannot be compared.
    """
    benches = _with_unevaluated(_benches(cells), cells)
    groups: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        if cell.method != WARM_START:
            groups.setdefault((cell.method, cell.env), []).append(cell)
    return [
        _outcomes(method, bench, {cell.seed: cell.splits.get(bench.split) for cell in group})
        for (method, env), group in groups.items()
        for bench in benches.get(env, [])
    ]


def gather_warm_start(cells: Sequence[Cell]) -> list[Outcomes]:
    """The policies before training, each seed once."""
    benches = _benches(cells)
    records: dict[str, dict[int, dict[str, SplitRecord]]] = {}
    for cell in cells:
        if cell.method == WARM_START:
            records.setdefault(cell.env, {}).setdefault(cell.seed, cell.splits)
    return [
        _outcomes(WARM_START, bench, {seed: splits.get(bench.split) for seed, splits in sorted(seeds.items())})
        for env, seeds in records.items()
        for bench in benches.get(env, [])
    ]


def _outcomes(method: str, bench: Bench, records: Mapping[int, SplitRecord | None]) -> Outcomes:
    won = np.zeros((len(records), len(bench.task_ids)))
    score = np.zeros_like(won)
    for row, record in enumerate(records.values()):
        if record is not None:
            tasks = [record["tasks"][task_id] for task_id in bench.task_ids]
            won[row] = [task["won"] for task in tasks]
            score[row] = [task["score"] for task in tasks]
    return Outcomes(
        method=method,
        bench=bench,
        seeds=tuple(records),
        failed=tuple(seed for seed, record in records.items() if record is None),
        errors=sum(record["errors"] for record in records.values() if record is not None),
        won=won,
        score=score,
    )


def _benches(cells: Iterable[Cell]) -> dict[str, list[Bench]]:
    first: dict[tuple[str, str], tuple[Cell, SplitRecord]] = {}
    for cell in cells:
        for split, record in cell.splits.items():
            other, known = first.setdefault((cell.env, split), (cell, record))
            if known["tasks"].keys() != record["tasks"].keys():
                raise DataError(
                    f"{cell.path} evaluated {record['n']} tasks of {cell.env} {split}, {other.path} evaluated "
                    f"{known['n']} that are not the same: compare runs of one preset and one data version"
                )
    benches: dict[str, list[Bench]] = {}
    for (env, split), (_, record) in first.items():
        task_ids = tuple(sorted(record["tasks"]))
        families = tuple(record["tasks"][task_id]["family"] for task_id in task_ids)
        benches.setdefault(env, []).append(Bench(env, split, record["kind"], task_ids, families))
    return benches


def _with_unevaluated(benches: dict[str, list[Bench]], cells: Iterable[Cell]) -> dict[str, list[Bench]]:
    """Give an environment none of whose runs finished the splits of the others, so that it still counts as 0."""
    splits = dict.fromkeys((bench.split, bench.kind) for known in benches.values() for bench in known)
    blank = (NOT_EVALUATED,)
    for env in {cell.env for cell in cells} - benches.keys():
        benches[env] = [Bench(env, split, kind, blank, blank) for split, kind in splits]
    return benches
