"""Play every task of a split once with a policy."""

from __future__ import annotations

import zlib
from collections.abc import Callable

from taspo_bench.api import Split, TextEnv
from taspo_bench.episode import Episode
from taspo_bench.errors import InputError, unknown_name
from taspo_bench.policies.policy import Policy
from taspo_bench.rollout import Start, rollout


def evaluate(
    make_env: Callable[[], TextEnv],
    policy: Policy,
    split: Split,
    seed: int = 0,
    batch: int = 64,
    progress: Callable[[int], None] | None = None,
) -> list[Episode]:
    """One episode per task of the split, in its order. A task's draws depend on its id and the seed alone."""
    starts = [Start(task, split.name, seed, (seed, zlib.crc32(task.encode()))) for task in split.task_ids]
    return rollout(make_env, policy, starts, batch, progress=progress)


def evaluation_splits(splits: dict[str, Split], names: list[str], limit: int | None = None) -> list[Split]:
    """The splits to evaluate on.

    Args:
        names: those by name; if empty ``valid_seen`` and ``valid_unseen`` where both are there, else all that are not
            for training.
        limit: at most so many tasks a split, evenly spaced over it.
    """
    if not names:
        usual: list[str] = [name for name in ("valid_seen", "valid_unseen") if name in splits]
        names = usual if len(usual) == 2 else [name for name, split in splits.items() if split.kind != "train"]
    if not names:
        raise InputError("this data has no split to evaluate on: it holds training tasks only")
    for name in names:
        if name not in splits:
            raise unknown_name("split", name, splits)
    return [_limited(splits[name], limit) for name in names]


def _limited(split: Split, limit: int | None) -> Split:
    total = len(split)
    if limit is None or total <= limit:
        return split
    places = [place * total // limit for place in range(limit)]
    return Split(split.name, split.kind, tuple(split.task_ids[place] for place in places))
