"""Advice read off a successful household episode.

A rule is about a situation that other episodes of the task meet too ("mug 1 in hand, not hot"), never about one full
state. It gives away nothing hidden: going to a place, or opening it, because of what is there fits only once that
thing has been seen, and searching gets no advice at all; stations and targets are named in the first observation.
Rules that what the agent did meanwhile would make wrong (the object lies elsewhere by now, its twin stands in another
cabinet) say so in ``unless`` and ``stale``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from taspo_bench.api import Rule, TextEnv
from taspo_envs.alfworld.generator import STATIONS, WORDINGS

STATES = {"clean": "clean", "heat": "hot", "cool": "cool"}
MOST_OF_A_TYPE = 7
"""Most objects of a wanted type in one room (official games have up to 7)."""
_FORMS = tuple(
    (verb, re.compile(form))
    for verb, form in (
        ("go", r"go to (?P<place>.+)"),
        ("open", r"open (?P<place>.+)"),
        ("take", r"take (?P<thing>.+) from (?P<place>.+)"),
        ("put", r"move (?P<thing>.+) to (?P<place>.+)"),
        ("put", r"put (?P<thing>.+?) (?:in/on|in|on) (?P<place>.+)"),
        ("treat", r"(?:clean|heat|cool) (?P<thing>.+) with (?P<place>.+)"),
        ("use", r"use (?P<thing>.+)"),
    )
)
_NAME = re.compile(r"\ba (\w+ \d+)")


@dataclass(frozen=True)
class Request:
    """What the task asks for, in types as they are printed: ``mug``, ``coffeemachine``."""

    family: str
    obj: str
    recep: str


@dataclass(frozen=True)
class Turn:
    """One action of the success: what it does to what, and where; the observation and state key before it."""

    step: int
    action: str
    verb: str
    thing: str
    place: str
    observation: str
    key: frozenset[str]
    feedback: str

    @property
    def held(self) -> str:
        """The object in hand; "nothing" for none."""
        return next(line.removeprefix("holding ") for line in sorted(self.key) if line.startswith("holding "))


def rules(env: TextEnv, actions: Sequence[str]) -> list[Rule]:
    """Read rules off a successful action sequence of the present task; none if the task is told in unknown words."""
    before = env.snapshot()
    turns, seen = _replay(env, actions)
    env.restore(before)
    request = read_request(env.instruction)
    return _Reader(request, turns, seen).read() if request else []


def read_request(instruction: str) -> Request | None:
    """Family, object and target (the lamp in ``look``) of a task sentence."""
    for family, wordings in WORDINGS.items():
        for wording in wordings:
            pattern = wording.format(obj=r"(\w+)", recep=r"(\w+)")
            if found := re.fullmatch(pattern, instruction.strip().rstrip(".")):
                return Request(family, *found.groups())
    return None


def _replay(env: TextEnv, actions: Sequence[str]) -> tuple[list[Turn], list[str]]:
    """The meaningful actions that changed something, and every name in the observations, in order of appearance."""
    observation, info = env.reset(options={"task_id": env.task_id})
    turns: list[Turn] = []
    seen = _NAME.findall(observation)
    for step, action in enumerate(actions):
        before, key = observation, frozenset(info["state_key"].splitlines())
        observation, _, _, _, info = env.step(action)
        seen += _NAME.findall(observation)
        if info["is_action_valid"] and (parts := _parse(action)):
            turns.append(Turn(step, action, *parts, before, key, observation))
    return turns, list(dict.fromkeys(seen))


def _parse(action: str) -> tuple[str, str, str] | None:
    """Verb, object and place of an action ("" where it names none); None for one that only looks."""
    for verb, form in _FORMS:
        if found := form.fullmatch(action.strip()):
            names = found.groupdict()
            return verb, names.get("thing", ""), names.get("place", "")
    return None


class _Reader:
    """Turns the actions of one success into rules."""

    def __init__(self, request: Request, turns: Sequence[Turn], seen: Sequence[str]) -> None:
        self.request = request
        self.turns = turns
        self.wanted = _numbered(request.obj)
        self.targets = [name for name in seen if _type(name) == request.recep]
        self.stations = [name for name in seen if _type(name) == STATIONS.get(request.family, "").lower()]
        self.taken = self._first(turn for turn in turns if turn.verb == "take")
        self.placed = self._first(turn for turn in reversed(turns) if turn.verb == "put" and self._is_final(turn))

    def _first(self, turns: Iterable[Turn]) -> dict[str, Turn]:
        """The first of the turns for each wanted object."""
        found: dict[str, Turn] = {}
        for turn in turns:
            if _type(turn.thing) == self.request.obj:
                found.setdefault(turn.thing, turn)
        return found

    def _is_final(self, turn: Turn) -> bool:
        """Whether an object is put where the last one is put, in the state that is asked for."""
        last = next(other for other in reversed(self.turns) if other.verb == "put")
        return turn.place == last.place and _type(turn.place) == self.request.recep and self._is_treated(turn)

    def _is_treated(self, turn: Turn) -> bool:
        return self.request.family not in STATES or f"held is {STATES[self.request.family]}" in turn.key

    def read(self) -> list[Rule]:
        found: list[Rule] = []
        for index, turn in enumerate(self.turns):
            if turn.verb in ("go", "open"):
                found += self._approach(turn, self._purpose(index))
            elif turn is self.taken.get(turn.thing):
                found.append(self._take(turn))
            elif turn is self.placed.get(turn.thing):
                found.append(self._put(turn))
            elif turn.verb == "treat" and self._is_wanted_treatment(turn):
                found.append(self._treat(turn))
            elif self._is_lamp(turn):
                found.append(self._use(turn))
        return found

    def _purpose(self, index: int) -> Turn | None:
        """What was done where the agent went, or in what it opened."""
        for turn in self.turns[index + 1 :]:
            if turn.verb == "go":
                return None
            if turn in (self.taken.get(turn.thing), self.placed.get(turn.thing)) or self._is_wanted_treatment(turn):
                return turn
        lamps = [turn for turn in self.turns if self._is_lamp(turn)]
        return lamps[-1] if lamps and self.turns[index].held in self.wanted else None

    def _is_lamp(self, turn: Turn) -> bool:
        return turn.verb == "use" and self.request.family == "look" and _type(turn.thing) == self.request.recep

    def _is_wanted_treatment(self, turn: Turn) -> bool:
        return (
            turn.verb == "treat"
            and turn.action.split()[0] == self.request.family
            and _type(turn.thing) == self.request.obj
        )

    # --- rules by what they are about ----------------------------------------------------------------

    def _approach(self, turn: Turn, purpose: Turn | None) -> list[Rule]:
        """Rules for going to a place, or opening it, to do something there.

        With an object in hand, the others of its type go the same way.
        """
        if purpose is None or (purpose.place and purpose.place != turn.place):
            return []
        if purpose.verb == "take":
            return self._fetch(turn, purpose.thing)
        if purpose.verb == "put":
            return self._deliver(turn, purpose)
        if turn.verb == "open":
            return []
        if purpose.verb == "use":
            return [self._to_lamp(turn, purpose.thing)]
        state = STATES[self.request.family]
        away = (f"held is {state}", *map(_at, {purpose.place: None, **dict.fromkeys(self.stations)}))
        return [
            _rule(turn, f"{thing} in hand, not {state}: {turn.action}", (f"holding {thing}",), unless=away)
            for thing in self.wanted
        ]

    def _fetch(self, turn: Turn, thing: str) -> list[Rule]:
        """Towards an object that was seen there and not moved since; not away from another that would do."""
        words = f"{thing} is at {turn.place}: {turn.action}"
        stale = (f"You pick up the {thing} from", *self._twin_treated(thing))
        others = [f"here: {other}" for other in self.wanted]
        if turn.verb == "open":
            when = ("holding nothing", _at(turn.place), f"{turn.place} is closed")
            return [_rule(turn, words, when, needs=(thing,), unless=others, stale=stale)]
        found = [
            _rule(turn, words, ["holding nothing"], needs=(thing,), unless=[*others, _at(turn.place)], stale=stale)
        ]
        for put in self.placed.values():
            if put.step < turn.step:  # One of two is done, and in sight.
                when = ("holding nothing", _at(put.place), f"here: {put.thing}")
                unless = [line for line in others if line not in when]
                away = (*stale, f"You pick up the {put.thing} from the {put.place}")
                found.append(_rule(turn, words, when, needs=(thing, put.feedback), unless=unless, stale=away))
        return found

    def _take(self, turn: Turn) -> Rule:
        where = f"{turn.thing} is at {turn.place}"
        when = ["holding nothing", _at(turn.place), f"here: {turn.thing}", *({where} & turn.key)]
        stale = self._twin_treated(turn.thing)
        return _rule(turn, f"{turn.thing} is wanted: {turn.action}", when, needs=(turn.thing,), stale=stale)

    def _treat(self, turn: Turn) -> Rule:
        state = STATES[self.request.family]
        when = (f"holding {turn.thing}", _at(turn.place))
        return _rule(turn, f"{turn.thing} in hand, not {state}: {turn.action}", when, unless=(f"held is {state}",))

    def _deliver(self, turn: Turn, put: Turn) -> list[Rule]:
        """Towards the target. Any target will do, until the first of two objects has been put into one."""
        found = []
        for thing in self.wanted:
            words, when = self._in_hand(thing)
            stale = self._twin_elsewhere(put, thing)
            if turn.verb == "open":
                when += [_at(turn.place), f"{turn.place} is closed"]
                found.append(_rule(turn, f"{words}: {turn.action}", when, stale=stale))
                continue
            found.append(_rule(turn, f"{words}: {turn.action}", when, unless=map(_at, self.targets), stale=stale))
            for other in self.placed.values():
                if other.step < turn.step and other.thing != thing:
                    needs, away = (other.feedback,), (_at(turn.place),)
                    text = f"{words}, {other.thing} at {turn.place}: {turn.action}"
                    found.append(_rule(turn, text, when, needs=needs, unless=away, stale=stale))
        return found

    def _put(self, turn: Turn) -> Rule:
        words, when = self._in_hand(turn.thing)
        when += [_at(turn.place), *({f"{turn.place} is open"} & turn.key)]
        return _rule(turn, f"{words}: {turn.action}", when, stale=self._twin_elsewhere(turn, turn.thing))

    def _to_lamp(self, turn: Turn, lamp: str) -> Rule:
        lamps = [f"here: {other}" for other in _numbered(_type(lamp))]
        text = f"{turn.held} in hand, {lamp} at {turn.place}: {turn.action}"
        return _rule(turn, text, (f"holding {turn.held}",), needs=(lamp,), unless=(_at(turn.place), *lamps))

    def _use(self, turn: Turn) -> Rule:
        text = f"{turn.thing} is off: {turn.action}"
        return _rule(turn, text, (f"here: {turn.thing}",), needs=(turn.thing,), unless=(f"{turn.thing} is on",))

    # --- parts of rules --------------------------------------------------------------------------------

    def _in_hand(self, thing: str) -> tuple[str, list[str]]:
        """The object is in hand, as the task wants it: in words, and as lines of the state key."""
        if self.request.family not in STATES:
            return f"{thing} in hand", [f"holding {thing}"]
        state = STATES[self.request.family]
        return f"{thing} in hand, {state}", [f"holding {thing}", f"held is {state}"]

    def _twin_treated(self, thing: str) -> tuple[str, ...]:
        """What is printed when another object of the type has been treated, which is then the nearer one."""
        if self.request.family not in STATES:
            return ()
        return tuple(f"You {self.request.family} the {other} using" for other in self.wanted if other != thing)

    def _twin_elsewhere(self, put: Turn, thing: str) -> tuple[str, ...]:
        """What is printed when another object of the type is put into another target: there its twin must go too."""
        if self.request.family != "two":
            return ()
        return tuple(
            put.feedback.replace(put.thing, twin).replace(put.place, place)
            for twin in self.wanted
            for place in self.targets
            if twin != thing and place != put.place
        )


def _rule(
    turn: Turn,
    statement: str,
    when: Iterable[str],
    *,
    needs: Iterable[str] = (),
    unless: Iterable[str] = (),
    stale: Iterable[str] = (),
) -> Rule:
    return Rule(
        turn.step,
        statement,
        turn.action,
        _quote(turn),
        when=tuple(when),
        needs=tuple(needs),
        unless=tuple(unless),
        stale=tuple(stale),
    )


def _quote(turn: Turn) -> str:
    """The last line of the observation before the action: what was seen there, or the task."""
    return turn.observation.strip().splitlines()[-1][:200]


def _type(name: str) -> str:
    return name.rpartition(" ")[0]


def _numbered(type_: str) -> list[str]:
    return [f"{type_} {number}" for number in range(1, MOST_OF_A_TYPE + 1)]


def _at(place: str) -> str:
    return f"at {place}"
