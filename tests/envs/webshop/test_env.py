"""The environment's promises: tasks, play, snapshots, reference solutions and advice, on the embedded catalogue."""

from __future__ import annotations

import random
import re
import subprocess
import sys
import warnings
from collections import Counter

import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st

from taspo_bench.errors import InputError
from taspo_envs.webshop.embedded import frozen
from taspo_envs.webshop.env import WebShopEnv, WebShopStrictEnv
from taspo_envs.webshop.solver import solve


@pytest.fixture(scope="module")
def env() -> WebShopEnv:
    return WebShopEnv()


def _random_walk(env: WebShopEnv, task_id: str, rng: random.Random) -> bool:
    observation, info = env.reset(options={"task_id": task_id})
    ended = False
    while not ended:
        words = re.findall(r"[a-z]+", observation.lower())
        search = f"search[{' '.join(rng.sample(words, min(3, len(words))))}]"
        clicks = info["admissible_actions"]
        action = rng.choice(clicks) if clicks and rng.random() < 0.75 else search
        observation, _, terminated, truncated, info = env.step(action)
        ended = terminated or truncated
    return bool(info["won"])


def test_gymnasium_s_checker_passes() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_env(WebShopEnv(), skip_render_check=True)


def test_the_generated_catalogue_and_its_splits_are_the_frozen_ones(env: WebShopEnv) -> None:
    manifest = frozen()
    assert env.data_stamp().sha256 == manifest["sha256"]
    found = {name: {"tasks": len(split), "sha256": split.sha256} for name, split in env.splits().items()}
    assert found == manifest["splits"]
    assert env.store.splits("human")["held_out"] == manifest["held_out"]


def test_training_meets_no_product_of_valid_seen_and_no_query_of_valid_unseen(env: WebShopEnv) -> None:
    facts = "\n".join(env.check())
    assert "no evaluation task is in training" in facts
    assert "none of its 50 products is in training" in facts
    assert "none of its 4 queries is in training" in facts


@pytest.mark.parametrize("split", ["train", "valid_seen", "valid_unseen"])
def test_the_expert_wins_every_task_with_score_one(env: WebShopEnv, split: str) -> None:
    for task_id in env.splits()[split].task_ids:
        env.reset(options={"task_id": task_id})
        actions = env.solve()
        rewards = [env.step(action)[1] for action in actions]
        assert env.won and env.score == 1.0 and sum(rewards) == 1.0
        assert len(actions) <= 6


@pytest.mark.parametrize("split", ["train", "valid_seen", "valid_unseen"])
def test_random_play_wins_less_than_one_task_in_ten(env: WebShopEnv, split: str) -> None:
    rng = random.Random(0)
    tasks = env.splits()[split].task_ids[:100]
    assert sum(_random_walk(env, task_id, rng) for task_id in tasks) < len(tasks) / 10


@settings(max_examples=40, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(0, 99), st.integers(1, 8))
def test_the_expert_wins_from_wherever_a_walk_has_led(rng: random.Random, task: int, steps: int) -> None:
    env = WebShopEnv(split="valid_seen", max_steps=100)
    env.reset(options={"task_id": env.split.task_ids[task]})
    for _ in range(steps):
        clicks = [action for action in env.admissible_actions if action != "click[buy now]"]
        env.step(rng.choice(clicks) if clicks and rng.random() < 0.7 else f"search[{env.instruction[:30]}]")
    for action in env.solve():
        env.step(action)
    assert env.won


@settings(max_examples=40, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(0, 99), st.integers(0, 10))
def test_a_restored_snapshot_goes_on_as_if_nothing_had_been_undone(rng: random.Random, task: int, steps: int) -> None:
    env = WebShopEnv(split="valid_unseen", observation_mode="text_rich")
    env.reset(options={"task_id": env.split.task_ids[task]})
    actions = [f"search[{env.instruction[:25]}]"]
    for _ in range(steps):
        env.step(actions[-1])
        actions.append(rng.choice([*env.admissible_actions, "search[red]"]))
    before, first = env.snapshot(), env.step(actions[-1])
    assert env.restore(before)[1]["state_key"]
    assert env.step(actions[-1]) == first
    other = WebShopEnv(split="valid_unseen", observation_mode="text_rich")
    other.restore(before)
    assert other.step(actions[-1]) == first


def test_pages_are_short_enough_for_a_small_policy(env: WebShopEnv) -> None:
    longest: Counter[str] = Counter()
    for task_id in env.splits()["train"].task_ids[::10]:
        env.reset(options={"task_id": task_id})
        for action in env.solve()[:-1]:
            observation, *_, info = env.step(action)
            page = info["state_key"].splitlines()[0]
            longest[page] = max(longest[page], len(observation.split()))
    assert longest["page results"] < 250 and longest["page item"] < 120


