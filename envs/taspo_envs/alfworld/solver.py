"""Reference solutions: short plans that win from any state of a game.

The goal says what is wanted (objects in a receptacle, treated or not, or an object held under a lit lamp); every
sensible choice of object, receptacle, appliance, knife and place to drop things is simulated, and the shortest plan
is kept. It reads the whole state, and is for warm starts, oracles and tests only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from taspo_envs.alfworld.game import CLEAN, COOL, HOT, ON, SLICED, TREATMENTS, Game

if TYPE_CHECKING:
    from taspo_envs.alfworld.world import World

_FLAGS = {"isclean": CLEAN, "ishot": HOT, "iscool": COOL, "issliced": SLICED}


@dataclass(frozen=True)
class Wanted:
    """What a goal asks for.

    count: objects wanted together in one receptacle (0 where one is to be held under a lamp).
    objects, receptacles, lamps: the candidates.
    flags: bits that each object must have.
    """

    count: int
    objects: tuple[int, ...]
    receptacles: tuple[int, ...]
    lamps: tuple[int, ...]
    flags: int


def wanted(game: Game) -> Wanted:
    """Read the goal of a game; all of ALFWorld's families have this form, sliced or not."""
    objects: set[int] = set()
    receptacles: set[int] = set()
    lamps: set[int] = set()
    count = flags = 0
    for query in game.goal.queries:
        choices = dict(query.choices)
        for literal in query.literals:
            match literal.predicate:
                case "inreceptacle" if not any(other.predicate == "istoggled" for other in query.literals):
                    count += 1
                    objects |= {game.object_index[name] for name in choices[literal.terms[0]]}
                    receptacles |= {game.receptacle_index[name] for name in choices[literal.terms[1]]}
                case "holds":
                    objects |= {game.object_index[name] for name in choices[literal.terms[1]]}
                case "istoggled":
                    lamps |= {game.object_index[name] for name in choices[literal.terms[0]]}
                case predicate if predicate in _FLAGS:
                    flags |= _FLAGS[predicate]
    return Wanted(count, tuple(sorted(objects)), tuple(sorted(receptacles)), tuple(sorted(lamps)), flags)


class Plan:
    """Commands so far and the state that they lead to, as far as planning needs it.

    ``at`` gives every receptacle that an object is in: official games have some objects in two (on the counter and in
    the coffee machine on it), and taking such an object from one leaves it in the other.
    """

    def __init__(self, world: World) -> None:
        self.game = world.game
        self.location = world.location
        self.held = world.held[0] if world.held else -1
        self.opened = world.opened
        self.flags = world.flags
        self.at: dict[int, tuple[int, ...]] = {}
        for receptacle, inside in enumerate(world.contents):
            for item in inside:
                self.at[item] = (*self.at.get(item, ()), receptacle)
        self.lying_at = world.lying_at
        self.commands: list[str] = []

    def copy(self) -> Plan:
        other = Plan.__new__(Plan)
        other.__dict__ |= self.__dict__
        other.opened, other.flags, other.at = self.opened.copy(), self.flags.copy(), self.at.copy()
        other.lying_at, other.commands = self.lying_at.copy(), self.commands.copy()
        return other

    def __len__(self) -> int:
        return len(self.commands)

    def accessible(self, receptacle: int) -> bool:
        return receptacle in self.opened or receptacle not in self.game.openable

    def go(self, receptacle: int) -> None:
        if self.game.place_of[receptacle] != self.location:
            self.location = self.game.place_of[receptacle]
            self.commands.append(f"go to {self.game.receptacles[receptacle]}")

    def open(self, receptacle: int) -> None:
        self.go(receptacle)
        if not self.accessible(receptacle):
            self.opened.add(receptacle)
            self.commands.append(f"open {self.game.receptacles[receptacle]}")

    def take(self, item: int, receptacle: int) -> None:
        self.at[item] = tuple(other for other in self.at[item] if other != receptacle)
        self.open(receptacle)
        self.held = item
        self.lying_at.discard((item, self.location))
        self.commands.append(f"take {self.game.objects[item]} from {self.game.receptacles[receptacle]}")

    def put(self, receptacle: int) -> None:
        self.open(receptacle)
        self.at[self.held] = (*self.at.get(self.held, ()), receptacle)
        self.lying_at.add((self.held, self.location))
        put, link = self.game.generation.put_words
        self.commands.append(f"{put} {self.game.objects[self.held]} {link} {self.game.receptacles[receptacle]}")
        self.held = -1

    def treat(self, verb: str, appliance: int) -> None:
        self.go(appliance)
        gained, lost = TREATMENTS[verb]
        self.flags[self.held] = self.flags[self.held] & ~lost | gained
        self.commands.append(f"{verb} {self.game.objects[self.held]} with {self.game.receptacles[appliance]}")

    def slice(self, item: int) -> None:
        self.flags[item] |= SLICED
        self.commands.append(f"slice {self.game.objects[item]} with {self.game.objects[self.held]}")

    def use(self, lamp: int) -> None:
        self.go(self.at[lamp][0])
        if not self.flags[lamp] & ON:
            self.flags[lamp] |= ON
            self.commands.append(f"use {self.game.objects[lamp]}")


def solve(world: World) -> list[str]:
    """The commands of a shortest plan among those considered; [] if the game is won or no plan was found."""
    if world.won:
        return []
    wish = wanted(world.game)
    start = Plan(world)
    plans = list(_place_plans(start, wish) if wish.count else _lamp_plans(start, wish))
    return _shortest(plans).commands if plans else []


def _shortest(plans: Iterable[Plan]) -> Plan:
    return min(plans, key=len)


