"""The native engine and TextWorld in step on odd households and official games, compared after every command."""

from __future__ import annotations

import random
from typing import Any

import pytest
from alfworld_recorded import official
from odd_household import odd_problem

from taspo_envs.alfworld.env import ALFWorldEnv
from taspo_envs.alfworld.game import read_game
from taspo_envs.alfworld.world import World

pytest.importorskip("textworld", reason="needs the extra [textworld]")
pytest.importorskip("alfworld", reason="needs the extra [textworld]")


def walk_both(game: dict[str, Any], steps: int, seed: int) -> None:
    """Half of the commands drawn at random, a quarter from the solution, the rest misspelt."""
    from taspo_envs.alfworld.reference import ReferenceWorld

    draw = random.Random(seed)
    native, reference = World(read_game(game)), ReferenceWorld(game)
    assert native.reset() == reference.reset()
    for _ in range(steps):
        assert native.admissible == reference.admissible
        plan = native.solve()
        command = draw.choice([c for c in native.admissible if draw.random() < 0.3 or "go to" not in c] or ["look"])
        kind = draw.random()
        if plan and kind < 0.25:
            command = plan[0]
        elif kind < 0.4:
            command = draw.choice([command.upper(), f" {command} ", f"{command}s", command.replace(" ", "  "), ""])
        assert native.act(command) == reference.act(command), command
        assert (native.won, native.state_key) == (reference.won, reference.state_key), command


@pytest.mark.parametrize("seed", [0, 3])
def test_an_odd_household_plays_the_same_on_both(seed: int) -> None:
    walk_both({"generation": "0.4", "task": "be odd", "pddl_problem": odd_problem(seed)}, steps=15, seed=seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [5, 11, 17, 23, 29, 31, 37, 41, 43, 47])
def test_many_odd_households_play_the_same_on_both(seed: int) -> None:
    walk_both({"generation": "0.4", "task": "be odd", "pddl_problem": odd_problem(seed)}, steps=40, seed=seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_an_official_game_plays_the_same_on_both(seed: int) -> None:
    data = official()
    task_id = random.Random(seed).choice(data.ids["train"])
    walk_both(data.game(task_id), steps=40, seed=seed)


def test_the_reference_engine_serves_the_environment() -> None:
    native, reference = ALFWorldEnv(), ALFWorldEnv(engine="textworld")
    task_id = native.split.task_ids[0]
    assert native.reset(options={"task_id": task_id}) == reference.reset(options={"task_id": task_id})
    first, *others = reference.solve()
    reference.step(first)
    snapshot = reference.snapshot()
    for action in others:
        reference.step(action)
    assert reference.won
    reference.restore(snapshot)
    native.step(first)
    assert (reference.admissible_actions, reference.won) == (native.admissible_actions, False)
