"""What users of WebShop reported (C21 to C29), each with its right value."""

from __future__ import annotations

import json
import os
import random
import resource
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import recorded

from taspo_envs.webshop.catalogue import Product
from taspo_envs.webshop.env import WebShopEnv
from taspo_envs.webshop.goals import Goal
from taspo_envs.webshop.normalize import Option
from taspo_envs.webshop.reward import Reward, score
from taspo_envs.webshop.session import Session
from taspo_envs.webshop.splits import PROTOCOLS

COPY = recorded.COPIES / "catalogue.json.gz"
SHIRT = Product(
    asin="B000000001",
    title="Acme Cotton Shirt",
    category="fashion",
    query="shirts",
    product_category="Clothing › Shirts",
    description="",
    bullets=(),
    pricing=(50.0,),
    price_tag="$50.0",
    options={},
    attributes=("slim fit",),
    nouns=("acme", "cotton", "shirt"),
)


def _score(
    chosen: str | None, wanted: tuple[Option, ...], price: float = 40.0, cap: float = 50.0, strict: bool = False
) -> Reward:
    goal = Goal(SHIRT.asin, "", ("slim fit",), wanted, cap)
    return score(SHIRT, SHIRT, goal, price, {"option": chosen} if chosen else {}, strict=strict)


@pytest.fixture(scope="module")
def raw_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of raw files with price ranges, laid out like the shared data."""
    folder = tmp_path_factory.mktemp("data") / "webshop"
    folder.mkdir()
    raw = recorded.read(COPY)
    (folder / "items_shuffle_120.json").write_text(json.dumps(raw["products"]))
    (folder / "items_ins_v2_120.json").write_text(json.dumps(raw["attributes"]))
    (folder / "items_human_ins.json").write_text(json.dumps(raw["human_instructions"]))
    return folder.parent


DRAW = """
import json, random, sys
from taspo_envs.webshop.env import PROTOCOLS, WebShopEnv
worker = int(sys.argv[1])
random.seed(worker)
found = {}
for protocol in PROTOCOLS:
    envs = [WebShopEnv(protocol=protocol) for _ in range(2)]
    drawn = {env.reset(seed=100 * worker + seed)[1]["task_id"] for seed in range(150) for env in envs}
    drawn |= {envs[0].reset()[1]["task_id"] for _ in range(150)}
    held = {name: split.task_ids for name, split in envs[0].splits().items() if split.kind != "train"}
    found[protocol] = {"drawn": sorted(drawn), "held": held}
