"""Many environments in lock-step under one policy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from taspo_bench.api import TextEnv
from taspo_bench.episode import Episode, Turn
from taspo_bench.errors import TaspoBenchError
from taspo_bench.policies.policy import Conversation, Policy, Response


@dataclass(frozen=True)
class Start:
    """One episode to play: the task, the environment's seed, and the key of the policy's own random stream."""

    task_id: str
    split: str
    seed: int
    key: tuple[int, ...]


def rollout(
    make: Callable[[], TextEnv],
    policy: Policy,
    starts: Sequence[Start],
    batch: int = 64,
    envs: list[TextEnv] | None = None,
    progress: Callable[[int], None] | None = None,
    on_end: Callable[[Conversation, list[Episode]], None] | None = None,
) -> list[Episode]:
    """Play every start to its end, in the order given, ``batch`` episodes at a time.

    An environment or a policy that fails ends its episode with ``error`` set and counted as lost; an environment's
    error of this package's own family (a dead retriever, say) stops the rollout: it says nothing about the policy.

    Args:
        envs: a pool that is kept between calls and grown as needed.
        progress: called with the number of episodes that just ended.
        on_end: called with each batch's conversation and its episodes, in the conversation's order.
    """
    pool = [] if envs is None else envs
    episodes: list[Episode] = []
    for first in range(0, len(starts), batch):
        chunk = starts[first : first + batch]
        while len(pool) < len(chunk):
            pool.append(make())
        episodes += _play(pool[: len(chunk)], policy, chunk, progress, on_end)
    return episodes


def _play(
    envs: list[TextEnv],
    policy: Policy,
    starts: Sequence[Start],
    progress: Callable[[int], None] | None,
    on_end: Callable[[Conversation, list[Episode]], None] | None,
) -> list[Episode]:
    observations = [
        env.reset(seed=start.seed, options={"task_id": start.task_id})[0]
        for env, start in zip(envs, starts, strict=True)
    ]
    episodes = [
        Episode(env.name, start.task_id, env.task(start.task_id).family, split=start.split, seed=start.seed)
        for env, start in zip(envs, starts, strict=True)
    ]
    conversation = policy.begin(envs, [np.random.default_rng(start.key) for start in starts])
    live = list(range(len(envs)))
    while live:
        responses = conversation.respond(live, [observations[index] for index in live])
        type(envs[0]).foresee([envs[index] for index in live], [response.action for response in responses])
        still = []
        for index, response in zip(live, responses, strict=True):
            observations[index], over = _take_turn(envs[index], episodes[index], observations[index], response)
            if not over:
                still.append(index)
        if progress is not None and len(still) < len(live):
            progress(len(live) - len(still))
        live = still
    if on_end is not None:
        on_end(conversation, episodes)
    return episodes


def _take_turn(env: TextEnv, episode: Episode, observation: str, response: Response) -> tuple[str, bool]:
    """Apply one response; gives the next observation and whether the episode is over."""
    if response.error:
        _break_off(episode, response.error)
        return observation, True
    if response.exhausted:
        episode.truncated = True
        episode.final_observation, episode.final_state_key = observation, env.state_key
        return observation, True
    turn = Turn(
        observation=observation,
        response=response.text,
        action=response.action,
        state_key=env.state_key,
        prompt_ids=response.prompt_ids,
        response_ids=response.ids,
        logprobs=response.logprobs,
        action_span=response.action_span,
        sampled=response.sampled,
        restarts=response.restarts,
    )
    episode.turns.append(turn)
    try:
        observation, reward, terminated, truncated, info = env.step(response.action)
    except TaspoBenchError:
        raise
    except Exception as error:
        _break_off(episode, f"{type(error).__name__}: {error}")
        return observation, True
    turn.reward = float(reward)
    turn.is_action_valid = bool(info["is_action_valid"])
    episode.won, episode.score, episode.truncated = bool(info["won"]), float(info["score"]), bool(truncated)
    episode.final_observation, episode.final_state_key = observation, info["state_key"]
    return observation, terminated or truncated


def _break_off(episode: Episode, reason: str) -> None:
    """End an episode with an error: lost, whatever it had scored."""
    episode.error = reason
    episode.won, episode.score = False, 0.0


def remaining_steps(env: TextEnv, episode: Episode) -> NDArray[np.float64]:
    """Replay an episode: optimal actions left before each turn and after the last (T + 1,); inf where lost."""
    env.reset(seed=episode.seed, options={"task_id": episode.task_id})
    steps = [env.remaining_steps()]
    for action in episode.actions:
        env.step(action)
        steps.append(env.remaining_steps())
    return np.array([np.inf if left is None else float(left) for left in steps])
