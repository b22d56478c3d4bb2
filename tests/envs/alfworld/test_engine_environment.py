"""ALFWorld as an environment: ways to put things down, snapshots, threads, memory, and what must stay hidden."""

from __future__ import annotations

import gc
import random
import subprocess
import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import pytest
from alfworld_recorded import copies, load

from taspo_bench.errors import InputError
from taspo_envs.alfworld.env import FAMILIES, ALFWorldEnv
from taspo_envs.alfworld.world import NOTHING_HAPPENS, World

TASK = "clean/apple-diningtable/kitchen-01/0016"
WAYS_TO_PUT = ["move {} to {}", "put {} in/on {}", "put {} in {}", "put {} on {}"]


def walk(task_id: str, seed: int, steps: int = 30) -> list[object]:
    """Everything that an episode of random commands returns."""
    draw = random.Random(seed)
    env = ALFWorldEnv()
    told: list[object] = [env.reset(options={"task_id": task_id})]
    for _ in range(steps):
        told.append(env.step(draw.choice(env.admissible_actions)))
    return told


def holding_something(**kwargs: object) -> tuple[ALFWorldEnv, str, str]:
    env = ALFWorldEnv(**kwargs)  # type: ignore[arg-type]
    env.reset(options={"task_id": TASK})
    for action in env.solve()[:2]:
        env.step(action)
    words = env.admissible_actions[-1].split(" ")
    put = next(action for action in env.admissible_actions if action.startswith("move "))
    words = put.split(" ")
    return env, " ".join(words[1:3]), " ".join(words[4:])


@pytest.mark.parametrize("form", WAYS_TO_PUT)
def test_every_way_to_put_down_is_understood(form: str) -> None:
    env, thing, place = holding_something()
    observation, _, _, _, info = env.step(form.format(thing, place))
    assert (observation, info["is_action_valid"]) == (f"You move the {thing} to the {place}.", True)


@pytest.mark.parametrize("form", WAYS_TO_PUT[1:])
def test_without_normalizing_only_the_words_of_the_game_are_understood(form: str) -> None:
    env, thing, place = holding_something(normalize_actions=False)
    observation, _, _, _, info = env.step(form.format(thing, place))
    assert (observation, info["is_action_valid"]) == (NOTHING_HAPPENS, False)
    observation, _, _, _, info = env.step(f"move {thing} to {place}")
    assert info["is_action_valid"]


@pytest.mark.parametrize("form", ["put {} under {}", "put {} to {}", "move {} in {}", "drop {} in {}"])
def test_other_ways_to_put_down_do_nothing(form: str) -> None:
    env, thing, place = holding_something()
    assert env.step(form.format(thing, place))[0] == NOTHING_HAPPENS


@pytest.mark.parametrize("form", ["move {} to {}", "put {} in {}", "put {} on {}"])
def test_an_older_game_is_put_into_its_own_words(form: str) -> None:
    game, record = load(next(p.values[0] for p in copies() if p.id.startswith("old-")))
    env = ALFWorldEnv()
    env.reset()
    env._world = world = World(game)
    for step in record["traces"][0]["steps"]:
        if step["action"].startswith("put "):
            thing, place = step["action"].removeprefix("put ").split(" in/on ")
            assert env.act(form.format(thing, place)).observation == step["obs"]
            return
        world.act(step["action"])
    pytest.fail("the walkthrough puts nothing down")


def test_eight_threads_give_the_traces_of_one() -> None:
    tasks = ALFWorldEnv().split.task_ids[::100][:8]
    alone = [walk(task, seed) for seed, task in enumerate(tasks)]
    for _ in range(3):
        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(walk, tasks, range(len(tasks)))) == alone


def test_memory_stays_flat_over_a_thousand_resets() -> None:
    env = ALFWorldEnv()
    tasks = env.split.task_ids[:20]
    for task in tasks:
        env.reset(options={"task_id": task})
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for number in range(1000):
            env.reset(options={"task_id": tasks[number % len(tasks)]})
            env.step(env.admissible_actions[0])
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert grown < 1_000_000


def test_a_snapshot_at_every_step_restores_the_rest_of_the_episode() -> None:
    env, other = ALFWorldEnv(), ALFWorldEnv()
    env.reset(options={"task_id": TASK})
    plan = env.solve()
    snapshots = [env.snapshot()]
    told = []
    for action in plan:
        told.append(env.step(action))
        snapshots.append(env.snapshot())
    for number, snapshot in enumerate(snapshots):
        other.restore(snapshot)
        assert [other.step(action) for action in plan[number:]] == told[number:]


def test_the_first_observation_is_the_same_in_another_process() -> None:
    code = f"from taspo_envs.alfworld.env import ALFWorldEnv as E; print(E().reset(options={{'task_id': {TASK!r}}}))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == str(ALFWorldEnv().reset(options={"task_id": TASK}))


def test_nothing_told_holds_a_solution() -> None:
    env = ALFWorldEnv()
    _, info = env.reset(options={"task_id": TASK})
    assert set(info) == {
        "task_id", "instruction", "admissible_actions", "won", "score", "is_action_valid", "state_key",
    }  # fmt: skip
    assert info["state_key"] == "at room\nholding nothing"


def test_the_first_observation_ends_with_the_task() -> None:
    observation, info = ALFWorldEnv().reset(options={"task_id": TASK})
    assert observation.startswith("-= Welcome to TextWorld, ALFRED! =-\n\nYou are in the middle of a room.")
    assert observation.endswith(f"\n\nYour task is to: {info['instruction']}")


def test_every_family_is_one_of_the_six() -> None:
    env = ALFWorldEnv()
    assert {env.task(task).family for task in env.split.task_ids} == set(FAMILIES.values())


def test_the_training_split_can_be_limited() -> None:
    whole, limited = ALFWorldEnv(), ALFWorldEnv(num_train_games=10)
    assert limited.split.task_ids == whole.split.task_ids[:10]
    assert limited.splits()["valid_seen"] == whole.splits()["valid_seen"]


@pytest.mark.parametrize("arguments", [{"engine": "textwrld"}, {"num_train_games": 0}, {"split": "test"}])
def test_a_wrong_argument_is_named(arguments: dict[str, object]) -> None:
    with pytest.raises(InputError, match=str(next(iter(arguments.values())))):
        ALFWorldEnv(**arguments)  # type: ignore[arg-type]


def test_an_unknown_task_is_refused() -> None:
    env = ALFWorldEnv()
    with pytest.raises(InputError, match="no/such/task"):
        env.task("no/such/task")
    with pytest.raises(InputError, match="no/such/task"):
        env.reset(options={"task_id": "no/such/task"})


def test_the_reference_engine_says_what_it_needs_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("alfworld", "alfworld.agents.environment.alfred_tw_env"):
        monkeypatch.setitem(sys.modules, name, None)
    env = ALFWorldEnv(engine="textworld")
    with pytest.raises(InputError, match=r"pip install 'taspo-bench\[textworld\]'.*C\+\+ compiler") as error:
        env.reset(options={"task_id": TASK})
    assert "\n" not in str(error.value)
