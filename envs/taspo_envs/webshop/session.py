"""One visit to the shop: where the shopper is, and what each action does there.

The rules are those of WebShop's text environment, its oddities included: which page one is on is read from the url,
``search[..]`` works on every page, and unusable actions change nothing.
"""

from __future__ import annotations

import json
import random
import re
from dataclasses import dataclass
from typing import Any

from taspo_envs.webshop import pages
from taspo_envs.webshop.goals import Goal
from taspo_envs.webshop.reward import Reward, score
from taspo_envs.webshop.store import Store

BASE_URL = "http://127.0.0.1:3000"
PAGE_SIZE = 10
_ACTION = re.compile(r"(.+)\[(.+)\]")
_PAGE_NAMES = ("search_results", "item_page", "item_sub_page", "done")


def parse_action(action: str) -> tuple[str, str | None]:
    """``click[red]`` -> ("click", "red"); without brackets the whole text and None.

    Greedy from the left: ``click[mint [new]]`` is ("click[mint ", "new]"). Text after the last bracket is ignored.
    """
    match = _ACTION.match(action)
    return (match[1], match[2]) if match else (action, None)


@dataclass(frozen=True)
class Purchase:
    """What was bought and what it scored."""

    asin: str
    options: dict[str, str]
    reward: Reward


