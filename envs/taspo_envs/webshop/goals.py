"""Goals over a catalogue: who asks for what, and the price cap that is drawn for it.

WebShop draws caps and the prices of ranges from Python's global generator at load time, so that each process saw
other texts. Here the caller gives a generator, and the same one gives WebShop's own values for that seed.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from taspo_envs.webshop.catalogue import Product
from taspo_envs.webshop.normalize import Option

CAPS = tuple(10.0 * step for step in range(1, 100))
NO_CAP = 1_000_000.0
SHUFFLE_SEED = 233


@dataclass(frozen=True)
class Goal:
    """One shopping task.

    ``options`` are values, or (name, value) pairs where the goal gives them as an object: the two are scored
    differently. ``price_upper``: dollars. ``weight``: how often WebShop draws the goal at random.
    """

    asin: str
    instruction: str
    attributes: tuple[str, ...]
    options: tuple[Option, ...]
    price_upper: float
    weight: float = 1.0


def draw_price(pricing: Sequence[float], rng: random.Random) -> float:
    """The price that a product is sold at: its price, or a draw from its range (either end may be the larger)."""
    return pricing[0] if len(pricing) == 1 else rng.uniform(*pricing)


def draw_cap(price: float, rng: random.Random) -> tuple[float, str]:
    """A price cap above a price, and the words that state it.

    The larger of two drawn from the first four multiples of ten above the price; none for a price of 980 or more.
    """
    above = [cap for cap in CAPS if cap > price][:4]
    if len(above) < 2:
        return NO_CAP, ""
    cap = max(rng.sample(above, 2))
    return cap, f", and price lower than {cap:.2f} dollars"


def human_goals(
    product: Product, price: float, instructions: Iterable[dict[str, Any]], rng: random.Random
) -> Iterator[Goal]:
    """Goals in people's own words; an instruction without attributes is left out, before any draw."""
    for entry in instructions:
        if entry["instruction_attributes"]:
            cap, words = draw_cap(price, rng)
            yield Goal(
                asin=product.asin,
                instruction=entry["instruction"].strip(".") + words,
                attributes=tuple(entry["instruction_attributes"]),
                options=_options(entry["instruction_options"]),
                price_upper=cap,
            )


def _options(raw: list[str] | dict[str, str]) -> tuple[Option, ...]:
    return tuple(raw.items()) if isinstance(raw, dict) else tuple(raw)


def synthetic_goals(product: Product, price: float, attributes: dict[str, Any], rng: random.Random) -> Iterator[Goal]:
    """One goal for every combination of the product's options, all with one cap; none without an instruction."""
    instruction = attributes.get("instruction")
    if instruction is None:
        return
    cap, price_words = draw_cap(price, rng)
    names = sorted(product.options)
    for values in itertools.product(*(product.options[name] for name in names)):
        chosen = tuple(zip(names, values, strict=True))
        options = ", and ".join(f"{name}: {value}" for name, value in dict(chosen).items())
        option_words = f" with {options}" if options else ""
        yield Goal(
            asin=product.asin,
            instruction=f"{instruction}{option_words}{price_words}",
            attributes=tuple(attributes["instruction_attributes"]),
            options=chosen,
            price_upper=cap,
        )


def synthetic_count(product: Product, attributes: Mapping[str, Any]) -> int:
    """How many goals :func:`synthetic_goals` makes of a product."""
    if attributes.get("instruction") is None:
        return 0
    return math.prod(len(values) for values in product.options.values())


def weighted(goal: Goal, counts: Mapping[str, int]) -> Goal:
    """A synthetic goal with WebShop's weight: the mean over its attributes of one over the attribute's count.

    ``counts``: in how many goals each attribute is wanted. A goal without attributes weighs 0 (WebShop stops there).
    """
    if not goal.attributes:
        return replace(goal, weight=0.0)
    return replace(goal, weight=sum(1.0 / counts[name] for name in goal.attributes) / len(goal.attributes))


def official_order(count: int) -> list[int]:
    """WebShop's order of ``count`` goals: position j of the shuffled list holds goal ``order[j]``."""
    order = list(range(count))
    random.Random(SHUFFLE_SEED).shuffle(order)
    return order
