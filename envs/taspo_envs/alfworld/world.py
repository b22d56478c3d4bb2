"""The native engine: one game in play, with the wording, order and numbering of ALFWorld on TextWorld.

The rules are those of ALFWorld's PDDL domain and text grammar (Shridhar et al., arXiv 2010.03768); what differs
between data generations comes from the game. The reference's quirks are kept: only a held object can be examined (a
stray comma in the domain voids the other case), going to where one stands does nothing, a closed microwave heats,
lamps never turn off.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Sequence
from typing import Any

from taspo_envs.alfworld import sight
from taspo_envs.alfworld.game import FLAG_PREDICATES, ON, SLICED, TREATMENTS, Game
from taspo_envs.alfworld.solver import solve

NOTHING_HAPPENS = "Nothing happens."
_CHANGED_BY = {
    "go": frozenset({"atlocation"}),
    "open": frozenset({"opened"}),
    "close": frozenset({"opened"}),
    "take": frozenset({"inreceptacle", "holds", "holdsany", "objectatlocation"}),
    "put": frozenset({"inreceptacle", "holds", "holdsany", "objectatlocation"}),
    "clean": frozenset({"isclean"}),
    "heat": frozenset({"ishot", "iscool"}),
    "cool": frozenset({"ishot", "iscool"}),
    "slice": frozenset({"issliced"}),
    "use": frozenset({"istoggled", "ison"}),
}


class World:
    """The state of one game: ``act`` changes it, everything else reads it.

    Attributes:
        location: where the agent stands.
        held, holds_any: objects in hand; whether the hand counts as full.
        contents: objects in each receptacle, in printing order.
        opened: receptacles that are open.
        flags: bits of :data:`game.FLAGS` for each object.
        burning: objects whose lamp burns (``isOn``, which no text shows).
        lying_at: (object, location) pairs: where slicing finds an object.
        taken_out: (object, receptacle) pairs: the object was taken out of it. ``look`` prints such an object as lying
            beside a receptacle when it was put into another one at the same location.
        known: bits of ``flags`` that the agent's own actions brought about.
        won: whether the goal holds now.
    """

    def __init__(self, game: Game) -> None:
        self.game = game
        self.reset()

    def reset(self) -> str:
        """Put everything back to the start; the introduction with the task."""
        start = self.game.start
        self.location = start.location
        self.held = list(start.held)
        self.holds_any = start.holds_any
        self.contents = [list(inner) for inner in start.contents]
        self.opened = set(start.opened)
        self.flags = list(start.flags)
        self.burning = set(start.burning)
        self.lying_at = set(start.lying_at)
        self.taken_out: set[tuple[int, int]] = set()
        self.known = [0] * len(self.flags)
        self._commands: list[str] | None = None
        self._key: str | None = None
        self.won = self.game.goal.holds(self.fact)
        return f"-= Welcome to TextWorld, ALFRED! =-\n\n{sight.look(self, at_start=True)}\n\n{self.game.task_text}"

    def act(self, command: str) -> str:
        """Carry out one command; its feedback. One that is not admissible changes nothing: "Nothing happens."."""
        command = command.strip()
        verb, _, rest = command.partition(" ")
        if verb in _VERBS and rest:
            return _VERBS[verb](self, verb, rest)
        if command == "look":
            return sight.look(self)
        if command == "inventory":
            return sight.inventory(self)
        if command == "help" and self.game.generation.help_text is not None:
            return self.game.generation.help_text
        return NOTHING_HAPPENS

    def _changed(self, verb: str) -> None:
        self._commands = self._key = None
        if not self.game.goal.predicates.isdisjoint(_CHANGED_BY[verb]):
            self.won = self.game.goal.holds(self.fact)

    # --- commands ----------------------------------------------------------------------------------

    def _go(self, verb: str, rest: str) -> str:
        game = self.game
        receptacle = game.receptacle_named.get(rest[3:], -1)
        if rest[:3] != "to " or receptacle < 0:
            return NOTHING_HAPPENS
        place = game.place_of[receptacle]
        if place < 0 or place == self.location:
            return NOTHING_HAPPENS
        self.location = place
        self._changed("go")
        where = game.locations[place] if game.generation.arrive_at_location else rest[3:]
        return f"You arrive at {where}. {sight.describe(self, receptacle)}"

    def _open(self, verb: str, rest: str) -> str:
        receptacle = self._near(rest)
        if receptacle not in self.game.openable or receptacle in self.opened:
            return NOTHING_HAPPENS
        self.opened.add(receptacle)
        self._changed("open")
        return f"You open the {rest}. {sight.describe(self, receptacle)}"

    def _close(self, verb: str, rest: str) -> str:
        receptacle = self._near(rest)
        if receptacle not in self.game.openable or receptacle not in self.opened:
            return NOTHING_HAPPENS
        self.opened.remove(receptacle)
        self._changed("close")
        return f"You close the {rest}."

    def _take(self, verb: str, rest: str) -> str:
        name, _, place = rest.partition(" from ")
        receptacle = self._near(place)
        item = self.game.object_named.get(name, -1)
        if receptacle < 0 or self.holds_any or item not in self.game.pickupable:
            return NOTHING_HAPPENS
        if not self.accessible(receptacle) or item not in self.contents[receptacle]:
            return NOTHING_HAPPENS
        self.contents[receptacle].remove(item)
        self.taken_out.add((item, receptacle))
        if item not in self.held:
            insort(self.held, item)
        self.holds_any = True
        self.lying_at.discard((item, self.location))
        self._changed("take")
        return f"You pick up the {name} from the {place}."

    def _put(self, verb: str, rest: str) -> str:
        known_verb, link = self.game.generation.put_words
        name, _, place = rest.partition(f" {link} ")
        receptacle = self._near(place)
        item = self.game.object_named.get(name, -1)
        if verb != known_verb or receptacle < 0 or item not in self.held or receptacle not in self.game.accepts[item]:
            return NOTHING_HAPPENS
        if not self.accessible(receptacle):
            return NOTHING_HAPPENS
        self.held.remove(item)
        self.holds_any = False
        if item not in self.contents[receptacle]:
            insort(self.contents[receptacle], item)
        self.taken_out.discard((item, receptacle))
        self.lying_at.add((item, self.location))
        self._changed("put")
        return f"You {verb} the {name} {link} the {place}."

    def _treat(self, verb: str, rest: str) -> str:
        name, _, place = rest.partition(" with ")
        receptacle = self._near(place)
        item = self.game.object_named.get(name, -1)
        if item not in self.held or item not in self.game.treatable[verb]:
            return NOTHING_HAPPENS
        if receptacle not in self.game.appliances[verb]:
            return NOTHING_HAPPENS
        gained, lost = TREATMENTS[verb]
        self.flags[item] = self.flags[item] & ~lost | gained
        self.known[item] = self.known[item] & ~lost | gained
        self._changed(verb)
        return f"You {verb} the {name} using the {place}."

    def _slice(self, verb: str, rest: str) -> str:
        name, _, knife_name = rest.partition(" with ")
        knife = self.game.object_named.get(knife_name, -1)
        item = self.game.object_named.get(name, -1)
        if knife not in self.held or knife not in self.game.knives or item not in self.game.sliceable:
            return NOTHING_HAPPENS
        if (item, self.location) not in self.lying_at:
            return NOTHING_HAPPENS
        self.flags[item] |= SLICED
        self.known[item] |= SLICED
        self._changed("slice")
        return f"You sliced the {name} with the {knife_name}."

    def _use(self, verb: str, rest: str) -> str:
        item = self.game.object_named.get(rest, -1)
        if item not in self.game.toggleable:
            return NOTHING_HAPPENS
        if not any(item in self.contents[receptacle] for receptacle in self.game.beside[self.location]):
            return NOTHING_HAPPENS
        self.flags[item] |= ON
        self.known[item] |= ON
        self.burning ^= {item}
        self._changed("use")
        return f"You turn on the {rest}."

    def _examine(self, verb: str, rest: str) -> str:
        receptacle = self._near(rest)
        if receptacle >= 0:
            return sight.describe(self, receptacle)
        item = self.game.object_named.get(rest, -1)
        return sight.examined(self, item) if item in self.held else NOTHING_HAPPENS

    # --- what is within reach ----------------------------------------------------------------------

    def accessible(self, receptacle: int) -> bool:
        """Whether its inside can be reached: it is open, or cannot be closed."""
        return receptacle in self.opened or receptacle not in self.game.openable

    def _near(self, name: str) -> int:
        """The receptacle of that name at the agent's location; -1 if there is none."""
        receptacle = self.game.receptacle_named.get(name, -1)
        return receptacle if receptacle >= 0 and self.game.place_of[receptacle] == self.location else -1

    # --- for the environment -----------------------------------------------------------------------

    @property
    def instruction(self) -> str:
        return self.game.instruction

    @property
    def put_form(self) -> str:
        """How this game puts things down, with {} for object and receptacle."""
        verb, link = self.game.generation.put_words
        return f"{verb} {{}} {link} {{}}"

    def solve(self) -> list[str]:
        """A short sequence of commands that wins from here; [] if there is none, or none is needed."""
        return solve(self)

    @property
    def admissible(self) -> list[str]:
        """The commands that do something now, sorted as strings."""
        if self._commands is None:
            self._commands = sight.admissible(self)
        return self._commands.copy()

    @property
    def state_key(self) -> str:
        """What the agent sees where it stands and knows of it by its own doing, a fact a line."""
        if self._key is None:
            self._key = "\n".join(dict.fromkeys(sight.facts_in_sight(self)))
        return self._key

    def fact(self, predicate: str, args: Sequence[str]) -> bool:
        """Whether a fact over PDDL names holds now (for the goal)."""
        game = self.game
        item = game.object_index.get(args[-1], -1)
        match predicate:
            case "inreceptacle":
                receptacle = game.receptacle_index.get(args[1])
                return receptacle is not None and game.object_index.get(args[0]) in self.contents[receptacle]
            case "atlocation":
                return game.location_index.get(args[1]) == self.location
            case "holds":
                return item in self.held
            case "holdsany":
                return self.holds_any
            case "opened":
                return game.receptacle_index.get(args[0]) in self.opened
            case "objectatlocation":
                return (game.object_index.get(args[0]), game.location_index.get(args[1])) in self.lying_at
            case "ison":
                return item in self.burning
            case "ishot" | "iscool" | "isclean" | "issliced" | "istoggled":
                return item >= 0 and bool(self.flags[item] & FLAG_PREDICATES[predicate])
            case _:
                return game.static(predicate, tuple(args))

    def show(self, held: list[int], contents: list[list[int]], opened: set[int], flags: list[int]) -> None:
        """Take over a state that another engine is in; what newly became true counts as known."""
        gained = [now & ~before for now, before in zip(flags, self.flags, strict=True)]
        self.known = [known & now | new for known, now, new in zip(self.known, flags, gained, strict=True)]
        self.held, self.contents, self.opened, self.flags = held, contents, opened, flags
        self._key = None

    # --- snapshots ---------------------------------------------------------------------------------

    def save(self) -> dict[str, Any]:
        """The state as a JSON object."""
        start = self.game.start
        return {
            "location": self.location,
            "held": self.held.copy(),
            "holds_any": self.holds_any,
            "contents": {
                str(r): now.copy()
                for r, (now, before) in enumerate(zip(self.contents, start.contents, strict=True))
                if tuple(now) != before
            },
            "opened": sorted(self.opened),
            "flags": {str(i): [now, self.known[i]] for i, now in enumerate(self.flags) if now or self.known[i]},
            "burning": sorted(self.burning),
            "lying_at": [sorted(self.lying_at - start.lying_at), sorted(start.lying_at - self.lying_at)],
            "taken_out": sorted(self.taken_out),
        }

    def load(self, state: dict[str, Any]) -> None:
        """Return to a state that :meth:`save` gave, in a world of the same game."""
        self.reset()
        self.location, self.held, self.holds_any = state["location"], list(state["held"]), state["holds_any"]
        for receptacle, inside in state["contents"].items():
            self.contents[int(receptacle)] = list(inside)
        self.opened = set(state["opened"])
        self.flags = [0] * len(self.flags)
        for item, (flags, known) in state["flags"].items():
            self.flags[int(item)], self.known[int(item)] = flags, known
        self.burning = set(state["burning"])
        added, removed = ({(item, place) for item, place in pairs} for pairs in state["lying_at"])
        self.lying_at = (self.lying_at | added) - removed
        self.taken_out = {(item, receptacle) for item, receptacle in state["taken_out"]}
        self.won = self.game.goal.holds(self.fact)


_VERBS: dict[str, Callable[[World, str, str], str]] = {
    "go": World._go,
    "open": World._open,
    "close": World._close,
    "take": World._take,
    "move": World._put,
    "put": World._put,
    "clean": World._treat,
    "heat": World._treat,
    "cool": World._treat,
    "slice": World._slice,
    "use": World._use,
    "examine": World._examine,
}