def test_the_expert_searches_with_words_of_the_instruction(env: WebShopEnv) -> None:
    for task_id in env.splits()["train"].task_ids[::10]:
        _, info = env.reset(options={"task_id": task_id})
        query = env.solve()[0].removeprefix("search[").removesuffix("]")
        assert set(query.split()) <= set(re.findall(r"[^\s,]+", info["instruction"].lower()))


def test_rules_fit_the_turns_they_were_read_from_and_are_verbatim_and_short(env: WebShopEnv) -> None:
    for task_id in env.splits()["train"].task_ids[::50]:
        env.reset(options={"task_id": task_id})
        actions = env.solve()
        rules = {rule.step: rule for rule in env.rules(actions)}
        assert sorted(rules) == list(range(len(actions)))
        met, observation = "", env.reset(options={"task_id": task_id})[0]
        for step, action in enumerate(actions):
            met += observation
            assert rules[step].action == action and action in rules[step].statement
            assert rules[step].quote in observation
            assert len(rules[step].statement.split()) <= 20
            assert rules[step].fits(env.state_key, met)
            observation = env.step(action)[0]


def test_a_rule_for_a_product_tells_nothing_before_the_product_was_listed(env: WebShopEnv) -> None:
    first_page, _ = env.reset(options={"task_id": env.splits()["train"].task_ids[0]})
    rules = env.rules(env.solve())
    assert [rule.fits(env.state_key, first_page) for rule in rules] == [True] + [False] * (len(rules) - 1)
    assert all("B0" in rule.needs[0] for rule in rules[1:])


def test_rules_leave_the_environment_where_it_was(env: WebShopEnv) -> None:
    env.reset(options={"task_id": env.splits()["train"].task_ids[3]})
    actions = env.solve()
    env.step(actions[0])
    before = env.snapshot()
    env.rules(actions)
    assert env.snapshot() == before


def test_info_and_pages_hold_no_answer_before_it_is_listed(env: WebShopEnv) -> None:
    for task_id in env.splits()["valid_seen"].task_ids[:20]:
        observation, info = env.reset(options={"task_id": task_id})
        goal = env.store.goal(task_id)
        assert goal.asin not in f"{observation}{info}"


def test_a_finished_episode_and_the_step_limit_accept_no_more_actions() -> None:
    env = WebShopEnv(max_steps=2)
    env.reset(seed=1)
    env.step("search[a]")
    *_, terminated, truncated, info = env.step("search[b]")
    assert truncated and not terminated and not info["won"]
    assert env.step("search[c]")[0] == "The episode is over."


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"observation_mode": "html"}, "text_rich"),
        ({"protocol": "oficial"}, "did you mean 'official'"),
        ({"goals": "both"}, "synthetic"),
        ({"split": "test"}, "valid_seen"),
        ({"data": "/no/such/folder"}, "no such folder"),
    ],
)
def test_unusable_arguments_are_answered_in_one_line_that_names_the_fix(
    arguments: dict[str, str], named: str
) -> None:
    with pytest.raises(InputError, match=re.escape(named)) as error:
        WebShopEnv(**arguments)  # type: ignore[arg-type]
    assert "\n" not in str(error.value)


def test_an_unknown_task_is_answered_with_what_ids_look_like(env: WebShopEnv) -> None:
    for unknown in ("B000000000-h9", "h99999999", "h-1", "h01", ""):
        with pytest.raises(InputError, match=re.escape("human goals (h0, ..)")):
            env.reset(options={"task_id": unknown})


def test_the_same_task_and_seed_give_the_same_bytes_in_another_process(env: WebShopEnv) -> None:
    task_id = env.splits()["train"].task_ids[5]
    code = (
        "from taspo_envs.webshop.env import WebShopEnv; env = WebShopEnv(); "
        f"print(ascii(env.reset(seed=3, options={{'task_id': {task_id!r}}})))"
    )
    other = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert other.stdout.strip() == ascii(env.reset(seed=3, options={"task_id": task_id}))


def test_the_strict_variant_has_the_same_tasks_and_an_expert_that_wins_them() -> None:
    strict = WebShopStrictEnv(split="valid_seen")
    for task_id in strict.split.task_ids:
        strict.reset(options={"task_id": task_id})
        assert strict.session is not None
        for action in solve(strict.session):
            strict.step(action)
        assert strict.won
