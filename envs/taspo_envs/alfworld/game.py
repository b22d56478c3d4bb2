"""One ALFWorld game as tables: what never changes, and the initial state.

Entities are small integers in the order of their PDDL names, which is the order of every list that the game prints.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from taspo_bench.errors import DataError
from taspo_envs.alfworld import sexpr
from taspo_envs.alfworld.generation import Generation, named_generation, printed, recognise, split_task
from taspo_envs.alfworld.goal import FLUENTS, compile_goal

FLAGS = ("hot", "cool", "clean", "sliced", "on")
"""What can become true of an object; bit ``1 << FLAGS.index(flag)`` of its state."""
HOT, COOL, CLEAN, SLICED, ON = (1 << i for i in range(len(FLAGS)))
TREATMENTS = {"clean": (CLEAN, 0), "heat": (HOT, COOL), "cool": (COOL, HOT)}
"""The flags that a treatment brings and takes away."""
FLAG_PREDICATES = {"ishot": HOT, "iscool": COOL, "isclean": CLEAN, "issliced": SLICED, "istoggled": ON}
_FACT = re.compile(r"\(([^\s()]+)((?:\s+[^\s()]+)*)\s*\)")
_DISTANCE = re.compile(r"\(\s*=\s*\([^()]*\)\s*[^\s()]+\s*\)")
TASK_PREFIX = "Your task is to: "

Fact = tuple[str, ...]
Facts = Mapping[str, set[Fact]]
"""Argument tuples by predicate."""


@dataclass(frozen=True)
class Start:
    """The initial state in the engine's integers (see :class:`world.World`)."""

    location: int
    held: tuple[int, ...]
    holds_any: bool
    contents: tuple[tuple[int, ...], ...]
    opened: frozenset[int]
    flags: tuple[int, ...]
    burning: frozenset[int]
    lying_at: frozenset[tuple[int, int]]


class Game:
    """Tables of one game, shared by all worlds that play it; read-only.

    objects, receptacles: names as the game prints them ("mug 1"), by integer.
    place_of, beside: location of a receptacle; receptacles at a location.
    accepts: for an object, the receptacles that it may be put into.
    task_text: the sentence "Your task is to: ..." as the game prints it.
    """

    def __init__(self, problem: str, task_text: str, generation: Generation) -> None:
        kinds, facts, goal = _read_problem(problem)
        self.generation = generation
        self.task_text = task_text
        names = _printed_names({name for args in facts.values() for fact in args for name in fact})
        by_kind: dict[str, list[str]] = defaultdict(list)
        for name in sorted(names):
            by_kind[kinds.get(name, "")].append(name)
        self.object_ids, self.receptacle_ids = by_kind["object"], by_kind["receptacle"]
        self.location_ids = by_kind["location"]
        self.object_index = {name: i for i, name in enumerate(self.object_ids)}
        self.receptacle_index = {name: i for i, name in enumerate(self.receptacle_ids)}
        self.location_index = {name: i for i, name in enumerate(self.location_ids)}
        self.objects = [names[name] for name in self.object_ids]
        self.receptacles = [names[name] for name in self.receptacle_ids]
        self.locations = [names[name] for name in self.location_ids]
        self.object_named = {name: i for i, name in enumerate(self.objects)}
        self.receptacle_named = {name: i for i, name in enumerate(self.receptacles)}
        self._place_receptacles(facts)
        self._classify(facts)
        self.start = self._initial_state(facts)
        entities: dict[str, list[str]] = defaultdict(list)
        for name, kind in kinds.items():
            entities[kind].append(name)
        self.goal = compile_goal(goal, entities, facts)
        self._static = {predicate: facts[predicate] for predicate in self.goal.predicates - FLUENTS}

    @property
    def instruction(self) -> str:
        """The task as the agent reads it, without the words in front."""
        return self.task_text.removeprefix(TASK_PREFIX)

    def static(self, predicate: str, args: Fact) -> bool:
        """Whether a fact that never changes holds (PDDL names)."""
        return args in self._static.get(predicate, ())

    def _place_receptacles(self, facts: Facts) -> None:
        self.beside: list[list[int]] = [[] for _ in self.locations]
        self.place_of = [-1] * len(self.receptacles)
        for receptacle, location in sorted(facts.get("receptacleatlocation", ())):
            index = self.receptacle_index[receptacle]
            if self.place_of[index] >= 0:
                raise DataError(f"receptacle {receptacle} stands at two locations: play it with engine='textworld'")
            self.place_of[index] = self.location_index[location]
            self.beside[self.place_of[index]].append(index)
        commands = sorted((f"go to {self.receptacles[r]}", at) for r, at in enumerate(self.place_of) if at >= 0)
        self.goto = [[command for command, at in commands if at != here] for here in range(len(self.locations))]

    def _classify(self, facts: Facts) -> None:
        objects, receptacles = range(len(self.objects)), range(len(self.receptacles))

        def having(predicate: str) -> frozenset[int]:
            return frozenset(self.object_index[name] for (name,) in facts.get(predicate, ()))

        self.pickupable = having("pickupable")
        self.treatable = {"clean": having("cleanable"), "heat": having("heatable"), "cool": having("coolable")}
        self.toggleable, self.sliceable = having("toggleable"), having("sliceable")
        self.hollow = having("isreceptacleobject")
        self.openable = frozenset(self.receptacle_index[name] for (name,) in facts.get("openable", ()))
        object_types, receptacle_types = _types_by_name(facts, "objecttype"), _types_by_name(facts, "receptacletype")
        self.object_types = [object_types[name] for name in self.object_ids]
        self.receptacle_types = [receptacle_types[name] for name in self.receptacle_ids]
        self.knives = frozenset(o for o in objects if self.object_types[o] & {"knifetype", "butterknifetype"})
        appliances = {"clean": set(self.generation.clean_types), "heat": {"microwavetype"}, "cool": {"fridgetype"}}
        self.appliances = {
            verb: frozenset(r for r in receptacles if self.receptacle_types[r] & types)
            for verb, types in appliances.items()
        }
        takers: dict[str, set[int]] = defaultdict(set)
        for receptacle_type, object_type in facts.get("cancontain", ()):
            takers[object_type] |= {r for r in receptacles if receptacle_type in self.receptacle_types[r]}
        shared: dict[frozenset[str], frozenset[int]] = {}
        for types in self.object_types:
            shared.setdefault(types, frozenset(r for object_type in types for r in takers[object_type]))
        self.accepts = [shared[types] for types in self.object_types]
        self.inside = {
            outer: sorted(
                self.object_index[inner]
                for inner, holder in facts.get("inreceptacleobject", ())
                if holder == self.object_ids[outer] and inner != holder
            )
            for outer in self.hollow
        }

    def _initial_state(self, facts: Facts) -> Start:
        at = [location for _, location in facts.get("atlocation", ())]
        if len(at) != 1:
            raise DataError(f"the agent stands at {len(at)} locations: the file is broken")
        contents: list[list[int]] = [[] for _ in self.receptacles]
        for inner, receptacle in facts.get("inreceptacle", ()):
            contents[self.receptacle_index[receptacle]].append(self.object_index[inner])
        flags = [0] * len(self.objects)
        for predicate, bit in FLAG_PREDICATES.items():
            for (name,) in facts.get(predicate, ()):
                flags[self.object_index[name]] |= bit
        return Start(
            location=self.location_index[at[0]],
            held=tuple(sorted(self.object_index[name] for _, name in facts.get("holds", ()))),
            holds_any=bool(facts.get("holdsany")),
            contents=tuple(tuple(sorted(inner)) for inner in contents),
            opened=frozenset(self.receptacle_index[name] for (name,) in facts.get("opened", ())),
            flags=tuple(flags),
            burning=frozenset(self.object_index[name] for (name,) in facts.get("ison", ())),
            lying_at=frozenset(
                (self.object_index[name], self.location_index[place])
                for name, place in facts.get("objectatlocation", ())
                if name in self.object_index
            ),
        )


