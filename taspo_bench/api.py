"""The contract of a benchmark: everything that a text environment must be, in one file.

A benchmark is a subclass of :class:`TextEnv`, named by an entry point of the group ``taspo_bench.envs``.
The base class keeps the books (steps, reward, limits, ``info``); a benchmark gives the world.
"""

from __future__ import annotations

import abc
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Literal

import gymnasium as gym
import numpy as np

from taspo_bench.errors import InputError, SplitError, unknown_name
from taspo_bench.phrases import has_phrase
from taspo_bench.text_space import UnicodeText

Kind = Literal["train", "seen", "unseen"]
Snapshot = str  # one line of ASCII JSON
Progress = Callable[[str, int, int | None], None]  # what is worked on, how much is done, how much there is if known
OVER = "The episode is over."


@dataclass(frozen=True)
class Task:
    """One task: an id that names it for ever, and the family that tables break results down by."""

    id: str
    family: str


@dataclass(frozen=True)
class Split:
    """A frozen, ordered set of task ids. ``sha256`` covers the ids in their order."""

    name: str
    kind: Kind
    task_ids: tuple[str, ...]
    sha256: str = field(init=False)

    def __post_init__(self) -> None:
        digest = hashlib.sha256("\n".join(self.task_ids).encode()).hexdigest()
        object.__setattr__(self, "sha256", digest)

    def __len__(self) -> int:
        return len(self.task_ids)

    @staticmethod
    def check_disjoint(splits: Mapping[str, Split]) -> None:
        """Raise :class:`SplitError` if a task stands twice in a split, or both in training and in evaluation."""
        train = {task for split in splits.values() if split.kind == "train" for task in split.task_ids}
        for split in splits.values():
            seen = set(split.task_ids)
            if len(seen) != len(split):
                raise SplitError(f"split {split.name!r}: {len(split) - len(seen)} task ids stand in it twice")
            if split.kind != "train" and (shared := sorted(seen & train)):
                raise SplitError(
                    f"split {split.name!r} shares {len(shared)} tasks with training, first {shared[0]!r}: "
                    "remove them from one side and write the manifest again"
                )


@dataclass(frozen=True)
class DataStamp:
    """Which data a result was made with: ``source`` is embedded, official, or the name of a folder."""

    source: str
    version: str
    sha256: str


@dataclass(frozen=True)
class Outcome:
    """What one action did: the new observation, and whether the action meant anything here."""

    observation: str
    is_action_valid: bool = True


@dataclass(frozen=True)
class Rule:
    """One piece of advice, read off a verified success by the benchmark that knows its meaning.

    step: index of the action in the sequence it was read from.
    statement: the advice in words (at most 800 characters).
    action: the action at that step, verbatim.
    quote: an exact piece of the observation that stood before that action.
    when: lines that must all stand in a turn's ``state_key`` for the advice to fit that turn.
    unless: lines none of which may stand there.
    needs: phrases that the agent must have met in its observations before the advice tells it nothing hidden;
        advice whose ``needs`` are unmet reveals what the agent could not know (docs/method.md, "The trap").
    stale: phrases that put the advice out of date once the agent has met them.
    """

    step: int
    statement: str
    action: str
    quote: str
    when: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()
    stale: tuple[str, ...] = ()

    def fits(self, state_key: str, met: str) -> bool:
        """Whether the advice holds in that state and, given the observations ``met`` so far, tells nothing hidden."""
        lines = set(state_key.splitlines())
        known = self.is_known(met) and not any(has_phrase(met, phrase) for phrase in self.stale)
        return known and lines.issuperset(self.when) and lines.isdisjoint(self.unless)

    def is_known(self, met: str) -> bool:
        """Whether the advice tells nothing hidden, given the observations ``met`` so far."""
        return all(has_phrase(met, phrase) for phrase in self.needs)


