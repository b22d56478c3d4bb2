"""The reward of a purchase: type x (attributes + options + price) share, as WebShop scores it, or strictly."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rapidfuzz import fuzz
from rapidfuzz.utils import default_process

from taspo_envs.webshop.catalogue import Product
from taspo_envs.webshop.goals import Goal
from taspo_envs.webshop.normalize import Option, normalize_colour

MATCH = 85
_LATIN_1 = dict.fromkeys(range(0x80, 0x100))


@dataclass(frozen=True)
class Reward:
    """A score in [0, 1] and what it is made of. ``r_option`` is None for a goal without options."""

    reward: float
    r_type: float
    r_att: float
    r_option: float | None
    r_price: bool
    query_match: bool
    category_match: bool
    title_score: float


def token_set_ratio(first: Option, second: Option) -> int:
    """Fuzzy likeness of two texts in percent, over their sets of words (thefuzz's token_set_ratio)."""
    a, b = process(first), process(second)
    return round(fuzz.token_set_ratio(a, b)) if a and b else 0


def process(text: Option) -> str:
    """Letters and digits in lower case with spaces between; U+0080 to U+00FF are dropped, later characters stay."""
    return default_process(str(text).translate(_LATIN_1))


def title_overlap(purchased: Sequence[str], wanted: Sequence[str]) -> float:
    """Distinct shared nouns over all wanted nouns, repeats counted below the line only; 0.2 with none wanted."""
    return len(set(purchased) & set(wanted)) / len(wanted) if wanted else 0.2


def type_factor(purchased: Product, wanted: Product) -> tuple[float, bool, bool, float]:
    """(r_type, query_match, category_match, title_score). A title without a shared noun voids any other match."""
    query_match = purchased.query == wanted.query
    categories = [{part.strip() for part in p.product_category.split("›")} for p in (purchased, wanted)]
    category_match = len(categories[0] & categories[1]) >= 2
    title_score = title_overlap(purchased.nouns, wanted.nouns)
    factor = 1.0 if query_match or category_match or title_score > 0.2 else 0.5
    if title_score < 0.1:
        factor = 0.1
    if title_score == 0:
        factor = 0.0
    return factor, query_match, category_match, title_score


def attribute_matches(product: Product, wanted: Iterable[str]) -> int:
    """How many wanted attributes the product has: like one of its own, or standing in its texts."""
    texts = (product.title.lower(), " ".join(product.bullets).lower(), product.description.lower())
    return sum(
        any(token_set_ratio(own, attribute) > MATCH for own in product.attributes)
        or any(attribute in text for text in texts)
        for attribute in wanted
    )


def option_matches(chosen: Iterable[str], wanted: Iterable[Option]) -> int:
    """How many wanted options one of the chosen values is like, once colours are reduced to their base."""
    have = [normalize_colour(value) for value in chosen]
    return sum(
        any(token_set_ratio(value, option) > MATCH for value in have) for option in map(normalize_colour, wanted)
    )


def strict_option_matches(chosen: Mapping[str, str], wanted: Iterable[Option]) -> int:
    """How many wanted options were chosen as they are: the whole value, under its name where the goal has one."""
    return sum(
        option in chosen.values() if isinstance(option, str) else chosen.get(option[0]) == option[1]
        for option in wanted
    )


def score(
    purchased: Product, wanted: Product, goal: Goal, price: float, chosen: Mapping[str, str], *, strict: bool = False
) -> Reward:
    """Score a purchase.

    Args:
        purchased: the product that was bought, for ``price`` dollars with the options ``chosen`` (name -> value).
        wanted: the product that the goal was made from.
        strict: options must match as whole values.

    Where WebShop crashes the value is defined: no wanted attributes count as none of none (r_att 1.0), and a cap
    that is not positive is no cap.
    """
    factor, query_match, category_match, title_score = type_factor(purchased, wanted)
    attributes = attribute_matches(purchased, goal.attributes)
    options = strict_option_matches(chosen, goal.options) if strict else option_matches(chosen.values(), goal.options)
    r_price = goal.price_upper <= 0 or price <= goal.price_upper
    parts = len(goal.attributes) + len(goal.options) + 1
    return Reward(
        reward=(attributes + options + r_price) / parts * factor,
        r_type=factor,
        r_att=attributes / len(goal.attributes) if goal.attributes else 1.0,
        r_option=options / len(goal.options) if goal.options else None,
        r_price=r_price,
        query_match=query_match,
        category_match=category_match,
        title_score=title_score,
    )
