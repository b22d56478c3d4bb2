"""Rules read off successes: right wherever they fit, silent about what the agent has not seen."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache

import pytest

from taspo_bench.api import Rule
from taspo_envs.alfworld.env import ALFWorldEnv
from taspo_envs.alfworld.generator import WORDINGS
from taspo_envs.alfworld.rules import read_request

TASKS = [task_id for split in ALFWorldEnv().splits().values() for task_id in split.task_ids]


@pytest.fixture(scope="module")
def env() -> ALFWorldEnv:
    return ALFWorldEnv()


def task_of(family: str, number: int = 0) -> str:
    return [task_id for task_id in TASKS if task_id.startswith(f"{family}/")][number]


def play(env: ALFWorldEnv, actions: Sequence[str], task_id: str) -> tuple[str, str]:
    """State key and everything observed, after some actions from the start."""
    met, info = env.reset(options={"task_id": task_id})
    for action in actions:
        observation, _, _, _, info = env.step(action)
        assert info["is_action_valid"], action
        met += "\n" + observation
    return info["state_key"], met


@cache
def solution(task_id: str) -> tuple[str, ...]:
    env = ALFWorldEnv()
    env.reset(options={"task_id": task_id})
    return tuple(env.solve())


def rules_of(env: ALFWorldEnv, task_id: str, actions: Sequence[str]) -> list[Rule]:
    env.reset(options={"task_id": task_id})
    return env.rules(actions)


def fitting(env: ALFWorldEnv, rules: Sequence[Rule], actions: Sequence[str], task_id: str) -> set[str]:
    """Actions that rules advise after some actions."""
    key, met = play(env, actions, task_id)
    return {rule.action for rule in rules if rule.fits(key, met)}


def wander(env: ALFWorldEnv, task_id: str, draw: random.Random, noise: float) -> list[str]:
    """Actions of one episode: random ones with that share, else a step of the reference solution."""
    _, info = env.reset(options={"task_id": task_id})
    actions: list[str] = []
    while not env.finished and len(actions) < 40:
        action = draw.choice(info["admissible_actions"]) if draw.random() < noise else env.solve()[0]
        actions.append(action)
        _, _, _, _, info = env.step(action)
    return actions


def successes(env: ALFWorldEnv, task_id: str, draw: random.Random) -> Iterator[list[str]]:
    for noise in (0.0, 0.3, 0.6):
        actions = wander(env, task_id, draw, noise)
        if env.won:
            yield actions


@pytest.mark.parametrize("family", WORDINGS)
def test_advice_that_fits_another_trajectory_can_be_taken_and_never_leads_away(env: ALFWorldEnv, family: str) -> None:
    draw = random.Random(family)
    tried, nearer = 0, 0
    for task_id in draw.sample([task_id for task_id in TASKS if task_id.startswith(f"{family}/")], 12):
        rules = [rule for actions in successes(env, task_id, draw) for rule in rules_of(env, task_id, actions)]
        for actions in (wander(env, task_id, draw, 0.75) for _ in range(3)):
            met, info = env.reset(options={"task_id": task_id})
            for action in actions:
                before, state = env.remaining_steps(), env.snapshot()
                assert before is not None
                for rule in {rule.action: rule for rule in rules if rule.fits(info["state_key"], met)}.values():
                    assert rule.action in info["admissible_actions"], (rule, info["state_key"])
                    env.step(rule.action)
                    after = env.remaining_steps()
                    assert after is not None and after <= before, (rule, info["state_key"])
                    tried, nearer = tried + 1, nearer + (after < before)
                    env.restore(state)
                observation, _, _, _, info = env.step(action)
                met += "\n" + observation
    assert tried > 200 and nearer > 0.95 * tried


def test_a_success_is_advised_at_every_turn_once_its_object_has_been_seen(env: ALFWorldEnv) -> None:
    for task_id in TASKS[::40]:
        actions = solution(task_id)
        rules = rules_of(env, task_id, actions)
        first_take = next(index for index, action in enumerate(actions) if action.startswith("take"))
        searching = {"look": "use", "two": "take"}.get(task_id.split("/")[0])
        for turn in range(first_take, len(actions)):
            later = [action.split()[0] for action in actions[turn + 1 :]]
            if searching not in later:
                assert actions[turn] in fitting(env, rules, actions[:turn], task_id), (task_id, turn)


def test_nothing_is_advised_before_anything_has_been_seen(env: ALFWorldEnv) -> None:
    for task_id in TASKS[::10]:
        assert fitting(env, rules_of(env, task_id, solution(task_id)), [], task_id) == set()


def test_a_place_is_advised_for_an_object_only_once_the_object_has_been_seen(env: ALFWorldEnv) -> None:
    for task_id in TASKS[::10]:
        for rule in rules_of(env, task_id, solution(task_id)):
            if "holding nothing" in rule.when and rule.action.split()[0] in ("go", "open"):
                thing = rule.statement.partition(" is at ")[0]
                assert rule.needs[0] == thing
                assert f"take {thing} from {rule.action.removeprefix('go to ').removeprefix('open ')}" in solution(
                    task_id
                )


def test_search_in_an_unpruned_success_makes_no_rules(env: ALFWorldEnv) -> None:
    task_id = task_of("heat")
    search = ["go to garbagecan 1", "look", "go to cabinet 1", "open cabinet 1", "close cabinet 1", "go to drawer 1"]
    play(env, search, task_id)
    rules = rules_of(env, task_id, [*search, *env.solve()])
    assert {rule.step for rule in rules} == set(range(len(search), len(search) + len({rule.step for rule in rules})))


def test_an_object_that_was_moved_is_not_looked_for_at_its_old_place(env: ALFWorldEnv) -> None:
    task_id = next(t for t in TASKS if t.startswith("clean/") and not solution(t)[0].startswith("go to countertop"))
    actions = solution(task_id)
    take = next(index for index, action in enumerate(actions) if action.startswith("take"))
    thing, _, place = actions[take].removeprefix("take ").partition(" from ")
    moved = [*actions[: take + 1], "go to countertop 1", f"move {thing} to countertop 1", "go to garbagecan 1"]
    assert f"go to {place}" not in fitting(env, rules_of(env, task_id, actions), moved, task_id)
    left = [*actions[:take], "go to garbagecan 1"]
    assert f"go to {place}" in fitting(env, rules_of(env, task_id, actions), left, task_id)


def test_the_treated_object_goes_to_the_target_and_the_untreated_to_the_station(env: ALFWorldEnv) -> None:
    for family, station in (("clean", "sinkbasin"), ("heat", "microwave"), ("cool", "fridge")):
        task_id = next(t for t in TASKS if t.startswith(f"{family}/") and f"go to {station} 1" in solution(t)[2:])
        actions = solution(task_id)
        treat = next(index for index, action in enumerate(actions) if action.startswith(family))
        rules = rules_of(env, task_id, actions)
        untreated = fitting(env, rules, [*actions[: treat - 1]], task_id)
        treated = fitting(env, rules, actions[: treat + 1], task_id)
        assert untreated == {f"go to {station} 1"}
        assert treated == {actions[treat + 1]}


def test_a_twin_that_is_treated_already_ends_the_fetching(env: ALFWorldEnv) -> None:
    for task_id in (task_id for task_id in TASKS if task_id.split("/")[0] in ("clean", "heat", "cool")):
        obj = task_id.split("/")[1].partition("-")[0]
        actions = solution(task_id)
        take = next(index for index, action in enumerate(actions) if action.startswith("take"))
        thing = actions[take].removeprefix("take ").partition(" from ")[0]
        twin = {f"{obj} 1": f"{obj} 2", f"{obj} 2": f"{obj} 1"}[thing]
        play(env, actions[:take], task_id)
        if f"take {twin} from" in " ".join(env.admissible_actions):
            treat = next(index for index, action in enumerate(actions) if action.startswith(task_id.split("/")[0]))
            rules = rules_of(env, task_id, actions)
            other = [action.replace(thing, twin) for action in actions[: treat + 1]]
            back = f"go to {actions[take].partition(' from ')[2]}"
            returned = [*other, *([back] if treat > take + 1 else []), f"move {twin} to {back[6:]}"]
            assert actions[take] in fitting(env, rules, actions[:take], task_id)
            assert actions[take] not in fitting(env, rules, returned, task_id)
            return
    pytest.fail("no task with two objects of the wanted type at one place")


def test_the_second_object_goes_where_the_first_one_is(env: ALFWorldEnv) -> None:
    task_id = next(
        task_id for task_id in TASKS if task_id.startswith("two/") and "-shelf/" in task_id and has_two(env, task_id)
    )
    actions = solution(task_id)
    puts = [index for index, action in enumerate(actions) if action.startswith("move")]
    target = actions[puts[0]].rpartition(" to ")[2]
    other = {"shelf 1": "shelf 2", "shelf 2": "shelf 1"}[target]
    rules = rules_of(env, task_id, actions)
    assert fitting(env, rules, actions[: puts[1] - 1], task_id) == {f"go to {target}"}
    first = actions[puts[0]].removeprefix("move ").partition(" to ")[0]
    swapped = [action.replace(target, other) for action in actions[: puts[0] + 1]]
    assert swapped[-1] == f"move {first} to {other}"
    strayed = [*swapped, *actions[puts[0] + 1 : puts[1] - 1]]
    assert fitting(env, rules, strayed, task_id) == set()
    assert fitting(env, rules, [*strayed, f"go to {target}"], task_id) == set()


def test_the_second_object_is_fetched_while_the_first_is_in_sight_at_the_target(env: ALFWorldEnv) -> None:
    for number in range(10):
        task_id = task_of("two", number)
        actions = solution(task_id)
        first_put = next(index for index, action in enumerate(actions) if action.startswith("move"))
        second_take = next(index for index in range(first_put, len(actions)) if actions[index].startswith("take"))
        glance = actions[first_put + 1 : second_take]
        if glance and actions[0] != glance[0]:
            rules = rules_of(env, task_id, actions)
            assert glance[0] in fitting(env, rules, [*glance, *actions[: first_put + 1]], task_id)
            assert glance[0] not in fitting(env, rules, [*glance, actions[0]], task_id)
            return
    pytest.fail("no such task among ten")


def has_two(env: ALFWorldEnv, task_id: str) -> bool:
    """Whether the room has two of the target, and the objects lie elsewhere than in it."""
    observation, _ = env.reset(options={"task_id": task_id})
    return "shelf 2" in observation and sum("shelf" in action for action in solution(task_id)) == 4


def test_the_way_to_the_lamp_is_told_once_the_lamp_has_been_seen(env: ALFWorldEnv) -> None:
    for number in range(20):
        task_id = task_of("look", number)
        actions = solution(task_id)
        if [action.split()[0] for action in actions] == ["go", "take", "go", "use"]:
            lamp_place = actions[2].removeprefix("go to ")
            rules = rules_of(env, task_id, actions)
            assert fitting(env, rules, actions[:2], task_id) == set()
            assert fitting(env, rules, [actions[2], *actions[:2]], task_id) == {f"go to {lamp_place}"}
            assert fitting(env, rules, actions[:3], task_id) == {"use desklamp 1"}
            assert "use desklamp 1" not in fitting(env, rules, [actions[2], "use desklamp 1"], task_id)
            return
    pytest.fail("no such task among twenty")


def test_rules_point_at_the_actions_they_were_read_from_and_quote_what_stood_before(env: ALFWorldEnv) -> None:
    for task_id in TASKS[::25]:
        actions = solution(task_id)
        observations = []
        for turn in range(len(actions)):
            observations.append(play(env, actions[:turn], task_id)[1].split("\n"))
        for rule in rules_of(env, task_id, actions):
            assert rule.action == actions[rule.step]
            assert rule.quote == observations[rule.step][-1][:200]
            assert rule.statement.endswith(rule.action) and len(rule.statement.split()) <= 20


def test_reading_rules_leaves_the_environment_where_it_was(env: ALFWorldEnv) -> None:
    task_id = TASKS[3]
    play(env, solution(task_id)[:2], task_id)
    before = env.snapshot()
    env.rules(solution(task_id))
    assert env.snapshot() == before


def test_another_wording_of_putting_down_is_understood(env: ALFWorldEnv) -> None:
    task_id = task_of("pick")
    actions = list(solution(task_id))
    thing, _, place = actions[-1].removeprefix("move ").partition(" to ")
    actions[-1] = f"put {thing} in {place}"
    assert actions[-1] in {rule.action for rule in rules_of(env, task_id, actions)}


@pytest.mark.parametrize("family", WORDINGS)
def test_every_wording_of_the_task_is_understood(family: str) -> None:
    for wording in WORDINGS[family]:
        request = read_request(wording.format(obj="soapbar", recep="countertop") + ".")
        assert request is not None
        assert (request.family, request.obj, request.recep) == (family, "soapbar", "countertop")


def test_a_task_told_in_other_words_has_no_rules() -> None:
    assert read_request("make me a sandwich.") is None


def test_rules_of_every_family_cover_the_kinds_of_action(env: ALFWorldEnv) -> None:
    verbs = Counter(
        rule.action.split()[0] for task_id in TASKS[::20] for rule in rules_of(env, task_id, solution(task_id))
    )
    assert set(verbs) == {"go", "open", "take", "move", "clean", "heat", "cool", "use"}
