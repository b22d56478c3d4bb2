"""Clean-up, goals, rewards, search terms and rankings equal those recorded from upstream."""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import recorded

from taspo_bench.errors import DataError
from taspo_envs.webshop.analysis import analyze
from taspo_envs.webshop.build import make_goals
from taspo_envs.webshop.catalogue import Oddities, Product, clean_options, clean_pricing, read_products
from taspo_envs.webshop.goals import Goal, draw_cap, draw_price, human_goals, official_order
from taspo_envs.webshop.index import Index, IndexBuilder, document
from taspo_envs.webshop.normalize import normalize_colour
from taspo_envs.webshop.nouns import LexiconTagger
from taspo_envs.webshop.reward import Reward, process, score, token_set_ratio

PARTS = ("reward", "r_type", "r_att", "r_option", "r_price", "query_match", "category_match", "title_score")


def _plain(value: Any) -> Any:
    """JSON's form of a value: tuples are lists."""
    return list(value) if isinstance(value, tuple) else value


def _goal_options(raw: Any) -> tuple[Any, ...]:
    return tuple(raw.items()) if isinstance(raw, dict) else tuple(raw)


def _product(raw: dict[str, Any], nouns: list[str]) -> Product:
    return Product(
        asin="",
        title=raw.get("Title") or raw.get("name") or "",
        category="",
        query=raw["query"],
        product_category=raw["product_category"],
        description=raw.get("Description") or "",
        bullets=tuple(bullet or "" for bullet in raw.get("BulletPoints") or ()),
        pricing=(1.0,),
        price_tag="",
        options={},
        attributes=tuple(raw.get("Attributes") or ()),
        nouns=tuple(nouns),
    )


def _scored(path: Path, case: dict[str, Any]) -> Reward:
    wanted = case["goal"]
    goal = Goal("", "", tuple(wanted["attributes"]), _goal_options(wanted["goal_options"]), wanted["price_upper"])
    if "product_asin" in case:
        catalogue, nouns = recorded.products(path), recorded.read(path)["nouns_of_all_titles"]
        bought = replace(catalogue[case["product_asin"]], nouns=tuple(nouns[case["product_asin"]]))
        asked = replace(catalogue[wanted["asin"]], nouns=tuple(nouns[wanted["asin"]]))
    else:
        bought = _product(case["product"], case["purchased_nouns"])
        asked = _product(wanted, case["goal_nouns"])
    return score(bought, asked, goal, case["price"], case["options"])


@pytest.mark.parametrize("path", recorded.files("*rewards.json.gz"))
def test_every_reward_and_its_parts_equal_the_recorded_ones(path: Path) -> None:
    cases = recorded.read(path)["cases"]
    found = [{part: getattr(_scored(path, case), part) for part in PARTS} for case in cases]
    assert found == [{part: case["expected"].get(part) for part in PARTS} for case in cases]


@pytest.mark.parametrize("path", recorded.files("*rewards.json.gz"))
def test_the_lexicon_finds_most_of_the_nouns_that_upstream_s_tagger_finds(path: Path) -> None:
    raw = recorded.read(path)
    by_title = raw.get("nouns") or {
        recorded.products(path)[asin].title: nouns for asin, nouns in raw["nouns_of_all_titles"].items()
    }
    shared = found = wanted = 0
    for title, nouns in by_title.items():
        ours = LexiconTagger().nouns(title)
        shared += sum((Counter(ours) & Counter(nouns)).values())
        found, wanted = found + len(ours), wanted + len(nouns)
    assert shared / found > 0.9 and shared / wanted > 0.9


@pytest.mark.parametrize("path", recorded.files("rewards.json.gz"))
def test_fuzzy_ratios_equal_the_recorded_ones(path: Path) -> None:
    raw = recorded.read(path)
    assert [token_set_ratio(case["a"], case["b"]) for case in raw["fuzz"]] == [
        case["token_set_ratio"] for case in raw["fuzz"]
    ]
    assert [process(case["s"]) for case in raw["full_process"]] == [case["processed"] for case in raw["full_process"]]


@pytest.mark.parametrize("path", recorded.files("normalize.json.gz"))
def test_colours_are_reduced_as_recorded(path: Path) -> None:
    raw = recorded.read(path)
    for case in [*raw["normalize_color"], *raw["normalize_color_on_tuple"]]:
        given = tuple(case["input"]) if isinstance(case["input"], list) else case["input"]
        assert _plain(normalize_colour(given)) == case["expected"]


