"""The processes that ``accelerate launch`` started: who this one is, and what they tell each other.

Nothing heavy is imported before there is more than one.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar

from taspo_bench.api import Split
from taspo_bench.episode import Episode
from taspo_bench.errors import InputError

T = TypeVar("T")


def count() -> int:
    """How many processes work together."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def rank() -> int:
    """Which of them this one is, from 0; the first alone writes files and talks to the user."""
    return int(os.environ.get("RANK", "0"))


def is_first() -> bool:
    return rank() == 0


def check_launch() -> None:
    """Refuse to be the single process that ``accelerate launch --cpu --num_processes N`` starts, whatever N is.

    It leaves an address to meet at in the environment, and no number of processes.
    """
    if "ACCELERATE_USE_CPU" in os.environ and "MASTER_PORT" in os.environ and "WORLD_SIZE" not in os.environ:
        raise InputError(
            "accelerate launch --cpu starts a single process; for N of them on processors: "
            "ACCELERATE_USE_CPU=true accelerate launch --multi_gpu --num_processes N -m taspo_bench ..."
        )


def agree(values: list[T]) -> list[T]:
    """What the first process says, in every process; the others' values only hold the place."""
    if count() == 1:
        return values
    _join()
    from accelerate.utils import broadcast_object_list

    agreed: list[list[T]] = broadcast_object_list([values])
    return agreed[0]


def gathered(values: list[T]) -> list[T]:
    """The lists of all processes, one behind the other, in every process."""
    if count() == 1:
        return values
    _join()
    from accelerate.utils import gather_object

    together: list[T] = gather_object(values)
    return together


def shared(split: Split, play: Callable[[Split], list[Episode]]) -> list[Episode]:
    """Play a split with every process taking its share of the tasks; all episodes in the split's order."""
    mine = Split(split.name, split.kind, tuple(split.task_ids[rank() :: count()]))
    played = {episode.task_id: episode for episode in gathered(play(mine))}
    return [played[task] for task in split.task_ids]


def _join() -> None:
    """Wait for the others a day at most: one may be at a long evaluation."""
    from accelerate import PartialState

    if not PartialState._shared_state:
        cpu = os.environ.get("ACCELERATE_USE_CPU", "false").lower() in ("1", "true", "yes")
        PartialState(cpu=cpu, timeout=timedelta(days=1))
