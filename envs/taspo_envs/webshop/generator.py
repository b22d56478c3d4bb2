"""An invented catalogue in WebShop's raw schema, the same on every machine, with instructions in people's style.

Each product has attributes of its category, of which it shows two in its title and keeps a third in its bullets. Some
products are twins of an earlier one (same two attributes) of another material, at another price or with other
options, so that an instruction has to be read to its end.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, TypeVar

SEED = 20260901
PRODUCTS_PER_TYPE = 25
TWINS_PER_TYPE = 9
INSTRUCTIONS_PER_PRODUCT = 2
_ASIN_PAIRS = [first + second for first in "JKQVWXZ" for second in "BCDFGHMP"]
"""ASINs are made of pairs of letters that are rare in words, so that a small vocabulary holds them in few tokens."""

T = TypeVar("T")


@dataclass(frozen=True)
class ProductType:
    """One kind of product. ``prices``: lowest and highest whole dollars."""

    category: str
    path: str
    query: str
    noun: str
    materials: list[str]
    options: list[str]
    prices: list[int]


@dataclass(frozen=True)
class Words:
    """What the generator draws from."""

    brands: list[str]
    attributes: dict[str, list[str]]
    option_values: dict[str, list[str]]
    product_types: list[ProductType]


@cache
def words() -> Words:
    """The shipped words."""
    raw = json.loads(resources.files("taspo_envs.webshop").joinpath("product_types.json").read_text("utf-8"))
    types = [ProductType(**entry) for entry in raw["product_types"]]
    return Words(raw["brands"], raw["attributes"], raw["option_values"], types)


class Draw:
    """Choices made from ``random()`` alone, which is the same in every Python version."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)

    def chance(self, share: float) -> bool:
        return self._rng.random() < share

    def number(self, low: int, high: int) -> int:
        return low + int(self._rng.random() * (high - low + 1))

    def one(self, values: Sequence[T]) -> T:
        return values[self.number(0, len(values) - 1)]

    def some(self, values: Sequence[T], count: int) -> list[T]:
        """``count`` different values, in the order in which they are given."""
        left = list(range(len(values)))
        while len(left) > count:
            left.pop(self.number(0, len(left) - 1))
        return [values[place] for place in left]


@dataclass(frozen=True)
class Catalogue:
    """Raw files: products, attributes by ASIN, human instructions by ASIN."""

    products: list[dict[str, Any]]
    attributes: dict[str, Any]
    instructions: dict[str, Any]


def generate(seed: int = SEED, products_per_type: int = PRODUCTS_PER_TYPE, instruct: float = 1.0) -> Catalogue:
    """The catalogue of a seed; ``instruct`` is the share of products that somebody asks for."""
    products: list[dict[str, Any]] = []
    attributes: dict[str, Any] = {}
    instructions: dict[str, Any] = {}
    for product, entry, wishes in iterate(seed, products_per_type, instruct):
        products.append(product)
        attributes[product["asin"]] = entry
        if wishes:
            instructions[product["asin"]] = wishes
    return Catalogue(products, attributes, instructions)


def iterate(
    seed: int, products_per_type: int, instruct: float = 1.0
) -> Iterator[tuple[dict[str, Any], dict[str, Any], list[dict[str, Any]]]]:
    """Products one by one: (raw product, entry of the attribute file, human instructions), types taken in turn."""
    draw = Draw(seed)
    types, attributes_of = words().product_types, words().attributes
    shown: dict[str, list[list[str]]] = {kind.query: [] for kind in types}
    asins: set[str] = set()
    for number in range(products_per_type):
        for kind in types:
            earlier = shown[kind.query]
            twin = earlier and number >= products_per_type - products_per_type * TWINS_PER_TYPE // PRODUCTS_PER_TYPE
            first, second, third = draw.some(attributes_of[kind.category], 3)
            if twin:
                first, second = draw.one(earlier)
                third = draw.one([name for name in attributes_of[kind.category] if name not in (first, second)])
            elif draw.chance(0.5):
                first, second = second, first
            earlier.append([first, second])
            material = draw.one(kind.materials)
            product = _product(draw, kind, _new_asin(draw, asins), (first, second, third), material)
            wishes = [_wish(draw, kind, product, (first, second, material)) for _ in range(INSTRUCTIONS_PER_PRODUCT)]
            if not draw.chance(instruct):
                wishes = []
            elif wishes[0] == wishes[1]:
                wishes = wishes[:1]
            yield product, {"attributes": [first, second, third, material]}, wishes


def _new_asin(draw: Draw, taken: set[str]) -> str:
    while True:
        asin = "B0" + "".join(draw.one(_ASIN_PAIRS) for _ in range(4))
        if asin not in taken:
            taken.add(asin)
            return asin


def _product(
    draw: Draw, kind: ProductType, asin: str, attributes: tuple[str, str, str], material: str
) -> dict[str, Any]:
    first, second, third = attributes
    title = f"{draw.one(words().brands)} {first} {material} {kind.noun}, {second}".title()
    cents = draw.one((0, 49, 50, 90, 95, 99))
    price = f"${draw.number(kind.prices[0], kind.prices[1])}.{cents:02d}"
    options = {}
    for name in kind.options:
        if draw.chance(0.85):
            values = words().option_values[name]
            options[name] = [{"value": value} for value in draw.some(values, draw.number(2, min(4, len(values))))]
    return {
        "asin": asin,
        "name": title,
        "category": kind.category,
        "query": kind.query,
        "product_category": kind.path,
        "full_description": f"This {material} {kind.noun} is {first}.",
        "small_description": [f"{second} {kind.noun}", f"{third} and easy to like"],
        "pricing": "" if draw.chance(0.01) else price,
        "customization_options": options,
        "images": [f"https://images.example/{asin}.jpg"],
        "average_rating": draw.number(20, 50) / 10,
    }


def _wish(draw: Draw, kind: ProductType, product: dict[str, Any], attributes: tuple[str, str, str]) -> dict[str, Any]:
    groups = product["customization_options"]
    wanted = {
        name: draw.one(groups[name])["value"]
        for name in draw.some(list(groups), max(1, len(groups) - draw.number(0, 1)))
    }
    first, second, material = attributes
    opening = draw.one(("i need", "i want", "find me", "i am looking for", "looking for"))
    text = f"{opening} {first}, {second} {material} {kind.noun}"
    if wanted:
        text += " with " + " and ".join(f"{name} {value}" for name, value in wanted.items())
    return {
        "instruction": text,
        "instruction_attributes": list(attributes),
        "instruction_options": list(wanted.values()),
    }
