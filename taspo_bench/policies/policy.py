"""What a policy is: something that holds a conversation with each of a batch of live episodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from taspo_bench.api import TextEnv


@dataclass
class Response:
    """One response. Token fields as in :class:`taspo_bench.episode.Turn`; empty for policies without tokens.

    ``exhausted`` says that the context is full and the policy can say nothing more in this episode; ``error``, that
    it broke down and why: the episode then ends with that error, and counts as lost.
    """

    text: str
    action: str
    prompt_ids: list[int] = field(default_factory=list)
    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    action_span: tuple[int, int] | None = None
    sampled: int = 0
    restarts: bool = False
    exhausted: bool = False
    error: str = ""


class Conversation(Protocol):
    """Live episodes under one policy. Index i is the i-th environment given to ``begin``."""

    def respond(self, live: Sequence[int], observations: Sequence[str]) -> list[Response]:
        """Answer the newest observation of each live episode."""


class Policy(Protocol):
    """A policy by name. ``begin`` opens fresh conversations, one per environment and random generator.

    Environments are at their first observation. A learned policy looks at none of them; each episode draws from its
    own generator, so its text does not depend on which others are in the batch.
    """

    name: str

    def begin(self, envs: Sequence[TextEnv], generators: Sequence[np.random.Generator]) -> Conversation: ...
