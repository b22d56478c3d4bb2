"""Playing the generated games: every one can be won, none by accident."""

from __future__ import annotations

import random

import pytest

from taspo_envs.alfworld.env import ALFWorldEnv
from taspo_envs.alfworld.splits import SPLITS, embedded_game


@pytest.mark.parametrize("split", [name for name, _, _ in SPLITS])
def test_the_walkthrough_of_every_game_wins_with_its_last_action(split: str) -> None:
    env = ALFWorldEnv(split)
    for task_id in env.split.task_ids:
        _, info = env.reset(options={"task_id": task_id})
        for action in embedded_game(task_id)["walkthrough"]:
            assert not env.won and action in info["admissible_actions"], (task_id, action)
            _, _, _, _, info = env.step(action)
        assert env.won, task_id


@pytest.mark.parametrize("split", [name for name, _, _ in SPLITS])
def test_the_reference_solution_is_no_longer_than_the_walkthrough(split: str) -> None:
    env = ALFWorldEnv(split)
    for task_id in env.split.task_ids[::9]:
        env.reset(options={"task_id": task_id})
        assert 0 < len(env.solve()) <= len(embedded_game(task_id)["walkthrough"]), task_id


@pytest.mark.parametrize("split", [name for name, _, _ in SPLITS])
def test_random_actions_seldom_win(split: str) -> None:
    env = ALFWorldEnv(split)
    draw = random.Random(11)
    won = 0
    tasks = env.split.task_ids[:: max(1, len(env.split) // 60)]
    for task_id in tasks:
        _, info = env.reset(options={"task_id": task_id})
        is_over = False
        while not is_over:
            _, _, terminated, truncated, info = env.step(draw.choice(info["admissible_actions"]))
            is_over = terminated or truncated
        won += info["won"]
    assert won < 0.1 * len(tasks)
