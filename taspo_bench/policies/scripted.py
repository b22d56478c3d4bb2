"""Policies that need no model: ``random`` as the floor and ``expert`` as the ceiling of a benchmark."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from taspo_bench.api import TextEnv
from taspo_bench.policies.policy import Response


class RandomPolicy:
    """A uniformly drawn admissible action; free text is one to three words of the observation."""

    name = "random"

    def begin(self, envs: Sequence[TextEnv], generators: Sequence[np.random.Generator]) -> _RandomConversation:
        return _RandomConversation(envs, generators)


class _RandomConversation:
    def __init__(self, envs: Sequence[TextEnv], generators: Sequence[np.random.Generator]) -> None:
        self.envs = envs
        self.generators = generators

    def respond(self, live: Sequence[int], observations: Sequence[str]) -> list[Response]:
        answers = []
        for index, observation in zip(live, observations, strict=True):
            action = random_action(self.envs[index], observation, self.generators[index])
            answers.append(Response(action, action))
        return answers


def random_action(env: TextEnv, observation: str, generator: np.random.Generator) -> str:
    """One random action: admissible ones and free-text forms are equally likely."""
    choices = list(env.admissible_actions or []) + list(env.action_templates)
    choice = choices[int(generator.integers(len(choices)))] if choices else "look"
    if choice not in env.action_templates:
        return choice
    words = observation.split() or ["it"]
    start = int(generator.integers(len(words)))
    return choice.format(" ".join(words[start : start + int(generator.integers(1, 4))]))


class ExpertPolicy:
    """The benchmark's own reference solution, from whatever state the episode is in."""

    name = "expert"

    def begin(self, envs: Sequence[TextEnv], generators: Sequence[np.random.Generator]) -> _ExpertConversation:
        return _ExpertConversation(envs)


class _ExpertConversation:
    def __init__(self, envs: Sequence[TextEnv]) -> None:
        self.envs = envs
        self.plans: list[list[str]] = [[] for _ in envs]

    def respond(self, live: Sequence[int], observations: Sequence[str]) -> list[Response]:
        answers = []
        for index in live:
            if not self.plans[index]:
                self.plans[index] = list(self.envs[index].solve())
            action = self.plans[index].pop(0) if self.plans[index] else ""
            answers.append(Response(action, action))
        return answers
