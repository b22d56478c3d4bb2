"""A bounded, balanced sample of a run's stored episodes: what a reader wants to see, whatever the size of the run.

Evaluation episodes are chosen from ``eval.json`` (won and lost, every family), so that a file is read only up to
the last of the chosen; training episodes come from the beginning of the last training file.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TypeVar

from taspo_bench.episode import Episode, read_episodes
from taspo_bench.evaluation.results import Cell, SplitRecord

T = TypeVar("T")
EPISODES = 240
TRAINING_PER_GROUP = 4
TRAINING_READ = 64
TASK_ID = re.compile(r'"task_id":("(?:[^"\\]|\\.)*")')


@dataclass(frozen=True)
class Sample:
    """Chosen episodes with the method that made them, and how many evaluation episodes the run holds in all."""

    episodes: tuple[tuple[str, Episode], ...]
    evaluated: int


def sample_episodes(cells: Sequence[Cell], limit: int = EPISODES) -> Sample:
    """At most ``limit`` episodes: training episodes with credit first, then evaluation episodes spread evenly."""
    training = [(cell.method, episode) for cell in _one_per_group(cells, "train") for episode in _training(cell)]
    training = sorted(training, key=lambda named: not _is_weighted(named[1]))[: limit // 2]
    splits = [(cell, split) for cell in _one_per_group(cells, "eval") for split in cell.splits]
    share = max(1, (limit - len(training)) // max(1, len(splits)))
    evaluation = [
        (cell.method, episode)
        for cell, split in splits[: limit - len(training)]
        for episode in _evaluated(cell, split, share)
    ]
    total = sum(record["n"] for cell in cells for record in cell.splits.values())
    return Sample((*training, *evaluation), total)


def _one_per_group(cells: Iterable[Cell], prefix: str) -> Iterator[Cell]:
    """The first cell of each (method, environment) that has stored such episodes."""
    done = set()
    for cell in cells:
        if (cell.method, cell.env) not in done and cell.episode_files(prefix):
            done.add((cell.method, cell.env))
            yield cell


def _training(cell: Cell) -> list[Episode]:
    """A few of the last training episodes: those whose actions got unequal credit first, won and lost in turn."""
    episodes = list(islice(read_episodes(cell.episode_files("train")[-1]), TRAINING_READ))
    told = [episode for episode in episodes if _is_weighted(episode)] or episodes
    won = [episode for episode in told if episode.won]
    lost = [episode for episode in told if not episode.won]
    return list(_in_turn([won, lost]))[:TRAINING_PER_GROUP]


def _is_weighted(episode: Episode) -> bool:
    return len(set(episode.weights)) > 1


def _evaluated(cell: Cell, split: str, count: int) -> list[Episode]:
    files = [path for path in cell.episode_files("eval") if path.name.startswith(f"eval-{split}.")]
    wanted = set(_balanced(cell.splits[split], count))
    return [episode for path in files for episode in _named(path, wanted)]


def _balanced(record: SplitRecord, count: int) -> list[str]:
    """Task ids of a split, taken in turn from every family, won and lost."""
    strata: dict[tuple[str, bool], list[str]] = {}
    for task_id, task in record["tasks"].items():
        strata.setdefault((task["family"], task["won"]), []).append(task_id)
    return list(islice(_in_turn(list(strata.values())), count))


def _in_turn(lists: Sequence[Sequence[T]]) -> Iterator[T]:
    for place in range(max(map(len, lists), default=0)):
        for items in lists:
            if place < len(items):
                yield items[place]


def _named(path: Path, wanted: set[str]) -> Iterator[Episode]:
    """The episodes of those tasks. The id is read off the raw line: parsing every episode would take minutes."""
    missing = set(wanted)
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
        while missing and (line := file.readline()):
            found = TASK_ID.search(line, 0, 2000)
            if found and (task_id := json.loads(found.group(1))) in missing:
                missing.remove(task_id)
                yield Episode.from_json(line)
