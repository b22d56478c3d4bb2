"""The reference engine, TextWorld with ALFWorld's naming, behind the members of the native one.

For whoever doubts the native engine, for games of an unknown generation, and for the tests that play both in step. It
needs the extra ``[textworld]``, takes seconds to start a game, and must not be used from several threads.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from taspo_bench.errors import DataError, InputError
from taspo_envs.alfworld.game import FLAG_PREDICATES, TASK_PREFIX, Game
from taspo_envs.alfworld.generation import GENERATIONS, recognise
from taspo_envs.alfworld.world import World


class ReferenceWorld:
    """One game in play on TextWorld.

    Raises:
        InputError: TextWorld or alfworld is not installed.
        DataError: the game has no domain and grammar of its own, and the installed alfworld has those of another
            generation.
    """

    def __init__(self, data: Mapping[str, Any]) -> None:
        try:
            from alfworld.agents.environment.alfred_tw_env import AlfredDemangler
            from textworld import EnvInfos
            from textworld.envs.pddl import PddlEnv
        except ImportError as error:
            raise InputError(
                f"engine 'textworld' needs packages that are missing ({error}): pip install 'taspo-bench[textworld]' "
                "(on Linux or macOS; it builds Fast Downward, which needs a C++ compiler)"
            ) from None
        data = data if "pddl_domain" in data else _with_installed_logic(data)
        self._env = AlfredDemangler(PddlEnv(EnvInfos(won=True, admissible_commands=True)), shuffle=False)
        self._env.load(dict(data))
        self._mirror = World(Game(data["pddl_problem"], "", GENERATIONS["0.4"]))
        self.reset()

    def reset(self) -> str:
        self._commands: list[str] = []
        self._state = self._env.reset()
        self._mirror.reset()
        self._task_text = str(self._state.feedback).rpartition("\n\n")[2]
        return str(self._state.feedback)

    def act(self, command: str) -> str:
        self._commands.append(command)
        self._state, _, _ = self._env.step(command)
        self._copy_state()
        return str(self._state.feedback)

    @property
    def won(self) -> bool:
        return bool(self._state["won"])

    @property
    def instruction(self) -> str:
        return self._task_text.removeprefix(TASK_PREFIX)

    @property
    def put_form(self) -> str:
        return str(self._env.unwrapped._logic.actions["putobject"].template.format(o="{}", r="{}"))

    @property
    def admissible(self) -> list[str]:
        return list(self._state["admissible_commands"])

    @property
    def state_key(self) -> str:
        return self._mirror.state_key

    def solve(self) -> list[str]:
        """The plan of the reference's own planner."""
        if self.won:
            return []
        engine = self._env.unwrapped
        return list(engine._pddl_state.replan(engine._entity_infos))

    def save(self) -> dict[str, Any]:
        return {"commands": self._commands.copy()}

    def load(self, state: dict[str, Any]) -> None:
        """Play the saved commands again from the start: the reference keeps its state to itself."""
        self.reset()
        for command in state["commands"]:
            self.act(command)

    def _copy_state(self) -> None:
        """Bring the mirror, which words the state key, to the state that the reference's facts describe."""
        mirror, game = self._mirror, self._mirror.game
        facts = [(fact.name, fact.names) for fact in self._state["_facts"]]
        contents: list[list[int]] = [[] for _ in game.receptacles]
        flags = [0] * len(game.objects)
        held: list[int] = []
        opened: set[int] = set()
        for predicate, names in facts:
            if predicate == "atlocation":
                mirror.location = game.location_index[names[1]]
            elif predicate == "holds":
                held.append(game.object_index[names[1]])
            elif predicate == "opened":
                opened.add(game.receptacle_index[names[0]])
            elif predicate == "inreceptacle":
                contents[game.receptacle_index[names[1]]].append(game.object_index[names[0]])
            elif predicate in FLAG_PREDICATES:
                flags[game.object_index[names[0]]] |= FLAG_PREDICATES[predicate]
        mirror.show(held=sorted(held), contents=[sorted(inside) for inside in contents], opened=opened, flags=flags)


def _with_installed_logic(data: Mapping[str, Any]) -> dict[str, Any]:
    """A generated game with the domain and grammar of the installed alfworld."""
    import alfworld

    folder = Path(alfworld.__file__).parent / "data"
    domain, grammar = (folder / "alfred.pddl").read_text(), (folder / "alfred.twl2").read_text()
    if (installed := recognise(domain, grammar).name) != data["generation"]:
        raise DataError(
            f"this game is of generation {data['generation']} and the installed alfworld of {installed}: "
            f"pip install 'alfworld~={data['generation']}.0'"
        )
    return {**data, "pddl_domain": domain, "grammar": grammar.replace("UNKNOWN GOAL", data["task"])}