@pytest.mark.parametrize("path", recorded.files("normalize.json.gz"))
def test_prices_are_read_as_recorded_and_refused_where_upstream_crashes(path: Path) -> None:
    for case in recorded.read(path)["pricing"]:
        given = None if case["pricing"] == "<key absent>" else case["pricing"]
        if "exception" in case:
            with pytest.raises(DataError):
                clean_pricing(given)
        else:
            prices, tag = clean_pricing(given)
            assert (list(prices), tag) == (case["expected"]["pricing"], case["expected"]["Price"])
            assert draw_price(prices, random.Random(0)) == case["expected"]["price_table_seed0"]


@pytest.mark.parametrize("path", recorded.files("normalize.json.gz"))
def test_options_are_read_as_recorded(path: Path) -> None:
    for case in recorded.read(path)["options"]:
        if "expected" in case:
            options = clean_options(case["customization_options"])
            assert {name: list(values) for name, values in options.items()} == case["expected"]["options"]
        else:
            raw = {"asin": "B1", "customization_options": case["customization_options"]}
            with pytest.raises(DataError):
                list(read_products([{**PLAIN, **raw}], {}, Oddities()))


@pytest.mark.parametrize("pricing", [12.5, ["$1"], "free", "$"])
def test_a_price_that_upstream_stops_at_is_refused(pricing: Any) -> None:
    with pytest.raises(DataError, match="no dollar price can be read from it"):
        clean_pricing(pricing)


PLAIN = {
    "asin": "B000000001",
    "name": "N",
    "category": "c",
    "query": "q",
    "product_category": "A › B",
    "full_description": "d",
    "small_description": ["b"],
    "pricing": "$1.00",
    "customization_options": {},
    "images": ["i.jpg"],
}
UPSTREAM_NAMES = {
    "Title": "title",
    "category": "category",
    "query": "query",
    "product_category": "product_category",
    "Description": "description",
    "BulletPoints": "bullets",
    "pricing": "pricing",
    "Price": "price_tag",
    "Attributes": "attributes",
}


@pytest.mark.parametrize("path", recorded.files("normalize.json.gz"))
def test_products_are_cleaned_as_recorded(path: Path) -> None:
    for case in recorded.read(path)["load_misc"]:
        changes = case["overrides"]
        raw = {**PLAIN, **changes}
        for name in changes.get("_drop", ()):
            del raw[name]
        attributes = changes.get("_attr", {"B000000001": {"attributes": ["x"]}})
        if case["expected"].get("exception") == "KeyError":
            with pytest.raises(DataError):
                list(read_products([raw], attributes, Oddities()))
            continue
        cleaned = list(read_products([raw], attributes, Oddities()))
        if case["label"] == "no images":  # upstream needs an image to load a product, no text shows one
            continue
        assert bool(cleaned) == case["expected"]["loaded"]
        for product in cleaned:
            _assert_cleaned(product, case["expected"]["product"])


def _assert_cleaned(product: Product, expected: dict[str, Any]) -> None:
    for theirs, ours in UPSTREAM_NAMES.items():
        wanted = expected[theirs]
        if theirs in ("Description", "BulletPoints"):  # null crashes upstream's reward; here it is empty text
            wanted = [bullet or "" for bullet in wanted] if isinstance(wanted, list) else wanted or ""
        assert _plain(getattr(product, ours)) == wanted


@pytest.mark.parametrize("path", recorded.files("goals.json.gz"))
def test_caps_and_instruction_texts_equal_the_recorded_ones(path: Path) -> None:
    raw = recorded.read(path)
    plain = next(read_products([PLAIN], {}, Oddities()))
    for case in raw["price_cap"]:
        assert draw_cap(case["price"], random.Random(case["seed"]))[0] == case["price_upper"]
    for case in [*raw["instruction_strip"], *raw["price_cap"]]:
        entry = {
            "instruction": case.get("instruction", "x..y."),
            "instruction_attributes": ["a"],
            "instruction_options": [],
        }
        goal = next(human_goals(plain, case["price"], [entry], random.Random(case["seed"])))
        assert goal.instruction == case["instruction_text"]


