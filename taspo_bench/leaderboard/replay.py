"""Play an episode again from its actions, and see whether it goes as it is said to have gone."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

from taspo_bench.api import TextEnv
from taspo_bench.leaderboard.archive import shown
from taspo_bench.leaderboard.manifest import TRACE_DIGITS, EpisodeRecord

TOLERANCE = 1e-9
"""Scores that differ by less are the same: other languages may write a float's last digit otherwise."""


class Trace:
    """A running hash over what an agent read and did: h <- SHA-256(h, action, observation that followed)."""

    def __init__(self, observation: str) -> None:
        self._state = hashlib.sha256(_bytes(observation)).digest()

    def add(self, action: str, observation: str) -> str:
        """Take in one step; the hash's first digits."""
        given = _bytes(action)
        self._state = hashlib.sha256(
            self._state + len(given).to_bytes(8, "big") + given + _bytes(observation)
        ).digest()
        return self._state.hex()[:TRACE_DIGITS]


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


@dataclass(frozen=True)
class Step:
    """One action of a replay and what followed."""

    observation: str
    action: str
    next_observation: str
    is_action_valid: bool


@dataclass(frozen=True)
class Replayed:
    """How an episode really ends, and what of it is not as handed in ("" if nothing)."""

    won: bool
    score: float
    steps: int
    fault: str


def replay(env: TextEnv, record: EpisodeRecord) -> Replayed:
    """Replay every action and compare all that the record says: the way, the number of steps, the outcome.

    What the environment makes of the actions is what counts; the record's own outcome is only compared. Actions
    behind the end of the episode or behind the step limit of ``env`` are a fault, and change nothing.
    """
    observation, _ = env.reset(seed=record.seed, options={"task_id": record.task_id})
    trace = Trace(observation)
    fault, over = "", False
    for step, (action, expected) in enumerate(zip(record.actions, record.trace, strict=True), 1):
        if over:
            reason = "the step limit" if not env.finished else "the end of the episode"
            fault = fault or f"{record.steps} steps, but {reason} was reached after {step - 1}"
            break
        observation, _, terminated, truncated, _ = env.step(action)
        over = terminated or truncated
        if trace.add(action, observation) != expected and not fault:
            fault = f"step {step}, action {shown(action)}: the replay departs here from what was handed in"
    won, score = bool(env.won), float(env.score)
    if not fault and (record.won != won or abs(record.score - score) > TOLERANCE):
        fault = f"claimed {_outcome(record.won, record.score)}, the replay gives {_outcome(won, score)}"
    return Replayed(won, score, env.steps, fault)


def steps(env: TextEnv, record: EpisodeRecord) -> Iterator[Step]:
    """The episode with its observations, for showing it."""
    observation, _ = env.reset(seed=record.seed, options={"task_id": record.task_id})
    for action in record.actions:
        following, _, terminated, truncated, info = env.step(action)
        yield Step(observation, action, following, bool(info["is_action_valid"]))
        observation = following
        if terminated or truncated:
            return


def _outcome(won: bool, score: float) -> str:
    return f"{'won' if won else 'not won'} with score {score:.6g}"
