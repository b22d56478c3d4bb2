"""Random small households full of what official games seldom have, as PDDL problems.

Several receptacles at one location, objects in two receptacles or lying elsewhere than their receptacle stands,
states and open doors from the start, an agent that starts at furniture, objects within objects, sliced goals.
"""

from __future__ import annotations

import random

RECEPTACLES = ("Drawer", "Drawer", "Shelf", "SinkBasin", "Microwave", "Fridge", "Cabinet", "SideTable")
OBJECTS = (
    "Apple",
    "Apple",
    "Bread",
    "Knife",
    "ButterKnife",
    "Mug",
    "Mug",
    "Mug",
    "Bowl",
    "DeskLamp",
    "DeskLamp",
    "Statue",
)
OPENABLE = ("Drawer", "Microwave", "Fridge", "Cabinet")
ABILITIES = ("cleanable", "heatable", "coolable", "sliceable", "isReceptacleObject")
STATES = ("isClean", "isHot", "isCool", "isSliced", "isToggled", "isOn")


def odd_problem(seed: int) -> str:
    """A problem that can be won, drawn from the seed alone."""
    draw = random.Random(seed)
    receptacles = [f"{kind}_bar__plus_0{draw.randrange(9)}_dot_{i:02}" for i, kind in enumerate(RECEPTACLES)]
    receptacles = [f"{name}_bar_SinkBasin" if "SinkBasin" in name else name for name in receptacles]
    objects = [f"{kind}_bar__minus_0{draw.randrange(9)}_dot_{i:02}" for i, kind in enumerate(OBJECTS)]
    locations = [f"loc_bar_{i}" for i in range(6)]
    place = {receptacle: draw.choice(locations[1:]) for receptacle in receptacles}
    facts = [f"atLocation agent1 {draw.choice(locations[:2])}"]
    for receptacle, kind in zip(receptacles, RECEPTACLES, strict=True):
        facts += [f"receptacleAtLocation {receptacle} {place[receptacle]}", f"receptacleType {receptacle} {kind}Type"]
        if kind in OPENABLE:
            facts += [f"openable {receptacle}"] + [f"opened {receptacle}"] * (draw.random() < 0.3)
    for item, kind in zip(objects, OBJECTS, strict=True):
        facts.append(f"objectType {item} {kind}Type")
        for receptacle in draw.sample(receptacles, 2 if draw.random() < 0.2 else 1):
            facts.append(f"inReceptacle {item} {receptacle}")
            facts.append(f"objectAtLocation {item} {place[receptacle]}")
        if draw.random() < 0.2:
            facts.append(f"objectAtLocation {item} {draw.choice(locations[1:])}")
        facts.append(f"toggleable {item}" if kind == "DeskLamp" else f"pickupable {item}")
        facts += [f"{ability} {item}" for ability in ABILITIES if draw.random() < 0.4]
        facts += [f"{state} {item}" for state in STATES if draw.random() < 0.1]
        if draw.random() < 0.2:
            facts.append(f"inReceptacleObject {item} {draw.choice(objects)}")
    for kind in set(OBJECTS):
        holders = sorted({*draw.sample(sorted(set(RECEPTACLES)), 4), "SideTable"})
        facts += [f"canContain {holder}Type {kind}Type" for holder in holders]
    types = [f"{kind}Type - otype" for kind in sorted(set(OBJECTS))]
    types += [f"{kind}Type - rtype" for kind in sorted(set(RECEPTACLES))]
    return (
        f"(define (problem odd) (:domain alfred) (:objects agent1 - agent {' '.join(types)} "
        f"{' '.join(objects)} - object {' '.join(receptacles)} - receptacle {' '.join(locations)} - location)\n"
        f"(:init {' '.join(f'({fact})' for fact in facts)})\n(:goal {_goal(draw)}))"
    )


def _goal(draw: random.Random) -> str:
    kind = draw.choice(("Apple", "Mug"))
    if draw.random() < 0.3:
        return (
            "(and (exists (?ot - object ?r - receptacle ?a - agent ?l - location) (and (objectType ?ot DeskLampType) "
            "(toggleable ?ot) (isToggled ?ot) (receptacleAtLocation ?r ?l) (atLocation ?a ?l) (inReceptacle ?ot ?r)))"
            f" (exists (?o - object ?a - agent) (and (objectType ?o {kind}Type) (holds ?a ?o))))"
        )
    wanted = f"(objectType {{0}} {kind}Type) (receptacleType ?r SideTableType) (inReceptacle {{0}} ?r)"
    if draw.random() < 0.4:
        return (
            f"(and (exists (?r - receptacle) (exists (?o1 - object) (and {wanted.format('?o1')} "
            f"(exists (?o2 - object) (and (not (= ?o1 ?o2)) {wanted.format('?o2')}))))))"
        )
    state = draw.choice(("", *STATES[:4]))
    return (
        f"(and (exists (?r - receptacle ?o - object) (and {wanted.format('?o')} {f'({state} ?o)' if state else ''})))"
    )
