"""Generated households: a game of ALFWorld's own form for every task id, the same bytes everywhere.

A task id says all there is to say: ``heat/mug-coffeemachine/kitchen-03/0007`` is family, object and target, room, and
the number that fixes where things lie. Rooms have 8 to 14 receptacles and 8 to 16 objects, fewer than the official
floor plans (up to 54 receptacles), so that a policy of a million parameters can learn to search them in 50 steps.
Every receptacle has its own location. About two goal objects in five begin inside something closed.

Problem text uses the predicates, type names and object names of ALFWorld's ``game.tw-pddl`` files (json_2.1.3).
"""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from taspo_bench.errors import InputError
from taspo_envs.alfworld import household as house
from taspo_envs.alfworld.problem_writer import Thing, problem_text

T = TypeVar("T")

TASK_TYPES = {
    "look": "look_at_obj_in_light",
    "pick": "pick_and_place_simple",
    "clean": "pick_clean_then_place_in_recep",
    "heat": "pick_heat_then_place_in_recep",
    "cool": "pick_cool_then_place_in_recep",
    "two": "pick_two_obj_and_place",
}
STATIONS = {"clean": "SinkBasin", "heat": "Microwave", "cool": "Fridge"}
WORDINGS = {
    "look": ("look at {obj} under the {recep}", "examine the {obj} with the {recep}"),
    "pick": ("put a {obj} in {recep}", "put some {obj} on {recep}"),
    "clean": ("put a clean {obj} in {recep}", "clean some {obj} and put it in {recep}"),
    "heat": ("put a hot {obj} in {recep}", "heat some {obj} and put it in {recep}"),
    "cool": ("put a cool {obj} in {recep}", "cool some {obj} and put it in {recep}"),
    "two": ("put two {obj} in {recep}", "find two {obj} and put them in {recep}"),
}
ROOMS = {"kitchen": 24, "livingroom": 16, "bedroom": 16, "bathroom": 16}
HIDDEN_SHARE = 0.4