class Session:
    """A shopper with a goal in a store.

    Args:
        store: the opened catalogue.
        goal: what the shopper wants.
        session_id: stands in the urls.
        show_attributes: whether item pages have an Attributes page, which WebShop leaves out by default.
        strict: score options as whole values.
    """

    def __init__(
        self, store: Store, goal: Goal, session_id: str = "", *, show_attributes: bool = False, strict: bool = False
    ) -> None:
        self.store = store
        self.goal = goal
        self.session_id = session_id
        self.show_attributes = show_attributes
        self.strict = strict
        self.purchase: Purchase | None = None
        self.view = "search"
        self.url = ""
        self.keywords: list[str] | None = None
        self.page: int | None = None
        self.asin: str | None = None
        self.visited: set[str] = set()
        self.options: dict[str, str] = {}
        self.pieces: pages.Page = []
        self.clickables: dict[str, pages.Piece] = {}
        self._to_search_page()

    # --- state ------------------------------------------------------------------------------------

    def save(self) -> dict[str, Any]:
        """Everything that actions can change, as a JSON object."""
        bought = self.purchase
        return {
            "view": self.view,
            "keywords": self.keywords,
            "page": self.page,
            "asin": self.asin,
            "visited": sorted(self.visited),
            "options": list(self.options.items()),
            "url": self.url,
            "bought": bought and [bought.asin, list(bought.options.items())],
        }

    def load(self, state: dict[str, Any]) -> None:
        """Return to a saved state of this goal."""
        self.keywords, self.page, self.asin = state["keywords"], state["page"], state["asin"]
        self.visited, self.options, self.url = set(state["visited"]), dict(state["options"]), state["url"]
        self.view = state["view"]
        self.purchase = None
        if state["bought"]:
            self.purchase = self._score(state["bought"][0], dict(state["bought"][1]))
        self._draw()

    @property
    def page_name(self) -> str:
        """Which page the url points at: the first known name that occurs anywhere in it, "" for the search page."""
        return next((name for name in _PAGE_NAMES if name in self.url), "")

    def text(self) -> str:
        """The present page in observation mode ``text``."""
        return pages.as_text(self.pieces)

    def rich_text(self) -> str:
        """The present page in observation mode ``text_rich``."""
        return pages.as_rich_text(self.pieces, self.url, self.visited)

    # --- actions ----------------------------------------------------------------------------------

    def act(self, action: str) -> bool:
        """Apply an action; False if it means nothing here, and then nothing has changed."""
        name, argument = parse_action(action)
        if not argument:
            return False
        # A lone surrogate is no text that could be searched, sent or written down.
        argument = argument.lower().encode(errors="replace").decode()
        if name == "search":
            return self._search(argument.split(" "), page=1)
        if name == "click" and argument != pages.SEARCH.lower() and argument in self.clickables:
            self._click(argument)
            return True
        return False

    def _click(self, clicked: str) -> None:
        here = self.page_name
        previous = clicked == pages.PREVIOUS_PAGE.lower()
        if clicked == pages.BUY_NOW.lower():
            self._buy()
        elif clicked == pages.BACK_TO_SEARCH.lower():
            self._to_search_page()
        elif clicked == pages.NEXT_PAGE.lower() and here == "search_results":
            self._search(self._words, self._number + 1)
        elif previous and here == "search_results":
            self._search(self._words, self._number - 1)
        elif previous and here == "item_page":
            self._search(self._words, self._number)
        elif not previous and clicked in map(str.lower, pages.SUB_PAGES):
            self._to_sub_page(clicked.capitalize())
        else:
            self._to_item_page(self.clickables[clicked])

    @property
    def _words(self) -> list[str]:
        return self.keywords or [""]

    @property
    def _number(self) -> int:
        return 1 if self.page is None else self.page

    def _search(self, keywords: list[str], page: int) -> bool:
        rows = self._rows(keywords)
        if rows is None:
            return False
        self.view, self.keywords, self.page, self.asin, self.options = "results", keywords, page, None, {}
        self.url = f"{BASE_URL}/search_results/{self.session_id}/{'+'.join(keywords)}/{page}"
        self._draw(rows)
        return True

    def _rows(self, keywords: list[str]) -> list[int] | None:
        """Catalogue rows that a search finds; None for a special search that lacks its argument.

        ``<r>`` shows random products, ``<c> category`` and ``<q> query`` list a category or query. WebShop draws
        ``<r>`` anew each time and crashes on ``<a>``; here the draw is fixed and ``<a>`` is unusable.
        """
        first, rest = keywords[0], keywords[1:]
        if first == "<r>":
            count = len(self.store)
            return random.Random(0).sample(range(count), min(50, count))
        if first == "<a>" or (first == "<c>" and not rest):
            return None
        if first == "<c>":
            return self.store.rows_where("category", rest[0].strip())
        if first == "<q>":
            return self.store.rows_where("query", " ".join(rest).strip())
        return self.store.search(" ".join(keywords))

    def _to_search_page(self) -> None:
        self.view = "search"
        self.keywords = self.page = self.asin = None
        self.visited, self.options = set(), {}
        self.url = f"{BASE_URL}/{self.session_id}"
        self._draw()

    def _to_item_page(self, clicked: pages.Piece) -> None:
        if clicked.kind is pages.Kind.LINK:
            self.asin = clicked.text
            self.visited.add(clicked.text)
        elif clicked.kind is pages.Kind.OPTION:
            self.options[clicked.name.lower()] = clicked.text
        self.view = "item"
        self.url = (
            f"{BASE_URL}/item_page/{self.session_id}/{self.asin}/{'+'.join(self._words)}/{self.page}/"
            f"{json.dumps(self.options)}"
        )
        self._draw()

    def _to_sub_page(self, name: str) -> None:
        self.view = name
        self.url = (
            f"{BASE_URL}/item_sub_page/{self.session_id}/{self.asin}/{'+'.join(self._words)}/{self.page}/{name}/"
            f"{self.options}"
        )
        self._draw()

    def _buy(self) -> None:
        assert self.asin is not None
        self.purchase = self._score(self.asin, dict(self.options))
        self.view = "done"
        self.url = f"{BASE_URL}/done/{self.session_id}/{self.asin}/{self.options}"
        self._draw()

    def _score(self, asin: str, options: dict[str, str]) -> Purchase:
        bought, wanted = self.store.product(asin), self.store.product(self.goal.asin)
        price = self.store.price(asin)
        return Purchase(asin, options, score(bought, wanted, self.goal, price, options, strict=self.strict))

    # --- drawing ----------------------------------------------------------------------------------

    def _draw(self, rows: list[int] | None = None) -> None:
        """Set ``pieces`` and ``clickables`` to those of the present page."""
        wanted = self.goal.instruction
        if self.view == "search":
            self.pieces = pages.search_page(wanted)
        elif self.view == "results":
            rows = (self._rows(self._words) or []) if rows is None else rows
            shown = rows[(self._number - 1) * PAGE_SIZE : self._number * PAGE_SIZE]
            listed = [self.store.listing(row) for row in shown]
            self.pieces = pages.results_page(wanted, self._number, len(rows), listed)
        elif self.view == "done":
            assert self.purchase is not None
            bought = self.purchase
            self.pieces = pages.done_page(bought.asin, bought.options, bought.reward.reward)
        else:
            assert self.asin is not None
            product = self.store.product(self.asin)
            if self.view == "item":
                self.pieces = pages.item_page(wanted, product, self.show_attributes)
            else:
                self.pieces = pages.sub_page(wanted, product, self.view)
        self.clickables = pages.clickables(self.pieces)