def _lamp_plans(start: Plan, wish: Wanted) -> Iterator[Plan]:
    for lamp in wish.lamps:
        for item in wish.objects if start.at.get(lamp) else ():
            for plan in _fetched(start, item, wish.flags, start.at[lamp]):
                plan.use(lamp)
                yield plan


def _place_plans(start: Plan, wish: Wanted) -> Iterator[Plan]:
    for target in _distinct_targets(start, wish):
        inside = [o for o in wish.objects if target in start.at.get(o, ())]
        ready = [o for o in inside if start.flags[o] & wish.flags == wish.flags]
        yield from _filled(start, target, wish, wish.count - len(ready), tuple(ready))


def _filled(start: Plan, target: int, wish: Wanted, missing: int, done: tuple[int, ...]) -> Iterator[Plan]:
    """Plans that bring ``missing`` more objects to the target."""
    if missing <= 0:
        yield start
        return
    for item in wish.objects:
        if item in done or target not in start.game.accepts[item]:
            continue
        plans = list(_placed(start, item, wish.flags, target))
        if wish.flags & SLICED:
            for placed in _placed(start, item, wish.flags & ~SLICED, target):
                plans += _sliced(placed, item)
        if plans:
            yield from _filled(_shortest(plans), target, wish, missing - 1, (*done, item))


def _placed(start: Plan, item: int, flags: int, target: int) -> Iterator[Plan]:
    for plan in _fetched(start, item, flags, (target,)):
        if target not in plan.at.get(item, ()):
            plan.put(target)
        yield plan


def _distinct_targets(start: Plan, wish: Wanted) -> list[int]:
    """The receptacles that differ in what a plan can cost: of many closed cabinets one is enough."""
    game = start.game
    served = {game.place_of[r] for verb in game.appliances for r in game.appliances[verb]}
    special = served | {start.location} | {game.place_of[r] for o in wish.objects for r in start.at.get(o, ())}
    distinct: dict[tuple[int, bool, tuple[int, ...], bool], int] = {}
    for target in wish.receptacles:
        if game.place_of[target] < 0:
            continue
        place = game.place_of[target] if game.place_of[target] in special else -1
        inside = tuple(o for o in wish.objects if target in start.at.get(o, ()))
        takes_held = start.held >= 0 and target in game.accepts[start.held]
        distinct.setdefault((place, start.accessible(target), inside, takes_held), target)
    return list(distinct.values())


def _fetched(start: Plan, item: int, flags: int, then: tuple[int, ...]) -> Iterator[Plan]:
    """Plans that end with the item in hand, treated as the flags say.

    ``then``: where the item goes afterwards; appliances and places to drop things are tried there too.
    """
    if flags & SLICED and not start.flags[item] & SLICED:
        plans: Iterable[Plan] = _sliced(start, item)
    else:
        plans = (start,)
    for begun in plans:
        for plan in _in_hand(begun, item, then):
            yield from _treated(plan, item, flags, then)


def _in_hand(start: Plan, item: int, then: tuple[int, ...] = ()) -> Iterator[Plan]:
    """Plans that end with the item in hand, from any receptacle that it is in."""
    if start.held == item:
        yield start.copy()
        return
    for receptacle in start.at.get(item, ()):
        for plan in _emptied(start, (receptacle, *then)):
            if receptacle in plan.at[item]:
                plan.take(item, receptacle)
                yield plan


def _treated(plan: Plan, item: int, flags: int, then: tuple[int, ...]) -> Iterator[Plan]:
    missing = [verb for verb, (flag, _) in TREATMENTS.items() if flags & flag and not plan.flags[item] & flag]
    if not missing:
        yield plan
        return
    verb = missing[0]
    game = plan.game
    if item not in game.treatable[verb]:
        return
    reach = {game.place_of[r] for r in then} | {plan.location}
    appliances = sorted(game.appliances[verb], key=lambda r: (game.place_of[r] not in reach, r))
    near = [r for r in appliances if game.place_of[r] in reach]
    for appliance in near or appliances[:1]:
        treated = plan.copy()
        treated.treat(verb, appliance)
        yield from _treated(treated, item, flags, then)


def _emptied(start: Plan, near: tuple[int, ...]) -> Iterator[Plan]:
    """Plans that end with empty hands: drop what is held here, on the way, or anywhere."""
    if start.held < 0:
        yield start.copy()
        return
    game = start.game
    places = {game.place_of[r] for r in near} | {start.location}
    accepting = [r for r in sorted(game.accepts[start.held]) if game.place_of[r] >= 0]
    options = [r for r in accepting if game.place_of[r] in places]
    options += sorted(accepting, key=lambda r: not start.accessible(r))[:1]
    for receptacle in dict.fromkeys(options):
        plan = start.copy()
        plan.put(receptacle)
        yield plan


def _sliced(start: Plan, item: int) -> Iterator[Plan]:
    """Plans that end with the item sliced and the knife in hand; a held item is put down first."""
    if item not in start.game.sliceable:
        return
    knives = sorted(start.game.knives)
    laid: Iterable[Plan] = (start,)
    if start.held == item:
        laid = list(_emptied(start, tuple(r for knife in knives for r in start.at.get(knife, ()))))
    for begun in laid:
        for knife in knives:
            for plan in _in_hand(begun, knife, begun.at.get(item, ())):
                if _stand_by(plan, item):
                    plan.slice(item)
                    yield plan


def _stand_by(plan: Plan, item: int) -> bool:
    """Go where a knife reaches the item; False if there is no such place."""
    if (item, plan.location) in plan.lying_at:
        return True
    places = [place for other, place in sorted(plan.lying_at) if other == item and plan.game.beside[place]]
    if not places:
        return False
    usual = {plan.game.place_of[receptacle] for receptacle in plan.at.get(item, ())}
    plan.go(plan.game.beside[min(places, key=lambda place: (place not in usual, place))][0])
    return True