class Draw:
    """Seeded choices built on ``random.random()`` alone, the one sequence that Python promises to keep."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(int.from_bytes(hashlib.sha256(seed.encode()).digest()[:8], "big")).random

    def chance(self, share: float) -> bool:
        return self._random() < share

    def between(self, low: int, high: int) -> int:
        """A whole number from low to high, both included."""
        return low + int(self._random() * (high - low + 1))

    def one(self, items: Sequence[T]) -> T:
        return items[int(self._random() * len(items))]

    def weighted(self, weights: Mapping[str, int]) -> str:
        point = self._random() * sum(weights.values())
        for item, weight in weights.items():
            point -= weight
            if point < 0:
                return item
        return item

    def shuffled(self, items: Iterable[T]) -> list[T]:
        return [item for _, item in sorted(((self._random(), i), item) for i, item in enumerate(items))]

    def near(self, centre: float, spread: float) -> float:
        return round(centre + (self._random() - 0.5) * 2 * spread, 2)


@dataclass(frozen=True)
class Combo:
    """What a task asks for: family, kind of room, object type and target receptacle type (the lamp in ``look``)."""

    family: str
    kind: str
    obj: str
    recep: str

    @property
    def slug(self) -> str:
        return f"{self.family}/{self.obj.lower()}-{self.recep.lower()}"


@cache
def layouts(kind: str) -> tuple[dict[str, int], ...]:
    """Receptacle types and their number in each room of the kind, room 1 first; no two rooms are alike."""
    draw = Draw(f"rooms of kind {kind}")
    found: list[dict[str, int]] = []
    while len(found) < ROOMS[kind]:
        room: Counter[str] = Counter()
        for type_, fewest, most in house.ALWAYS[kind]:
            room[type_] += draw.between(fewest, most)
        size = draw.between(max(9, room.total()), 14)
        for type_, fewest, most in draw.shuffled(house.SOMETIMES[kind]):
            if room.total() < size:
                room[type_] += min(draw.between(fewest, most), size - room.total())
        if dict(room) not in found:
            found.append(dict(room))
    return tuple(found)


def room_name(kind: str, number: int) -> str:
    return f"{kind}-{number:02d}"


@cache
def combos(family: str) -> tuple[Combo, ...]:
    """Every sensible request of the family, in a fixed order."""
    found = []
    for kind, places in house.PLACES.items():
        if family == "look":
            if kind in house.LAMP_PLACES:
                found += [Combo(family, kind, obj, house.LAMP) for obj in places]
            continue
        receptacles = sorted(
            {type_ for room in layouts(kind) for type_ in room} - {STATIONS.get(family), "SinkBasin"}
        )
        if STATIONS.get(family, receptacles[0]) not in layouts(kind)[0]:
            continue
        for obj in places:
            if obj in _treatable(family):
                found += [Combo(family, kind, obj, recep) for recep in receptacles if obj in house.CAN_CONTAIN[recep]]
    return tuple(found)


def _treatable(family: str) -> frozenset[str]:
    everything = frozenset(obj for places in house.PLACES.values() for obj in places)
    return {"clean": house.CLEANABLE, "heat": house.HEATABLE, "cool": house.COOLABLE}.get(family, everything)


def rooms_for(combo: Combo) -> list[str]:
    """The rooms in which the combination can be asked for, by name."""
    return [
        room_name(combo.kind, number)
        for number, room in enumerate(layouts(combo.kind), start=1)
        if combo.recep == house.LAMP or combo.recep in room
    ]


@cache
def _requests(family: str) -> dict[tuple[str, str], Combo]:
    return {(combo.slug, room): combo for combo in combos(family) for room in rooms_for(combo)}


def parse_id(task_id: str) -> tuple[Combo, str]:
    """Combination and room of a task id; :class:`InputError` if it does not name a game that can be made."""
    family, _, rest = task_id.partition("/")
    slug, _, rest = rest.partition("/")
    room, _, number = rest.partition("/")
    combo = _requests(family).get((f"{family}/{slug}", room)) if family in TASK_TYPES else None
    if combo is None or len(number) != 4 or not number.isdecimal():
        raise InputError(
            f"task id {task_id!r} names no game: it reads FAMILY/OBJECT-TARGET/ROOM/NUMBER, such as "
            "heat/mug-coffeemachine/kitchen-03/0007; list them with splits()"
        )
    return combo, room


def generate(task_id: str) -> dict[str, Any]:
    """The game of that id as a ``game.tw-pddl`` object, without the domain and grammar that all games share."""
    combo, room = parse_id(task_id)
    draw = Draw(task_id)
    receptacles = _receptacles(room)
    objects = _objects(draw, combo, receptacles)
    wording = draw.one(WORDINGS[combo.family])
    return {
        "generation": "0.4",
        "task_type": TASK_TYPES[combo.family],
        "task": wording.format(obj=combo.obj.lower(), recep=combo.recep.lower()),
        "pddl_problem": problem_text(combo.family, combo.obj, combo.recep, receptacles, objects),
        "solvable": True,
        "walkthrough": _walkthrough(combo, receptacles, objects),
    }


@cache
def _receptacles(room: str) -> tuple[Thing, ...]:
    """The furniture of a room, with the place of each; the same in every game of the room."""
    kind, _, number = room.rpartition("-")
    draw = Draw(f"furniture of {room}")
    layout = layouts(kind)[int(number) - 1]
    things = []
    for index, type_ in enumerate(type_ for type_, count in layout.items() for _ in range(count)):
        spot = (draw.near(index * 0.5 - 3, 0.2), draw.near(0.9, 0.7), draw.near(0, 2.5))
        things.append(Thing(type_, spot, None))
    return tuple(things)


def _objects(draw: Draw, combo: Combo, receptacles: Sequence[Thing]) -> list[Thing]:
    """Goal objects first, then the lamp where there is one, then things that merely lie about."""
    here: dict[str, list[Thing]] = {}
    for receptacle in receptacles:
        here.setdefault(receptacle.type, []).append(receptacle)
    places = house.PLACES[combo.kind]
    objects: list[Thing] = []

    def put(type_: str, weights: Mapping[str, int]) -> None:
        place = draw.one(here[draw.weighted(weights)])
        x, y, z = place.spot
        spot = (draw.near(x, 0.2), draw.near(y + 0.1, 0.1), draw.near(z, 0.3))
        while any(thing.type == type_ and thing.spot == spot for thing in objects):
            spot = (draw.near(x, 0.2), spot[1], draw.near(z, 0.3))
        objects.append(Thing(type_, spot, place))

    barred = {combo.recep} if combo.family in ("pick", "two") else set()
    for _ in range(draw.between(2, 3) if combo.family == "two" else draw.between(1, 2)):
        put(combo.obj, _goal_places(draw, places[combo.obj], here, barred))
    if combo.kind in house.LAMP_PLACES:
        put(house.LAMP, {place: weight for place, weight in house.LAMP_PLACES[combo.kind].items() if place in here})
    others = [type_ for type_ in places if type_ != combo.obj]
    size = draw.between(8, 16)
    for type_ in draw.shuffled(others * 2):
        if len(objects) == size:
            break
        if weights := {place: weight for place, weight in places[type_].items() if place in here}:
            put(type_, weights)
    return objects


def _goal_places(
    draw: Draw, usual: Mapping[str, int], here: Mapping[str, list[Thing]], barred: set[str]
) -> Mapping[str, int]:
    """Where a goal object may begin: closed in two cases of five, never where it is wanted."""
    possible = {place: weight for place, weight in usual.items() if place in here and place not in barred}
    closed = {place: weight for place, weight in possible.items() if place in house.OPENABLE}
    in_sight = {place: weight for place, weight in possible.items() if place not in house.OPENABLE}
    first, second = (closed, in_sight) if draw.chance(HIDDEN_SHARE) else (in_sight, closed)
    return first or second or {"SideTable": 1}


def _numbers(things: Iterable[Thing]) -> dict[str, str]:
    """Thing id to the name the game shows: within a type, the id that sorts last is number 1."""
    names: dict[str, str] = {}
    seen: Counter[str] = Counter()
    for thing in sorted(things, key=lambda thing: thing.id.lower(), reverse=True):
        seen[thing.type] += 1
        names[thing.id] = f"{thing.type.lower()} {seen[thing.type]}"
    return names


def _walkthrough(combo: Combo, receptacles: Sequence[Thing], objects: Sequence[Thing]) -> list[str]:
    """A plain winning sequence: fetch, treat at the station, bring to the target."""
    name = _numbers([*receptacles, *objects])
    steps: list[str] = []
    at = ""
    opened: set[str] = set()

    def visit(thing: Thing, *, inside: bool) -> str:
        nonlocal at
        if name[thing.id] != at:
            at = name[thing.id]
            steps.append(f"go to {at}")
        if inside and thing.type in house.OPENABLE and at not in opened:
            opened.add(at)
            steps.append(f"open {at}")
        return at

    for goal in objects[: 2 if combo.family == "two" else 1]:
        assert goal.place is not None
        steps.append(f"take {name[goal.id]} from {visit(goal.place, inside=True)}")
        if combo.family == "look":
            lamp = next(thing for thing in objects if thing.type == house.LAMP)
            assert lamp.place is not None
            visit(lamp.place, inside=False)
            steps.append(f"use {name[lamp.id]}")
            continue
        if combo.family in STATIONS:
            station = next(thing for thing in receptacles if thing.type == STATIONS[combo.family])
            where = visit(station, inside=False)
            steps.append(f"{combo.family} {name[goal.id]} with {where}")
        target = next(thing for thing in receptacles if thing.type == combo.recep)
        where = visit(target, inside=True)
        steps.append(f"move {name[goal.id]} to {where}")
    return steps
