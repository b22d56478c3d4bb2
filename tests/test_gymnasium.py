"""The three benchmarks as Gymnasium environments: contract, text spaces, vector environments, random state."""

from __future__ import annotations

import random
import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector.utils import create_shared_memory, read_from_shared_memory, write_to_shared_memory

import taspo_bench  # noqa: F401
from taspo_bench import registry
from taspo_bench.errors import InputError
from taspo_bench.text_space import UnicodeText

IDS = ["taspo/ALFWorld-v0", "taspo/WebShop-v0", "taspo/SearchQA-v0"]
SUITE = ["alfworld", "webshop", "searchqa"]


@pytest.mark.parametrize("env_id", IDS)
def test_check_env_passes(env_id):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gym.make(env_id).unwrapped, skip_render_check=False)


@pytest.mark.parametrize("env_id", IDS)
def test_make_by_module_and_id(env_id):
    env = gym.make(f"taspo_bench:{env_id}", split="train")
    observation, info = env.reset(seed=3)
    assert observation and info["task_id"] in env.unwrapped.split.task_ids


def test_the_text_space_contains_real_text():
    space = UnicodeText(4096)
    for text in ("go to shelf 1", "", "›", "é", "a\nb", "x" * 4096):
        assert text in space
    assert "x" * 4097 not in space
    assert space.sample() in space


def test_a_text_of_any_kind_fits_its_slot_of_shared_memory_and_a_longer_one_is_refused():
    space = UnicodeText(8)
    memory = create_shared_memory(space, n=3)
    texts = ["🙂" * 8, "", "é" * 8]
    for index, text in enumerate(texts):
        write_to_shared_memory(space, index, text, memory)
    assert list(read_from_shared_memory(space, memory, n=3)) == texts
    with pytest.raises(InputError, match="9 characters does not fit its space of 8"):
        write_to_shared_memory(space, 0, "🙂" * 9, memory)
    assert list(read_from_shared_memory(space, memory, n=3)) == texts


@pytest.mark.parametrize("env_id", IDS)
@pytest.mark.parametrize("mode", ["sync", "async"])
def test_vector_environments_return_the_true_text(env_id, mode):
    single = gym.make(env_id)
    expected = [single.reset(seed=seed)[0] for seed in (5, 6)]
    after = []
    for seed in (5, 6):
        single.reset(seed=seed)
        after.append(single.step("no such action › é")[0])
    vector = gym.make_vec(env_id, num_envs=2, vectorization_mode=mode)
    try:
        observations, _ = vector.reset(seed=[5, 6])
        assert list(observations) == expected
        observations, rewards, *_ = vector.step(("no such action › é",) * 2)
        assert list(observations) == after
        assert rewards.tolist() == [0.0, 0.0]
    finally:
        vector.close()


@pytest.mark.parametrize("name", SUITE)
def test_reset_leaves_global_random_state_alone(name):
    random.seed(1)
    np.random.seed(1)  # noqa: NPY002
    before = random.getstate(), np.random.get_state()[1].tolist()  # noqa: NPY002
    env = registry.make_env(name)
    env.reset(seed=9)
    env.step("look")
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before  # noqa: NPY002


@pytest.mark.parametrize("name", SUITE)
def test_members_of_a_group_begin_alike(name):
    env, other = registry.make_env(name), registry.make_env(name)
    for seed in (0, 1):
        first, info = env.reset(seed=seed)
        again, other_info = other.reset(seed=seed)
        assert (first, info) == (again, other_info)
    task = env.split.task_ids[3]
    assert env.reset(options={"task_id": task})[0] == other.reset(seed=5, options={"task_id": task})[0]


@pytest.mark.parametrize("name", SUITE)
def test_an_unusable_action_changes_nothing_but_the_step_count(name):
    env = registry.make_env(name)
    _, before = env.reset(seed=2)
    for action in ("", "fly to the moon", "\x00", "é" * 50):
        _, reward, terminated, _, info = env.step(action)
        assert (reward, terminated, info["is_action_valid"]) == (0.0, False, False)
        if name != "searchqa" or info["state_key"] == before["state_key"]:
            assert info["state_key"] == before["state_key"]
            break


@pytest.mark.parametrize("name", SUITE)
def test_the_step_limit_is_not_success(name):
    env = registry.make_env(name, max_steps=2)
    env.reset(seed=2)
    env.step("fly to the moon")
    _, _, terminated, truncated, info = env.step("fly to the moon")
    assert (terminated, truncated, info["won"]) == (False, True, False)
    _, reward, *_ = env.step("anything")
    assert reward == 0.0


@pytest.mark.parametrize("name", SUITE)
def test_a_snapshot_at_every_step_reproduces_the_rest(name):
    env, other = registry.make_env(name), registry.make_env(name)
    env.reset(seed=4)
    plan = env.solve()
    snapshots = []
    for action in plan:
        snapshots.append(env.snapshot())
        env.step(action)
    for done, snapshot in enumerate(snapshots):
        assert snapshot.isascii() and "\n" not in snapshot
        env.restore(snapshot)
        other.restore(snapshot)
        for action in plan[done:]:
            left, right = env.step(action), other.step(action)
            assert left == right
        assert left[4]["won"]


@pytest.mark.parametrize("name", SUITE)
def test_splits_are_disjoint_and_the_manifest_holds(name):
    assert "no evaluation task is in training" in "\n".join(registry.make_env(name).check())