print(json.dumps(found))
"""


def test_c1_no_worker_of_any_seed_draws_an_evaluation_goal_in_training() -> None:
    commands = [[sys.executable, "-c", DRAW, str(worker)] for worker in range(3)]
    workers = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONHASHSEED": str(seed)})
        for seed, command in enumerate(commands)
    ]
    found = [json.loads(worker.communicate()[0]) for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0, 0]
    for protocol in PROTOCOLS:
        own = WebShopEnv(protocol=protocol).splits()
        held = {name: list(split.task_ids) for name, split in own.items() if split.kind != "train"}
        assert held and all(worker[protocol]["held"] == held for worker in found)
        drawn = {task_id for worker in found for task_id in worker[protocol]["drawn"]}
        assert len(drawn) > 300 and drawn <= set(own["train"].task_ids)
        assert drawn.isdisjoint(task_id for task_ids in held.values() for task_id in task_ids)


@pytest.mark.parametrize("hash_seed", ["1", "2"])
def test_c21_every_process_sees_the_same_goals_and_caps(raw_folder: Path, hash_seed: str, tmp_path: Path) -> None:
    code = (
        "import random, sys; random.seed(int(sys.argv[2])); from taspo_envs.webshop.env import WebShopEnv; "
        "env = WebShopEnv(data=sys.argv[1], goals='synthetic'); "
        "print(ascii([env.store.goal(i) for i in env.store.goal_ids('synthetic')]))"
    )
    environment = {**os.environ, "TASPO_CACHE": str(tmp_path), "PYTHONHASHSEED": hash_seed}
    command = [sys.executable, "-c", code, str(raw_folder), hash_seed]
    other = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout.strip()
    env = WebShopEnv(data=str(raw_folder), goals="synthetic")
    assert other == ascii([env.store.goal(goal_id) for goal_id in env.store.goal_ids("synthetic")])


@pytest.mark.parametrize("cap", [0.0, -5.0])
def test_c22_a_cap_that_is_not_positive_is_no_cap(cap: float) -> None:
    assert _score(None, (), price=1e6, cap=cap).reward == 1.0


def test_c22_a_goal_without_attributes_is_scored_on_the_rest() -> None:
    goal = Goal(SHIRT.asin, "", (), ("red",), 50.0)
    assert score(SHIRT, SHIRT, goal, 40.0, {"color": "red"}).reward == 1.0
    assert score(SHIRT, SHIRT, goal, 40.0, {}).reward == 0.5


@pytest.mark.parametrize(
    ("chosen", "wanted"),
    [("x-large", "large"), ("dark blue", "light blue"), ("tan", "titanium"), ("pack of 1", "pack of 12")],
)
def test_c23_lenient_matches_score_full_as_upstream_and_the_strict_variant_tells_them_apart(
    chosen: str, wanted: str
) -> None:
    assert _score(chosen, (wanted,)).reward == 1.0
    assert _score(chosen, (wanted,), strict=True).r_option == 0.0
    assert _score(wanted, (wanted,), strict=True).reward == 1.0


def test_c23_blue_for_navy_scores_no_option() -> None:
    assert _score("blue", ("navy",)).r_option == 0.0


def test_c23_the_strict_variant_heeds_the_name_of_an_option_where_the_goal_has_one() -> None:
    goal = Goal(SHIRT.asin, "", ("slim fit",), (("sleeve", "long"),), 50.0)
    assert score(SHIRT, SHIRT, goal, 40.0, {"sleeve": "long"}, strict=True).reward == 1.0
    assert score(SHIRT, SHIRT, goal, 40.0, {"fit": "long"}, strict=True).r_option == 0.0


def test_c24_a_price_equal_to_the_cap_is_fine_and_a_cent_more_is_not() -> None:
    assert _score("red", ("red",), price=50.00).reward == 1.0
    assert _score("red", ("red",), price=50.01).reward == pytest.approx(2 / 3)


@pytest.fixture
def env() -> WebShopEnv:
    env = WebShopEnv(split="valid_seen")
    env.reset(options={"task_id": env.split.task_ids[0]})
    return env


ODD_ACTIONS = (
    "search[]",
    "Search[red]",
    " search[red]",
    "click[size[10]]",
    "think[a] click[buy now]",
    "click[nothing]",
    "",
    "click",
    "click[",
    "search[red",
    "click[search]",
    "search[a\nb]",
    "🙂",
    "[]",
    "click[\ud800]",
    "x" * 4096,
)


@pytest.mark.parametrize("action", [*ODD_ACTIONS, "click[buy now]"])
def test_c25_unusable_actions_show_the_same_page_cost_a_step_and_say_so(env: WebShopEnv, action: str) -> None:
    before, page = env.state_key, env.reset(options={"task_id": env.task_id})[0]
    observation, reward, terminated, _, info = env.step(action)
    assert (observation, reward, terminated, info["is_action_valid"]) == (page, 0.0, False, False)
    assert (info["state_key"], env.steps) == (before, 1)


@pytest.mark.parametrize("action", [*ODD_ACTIONS, "click[next >]", "Click[buy now]", " click[buy now]"])
def test_c25_unusable_actions_change_nothing_on_an_item_page_either(env: WebShopEnv, action: str) -> None:
    while "click[buy now]" not in (env.admissible_actions or []):
        page, *_, info = env.step(env.solve()[0])
    before, saved, steps = info["state_key"], env.save(), env.steps
    observation, reward, terminated, _, info = env.step(action)
    assert (observation, reward, terminated, info["is_action_valid"]) == (page, 0.0, False, False)
    assert (info["state_key"], env.save(), env.steps) == (before, saved, steps + 1)
    assert "click[buy now]" in info["admissible_actions"]


@pytest.mark.parametrize("action", ["search[\ud800]", "search[red \udfff shoes]"])
def test_c25_a_lone_surrogate_is_searched_as_a_question_mark(env: WebShopEnv, action: str) -> None:
    observation, *_, info = env.step(action)
    assert info["is_action_valid"]
    assert info["state_key"] == env.state_key and "?" in info["state_key"]
    for text in (observation, info["state_key"], env.snapshot(), env.render() or ""):
        text.encode()


@pytest.mark.parametrize("action", ["search[red]", "search[RED] now", "search[ ]", "search[red]]", "search[the]"])
def test_c25_a_search_is_a_search_whatever_it_finds_or_is_followed_by(env: WebShopEnv, action: str) -> None:
    *_, info = env.step(action)
    assert info["is_action_valid"] and info["state_key"].startswith("page results")


@pytest.mark.parametrize("query", ["<r>", "<a> x", "<c>", "<c> fashion", "<q>", "<q> popcorn"])
def test_c25_special_searches_never_crash_and_show_the_same_on_every_try(env: WebShopEnv, query: str) -> None:
    pages = []
    for _ in range(2):
        env.reset(options={"task_id": env.task_id})
        pages.append(env.step(f"search[{query}]"))
    assert pages[0] == pages[1]


def test_c26_memory_stays_flat_over_ten_thousand_resets() -> None:
    env = WebShopEnv()
    for seed in range(2000):
        env.reset(seed=seed)
    before = _resident()
    for seed in range(10_000):
        env.reset(seed=seed)
    assert _resident() - before < 2e6


def _resident() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def test_c27_consecutive_seeds_reach_every_goal_of_a_split_equally_often() -> None:
    env = WebShopEnv(split="valid_unseen")
    drawn = Counter(env.reset(seed=seed)[1]["task_id"] for seed in range(500))
    assert drawn == dict.fromkeys(env.split.task_ids, 5)
    unseeded = {env.reset()[1]["task_id"] for _ in range(50)}
    assert len(unseeded) > 20 and unseeded <= set(env.split.task_ids)
    train = WebShopEnv()
    assert len({train.reset(seed=seed)[1]["task_id"] for seed in range(500)}) == 500


def test_c28_environments_share_one_store_of_mapped_files() -> None:
    first, second = WebShopEnv(), WebShopEnv(split="valid_seen", observation_mode="text_rich")
    assert first.store is second.store
    arrays = [value for value in vars(first.store._index).values() if isinstance(value, np.ndarray)]
    assert arrays and not any(array.flags.owndata or array.flags.writeable for array in arrays)


def test_c29_playing_imports_no_tagger_no_java_and_no_server() -> None:
    code = (
        "import sys; from taspo_envs.webshop.env import WebShopEnv; env = WebShopEnv(); env.reset(seed=0); "
        "env.step('search[red]'); "
        "print([name for name in ('spacy', 'jnius', 'pyserini', 'flask', 'torch', 'bs4') if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert run.stdout.strip() == "[]"


def test_global_random_state_is_left_alone() -> None:
    random.seed(7)
    np.random.seed(7)  # noqa: NPY002
    expected = random.random(), np.random.random()  # noqa: NPY002
    random.seed(7)
    np.random.seed(7)  # noqa: NPY002
    env = WebShopEnv()
    env.reset(seed=3)
    env.step("search[<r>]")
    assert (random.random(), np.random.random()) == expected  # noqa: NPY002


def test_an_option_that_cannot_be_clicked_is_never_part_of_a_solution(raw_folder: Path) -> None:
    env = WebShopEnv(data=str(raw_folder), goals="synthetic", max_steps=50)
    bracketed = [
        goal_id for goal_id in env.store.goal_ids("synthetic") if "[" in str(env.store.goal(goal_id).options)
    ]
    assert bracketed
    for goal_id in bracketed:
        env.reset(options={"task_id": goal_id})
        for action in env.solve():
            assert env.step(action)[-1]["is_action_valid"]


def test_every_admissible_click_does_something_on_a_page_with_bracketed_options(raw_folder: Path) -> None:
    env = WebShopEnv(data=str(raw_folder), goals="synthetic", max_steps=50)
    goal_id = next(
        goal_id
        for goal_id in env.store.goal_ids("synthetic")
        if any(
            "[" in value
            for values in env.store.product(env.store.goal(goal_id).asin).options.values()
            for value in values
        )
    )
    asin = env.store.goal(goal_id).asin
    env.reset(options={"task_id": goal_id})
    env.step(f"search[{env.store.product(asin).title}]")
    _, _, _, _, info = env.step(f"click[{asin.lower()}]")
    assert f"item {asin}" in info["state_key"]
    before = env.snapshot()
    assert env.session is not None and any("[" in text for text in env.session.clickables)
    for action in info["admissible_actions"]:
        env.restore(before)
        assert env.step(action)[-1]["is_action_valid"], action


def test_every_goal_of_the_recorded_catalogue_is_won_or_listed_as_beyond_reach(raw_folder: Path) -> None:
    for kind in ("human", "synthetic"):
        env = WebShopEnv(data=str(raw_folder), goals=kind, max_steps=50)
        beyond = set(env.store.splits(kind)["beyond_reach"])
        for goal_id in env.store.goal_ids(kind):
            env.reset(options={"task_id": goal_id})
            for action in env.solve():
                env.step(action)
            assert env.won or goal_id in beyond


def test_a_session_in_a_store_shows_attributes_only_when_asked(raw_folder: Path) -> None:
    store = WebShopEnv(data=str(raw_folder)).store
    goal = store.goal(store.goal_ids("human")[0])
    for shown in (False, True):
        session = Session(store, goal, show_attributes=shown)
        session.act("search[shirt]")
        session.act(f"click[{next(text for text in session.clickables if text.startswith('b0'))}]")
        assert ("attributes" in session.clickables) is shown