class TextEnv(gym.Env[str, str], abc.ABC):
    """A text benchmark as a Gymnasium environment.

    A subclass sets the class attributes and implements the abstract members. It never overrides ``reset`` or
    ``step``: those keep the promises (no global random state, no exception from ``step``, the limit is not success).

    Args:
        split: name of the split that ``reset`` without a task id draws from.
        data: ``embedded``, ``official``, or a folder.
        max_steps: step limit; the benchmark's own by default.
        render_mode: ``ansi`` or None.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi"], "render_fps": 1}  # type: ignore[misc]
    name: ClassVar[str]
    """Short name on the command line, such as ``alfworld``."""
    default_max_steps: ClassVar[int]
    action_templates: ClassVar[tuple[str, ...]] = ()
    """Forms of free-text actions with ``{}`` for the text, such as ``search[{}]``."""
    briefing: ClassVar[str] = ""
    """The rules in a few sentences, for policies that were not trained here; nothing that only some tasks need."""
    markers: ClassVar[tuple[str, ...]] = ()
    """Strings that lay out observations, such as ``[SEP]``; a vocabulary of the benchmark has each as a token."""
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    """The benchmark's own settings by preset (:class:`taspo_bench.config.CellConfig`), such as its turn limit.

    Two more entries: ``warm_start`` for building its warm start, ``plan`` for what ``taspo-bench plan`` counts.
    """
    in_suite: ClassVar[bool] = True
    """Whether ``--env all`` includes it (variants of a benchmark say False)."""

    def __init__(
        self,
        split: str = "train",
        data: str = "embedded",
        max_steps: int | None = None,
        render_mode: str | None = None,
    ) -> None:
        if render_mode not in (None, "ansi"):
            raise InputError(f"render_mode {render_mode!r}: this environment has 'ansi' or None")
        self.data = data
        self.render_mode = render_mode
        self.max_steps = self.default_max_steps if max_steps is None else max_steps
        if self.max_steps < 1:
            raise InputError(f"max_steps {max_steps!r}: give a whole number of at least 1")
        self.observation_space = UnicodeText(max_length=65536)
        self.action_space = UnicodeText(max_length=4096)
        known = self.splits()
        if split not in known:
            raise unknown_name(f"split of {self.name}", split, known)
        self.split = known[split]
        self.task_id: str | None = None
        self.steps = 0
        self._observation = ""
        self._truncated = False

    # --- what a benchmark gives -------------------------------------------------------------------

    @abc.abstractmethod
    def splits(self) -> dict[str, Split]:
        """All splits of the loaded data by name. Must work before ``reset`` (called by ``__init__``)."""

    @abc.abstractmethod
    def task(self, task_id: str) -> Task:
        """The task of that id; :class:`InputError` if there is none."""

    @abc.abstractmethod
    def data_stamp(self) -> DataStamp:
        """Which data this environment reads."""

    @abc.abstractmethod
    def start(self, task_id: str) -> str:
        """Put the world at the beginning of a task and return the first observation (it states the task)."""

    @abc.abstractmethod
    def act(self, action: str) -> Outcome:
        """Apply one action. An unusable one changes nothing, and its observation says so. Never raises."""

    @property
    @abc.abstractmethod
    def instruction(self) -> str:
        """The task in words, as the agent is told it."""

    @property
    @abc.abstractmethod
    def won(self) -> bool:
        """Whether the task is solved in the present state."""

    @property
    @abc.abstractmethod
    def finished(self) -> bool:
        """Whether the world accepts no more actions (won, bought, answered). The step limit is not part of it."""

    @property
    @abc.abstractmethod
    def score(self) -> float:
        """Verified outcome in [0, 1]; 0 until the episode earns something. 1 if won."""

    @property
    @abc.abstractmethod
    def admissible_actions(self) -> list[str] | None:
        """The actions that do something now, in a fixed order; None where actions are free text alone.

        Where some actions are free text (``action_templates``), the list holds the others.
        """

    @property
    @abc.abstractmethod
    def state_key(self) -> str:
        """Canonical text of the agent-visible state, a fact a line; equal states have equal keys."""

    @abc.abstractmethod
    def save(self) -> dict[str, Any]:
        """The world's state as a JSON object, small and exact."""

    @abc.abstractmethod
    def load(self, state: dict[str, Any]) -> None:
        """Undo everything since :meth:`save` made that object, in an environment at the same task."""

    @abc.abstractmethod
    def solve(self) -> list[str]:
        """A short sequence of actions that wins from the present state ([] if it is won or cannot be won).

        Changes nothing. For warm starts, oracles and tests; never shown to a policy.
        """

    def demonstrate(self, met: str, generator: np.random.Generator) -> list[str]:
        """The next actions of a teacher who must look for what it has not seen; to learn from, not to win fast.

        ``met`` is the text of all observations so far. The default knows everything and gives :meth:`solve`.
        """
        return self.solve()

    def rules(self, actions: Sequence[str]) -> list[Rule]:
        """Read advice off a successful action sequence of the present task, from its start.

        Leaves the environment where it was. The default knows no meaning and gives one rule per action that holds
        in exactly the state it was taken in.
        """
        if self.task_id is None:
            raise InputError("rules() needs a task: call reset first")
        before = self.snapshot()
        self.reset(options={"task_id": self.task_id})
        rules = []
        for step, action in enumerate(actions):
            rules.append(
                Rule(
                    step=step,
                    statement=action,
                    action=action,
                    quote=self._observation[:200],
                    when=tuple(self.state_key.splitlines()),
                )
            )
            self.step(action)
        self.restore(before)
        return rules

    @classmethod
    def foresee(cls, envs: Sequence[TextEnv], actions: Sequence[str]) -> None:
        """Told which actions several environments are about to take; changes no state.

        A world behind a network asks for all of them in one request here. Nothing has to be done.
        """

    @classmethod
    def import_data(cls, files: Sequence[Path], destination: Path | None, progress: Progress) -> list[str]:
        """Check and build data from the user's files; gives lines that say what was made of them."""
        raise InputError(f"{cls.name} reads its data where it lies: give the folder with --data")

    @classmethod
    def fetch_data(cls, destination: Path | None, url: str | None, progress: Progress) -> list[str]:
        """Download the official data (from another address if ``url`` is given); gives lines that say what came."""
        raise InputError(f"{cls.name} has no data to download: it brings its own, and reads yours with --data")

    def remaining_steps(self) -> int | None:
        """Number of actions that :meth:`solve` needs from here; None if the task can no longer be won."""
        if self.won:
            return 0
        return len(self.solve()) or None

    def check(self) -> list[str]:
        """Prove what the benchmark promises of its splits; one line a fact, :class:`SplitError` if one is broken."""
        splits = self.splits()
        Split.check_disjoint(splits)
        return [
            f"{split.name}: {len(split)} tasks, kind {split.kind}, sha256 {split.sha256[:12]}"
            for split in splits.values()
        ] + ["no evaluation task is in training"]

    # --- Gymnasium ---------------------------------------------------------------------------------

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Start a task: ``options["task_id"]``, or one of the split.

        Without an id, a seed names a place in a shuffled order of the split, so that as many consecutive seeds as
        it has tasks give each of them once; later resets draw from the environment's own generator.
        """
        super().reset(seed=seed)
        task_id = (options or {}).get("task_id")
        if task_id is None:
            if not self.split.task_ids:
                raise SplitError(f"split {self.split.name!r} of {self.name} is empty: nothing to draw a task from")
            size = len(self.split)
            place = self.np_random.integers(size) if seed is None else _shuffled(size)[seed % size]
            task_id = self.split.task_ids[int(place)]
        self.task_id = str(task_id)
        self.steps = 0
        self._truncated = False
        self._observation = self.start(self.task_id)
        return self._observation, self._info(is_action_valid=True)

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """One action. The reward is the gain in score, so an episode's rewards add up to its score."""
        if self.task_id is None:
            raise InputError("step() before reset(): call reset first")
        if self.finished or self._truncated:
            return OVER, 0.0, self.finished, self._truncated, self._info(is_action_valid=False)
        score = self.score
        outcome = self.act(action)
        self.steps += 1
        self._observation = outcome.observation
        terminated = self.finished
        self._truncated = not terminated and self.steps >= self.max_steps
        info = self._info(is_action_valid=outcome.is_action_valid)
        return outcome.observation, self.score - score, terminated, self._truncated, info

    def _info(self, *, is_action_valid: bool) -> dict[str, Any]:
        return {
            "task_id": self.task_id,
            "instruction": self.instruction,
            "admissible_actions": self.admissible_actions,
            "won": self.won,
            "score": self.score,
            "is_action_valid": is_action_valid,
            "state_key": self.state_key,
        }

    def render(self) -> str | None:
        """The present observation, in mode ``ansi``."""
        return self._observation if self.render_mode == "ansi" else None

    def snapshot(self) -> Snapshot:
        """The exact present state, as one line of ASCII JSON."""
        state = {
            "env": self.name,
            "task_id": self.task_id,
            "steps": self.steps,
            "truncated": self._truncated,
            "observation": self._observation,
            "world": self.save(),
        }
        return json.dumps(state, separators=(",", ":"))

    def restore(self, snapshot: Snapshot) -> tuple[str, dict[str, Any]]:
        """Return to a snapshot of any environment of this benchmark and data; gives observation and info again."""
        state = json.loads(snapshot)
        if state["env"] != self.name:
            raise InputError(f"this is a snapshot of {state['env']!r}: {self.name!r} cannot restore it")
        if state["task_id"] != self.task_id:
            self.task_id = state["task_id"]
            self.start(state["task_id"])
        self.load(state["world"])
        self.steps = state["steps"]
        self._truncated = state["truncated"]
        self._observation = state["observation"]
        return self._observation, self._info(is_action_valid=True)


@cache
def _shuffled(size: int) -> np.ndarray:
    """The numbers below ``size`` in a fixed random order."""
    return np.random.default_rng(size).permutation(size)


def split_by_name(splits: Iterable[Split]) -> dict[str, Split]:
    """The splits as ``TextEnv.splits`` gives them."""
    return {split.name: split for split in splits}
