"""ALFWorld as a Gymnasium environment: household tasks in text, played on a native engine.

Rules, wording and data are those of ALFWorld (Shridhar et al., arXiv 2010.03768).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol

import numpy as np

from taspo_bench.api import DataStamp, Outcome, Progress, Rule, Split, Task, TextEnv
from taspo_bench.errors import DataError, InputError, unknown_name
from taspo_envs.alfworld import splits
from taspo_envs.alfworld.fetch import fetch
from taspo_envs.alfworld.game import Game, read_game
from taspo_envs.alfworld.official import OfficialData, open_official
from taspo_envs.alfworld.teacher import demonstrate
from taspo_envs.alfworld.world import NOTHING_HAPPENS, World

FAMILIES = {
    "look_at_obj_in_light": "look",
    "pick_and_place_simple": "pick",
    "pick_clean_then_place_in_recep": "clean",
    "pick_heat_then_place_in_recep": "heat",
    "pick_cool_then_place_in_recep": "cool",
    "pick_two_obj_and_place": "two",
}
_PUT = re.compile(r"(?:put (?P<a>.+) (?:in/on|in|on)|move (?P<b>.+) to) (?P<place>.+)")


class Engine(Protocol):
    """A game in play: :class:`world.World`, or the reference engine behind the same members."""

    @property
    def won(self) -> bool: ...

    @property
    def instruction(self) -> str: ...

    @property
    def put_form(self) -> str: ...

    @property
    def admissible(self) -> list[str]: ...

    @property
    def state_key(self) -> str: ...

    def reset(self) -> str: ...

    def act(self, command: str) -> str: ...

    def save(self) -> dict[str, Any]: ...

    def load(self, state: dict[str, Any]) -> None: ...

    def solve(self) -> list[str]: ...


class Embedded:
    """The games that the package generates; their ids begin with the family."""

    def splits(self) -> dict[str, Split]:
        return splits.embedded_splits()

    def game(self, task_id: str) -> dict[str, Any]:
        return splits.embedded_game(task_id)

    def has(self, task_id: str) -> bool:
        return any(task_id in split.task_ids for split in self.splits().values())

    def family_name(self, task_id: str) -> str:
        return task_id.partition("/")[0]

    def stamp(self) -> DataStamp:
        return splits.embedded_stamp()

    def check(self) -> list[str]:
        return splits.embedded_check()


class ALFWorldEnv(TextEnv):
    """Household tasks in text.

    Task families, and ALFWorld's names of them: ``look`` (look_at_obj_in_light), ``pick`` (pick_and_place_simple),
    ``clean``, ``heat``, ``cool`` (pick_clean/heat/cool_then_place_in_recep) and ``two`` (pick_two_obj_and_place).

    Args:
        split: ``train``, ``valid_seen`` or ``valid_unseen``.
        data: ``embedded`` (generated games); ``official`` (``$ALFWORLD_DATA``, else ``~/.cache/alfworld``); or the
            path of a folder with the official games, or of their archive.
        max_steps: 50 by default.
        render_mode: ``ansi`` or None.
        normalize_actions: understand the ways of putting an object down of every data generation (``put X in/on R``,
            ``put X in R``, ``put X on R``, ``move X to R``), and not only the one that the game knows.
        engine: ``native``; or ``textworld``, the reference engine (extra ``[textworld]``), a thousand times slower.
        num_train_games: keep only that many games of the training split, the first in order.
    """

    name = "alfworld"
    default_max_steps = 50
    briefing: ClassVar[str] = (
        "Carry out a task in a household. What a place holds is seen only from there, and only once it is open. You "
        "can carry one thing at a time. Objects of a kind are told apart by their numbers."
    )
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "warm_start": {"noise": 0.25, "clean_weight": 1.0, "target": 0.4, "max_turns": 20, "threads": 2},
        # few turns: wasted actions cost the task, so there is something to learn in minutes
        "quick": {"updates": 80, "warmup_updates": 10, "max_turns": 12},
        "standard": {"max_turns": 30},
        "plan": {"prompt_tokens": 2048, "minibatch_turns": 256},
    }

    @classmethod
    def fetch_data(cls, destination: Path | None, url: str | None, progress: Progress) -> list[str]:
        """Download the release archive; it is read as it is."""
        lines: list[str] = []
        fetch(destination, url, lambda done, total: progress("bytes to download", done, total), say=lines.append)
        return lines

    def __init__(
        self,
        split: str = "train",
        data: str = "embedded",
        max_steps: int | None = None,
        render_mode: str | None = None,
        *,
        normalize_actions: bool = True,
        engine: Literal["native", "textworld"] = "native",
        num_train_games: int | None = None,
    ) -> None:
        if engine not in ("native", "textworld"):
            raise unknown_name("engine of alfworld", engine, ("native", "textworld"))
        if num_train_games is not None and num_train_games < 1:
            raise InputError(
                f"num_train_games {num_train_games!r}: give a whole number of at least 1, or None for all"
            )
        self.normalize_actions = normalize_actions
        self.engine = engine
        self._source = _source(data)
        self._splits = _limited(self._source.splits(), num_train_games)
        self._world: Engine | None = None
        super().__init__(split, data, max_steps, render_mode)

    def splits(self) -> dict[str, Split]:
        return self._splits

    def task(self, task_id: str) -> Task:
        if not self._source.has(task_id):
            raise InputError(f"unknown task id {task_id!r} of {self.name}: splits() lists those that there are")
        name = self._source.family_name(task_id)
        return Task(task_id, FAMILIES.get(name, name))

    def data_stamp(self) -> DataStamp:
        return self._source.stamp()

    def check(self) -> list[str]:
        return super().check() + self._source.check()

    def start(self, task_id: str) -> str:
        if self.engine == "native":
            self._world = World(_native_game(self._source, task_id))
        else:
            from taspo_envs.alfworld.reference import ReferenceWorld

            self._world = ReferenceWorld(self._source.game(task_id))
        return self._world.reset()

    @property
    def world(self) -> Engine:
        """The game in play."""
        if self._world is None:
            raise InputError("no task has been started: call reset first")
        return self._world

    def act(self, action: str) -> Outcome:
        feedback = self.world.act(action)
        if feedback == NOTHING_HAPPENS and self.normalize_actions:
            feedback = self._act_normalized(action)
        return Outcome(feedback, is_action_valid=feedback != NOTHING_HAPPENS)

    def _act_normalized(self, action: str) -> str:
        """Try a way of putting down that this game's generation has other words for."""
        put = _PUT.fullmatch(action.strip())
        if not put:
            return NOTHING_HAPPENS
        return self.world.act(self.world.put_form.format(put["a"] or put["b"], put["place"]))

    @property
    def instruction(self) -> str:
        return self.world.instruction

    @property
    def won(self) -> bool:
        return self.world.won

    @property
    def finished(self) -> bool:
        return self.world.won

    @property
    def score(self) -> float:
        return float(self.world.won)

    @property
    def admissible_actions(self) -> list[str]:
        return self.world.admissible

    @property
    def state_key(self) -> str:
        return self.world.state_key

    def save(self) -> dict[str, Any]:
        return self.world.save()

    def load(self, state: dict[str, Any]) -> None:
        self.world.load(state)

    def solve(self) -> list[str]:
        return self.world.solve()

    def demonstrate(self, met: str, generator: np.random.Generator) -> list[str]:
        return demonstrate(self.solve(), self.admissible_actions, met, generator)

    def rules(self, actions: Sequence[str]) -> list[Rule]:
        from taspo_envs.alfworld.rules import rules

        return rules(self, actions)


Source = Embedded | OfficialData


@cache
def _source(data: str) -> Source:
    if data == "embedded":
        return Embedded()
    return open_official(None if data == "official" else data)


@lru_cache(maxsize=64)
def _native_game(source: Source, task_id: str) -> Game:
    try:
        return read_game(source.game(task_id))
    except DataError as error:
        raise DataError(f"game {task_id!r}: {error}") from None


def _limited(splits: dict[str, Split], num_train_games: int | None) -> dict[str, Split]:
    return {
        name: Split(name, split.kind, split.task_ids[:num_train_games]) if split.kind == "train" else split
        for name, split in splits.items()
    }
