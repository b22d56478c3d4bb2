"""The native engine against TextWorld on generated games, in step: the same text, commands and outcome throughout."""

from __future__ import annotations

import random

import pytest

from taspo_envs.alfworld.env import ALFWorldEnv
from taspo_envs.alfworld.generator import TASK_TYPES

pytest.importorskip("textworld", reason="needs the extra [textworld]")
pytest.importorskip("alfworld", reason="needs the extra [textworld]")

NONSENSE = [
    "",
    "Look",
    " look ",
    "go to moon 1",
    "open fridge 9",
    "use desklamp 1",
    "take mug 1 from mug 1",
    "help me",
]


def compare(task_id: str, steps: int, seed: int) -> int:
    """Play one game on both engines: half random commands, a third the solution's, the rest nonsense."""
    native = ALFWorldEnv(normalize_actions=False, max_steps=steps)
    reference = ALFWorldEnv(normalize_actions=False, max_steps=steps, engine="textworld")
    draw = random.Random(seed)
    left, right = (env.reset(options={"task_id": task_id}) for env in (native, reference))
    assert left == right
    compared = 1
    while not native.finished and compared <= steps:
        kind = draw.random()
        if kind < 0.5:
            action = draw.choice(left[1]["admissible_actions"])
        else:
            action = native.solve()[0] if kind < 0.85 else draw.choice(NONSENSE)
        stepped = [env.step(action) for env in (native, reference)]
        assert stepped[0] == stepped[1], (task_id, action)
        left = (stepped[0][0], stepped[0][4])
        compared += 1
    return compared


@pytest.mark.parametrize("family", ["look", "heat"])
def test_both_engines_agree_on_a_short_walk(family: str) -> None:
    task_id = next(task for task in ALFWorldEnv().split.task_ids if task.startswith(f"{family}/"))
    assert compare(task_id, steps=10, seed=1) > 2


@pytest.mark.slow
@pytest.mark.parametrize("family", TASK_TYPES)
def test_both_engines_agree_on_long_walks(family: str) -> None:
    draw = random.Random(family)
    for split in ("train", "valid_unseen"):
        tasks = [task for task in ALFWorldEnv(split).split.task_ids if task.startswith(f"{family}/")]
        for task_id in draw.sample(tasks, 2):
            assert compare(task_id, steps=40, seed=draw.randrange(1000)) > 2
