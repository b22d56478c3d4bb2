"""The embedded splits: which generated games are trained on, and which are kept for evaluation.

``valid_unseen`` has rooms and (family, object, target) combinations that training never shows; ``valid_seen`` has
training's rooms and combinations with things lying elsewhere. ``manifest.json`` freezes all three: the task ids in
order, each with the first 16 hex digits of its game's sha256. A game is made from its id when it is asked for, and
compared with the manifest each time. ``python -m taspo_envs.alfworld.splits`` writes the manifest again.
"""

from __future__ import annotations

import hashlib
import json
import os
from functools import cache
from pathlib import Path
from typing import Any

from taspo_bench.api import DataStamp, Kind, Split
from taspo_bench.errors import DataError, InputError, SplitError
from taspo_envs.alfworld.generator import TASK_TYPES, Combo, Draw, combos, generate, parse_id, rooms_for

MANIFEST = Path(__file__).with_name("manifest.json")
VERSION = "1"
# name, kind, games per family
SPLITS: tuple[tuple[str, Kind, int], ...] = (
    ("train", "train", 133),
    ("valid_seen", "seen", 17),
    ("valid_unseen", "unseen", 17),
)
COMBOS_PER_FAMILY = 40
HELD_OUT_COMBOS = 8


def is_held_out_room(room: str) -> bool:
    """Every fourth room is kept for ``valid_unseen``."""
    return int(room.rpartition("-")[2]) % 4 == 0


def embedded_splits() -> dict[str, Split]:
    """The three splits, as the manifest has them."""
    return {name: Split(name, entry["kind"], tuple(entry["games"])) for name, entry in _manifest()["splits"].items()}


def embedded_game(task_id: str) -> dict[str, Any]:
    """The game of that id (see :func:`generator.generate`), checked against the manifest."""
    recorded = _digests().get(task_id)
    if recorded is None:
        parse_id(task_id)
        raise InputError(f"task id {task_id!r} is in no embedded split: list those that are with splits()")
    game = generate(task_id)
    if _digest(game) != recorded:
        raise DataError(
            f"task {task_id!r}: the generator no longer makes the game that the manifest recorded; "
            "install taspo-bench again, or write a new manifest if the change was meant"
        )
    return game


def embedded_stamp() -> DataStamp:
    """Version and sha256 of the manifest: they change with any game."""
    return DataStamp("embedded", VERSION, hashlib.sha256(_canonical(_manifest())).hexdigest())


def embedded_check() -> list[str]:
    """Prove what the splits promise beyond disjoint ids; one line a fact, :class:`SplitError` if one is broken."""
    splits = embedded_splits()
    asked = {name: [parse_id(task_id) for task_id in split.task_ids] for name, split in splits.items()}
    rooms = {name: {room for _, room in pairs} for name, pairs in asked.items()}
    slugs = {name: {combo.slug for combo, _ in pairs} for name, pairs in asked.items()}
    for what, sets in (("rooms", rooms), ("combinations", slugs)):
        if shared := sorted(sets["train"] & sets["valid_unseen"]):
            raise SplitError(
                f"valid_unseen shares {what} with training, first {shared[0]!r}: write the manifest again"
            )
        if strange := sorted(sets["valid_seen"] - sets["train"]):
            raise SplitError(
                f"valid_seen has {what} that training lacks, first {strange[0]!r}: write the manifest again"
            )
    digests = [digest for entry in _manifest()["splits"].values() for digest in entry["games"].values()]
    if len(set(digests)) != len(digests):
        raise SplitError(
            f"{len(digests) - len(set(digests))} embedded games are the same as another: write the manifest again"
        )
    return [
        f"valid_unseen: {len(rooms['valid_unseen'])} rooms, none of the {len(rooms['train'])} of training",
        f"valid_unseen: {len(slugs['valid_unseen'])} combinations of family, object and target, none of the "
        f"{len(slugs['train'])} of training",
        "valid_seen: only rooms and combinations of training, in games of its own",
        f"all {len(digests)} games differ",
    ]


def build_manifest() -> dict[str, Any]:
    """Choose the tasks of every split and record their games."""
    ids: dict[str, list[str]] = {name: [] for name, _, _ in SPLITS}
    for family in TASK_TYPES:
        train, held_out = _choose_combos(family)
        number = 0
        for name, kind, count in SPLITS:
            draw = Draw(f"{name} of family {family}")
            offered = held_out if kind == "unseen" else train
            for index in range(count):
                combo = offered[index % len(offered)]
                room = draw.one([room for room in rooms_for(combo) if is_held_out_room(room) == (kind == "unseen")])
                ids[name].append(f"{combo.slug}/{room}/{number:04d}")
                number += 1
    return {
        "version": VERSION,
        "splits": {
            name: {"kind": kind, "games": {task_id: _digest(generate(task_id)) for task_id in sorted(ids[name])}}
            for name, kind, _ in SPLITS
        },
    }


def _choose_combos(family: str) -> tuple[list[Combo], list[Combo]]:
    """Combinations to train on and to hold out.

    The parts of what is held out are known: its target from others of the family in training, its object too (in
    ``look``, where an object makes one combination only, from the other families).
    """
    by_slug: dict[str, Combo] = {}
    for combo in Draw(f"combinations of {family}").shuffled(combos(family)):
        if {is_held_out_room(room) for room in rooms_for(combo)} == {True, False}:
            by_slug.setdefault(combo.slug, combo)
    train = list(by_slug.values())[:COMBOS_PER_FAMILY]
    elsewhere = _choose_elsewhere() if family == "look" else []
    held_out: list[Combo] = []
    for combo in list(train):
        others = [other for other in train if other is not combo]
        known_object = any(other.obj == combo.obj for other in [*others, *elsewhere])
        if len(held_out) < HELD_OUT_COMBOS and known_object and any(other.recep == combo.recep for other in others):
            train, held_out = others, [*held_out, combo]
    return train, held_out


def _choose_elsewhere() -> list[Combo]:
    return [combo for family in TASK_TYPES if family != "look" for combo in _choose_combos(family)[0]]


def write_manifest() -> None:
    """Write the manifest beside this file, whole or not at all."""
    partial = MANIFEST.with_suffix(".partial")
    partial.write_text(json.dumps(build_manifest(), indent=0) + "\n")
    os.replace(partial, MANIFEST)


@cache
def _manifest() -> dict[str, Any]:
    try:
        manifest: dict[str, Any] = json.loads(MANIFEST.read_text())
    except (OSError, ValueError) as error:
        raise DataError(f"{MANIFEST}: cannot be read ({error}); install taspo-bench again") from None
    return manifest


@cache
def _digests() -> dict[str, str]:
    return {task_id: digest for entry in _manifest()["splits"].values() for task_id, digest in entry["games"].items()}


def _canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def _digest(game: dict[str, Any]) -> str:
    return hashlib.sha256(_canonical(game)).hexdigest()[:16]


if __name__ == "__main__":
    write_manifest()