@pytest.mark.parametrize("path", recorded.files("*goals.json.gz"))
def test_goals_of_every_seed_equal_the_recorded_ones(path: Path) -> None:
    raw = recorded.read(path)
    for kind in ("human", "synthetic"):
        for case in raw[kind]:
            rng = random.Random(case["seed"])
            goals = _made(path, kind, _prices(path, case), rng)
            assert len(goals) == case["n"]
            assert rng.random() == case["next_random_after"]
            for expected, goal in zip(case.get("goals", case.get("first_60", [])), goals, strict=False):
                _assert_goal(goal, expected)
            if "instruction_text_sha256" in case:
                text = "\n".join(goal.instruction for goal in goals)
                assert hashlib.sha256(text.encode()).hexdigest() == case["instruction_text_sha256"]
            for asin, cap in (case.get("price_upper_per_asin") or {}).items():
                assert {goal.price_upper for goal in goals if goal.asin == asin} == {cap}


def _assert_goal(goal: Goal, expected: dict[str, Any]) -> None:
    assert goal.asin == expected["asin"]
    assert goal.instruction == expected["instruction_text"]
    assert list(goal.attributes) == expected["attributes"]
    assert goal.options == _goal_options(expected["goal_options"])
    assert (goal.price_upper, goal.weight) == (expected["price_upper"], expected["weight"])


def _prices(path: Path, case: dict[str, Any]) -> dict[str, float]:
    """The price table that the goals were made with: the recorded one, or that of the recorded seed."""
    raw = recorded.read(path)
    if "price_tables" in raw:
        table: dict[str, float] = raw["price_tables"][case["price_table"]]
        return table
    rng = random.Random(raw["price_table_seed"])
    return {asin: draw_price(product.pricing, rng) for asin, product in recorded.products(path).items()}


def _made(path: Path, kind: str, prices: dict[str, float], rng: random.Random) -> list[Goal]:
    priced = [(product, prices[asin]) for asin, product in recorded.products(path).items()]
    return [goal for _, _, goal in make_goals(kind, lambda: priced, recorded.source(path), rng)]


@pytest.mark.parametrize("path", recorded.files("*goals.json.gz"))
def test_prices_of_ranges_are_drawn_as_recorded(path: Path) -> None:
    raw = recorded.read(path)
    tables = raw.get("price_tables") or {raw["price_table_seed"]: raw["price_table_ranges_only"]}
    for seed, table in tables.items():
        rng = random.Random(int(seed))
        prices = {asin: draw_price(product.pricing, rng) for asin, product in recorded.products(path).items()}
        assert {asin: prices[asin] for asin in table} == table


@pytest.mark.parametrize("path", recorded.files("*goals.json.gz"))
def test_orders_after_the_fixed_shuffle_equal_the_recorded_ones(path: Path) -> None:
    raw = recorded.read(path)
    shuffles = [*raw.get("shuffle", {}).values(), *(raw[key] for key in raw if key.startswith("shuffle_"))]
    for case in shuffles:
        order = official_order(case["n"])
        joined = ",".join(map(str, order)).encode()
        assert (
            case.get("sha256_of_comma_joined", hashlib.sha256(joined).hexdigest())
            == hashlib.sha256(joined).hexdigest()
        )
        for name in ("order", "first_20", "first_300"):
            if case.get(name):
                assert order[: len(case[name])] == case[name]


@cache
def _index(path: Path, folder: Path) -> Index:
    builder = IndexBuilder()
    for product in recorded.products(path).values():
        builder.add(product)
    builder.write(folder)
    return Index(folder)


@pytest.mark.parametrize("path", recorded.files("*ranking.json.gz"))
def test_every_ranking_equals_the_recorded_one_ties_included(path: Path, tmp_path: Path) -> None:
    index, asins = _index(path, tmp_path), list(recorded.products(path))
    for case in recorded.read(path)["rankings"]:
        rows, scores = index.search(case["query"])
        assert [asins[row] for row in rows] == case["docids"], case["query"]
        assert scores == pytest.approx(case["scores"], abs=1e-4)


@pytest.mark.parametrize("path", recorded.files("*ranking.json.gz"))
def test_search_terms_equal_the_recorded_ones(path: Path) -> None:
    raw = recorded.read(path)
    for case in raw.get("analysis", []):
        assert analyze(case["input"]) == case["tokens"]
    for case in raw["rankings"]:
        assert analyze(case["query"]) == case["tokens"]
    terms = {asin: analyze(document(product)) for asin, product in recorded.products(path).items()}
    assert {asin: len(found) for asin, found in terms.items()} == raw["doc_token_counts"]
    for asin, digest in raw.get("doc_tokens_sha256", {}).items():
        assert hashlib.sha256(" ".join(terms[asin]).encode()).hexdigest() == digest
    for asin, text in raw.get("contents", {}).items():
        assert document(recorded.products(path)[asin]) == text
