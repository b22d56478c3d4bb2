"""Reference solutions: what to search, which product to open, which options to choose, then buy."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from taspo_envs.webshop import pages
from taspo_envs.webshop.analysis import analyze
from taspo_envs.webshop.catalogue import Product
from taspo_envs.webshop.goals import Goal
from taspo_envs.webshop.index import document
from taspo_envs.webshop.reward import score
from taspo_envs.webshop.session import PAGE_SIZE, Session

FULL = 1.0 - 1e-9
MOST_COMBINATIONS = 5000
_WORDS = re.compile(r"[^\s,]+")


@dataclass(frozen=True)
class Purchase:
    """A product to buy, the options to choose, and how to get to its page from where the shopper is."""

    asin: str
    options: dict[str, str]
    way: list[str]


def full_choice(session: Session, asin: str, choices: Iterable[dict[str, str]]) -> dict[str, str] | None:
    """The first of some choices of options with which a product earns full reward."""
    store, goal = session.store, session.goal
    product, wanted, price = store.product(asin), store.product(goal.asin), store.price(asin)
    for chosen in choices:
        if score(product, wanted, goal, price, chosen, strict=session.strict).reward >= FULL:
            return chosen
    return None


def _choices(product: Product, goal: Goal) -> Iterator[dict[str, str]]:
    """Options to try, the wanted ones first. Only those that a click can choose: a value that stands in two groups
    belongs to the last."""
    owner = {value: name for name, values in product.options.items() for value in values}
    groups = {name: [value for value in values if owner[value] == name] for name, values in product.options.items()}
    wanted = [option if isinstance(option, str) else option[1] for option in goal.options]
    exact = {owner[value]: value for value in wanted if value in owner}
    yield exact
    free = [name for name in groups if groups[name]]
    every = itertools.product(*([exact.get(name), *groups[name]] for name in free))
    for values in itertools.islice(every, MOST_COMBINATIONS):
        yield {name: value for name, value in zip(free, values, strict=True) if value is not None}


def queries(instruction: str, product: Product) -> Iterator[str]:
    """Searches to try for a product: words of the instruction that its title holds, its title, its document."""
    in_title = set(analyze(product.title))
    words = dict.fromkeys(word.lower() for word in _WORDS.findall(instruction))
    tried = (
        " ".join(word for word in words if in_title.intersection(analyze(word))),
        product.title.lower(),
        document(product),
    )
    for text in tried:
        query = re.sub(r"[\[\]\s]+", " ", text).strip()
        if query:
            yield query


def solve(session: Session) -> list[str]:
    """Actions that lead from the session's present page to a purchase with full reward; [] if none is found."""
    if session.purchase is not None:
        return []
    purchase = _here(session) or _by_search(session)
    if purchase is None:
        return []
    kept = (
        session.options if session.view != "results" and not any("search[" in step for step in purchase.way) else {}
    )
    clicks = [f"click[{value}]" for name, value in purchase.options.items() if kept.get(name) != value]
    return [*purchase.way, *clicks, "click[buy now]"]


def _exact(session: Session, asin: str) -> dict[str, str]:
    return next(_choices(session.store.product(asin), session.goal))


def _here(session: Session) -> Purchase | None:
    """A purchase from the page that the shopper is on: its product, or one that it lists."""
    if session.view == "results":
        listed = [piece.text for piece in session.clickables.values() if piece.kind is pages.Kind.LINK]
        return _first_full(session, listed, [])
    if session.asin is None:
        return None
    back = [] if session.view == "item" else [f"click[{pages.PREVIOUS_PAGE.lower()}]"]
    options = {**session.options, **_exact(session, session.asin)}
    chosen = full_choice(session, session.asin, [options])
    return None if chosen is None else Purchase(session.asin, chosen, back)


def _first_full(session: Session, asins: Iterable[str], way: list[str]) -> Purchase | None:
    for asin in asins:
        chosen = full_choice(session, asin, [_exact(session, asin)])
        if chosen is not None:
            return Purchase(asin, chosen, [*way, f"click[{asin.lower()}]"])
    return None


def _by_search(session: Session) -> Purchase | None:
    """A purchase that a search leads to: of the first result that earns all, else of the goal's own product."""
    store, goal = session.store, session.goal
    own = store.product(goal.asin)
    tried = list(queries(goal.instruction, own))
    for query in tried:
        shown = [store.listing(row)[0] for row in store.search(query)[:PAGE_SIZE]]
        found = _first_full(session, shown, [f"search[{query}]"])
        if found is not None:
            return found
    chosen = full_choice(session, goal.asin, _choices(own, goal))
    if chosen is None:
        return None
    for query in tried:
        rows = store.search(query)
        if store.row(goal.asin) in rows:
            turns = rows.index(store.row(goal.asin)) // PAGE_SIZE
            way = [f"search[{query}]", *["click[next >]"] * turns, f"click[{goal.asin.lower()}]"]
            return Purchase(goal.asin, chosen, way)
    return None
