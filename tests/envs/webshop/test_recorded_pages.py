"""Episodes, action parsing and search results equal those recorded from upstream's text environment."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import recorded

from taspo_envs.webshop.build import build
from taspo_envs.webshop.goals import Goal, official_order
from taspo_envs.webshop.session import Session, parse_action
from taspo_envs.webshop.store import Store, open_store

Stores = Callable[[Path], Store]


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Stores:
    """The store of a recorded file's catalogue, built with the seed of its server."""

    @cache
    def opened(path: Path) -> Store:
        folder = tmp_path_factory.mktemp("store") / path.name
        seed = recorded.read(path)["meta"]["server_seed"]
        return open_store(build(recorded.source(path), folder, recorded.tagger(path), seed=seed))

    return opened


def _goal(store: Store, kind: str, wanted: dict[str, Any]) -> Goal:
    """The goal of that text and product that wants the same."""
    options = wanted["goal_options"]
    same = (
        wanted["asin"],
        wanted["instruction_text"],
        tuple(wanted["attributes"]),
        tuple(options.items() if isinstance(options, dict) else options),
    )
    for goal_id in store.goal_ids(kind):
        goal = store.goal(goal_id)
        if (goal.asin, goal.instruction, goal.attributes, goal.options) == same:
            return goal
    raise AssertionError(f"no {kind} goal reads {wanted['instruction_text']!r}")


def _episode_differences(session: Session, episode: dict[str, Any]) -> list[str]:
    steps = [{"action": None, "reward": 0, "done": False, **episode["initial"]}, *episode["steps"]]
    differences = []
    for number, step in enumerate(steps):
        if "obs" not in step:  # upstream crashed on this action, ours answers
            session.act(step["action"])
            break
        if str(step["action"]).startswith("search[<r>"):  # upstream's draw is from a generator that it does not seed
            break
        already = session.purchase
        bought_now = step["action"] is not None and session.act(step["action"]) and session.purchase is not already
        reward = session.purchase.reward.reward if bought_now and session.purchase else 0.0
        shown = {"text": session.text(), "text_rich": session.rich_text()}
        here = {
            "url": session.url,
            "clickables": list(session.clickables),
            "reward": reward,
            "done": bought_now,
            **shown,
        }
        expected = {
            "url": step["url"],
            "clickables": step["available"]["clickables"],
            "reward": step["reward"],
            "done": step["done"],
            **step["obs"],
        }
        if episode["env_kwargs"]:  # upstream puts earlier turns in front of the observation, ours is the page
            expected.update({mode: text for mode, text in shown.items() if expected[mode].endswith(text)})
        differences += [
            f"{episode['name']} step {number} {step['action']!r} {key}:\n{here[key]!r}\n{expected[key]!r}"
            for key in here
            if here[key] != expected[key]
        ]
    return differences


@pytest.mark.parametrize("path", recorded.files("*episodes.json.gz"))
def test_every_episode_shows_the_recorded_pages_actions_and_rewards(path: Path, stores: Stores) -> None:
    store = stores(path)
    differences: list[str] = []
    for episode in recorded.read(path)["episodes"]:
        goal = _goal(store, episode["server"], episode["goal"])
        session = Session(store, goal, episode["session_id"], show_attributes=episode["show_attrs"])
        differences += _episode_differences(session, episode)
    assert not differences, "\n".join(differences[:3])


@pytest.mark.parametrize("path", recorded.files("*episodes.json.gz"))
def test_goals_stand_at_the_recorded_places_of_the_shuffled_order(path: Path, stores: Stores) -> None:
    store = stores(path)
    for episode in recorded.read(path)["episodes"]:
        if episode["session_type"] == "int":
            ids = store.goal_ids(episode["server"])
            goal = store.goal(ids[official_order(len(ids))[episode["session"]]])
            assert goal.instruction == episode["goal"]["instruction_text"]
            assert goal.price_upper == episode["goal"]["price_upper"]


@pytest.mark.parametrize("path", recorded.files("*episodes.json.gz"))
def test_searches_list_the_recorded_products(path: Path, stores: Stores) -> None:
    store = stores(path)
    rankings = recorded.read(path)["rankings"]
    found = {query: [store.listing(row)[0] for row in store.search(query)] for query in rankings}
    assert found == rankings


@pytest.mark.parametrize("path", recorded.files("parse.json.gz"))
def test_actions_are_parsed_as_recorded(path: Path) -> None:
    cases = recorded.read(path)["parse_action"]
    assert [list(parse_action(case["input"])) for case in cases] == [case["expected"] for case in cases]
