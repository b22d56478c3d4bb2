"""Generated households: the same everywhere, playable by construction, and built as the docstrings promise."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taspo_bench.errors import InputError
from taspo_envs.alfworld import generator, household
from taspo_envs.alfworld.splits import embedded_splits

TASKS = [task_id for split in embedded_splits().values() for task_id in split.task_ids]
FACT = re.compile(r"^\((\w+) (\S+)(?: (\S+))?\)$", re.M)


@cache
def game(task_id: str) -> dict[str, Any]:
    return generator.generate(task_id)


def facts(task_id: str, predicate: str) -> list[tuple[str, ...]]:
    return [
        tuple(part for part in match.groups()[1:] if part)
        for match in FACT.finditer(game(task_id)["pddl_problem"])
        if match[1] == predicate
    ]


def held_in(task_id: str) -> list[tuple[str, str]]:
    """Object type and receptacle type of every object's place."""
    receptacle = {thing: type_.removesuffix("Type") for thing, type_ in facts(task_id, "receptacleType")}
    return [(thing.split("_bar_")[0], receptacle[place]) for thing, place in facts(task_id, "inReceptacle")]


def test_another_process_makes_the_same_bytes() -> None:
    chosen = TASKS[::200]
    code = (
        "import json, random, sys; from taspo_envs.alfworld.generator import generate; random.seed(5);"
        "print(json.dumps([generate(task) for task in sys.argv[1:]]))"
    )
    shown = subprocess.run([sys.executable, "-c", code, *chosen], capture_output=True, text=True, check=True).stdout
    assert json.loads(shown) == [game(task_id) for task_id in chosen]


def test_generating_leaves_global_random_state_alone() -> None:
    random.seed(3)
    np.random.seed(3)  # noqa: NPY002
    before, numpy_before = random.getstate(), np.random.get_state()[1].tolist()  # noqa: NPY002
    generator.generate(TASKS[7])
    assert random.getstate() == before
    assert np.random.get_state()[1].tolist() == numpy_before  # noqa: NPY002


def test_rooms_have_the_promised_size() -> None:
    for task_id in TASKS:
        assert 8 <= len(facts(task_id, "receptacleType")) <= 14, task_id
        assert 8 <= len(facts(task_id, "objectType")) <= 16, task_id


def test_no_two_rooms_of_a_kind_have_the_same_furniture() -> None:
    for kind, count in generator.ROOMS.items():
        rooms = [tuple(sorted(room.items())) for room in generator.layouts(kind)]
        assert len(rooms) == len(set(rooms)) == count


def test_a_room_is_the_same_in_all_its_games() -> None:
    seen: dict[str, set[tuple[str, ...]]] = {}
    for task_id in TASKS:
        seen.setdefault(task_id.split("/")[2], set()).add(
            tuple(sorted(r for r, _ in facts(task_id, "receptacleType")))
        )
    assert {room for room, sets in seen.items() if len(sets) > 1} == set()


def test_every_receptacle_has_a_location_of_its_own_and_the_agent_starts_at_none() -> None:
    for task_id in TASKS[::10]:
        places = [place for _, place in facts(task_id, "receptacleAtLocation")]
        assert len(set(places)) == len(places)
        assert facts(task_id, "atLocation")[0][1] not in places


def test_ids_name_one_thing_each() -> None:
    for task_id in TASKS:
        things = [thing for thing, _ in facts(task_id, "receptacleType") + facts(task_id, "objectType")]
        assert len(set(things)) == len(things), task_id


def test_things_stand_only_where_such_things_are_kept() -> None:
    for task_id in TASKS:
        kind = task_id.split("/")[2].rpartition("-")[0]
        for obj, place in held_in(task_id):
            if obj == household.LAMP:
                assert place in household.LAMP_PLACES[kind]
            else:
                assert place in household.PLACES[kind][obj] or place == "SideTable", task_id


def test_no_goal_object_begins_where_it_is_wanted() -> None:
    for task_id in TASKS:
        combo, _ = generator.parse_id(task_id)
        if combo.family in ("pick", "two"):
            assert (combo.obj, combo.recep) not in held_in(task_id), task_id


def test_a_task_has_the_goal_objects_station_and_target_that_it_needs() -> None:
    for task_id in TASKS:
        combo, _ = generator.parse_id(task_id)
        objects = Counter(obj for obj, _ in held_in(task_id))
        receptacles = {type_.removesuffix("Type") for _, type_ in facts(task_id, "receptacleType")}
        assert objects[combo.obj] >= (2 if combo.family == "two" else 1)
        assert (
            generator.STATIONS.get(combo.family, "CounterTop") in receptacles
            or combo.family not in generator.STATIONS
        )
        if combo.family == "look":
            assert objects[household.LAMP] == 1
        else:
            assert combo.recep in receptacles
            assert (f"{combo.recep}Type", f"{combo.obj}Type") in facts(task_id, "canContain")


def test_whatever_is_picked_up_can_be_put_down_somewhere() -> None:
    for task_id in TASKS:
        held = {obj for _, obj in facts(task_id, "canContain")}
        movable = {f"{thing.split('_bar_')[0]}Type" for (thing,) in facts(task_id, "pickupable")}
        assert movable <= held, task_id


def test_a_fair_share_of_goal_objects_is_out_of_sight() -> None:
    hidden = Counter()
    for task_id in TASKS:
        combo, _ = generator.parse_id(task_id)
        hidden.update(place in household.OPENABLE for obj, place in held_in(task_id) if obj == combo.obj)
    assert 0.25 < hidden[True] / hidden.total() < 0.5


def test_the_task_sentence_has_several_wordings() -> None:
    for family, wordings in generator.WORDINGS.items():
        for wording in wordings:
            sentence = re.compile(re.escape(wording).replace(r"\{obj\}", r"\w+").replace(r"\{recep\}", r"\w+"))
            told = [game(task_id)["task"] for task_id in TASKS if task_id.startswith(f"{family}/")]
            assert sum(bool(sentence.fullmatch(task)) for task in told) > len(told) / 4


def test_the_walkthrough_visits_before_it_takes_and_ends_with_the_deed() -> None:
    last = {"look": "use", "pick": "move", "clean": "move", "heat": "move", "cool": "move", "two": "move"}
    for task_id in TASKS:
        steps = game(task_id)["walkthrough"]
        assert steps[0].startswith("go to ")
        assert steps[-1].split()[0] == last[task_id.split("/")[0]]


@given(st.text(max_size=60) | st.sampled_from(TASKS).map(lambda task_id: task_id[:-1] + "x"))
@settings(max_examples=60, deadline=None)
def test_a_wrong_id_is_refused_in_one_line(task_id: str) -> None:
    if task_id in TASKS:
        return
    with pytest.raises(InputError) as caught:
        generator.parse_id(task_id)
    assert "names no game" in str(caught.value)


@given(st.integers(0, 9999), st.sampled_from(TASKS))
@settings(max_examples=40, deadline=None)
def test_any_number_makes_a_game_of_the_same_request(number: int, task_id: str) -> None:
    other = f"{task_id[:-4]}{number:04d}"
    assert generator.generate(other)["task_type"] == game(task_id)["task_type"]
    assert other == task_id or generator.generate(other)["pddl_problem"] != game(task_id)["pddl_problem"]
