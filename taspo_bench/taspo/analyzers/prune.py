"""Cut a successful action sequence down to what its success needs, by replaying it in the environment."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from taspo_bench.api import TextEnv

MAX_REPLAYED = 1000
"""Environment steps that one pruning may replay; what is undecided by then is kept."""
MAX_BLOCK = 4
"""Actions that may be deleted together: there and back again is deleted whole or not at all."""
MAX_DROPPED = 2
"""Later actions that may become unusable, and go too, when an earlier one is deleted."""

_TAGGED = re.compile(r"<(\w+)>(.*?)</\1>", re.DOTALL)


@lru_cache(maxsize=8192)
def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text.lower()))


def _free_text(env: TextEnv, action: str) -> str:
    """What the policy filled into one of the environment's templates; "" for an action that is fixed text.

    Models write ``search[text]`` as ``<search>text</search>`` too, with or without ``<action>`` around either.
    """
    bare = re.sub(r"</?action>", "", action)
    for form in (bare.strip(), *(f"{name}[{text}]" for name, text in _TAGGED.findall(bare))):
        for template in env.action_templates:
            head, _, tail = template.partition("{}")
            if form.startswith(head) and form.endswith(tail):
                return form[len(head) : len(form) - len(tail)]
    return ""


class _Replay:
    """One success, action by action: states before each, words met before each, and what each owes to them."""

    def __init__(self, env: TextEnv, task_id: str, actions: Sequence[str]) -> None:
        self.env = env
        self.actions = actions
        self.states: list[dict[str, Any]] = []
        self.met: list[frozenset[str]] = []
        self.owed: list[frozenset[str]] = []
        self.valid: list[int] = []
        self.replayed = 0
        observation, _ = env.reset(options={"task_id": task_id})
        met = _words(observation)
        for index, action in enumerate(actions):
            if env.finished:
                break
            self.states.append(env.save())
            self.met.append(met)
            self.owed.append(_words(_free_text(env, action)) & met)
            outcome = env.act(action)
            if env.action_templates:
                met |= _words(outcome.observation)
            if outcome.is_action_valid:
                self.valid.append(index)
        self.won = env.won

    def without(self, index: int, rest: list[int]) -> list[int] | None:
        """What is left of ``rest`` if it still wins without action ``index``, else None.

        Words of free text that had been met before it must still be met: else the search that found an answer
        would be cut away, and the answer kept.
        """
        env, met, kept = self.env, self.met[index], list[int]()
        env.load(self.states[index])
        for step in rest:
            if env.finished or not self.owed[step] <= met:
                return None
            outcome = env.act(self.actions[step])
            self.replayed += 1
            if outcome.is_action_valid:
                kept.append(step)
            elif len(rest) - len(kept) > MAX_DROPPED:
                return None
            if env.action_templates:
                met |= _words(outcome.observation)
        return kept if env.won else None


def prune(env: TextEnv, task_id: str, actions: Sequence[str]) -> list[int] | None:
    """Indices of the actions that the success needs, in order; None if the sequence does not win here.

    Greedy, from the last action to the first, again and again while that helps: each is deleted, alone or with the
    next few, if what is kept behind it still wins. Leaves the environment at the task, in no particular state.
    """
    kept = list(range(len(actions)))
    budget = MAX_REPLAYED
    while True:
        replay = _Replay(env, task_id, [actions[index] for index in kept])
        if not replay.won:
            return None
        shorter = [kept[step] for step in _pass(replay, budget)]
        budget -= replay.replayed
        if len(shorter) == len(kept):
            return kept
        kept = shorter


def _pass(replay: _Replay, budget: int) -> list[int]:
    """One pass over the actions, from the last to the first; gives the steps to keep."""
    kept: list[int] = []
    for step in reversed(replay.valid):
        for following in range(min(MAX_BLOCK, len(kept) + 1)):
            shorter = replay.without(step, kept[following:]) if replay.replayed < budget else None
            if shorter is not None:
                kept = shorter
                break
        else:
            kept = [step, *kept]
    return kept
