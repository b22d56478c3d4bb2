"""The native engine against recorded traces of the reference: not a byte differs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from alfworld_recorded import copies, load, recorded

from taspo_envs.alfworld.world import World


def replay(path: Path) -> None:
    game, record = load(path)
    world = World(game)
    for trace in record["traces"]:
        assert (world.reset(), world.admissible) == (record["initial"]["obs"], record["initial"]["admissible"])
        for number, step in enumerate(trace["steps"]):
            place = f"{path.name}, {trace['kind']}, step {number}: {step['action']!r}"
            assert world.act(step["action"]) == step["obs"], place
            assert world.admissible == step["admissible"], place
            assert (world.won, float(world.won)) == (step["won"], step["score"]), place
            assert world.won == step["done"], place


@pytest.mark.parametrize("path", copies())
def test_a_kept_trace_replays_without_a_difference(path: Path) -> None:
    replay(path)


@pytest.mark.parametrize("path", recorded("alfworld"))
def test_a_generated_game_replays_without_a_difference(path: Path) -> None:
    replay(path)


@pytest.mark.parametrize("path", recorded("alfworld_real"))
def test_an_official_game_replays_without_a_difference(path: Path) -> None:
    replay(path)


@pytest.mark.parametrize("path", copies())
def test_a_snapshot_at_every_step_reproduces_the_rest_of_the_walk(path: Path) -> None:
    game, record = load(path)
    for trace in record["traces"]:
        walker, other = World(game), World(game)
        for number, step in enumerate(trace["steps"]):
            other.load(json.loads(json.dumps(walker.save())))
            assert (other.admissible, other.won, other.state_key) == (walker.admissible, walker.won, walker.state_key)
            for later in trace["steps"][number:]:
                assert (other.act(later["action"]), other.admissible) == (later["obs"], later["admissible"])
            walker.act(step["action"])


@pytest.mark.parametrize("path", copies())
def test_what_is_admissible_does_something_and_nothing_else_does(path: Path) -> None:
    game, record = load(path)
    for trace in record["traces"]:
        world = World(game)
        for step in trace["steps"]:
            offered = set(world.admissible)
            assert (world.act(step["action"]) != "Nothing happens.") == (step["action"].strip() in offered)
