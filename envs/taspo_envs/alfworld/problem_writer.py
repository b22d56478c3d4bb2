"""A household as PDDL problem text, in the vocabulary of ALFWorld's domain ``alfred``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from taspo_envs.alfworld import household as house

Spot = tuple[float, float, float]

# ALFWorld files these receptacles under the furniture that they are part of.
_PARTS = {"SinkBasin": ("Sink", "_bar_SinkBasin"), "BathtubBasin": ("Bathtub", "_bar_BathtubBasin")}
_START = "loc_bar_0_bar_0_bar_0_bar_30"


@dataclass(frozen=True)
class Thing:
    """A receptacle (``place`` is None) or an object in its place; ``spot`` is x, y, z in metres."""

    type: str
    spot: Spot
    place: Thing | None

    @property
    def id(self) -> str:
        head, tail = _PARTS.get(self.type, (self.type, ""))
        return f"{head}_bar_{'_bar_'.join(map(_coordinate, self.spot))}{tail}"


def _coordinate(value: float) -> str:
    whole, _, part = f"{abs(value):05.2f}".partition(".")
    sign = "" if value == 0 else "_minus_" if value < 0 else "_plus_"
    return f"{sign}{whole}_dot_{part}"


def problem_text(family: str, obj: str, recep: str, receptacles: Sequence[Thing], objects: Sequence[Thing]) -> str:
    """The whole ``(define (problem ..) ..)`` form of one game."""
    object_types = list(dict.fromkeys(thing.type for thing in objects))
    receptacle_types = list(dict.fromkeys(thing.type for thing in receptacles))
    location = {thing.id: f"loc_bar_{index}_bar_1_bar_0_bar_60" for index, thing in enumerate(receptacles, start=1)}
    declared = [
        "agent1 - agent",
        *(f"{type_}Type - otype" for type_ in object_types),
        *(f"{type_}Type - rtype" for type_ in receptacle_types),
        *(f"{thing.id} - object" for thing in objects),
        *(f"{thing.id} - receptacle" for thing in receptacles),
        *(f"{place} - location" for place in location.values()),
        f"{_START} - location",
    ]
    facts = [f"atLocation agent1 {_START}"]
    for thing in receptacles:
        facts.append(f"receptacleType {thing.id} {thing.type}Type")
        facts.append(f"receptacleAtLocation {thing.id} {location[thing.id]}")
        if thing.type in house.OPENABLE:
            facts.append(f"openable {thing.id}")
    for type_ in receptacle_types:
        facts += [f"canContain {type_}Type {o}Type" for o in object_types if o in house.CAN_CONTAIN[type_]]
    for thing in objects:
        facts += _object_facts(thing, location)
    return "\n".join(
        [
            "(define (problem generated)",
            "(:domain alfred)",
            "(:objects",
            *declared,
            ")",
            "(:init",
            *(f"({fact})" for fact in facts),
            ")",
            f"(:goal {_goal(family, obj, recep)})",
            ")",
            "",
        ]
    )


def _object_facts(thing: Thing, location: dict[str, str]) -> list[str]:
    assert thing.place is not None
    facts = [
        f"objectType {thing.id} {thing.type}Type",
        f"inReceptacle {thing.id} {thing.place.id}",
        f"objectAtLocation {thing.id} {location[thing.place.id]}",
    ]
    if thing.type == house.LAMP:
        return [*facts, f"toggleable {thing.id}"]
    facts.append(f"pickupable {thing.id}")
    for predicate, types in (
        ("isReceptacleObject", house.HOLLOW),
        ("cleanable", house.CLEANABLE),
        ("heatable", house.HEATABLE),
        ("coolable", house.COOLABLE),
        ("sliceable", house.SLICEABLE),
    ):
        if thing.type in types:
            facts.append(f"{predicate} {thing.id}")
    return facts


def _goal(family: str, obj: str, recep: str) -> str:
    """The goal formula of the family: ALFWorld's six, up to layout."""
    if family == "look":
        lamp = (
            f"(exists (?ot - object ?r - receptacle ?a - agent ?l - location) (and (objectType ?ot {recep}Type) "
            "(toggleable ?ot) (isToggled ?ot) (receptacleAtLocation ?r ?l) (atLocation ?a ?l) (inReceptacle ?ot ?r)))"
        )
        return f"(and {lamp} (exists (?o - object ?a - agent) (and (objectType ?o {obj}Type) (holds ?a ?o))))"
    if family == "two":
        second = (
            f"(exists (?o2 - object) (and (not (= ?o1 ?o2)) (objectType ?o2 {obj}Type) "
            f"(receptacleType ?r {recep}Type) (inReceptacle ?o2 ?r)))"
        )
        first = f"(objectType ?o1 {obj}Type) (receptacleType ?r {recep}Type) (inReceptacle ?o1 ?r)"
        return f"(and (exists (?r - receptacle) (exists (?o1 - object) (and {first} {second}))))"
    wanted = f"(inReceptacle ?o ?r) (objectType ?o {obj}Type) (receptacleType ?r {recep}Type)"
    if treatment := {
        "clean": ("cleanable", "isClean"),
        "heat": ("heatable", "isHot"),
        "cool": ("coolable", "isCool"),
    }.get(family):
        wanted = f"({treatment[0]} ?o) ({treatment[1]} ?o) {wanted}"
    return f"(and (exists (?r - receptacle) (exists (?o - object) (and {wanted}))))"
