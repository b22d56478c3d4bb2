"""Reference solutions: from the start and from anywhere, as short as the games' own walkthroughs."""

from __future__ import annotations

import random

import pytest
from alfworld_recorded import official
from odd_household import odd_problem

from taspo_envs.alfworld.game import read_game
from taspo_envs.alfworld.world import World


def win(world: World) -> int:
    """Play the solution and return its length; every command of it must be on offer."""
    plan = world.solve()
    for command in plan:
        assert command in world.admissible, (command, plan)
        world.act(command)
    assert world.won, plan
    return len(plan)


def test_a_won_game_needs_no_solution() -> None:
    world = World(read_game(official().game(official().ids["valid_seen"][0])))
    win(world)
    assert world.solve() == []


@pytest.mark.parametrize("split", ["valid_seen", "valid_unseen"])
def test_walkthrough_and_solution_win_every_official_evaluation_game(split: str) -> None:
    data = official()
    for task_id in data.ids[split]:
        game = data.game(task_id)
        world = World(read_game(game))
        for command in game["walkthrough"]:
            world.act(command)
        assert world.won, task_id
        world.reset()
        assert win(world) <= len(game["walkthrough"]), task_id


@pytest.mark.slow
@pytest.mark.parametrize("split", ["train", "valid_train"])
def test_walkthrough_and_solution_win_every_other_official_game(split: str) -> None:
    test_walkthrough_and_solution_win_every_official_evaluation_game(split)


@pytest.mark.parametrize("seed", range(40))
def test_a_solution_wins_from_wherever_a_walk_has_led(seed: int) -> None:
    draw = random.Random(seed)
    world = World(read_game({"generation": "0.4", "task": "be odd", "pddl_problem": odd_problem(seed)}))
    can_be_won = bool(world.solve()) or world.won
    for _ in range(25):
        before = world.save()
        if not world.won and can_be_won:
            win(world)
        elif not can_be_won:
            assert world.solve() == []
        world.load(before)
        world.act(draw.choice([command for command in world.admissible if command not in ("help", "look")]))


def test_solving_changes_nothing() -> None:
    world = World(read_game({"generation": "0.4", "task": "be odd", "pddl_problem": odd_problem(1)}))
    before = world.save()
    world.solve()
    assert world.save() == before
