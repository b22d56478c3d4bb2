"""Search-QA as an environment: play, books, rules of advice."""

from __future__ import annotations

import random
import re

import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st

from taspo_bench.errors import InputError
from taspo_envs.searchqa.env import SearchQAEnv
from taspo_envs.searchqa.rules import new_phrases

THREE_HOPS = next(name for name in SearchQAEnv().split.task_ids if name.startswith("3hop"))
FIRST, SECOND = (f"search[{hop.query}]" for hop in SearchQAEnv().dataset.questions[THREE_HOPS].hops[:2])
SPLITS = ("train", "valid_seen", "valid_unseen")


@pytest.fixture
def env() -> SearchQAEnv:
    env = SearchQAEnv()
    env.reset(options={"task_id": THREE_HOPS})
    return env


def test_gymnasiums_checker_passes() -> None:
    check_env(SearchQAEnv(), skip_render_check=True)


@pytest.mark.parametrize("split", SPLITS)
def test_the_reference_solution_wins_every_task(split: str) -> None:
    env = SearchQAEnv(split=split)
    for task_id in env.split.task_ids:
        env.reset(options={"task_id": task_id})
        plan = env.solve()
        assert len(plan) == len(env.question.hops) + 1
        assert sum(env.step(action)[1] for action in plan) == 1.0, task_id
        assert env.won and env.finished


@pytest.mark.parametrize("split", SPLITS)
def test_a_proper_query_finds_its_passage_first(split: str) -> None:
    env = SearchQAEnv(split=split)
    questions = [env.dataset.questions[task_id] for task_id in env.split.task_ids]
    hops = [hop for question in questions for hop in question.hops]
    found = env.retriever.search([hop.query for hop in hops], 3)
    assert all(hits[0].passage.id == hop.passage_id for hits, hop in zip(found, hops, strict=True))


@pytest.mark.parametrize("split", SPLITS)
def test_random_words_win_fewer_than_one_task_in_ten(split: str) -> None:
    env, rng, won = SearchQAEnv(split=split), random.Random(0), 0
    for task_id in env.split.task_ids:
        observation, over = env.reset(options={"task_id": task_id})[0], False
        while not over:
            words = re.findall(r"\w+", observation)
            action = rng.choice(env.action_templates).format(" ".join(rng.sample(words, rng.randint(1, 2))))
            observation, _, terminated, truncated, _ = env.step(action)
            over = terminated or truncated
        won += env.won
    assert won < 0.1 * len(env.split)


def test_both_forms_of_action_do_the_same(env: SearchQAEnv) -> None:
    plain = env.step(FIRST)
    env.reset(options={"task_id": THREE_HOPS})
    assert env.step(f"Think. <search>{FIRST[7:-1]}</search>") == plain


def test_an_invalid_turn_says_why_counts_and_changes_nothing(env: SearchQAEnv) -> None:
    before = env.state_key
    observation, reward, terminated, truncated, info = env.step("<search>a</search> <answer>b</answer>")
    assert "not both" in observation
    assert (reward, terminated, truncated, info["is_action_valid"]) == (0.0, False, False, False)
    assert env.state_key == before and env.steps == 1


def test_a_wrong_answer_ends_the_episode_unwon(env: SearchQAEnv) -> None:
    _, reward, terminated, truncated, info = env.step("answer[Nowhere]")
    assert (reward, terminated, truncated, info["won"], info["score"]) == (0.0, True, False, False, 0.0)


@pytest.mark.parametrize("action", ["answer[]", "<answer></answer>", "answer[the]"])
def test_an_empty_answer_ends_the_episode_unwon(env: SearchQAEnv, action: str) -> None:
    env.reset(seed=0)
    _, reward, terminated, _, info = env.step(action)
    assert (reward, terminated, info["won"], info["is_action_valid"]) == (0.0, True, False, True)


def test_the_passages_of_a_server_are_other_data() -> None:
    own, served = SearchQAEnv().data_stamp(), SearchQAEnv(retriever="http://127.0.0.1:9/retrieve").data_stamp()
    assert own.sha256 != served.sha256 and "retrieval server" in served.version


def test_the_turn_limit_is_no_success(env: SearchQAEnv) -> None:
    for _ in range(3):
        assert not env.step(FIRST)[3]
    _, _, terminated, truncated, info = env.step(FIRST)
    assert (terminated, truncated, info["won"]) == (False, True, False)


def test_the_answer_stands_nowhere_before_it_is_found() -> None:
    for split in SPLITS:
        env = SearchQAEnv(split=split)
        for task_id in env.split.task_ids:
            observation, info = env.reset(options={"task_id": task_id})
            assert env.question.answers[0] not in f"{observation} {info}"


def test_a_state_is_what_was_found_and_not_the_way_to_it(env: SearchQAEnv) -> None:
    env.step(FIRST)
    env.step(SECOND)
    there = env.state_key
    env.reset(options={"task_id": THREE_HOPS})
    env.step("nonsense")
    env.step(SECOND)
    env.step(FIRST)
    assert env.state_key == there