def read_game(data: Mapping[str, Any]) -> Game:
    """A game from the JSON object of a ``game.tw-pddl`` file.

    The generation comes from the domain and grammar in it, or is named by ``generation`` (then ``task`` holds the
    task in words).

    Raises:
        DataError: something is missing or broken, or the generation is unknown.
    """
    try:
        if "pddl_domain" in data:
            head, tail, task_text = split_task(data["grammar"])
            generation = recognise(data["pddl_domain"], f'{head}""{tail}')
        else:
            generation, task_text = named_generation(data["generation"]), f"{TASK_PREFIX}{data['task']}."
        return Game(data["pddl_problem"], printed(task_text), generation)
    except KeyError as error:
        raise DataError(f"the game has no usable {error}: the file is broken, or not a game.tw-pddl file") from None
    except (TypeError, ValueError, IndexError, AttributeError, RecursionError) as error:
        raise DataError(f"the game cannot be read ({error}): the file is broken") from None


def _read_problem(problem: str) -> tuple[dict[str, str], Facts, sexpr.Expr]:
    """Kinds by entity name, argument tuples by predicate, and the goal. Words in lower case."""
    text = problem.lower()
    if ";" in text:
        text = re.sub(r";[^\n]*", "", text)
    objects_at, init_at, goal_at = (text.find(mark) for mark in ("(:objects", "(:init", "(:goal"))
    if not 0 <= objects_at < init_at < goal_at:
        raise DataError("the PDDL problem lacks its objects, init or goal, in this order: the file is broken")
    kinds = dict(sexpr.typed_names(list(text[objects_at + 9 : init_at].replace(")", " ").split())))
    facts: dict[str, set[Fact]] = defaultdict(set)
    shared = {name: name for name in kinds}
    for predicate, args in _FACT.findall(_DISTANCE.sub("", text[init_at + 6 : goal_at])):
        facts[predicate].add(tuple(shared.setdefault(name, name) for name in args.split()))
    rest = text[goal_at:].rstrip()
    goal = sexpr.parse("(" + rest)[0] if rest.count("(") < rest.count(")") else sexpr.parse(rest)[0]
    formula = goal[0] if goal and isinstance(goal[0], list) else goal
    return kinds, facts, formula[1]


def _types_by_name(facts: Facts, predicate: str) -> dict[str, frozenset[str]]:
    types: dict[str, frozenset[str]] = defaultdict(frozenset)
    for name, kind in facts.get(predicate, ()):
        types[name] |= {kind}
    return types


def _printed_names(ids: set[str]) -> dict[str, str]:
    """ "mug 1" for every PDDL name: within a kind, the last name in order gets number 1."""
    kinds = {name: _kind_of(name) for name in sorted(ids)}
    left = Counter(kind for name, kind in kinds.items() if "_bar_" in name)
    printed = {}
    for name, kind in kinds.items():
        if "_bar_" in name:
            printed[name] = f"{kind} {left[kind]}"
            left[kind] -= 1
        else:
            printed[name] = f"{kind} "
    return printed


def _kind_of(name: str) -> str:
    if "_bar_" not in name:
        for mangled, plain in (("_minus_", "-"), ("_plus_", "+"), ("_dot_", "."), ("_comma_", ",")):
            name = name.replace(mangled, plain)
        return name
    return name.split("_bar_", 1)[0] + ("basin" if "basin" in name else "")
