"""Reference solutions: what to search, which product to open, which options to choose, then buy."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from taspo_envs.webshop import pages
from taspo_envs.webshop.analysis import analyze
from taspo_envs.webshop.catalogue import Product
from taspo_envs.webshop.choices import FULL, exact_choice, full_choice
from taspo_envs.webshop.index import document
from taspo_envs.webshop.reward import score
from taspo_envs.webshop.session import PAGE_SIZE, Session

_WORDS = re.compile(r"[^\s,]+")
_PREVIOUS = f"click[{pages.PREVIOUS_PAGE.lower()}]"
_BUY = f"click[{pages.BUY_NOW.lower()}]"


@dataclass(frozen=True)
class Purchase:
    """A product to buy, the options to choose, and how to get to its page from where the shopper is."""

    asin: str
    options: dict[str, str]
    way: list[str]


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
    """Actions that lead from the session's present page to a purchase with full reward; [] if there is none."""
    if session.purchase is not None:
        return []
    purchase = _here(session) or _by_search(session)
    if purchase is None:
        return []
    kept = session.options if session.asin == purchase.asin and purchase.way in ([], [_PREVIOUS]) else {}
    clicks = [f"click[{value}]" for name, value in purchase.options.items() if kept.get(name) != value]
    return [*purchase.way, *clicks, _BUY]


def _here(session: Session) -> Purchase | None:
    """A purchase from the page that the shopper is on: of its product, or of one that it lists."""
    if session.view == "results":
        listed = [piece.text for piece in session.clickables.values() if piece.kind is pages.Kind.LINK]
        return _first_full(session, listed, [])
    if session.asin is None:
        return None
    store, goal = session.store, session.goal
    product, wanted = store.product(session.asin), store.product(goal.asin)
    options = {**session.options, **exact_choice(product, goal)}
    reward = score(product, wanted, goal, store.price(session.asin), options, strict=session.strict)
    back = [] if session.view == "item" else [_PREVIOUS]
    return Purchase(session.asin, options, back) if reward.reward >= FULL else None


def _first_full(session: Session, asins: Iterable[str], way: list[str]) -> Purchase | None:
    """The first of some products that earns full reward with the very options that are wanted."""
    store, goal = session.store, session.goal
    wanted = store.product(goal.asin)
    for asin in asins:
        product = store.product(asin)
        options = exact_choice(product, goal)
        if score(product, wanted, goal, store.price(asin), options, strict=session.strict).reward >= FULL:
            return Purchase(asin, options, [*way, f"click[{asin.lower()}]"])
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
    chosen = full_choice(own, own, goal, store.price(goal.asin), strict=session.strict)
    if chosen is None:
        return None
    for query in tried:
        rows = store.search(query)
        if store.row(goal.asin) in rows:
            turns = rows.index(store.row(goal.asin)) // PAGE_SIZE
            way = [f"search[{query}]", *["click[next >]"] * turns, f"click[{goal.asin.lower()}]"]
            return Purchase(goal.asin, chosen, way)
    return None
