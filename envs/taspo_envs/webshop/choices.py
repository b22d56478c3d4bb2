"""Which options of a product to choose for full reward, and whether any choice gives it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from taspo_envs.webshop import pages
from taspo_envs.webshop.catalogue import Product
from taspo_envs.webshop.goals import Goal
from taspo_envs.webshop.normalize import Option
from taspo_envs.webshop.reward import score

FULL = 1.0 - 1e-9
"""A reward from here on counts as 1.0."""
_TAKEN = {
    text.lower()
    for text in (pages.SEARCH, pages.BUY_NOW, pages.BACK_TO_SEARCH, pages.PREVIOUS_PAGE, *pages.SUB_PAGES)
}


def clickable_values(product: Product) -> dict[str, str]:
    """Option value -> name of its group, for the values that a click can choose.

    A value that stands in two groups belongs to the last; one that is a button's text, is empty, or holds an opening
    bracket or a line break cannot be clicked as an option.
    """
    return {
        value: name
        for name, values in product.options.items()
        for value in values
        if value and value not in _TAKEN and "[" not in value and "\n" not in value
    }


def exact_choice(product: Product, goal: Goal) -> dict[str, str]:
    """The wanted values themselves, where the product has them."""
    owner = clickable_values(product)
    wanted = [option if isinstance(option, str) else option[1] for option in goal.options]
    return {owner[value]: value for value in wanted if value in owner}


def full_choice(
    bought: Product, wanted: Product, goal: Goal, price: float, *, strict: bool = False
) -> dict[str, str] | None:
    """Options with which buying a product at a price earns full reward; None if no choice of options does.

    Tries the wanted values first, then every way to satisfy each wanted option by one value of some group. Under
    upstream's scores a goal can be beyond all choices: a wanted ("color", "1877black") is compared as it stands with
    a chosen "1877black" that has been reduced to "black".
    """
    exact = exact_choice(bought, goal)
    reward = score(bought, wanted, goal, price, exact, strict=strict)
    if reward.reward >= FULL:
        return exact
    if reward.r_option in (None, 1.0) or reward.r_type < 1 or reward.r_att < 1 or not reward.r_price:
        return None
    fitting = [_fitting(bought, wanted, goal, option, price, strict) for option in goal.options]
    return _combine(fitting, {})


def _fitting(
    bought: Product, wanted: Product, goal: Goal, option: Option, price: float, strict: bool
) -> list[tuple[str, str]]:
    """(group, value) pairs that satisfy one wanted option."""
    alone = Goal(goal.asin, goal.instruction, (), (option,), goal.price_upper)
    return [
        (name, value)
        for value, name in clickable_values(bought).items()
        if score(bought, wanted, alone, price, {name: value}, strict=strict).r_option == 1.0
    ]


def _combine(fitting: Sequence[Sequence[tuple[str, str]]], chosen: Mapping[str, str]) -> dict[str, str] | None:
    """One pair for each wanted option, at most one value a group; None if there is no such choice."""
    if not fitting:
        return dict(chosen)
    first, *rest = fitting
    for name, value in first:
        if chosen.get(name, value) == value:
            combined = _combine(rest, {**chosen, name: value})
            if combined is not None:
                return combined
    return None
