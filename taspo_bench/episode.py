"""What happened: turns, episodes, and groups of episodes of one task. JSON Lines in and out.

Tokens are carried, never decoded and encoded again: the ids that were sampled are the ids that are scored,
trained on, and stored.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

from taspo_bench.errors import DataError

SCHEMA = 1


@dataclass
class Turn:
    """One model response and what it met.

    observation: the text that stood before the response (for the first turn it states the task).
    prompt_ids: token ids appended to the context before the response (empty for policies without tokens).
    response_ids, logprobs: the sampled tokens and their log-probabilities under the rollout policy.
    response, action: the decoded response, and the action parsed from it.
    action_span: [start, end) of the executable action in ``response_ids``; None if none could be parsed.
    sampled: how many of the response's first tokens were sampled; tokens behind (a forced end) carry no loss.
    shift: what guidance did to the response tokens' log-probabilities, where that was asked; else empty.
    state_key: canonical agent-visible state before the action (anchor of GiGPO, scope of turn guidance).
    reward: gain in score through the action.
    restarts: the prompt did not go on from the turns before, but began a context of its own.
    """

    observation: str
    response: str
    action: str
    state_key: str = ""
    is_action_valid: bool = True
    reward: float = 0.0
    prompt_ids: list[int] = field(default_factory=list)
    response_ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    action_span: tuple[int, int] | None = None
    sampled: int = 0
    shift: list[float] = field(default_factory=list)
    restarts: bool = False


@dataclass
class Guidance:
    """Privileged text for one episode.

    texts: one entry per turn; None where no item applies (that turn's shift is 0).
    scope: ``trajectory`` (one text in front of the whole episode) or ``turn`` (each turn's text stands directly
        before that turn's response, and no other turn sees it).
    items: what the texts were composed of, as JSON objects with their sources and quotes.
    reason: why there is no guidance, where there is none.
    """

    texts: list[str | None]
    scope: str = "trajectory"
    items: list[dict[str, Any]] = field(default_factory=list)
    reason: str = ""

    def __bool__(self) -> bool:
        return any(text is not None for text in self.texts)


@dataclass
class Episode:
    """One rollout of one task. ``ret`` is the verified return R; ``error`` marks one that could not be finished."""

    env: str
    task_id: str
    family: str
    turns: list[Turn] = field(default_factory=list)
    won: bool = False
    score: float = 0.0
    truncated: bool = False
    final_observation: str = ""
    final_state_key: str = ""
    split: str = ""
    seed: int = 0
    error: str = ""
    guidance: Guidance | None = None
    credit: list[float] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)
    advantage: float | None = None

    @property
    def ret(self) -> float:
        """Verified return: the score that the episode reached."""
        return self.score

    @property
    def actions(self) -> list[str]:
        return [turn.action for turn in self.turns]

    def to_json(self) -> str:
        """The episode as one line of JSON; half a surrogate pair, which UTF-8 does not have, as an escape."""
        text = json.dumps({"schema": SCHEMA, **asdict(self)}, ensure_ascii=False, separators=(",", ":"))
        return text.encode("utf-8", "backslashreplace").decode("utf-8")

    @classmethod
    def from_json(cls, line: str) -> Episode:
        """Read what :meth:`to_json` wrote; :class:`DataError` if it is of another schema."""
        record = json.loads(line)
        schema = record.pop("schema", None)
        if schema != SCHEMA:
            raise DataError(f"episode of schema {schema!r}: this version reads schema {SCHEMA}")
        record["turns"] = [Turn(**_with_span(turn)) for turn in record["turns"]]
        if record["guidance"] is not None:
            record["guidance"] = Guidance(**record["guidance"])
        return cls(**record)


def _with_span(turn: dict[str, Any]) -> dict[str, Any]:
    span = turn.get("action_span")
    return {**turn, "action_span": tuple(span) if span is not None else None}


@dataclass
class Group:
    """K rollouts of one task by one policy. ``guidance`` holds one entry per episode once it has been built.

    update: how many updates the policy had had when it made them (some schemes have a schedule).
    """

    task_id: str
    episodes: list[Episode]
    guidance: list[Guidance | None] = field(default_factory=list)
    update: int = 0

    @property
    def returns(self) -> list[float]:
        return [episode.ret for episode in self.episodes]


def write_episodes(path: Path, episodes: Iterable[Episode]) -> None:
    """Write episodes as JSON Lines, gzipped if the name ends in ``.gz``: whole, or not at all."""
    temporary = path.with_name(path.name + ".tmp")
    try:
        with temporary.open("wb") as raw, _packed(raw, path) as file:
            for episode in episodes:
                file.write(episode.to_json().encode() + b"\n")
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _packed(raw: IO[bytes], path: Path) -> AbstractContextManager[Any]:
    # mtime=0 and no name: equal episodes give equal bytes
    return gzip.GzipFile(fileobj=raw, mode="wb", filename="", mtime=0) if path.suffix == ".gz" else nullcontext(raw)


def read_episodes(path: Path) -> Iterator[Episode]:
    """Episodes of a file that :func:`write_episodes` wrote, one at a time."""
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            try:
                yield Episode.from_json(line)
            except (ValueError, KeyError, TypeError) as error:
                raise DataError(f"{path}, line {number}: not an episode ({error})") from error