def test_the_plan_goes_on_from_a_useless_search() -> None:
    env = SearchQAEnv()
    task_id = next(name for name in env.split.task_ids if name.startswith("2hop"))
    env.reset(options={"task_id": task_id})
    env.step("search[something quite useless]")
    plan = env.solve()
    assert len(plan) == 3
    for action in plan:
        env.step(action)
    assert env.won


def test_there_is_no_plan_where_the_searches_no_longer_fit(env: SearchQAEnv) -> None:
    env.step("nonsense")
    assert env.solve() == [] and env.remaining_steps() is None


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(["step", "junk", "bad", "answer"]), max_size=5), st.integers(0, 1199))
def test_a_snapshot_restores_everything(moves: list[str], number: int) -> None:
    env, other = SearchQAEnv(), SearchQAEnv(split="valid_unseen")
    env.reset(options={"task_id": env.split.task_ids[number]})
    for move in moves:
        plan = env.solve() or ["answer[x]"]
        env.step({"step": plan[0], "junk": "search[capital]", "bad": "??", "answer": "answer[x]"}[move])
    saved = env.snapshot()
    assert saved.isascii() and "\n" not in saved
    other.restore(saved)
    assert other.snapshot() == saved
    assert (other.state_key, other.solve(), other.won) == (env.state_key, env.solve(), env.won)
    assert other.step("search[river]") == env.step("search[river]")


@given(
    st.text(alphabet=st.characters(exclude_categories=()), max_size=30),
    st.sampled_from(["{}", "search[{}]", "<answer>{}</answer>"]),
)
def test_no_action_raises(text: str, form: str) -> None:
    env = SearchQAEnv()
    env.reset(options={"task_id": THREE_HOPS})
    for _ in range(2):
        observation, _, _, _, info = env.step(form.format(text))
        assert observation.encode() and info["state_key"].encode()
    assert env.snapshot().isascii()


def test_rules_tell_only_what_was_met_and_fit_only_before_they_are_done(env: SearchQAEnv) -> None:
    plan = env.solve()
    rules = env.rules(plan)
    assert [rule.action for rule in rules] == plan
    observation = met = env.reset(options={"task_id": THREE_HOPS})[0]
    for step, action in enumerate(plan):
        fitting = [rule.step for rule in rules if rule.fits(env.state_key, met)]
        assert fitting == [step]
        assert rules[step].quote in observation
        observation = env.step(action)[0]
        met += "\n" + observation


@pytest.mark.parametrize(
    "text, phrases",
    [
        ("river of Bor Drol", []),
        ("country of Pan Drol", ["Pan Drol"]),
        ("country of pan drol", ["Pan Drol"]),
        ("what is the country of Pan Drol", ["Pan Drol"]),
        ("country of Zan Drol", ["Zan Drol"]),
        ("Pan Drol and Kim", ["Pan Drol", "Kim"]),
        ("no", ["no"]),
    ],
)
def test_new_phrases_are_whole_names_as_they_were_met(text: str, phrases: list[str]) -> None:
    question = "What is the country of the river of Bor Drol?"
    met = f"Question: {question}\n1. The river of Bor Drol is Pan Drol. Maps of Bor Drol show Pan Drol."
    assert new_phrases(text, question, met) == phrases


def test_a_rule_fits_another_way_to_the_same_situation(env: SearchQAEnv) -> None:
    rules = env.rules(env.solve())
    met = env.reset(options={"task_id": THREE_HOPS})[0]
    for action in ("search[useless]", f"<search>{FIRST[7:-1].lower()}</search>"):
        met += env.step(action)[0]
    assert [rule.step for rule in rules if rule.fits(env.state_key, met)] == [1]


def test_rules_are_short_and_hold_their_action() -> None:
    env = SearchQAEnv(split="valid_unseen")
    for task_id in env.split.task_ids[:30]:
        env.reset(options={"task_id": task_id})
        for rule in env.rules(env.solve()):
            assert rule.action in rule.statement
            assert len(rule.statement.split()) <= 20


def test_rules_leave_the_environment_where_it_was(env: SearchQAEnv) -> None:
    env.step(FIRST)
    before = env.snapshot()
    env.rules([SECOND, "answer[x]"])
    assert env.snapshot() == before


def test_every_answer_is_within_reach_of_the_embedded_retriever() -> None:
    lines = [line for line in SearchQAEnv().check() if "within reach" in line]
    assert len(lines) == 6
    for line in lines:
        reached, tried = re.findall(r"\d+", line.split("for ")[1])
        assert reached == tried


def test_an_unknown_task_is_refused() -> None:
    with pytest.raises(InputError, match="no task 'nothing'"):
        SearchQAEnv().reset(options={"task_id": "nothing"})
