"""What the game prints and offers in a state: texts, admissible commands, and the facts in sight.

Wording and order are those of ALFWorld's text grammar, in which the engine lists everything by PDDL name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from taspo_envs.alfworld.game import CLEAN, COOL, FLAGS, HOT, ON, SLICED

if TYPE_CHECKING:
    from taspo_envs.alfworld.world import World

_KNOWN_AS = {HOT: "hot", COOL: "cool", CLEAN: "clean", SLICED: "sliced"}


def listed(names: Sequence[str]) -> str:
    """ "a, b, and c"; "nothing" for none."""
    if not names:
        return "nothing"
    if len(names) == 1:
        return names[0]
    return ", ".join(names[:-1]) + ", and " + names[-1]


def look(world: World, at_start: bool = False) -> str:
    """What is around. In the middle of the room only the introduction lists the receptacles, ``look`` never."""
    game = world.game
    here = game.beside[world.location]
    if not here:
        around = [f"a {name}" for name, at in zip(game.receptacles, game.place_of, strict=True) if at >= 0]
        seen = listed(around if at_start else [])
        return f"You are in the middle of a room. Looking quickly around you, you see {seen}."
    facing = listed([game.receptacles[receptacle] for receptacle in here])
    beside = [
        f"a {game.objects[item]}"
        for item, receptacle in sorted(world.taken_out)
        if receptacle in here and (item, world.location) in world.lying_at
    ]
    return f"You are facing the {facing}. Next to it, you see {listed(beside)}."


def inventory(world: World) -> str:
    if not world.holds_any:
        return "You are not carrying anything."
    return f"You are carrying: {listed([f'a {world.game.objects[item]}' for item in world.held])}."


def describe(world: World, receptacle: int) -> str:
    name = world.game.receptacles[receptacle]
    objects = world.game.objects
    inside = world.contents[receptacle]
    if receptacle in world.game.openable:
        if receptacle not in world.opened:
            return f"The {name} is closed."
        return f"The {name} is open. In it, you see {listed([f'a {objects[item]}' for item in inside])}."
    return f"On the {name}, you see {listed([f'a {objects[item]}' for item in inside])}."


def examined(world: World, item: int) -> str:
    game, flags, name = world.game, world.flags[item], world.game.objects[item]
    if item in game.hollow:
        inside = listed([f"a {game.objects[inner]}" for inner in game.inside[item]])
        return f"This is a normal {name}. In it, you see {inside}."
    heat = "hot" if flags & HOT else "cool" if flags & COOL else ""
    words = " and ".join(word for word in (heat, "clean" if flags & CLEAN else "") if word)
    if words:
        if flags & SLICED:
            return f"This is a {words} sliced {name}."
        return f"This is a {'cold' if words == 'cool' else words} {name}."
    if flags & ON and item in game.toggleable:
        return f"This {name} is on."
    if flags & SLICED and item in game.sliceable:
        return f"This is a sliced {name}."
    return f"There's nothing special about {name}."


def admissible(world: World) -> list[str]:
    game, location = world.game, world.location
    objects, here = game.objects, game.beside[location]
    early: list[str] = []  # before "go to ..." in the alphabet
    late = ["inventory", "look"] if game.generation.help_text is None else ["help", "inventory", "look"]
    for receptacle in here:
        place = game.receptacles[receptacle]
        inside = world.contents[receptacle]
        early.append(f"examine {place}")
        late += [f"use {objects[item]}" for item in inside if item in game.toggleable]
        if receptacle in game.openable:
            if receptacle not in world.opened:
                late.append(f"open {place}")
                continue
            early.append(f"close {place}")
        if not world.holds_any:
            late += [f"take {objects[item]} from {place}" for item in inside if item in game.pickupable]
    for item in world.held:
        name = objects[item]
        early.append(f"examine {name}")
        put, link = game.generation.put_words
        accepting = [r for r in here if r in game.accepts[item] and world.accessible(r)]
        late += [f"{put} {name} {link} {game.receptacles[r]}" for r in accepting]
        for verb, commands in (("clean", early), ("cool", early), ("heat", late)):
            if item in game.treatable[verb]:
                serving = game.appliances[verb].intersection(here)
                commands += [f"{verb} {name} with {game.receptacles[r]}" for r in serving]
        if item in game.knives:
            late += [f"slice {objects[o]} with {name}" for o in game.sliceable if (o, location) in world.lying_at]
    return sorted(set(early)) + game.goto[location] + sorted(set(late))


def facts_in_sight(world: World) -> list[str]:
    game, here = world.game, world.game.beside[world.location]
    lines = [f"at {game.receptacles[receptacle]}" for receptacle in here] or ["at room"]
    lines += [f"holding {game.objects[item]}" for item in world.held] or ["holding nothing"]
    for item in world.held:
        lines += [f"held is {word}" for flag, word in _KNOWN_AS.items() if world.known[item] & flag]
    for receptacle in here:
        if receptacle in game.openable:
            state = "open" if receptacle in world.opened else "closed"
            lines.append(f"{game.receptacles[receptacle]} is {state}")
    for receptacle in here:
        if not world.accessible(receptacle):
            continue
        for item in world.contents[receptacle]:
            lines.append(f"here: {game.objects[item]}")
            if len(here) > 1:
                lines.append(f"{game.objects[item]} is at {game.receptacles[receptacle]}")
            if world.known[item]:
                lines += [f"{game.objects[item]} is {w}" for i, w in enumerate(FLAGS) if world.known[item] >> i & 1]
    return lines
