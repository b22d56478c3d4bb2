"""Hosted models as policies, for evaluation: ``endpoint:URL#MODEL``.

Every turn is one chat request, of all live episodes at once up to the limit of concurrency. Whatever the endpoint
does, each episode ends: an answer without an action is an unusable action of that turn, and a turn without an answer
ends its episode with the endpoint's error, lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from taspo_bench.api import TextEnv
from taspo_bench.endpoint import PREFIX, ChatEndpoint, Question, split_address
from taspo_bench.episode import Episode
from taspo_bench.errors import InputError, RunError
from taspo_bench.policies.policy import Response
from taspo_bench.policies.window import NO_ACTION, parse_action, window_prompt

OUTCOMES = ("won", "lost", "format failure", "endpoint failure", "environment failure")


class EndpointSettings(BaseModel):
    """What ``eval --set`` can change of a hosted model."""

    model_config = ConfigDict(extra="forbid")

    concurrency: int = Field(8, ge=1, description="requests at once")
    attempts: int = Field(5, ge=1, description="tries of one request")
    timeout: float = Field(120.0, gt=0, description="seconds for one try")
    give_up: int = Field(20, ge=1, description="requests failed in a row after which the rest is not sent")
    max_tokens: int = Field(2048, ge=1, description="longest answer")
    window: int = Field(4, ge=0, description="past turns in a prompt")
    prices: tuple[float, float] = Field((0.0, 0.0), description="cost of a million prompt and completion tokens")

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> EndpointSettings:
        """Check values from the command line; :class:`InputError` names the one that is wrong."""
        try:
            return cls(**values)
        except ValidationError as error:
            first = error.errors()[0]
            raise InputError(
                f"--set {first['loc'][0]}={first['input']}: {first['msg'].lower()}; "
                f"an endpoint policy has {', '.join(cls.model_fields)}"
            ) from error


class EndpointPolicy:
    """One hosted model as a :class:`~taspo_bench.policies.policy.Policy`.

    Args:
        address: ``endpoint:URL#MODEL``. The key is read from the environment (see ``taspo_bench.endpoint``).
        temperature: of sampling, as the endpoint understands it.
        folder: where answers are cached and requests audited; an evaluation that is repeated there asks only for
            what it could not get. Nothing is kept if None.
    """

    def __init__(
        self,
        address: str,
        temperature: float = 0.0,
        folder: Path | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self.settings = chosen = EndpointSettings.read(settings or {})
        url, model = split_address(address)
        self.endpoint = ChatEndpoint(
            url,
            model,
            folder,
            max_tokens=chosen.max_tokens,
            timeout=chosen.timeout,
            prices=chosen.prices,
            attempts=chosen.attempts,
            concurrency=chosen.concurrency,
            give_up=chosen.give_up,
        )
        self.name = f"{PREFIX}{self.endpoint.base}#{model}"
        self.temperature = temperature

    def begin(self, envs: Sequence[TextEnv], generators: Sequence[np.random.Generator]) -> _Conversation:
        return _Conversation(self, envs, generators)


class _Conversation:
    def __init__(
        self, policy: EndpointPolicy, envs: Sequence[TextEnv], generators: Sequence[np.random.Generator]
    ) -> None:
        self.policy, self.envs, self.generators = policy, envs, generators
        self.past: list[list[tuple[str, str]]] = [[] for _ in envs]

    def respond(self, live: Sequence[int], observations: Sequence[str]) -> list[Response]:
        questions = [self._question(index, seen) for index, seen in zip(live, observations, strict=True)]
        responses = []
        answers = self.policy.endpoint.answers(questions)
        for index, observation, answer in zip(live, observations, answers, strict=True):
            if isinstance(answer, RunError):
                responses.append(Response("", "", error=str(answer)))
                continue
            action = parse_action(answer)
            self.past[index].append((observation, action or NO_ACTION))
            responses.append(Response(answer, action))
        return responses

    def _question(self, index: int, observation: str) -> Question:
        past = self.past[index]
        first = past[0][0] if past else observation
        prompt = window_prompt(self.envs[index], first, past, observation, self.policy.settings.window)
        # two episodes that come to the same prompt are still two samples
        draw = int(self.generators[index].integers(1, 2**62))
        return Question(({"role": "user", "content": prompt},), self.policy.temperature, draw)


def outcome(episode: Episode) -> str:
    """How an episode ended, one of ``OUTCOMES``; a loss with any answer that held no action is a format failure."""
    if episode.error:
        return "endpoint failure" if episode.error.startswith("endpoint ") else "environment failure"
    if episode.won:
        return "won"
    return "lost" if all(turn.action for turn in episode.turns) else "format failure"


def count_outcomes(episodes: Sequence[Episode]) -> dict[str, int]:
    """How many episodes ended in each way; the counts add up to the number of episodes."""
    found = Counter(map(outcome, episodes))
    return {name: found[name] for name in OUTCOMES}
