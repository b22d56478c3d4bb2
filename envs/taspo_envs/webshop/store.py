"""A built catalogue: one read-only folder of memory-mapped files that every environment of a machine shares.

``products`` and ``listings`` are text columns in catalogue order, ``prices`` the drawn prices, ``asins`` the ids in
ascending order (``by_asin`` of the index gives their rows), ``goals-KIND`` the goals, ``splits-KIND.json`` splits.
"""

from __future__ import annotations

import json
import re
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from taspo_bench.errors import DataError, InputError
from taspo_envs.webshop.catalogue import Product
from taspo_envs.webshop.columns import TextColumn, map_array
from taspo_envs.webshop.goals import Goal
from taspo_envs.webshop.index import Index

MANIFEST = "manifest.json"
FORMAT = 3
HUMAN, SYNTHETIC = "human", "synthetic"
GOAL_KINDS = (HUMAN, SYNTHETIC)
KINDS = {kind[0]: kind for kind in GOAL_KINDS}
GOAL_ID = re.compile(r"([hs])(0|[1-9][0-9]*)", re.ASCII)


class Store:
    """An opened catalogue. Rows number the products in catalogue order."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.manifest = read_manifest(folder)
        self._products = TextColumn(folder / "products")
        self._listings = TextColumn(folder / "listings")
        self._asins = TextColumn(folder / "asins")
        self._by_asin = map_array(folder / "by_asin.npy")
        self._prices = map_array(folder / "prices.npy")
        self._index = Index(folder)
        self.product = lru_cache(maxsize=1024)(self._read_product)
        self.search = lru_cache(maxsize=1024)(self._search)

    def __len__(self) -> int:
        return len(self._products)

    def row(self, asin: str) -> int:
        """Row of a product; :class:`InputError` if there is none of that ASIN."""
        place = self._asins.find(asin)
        if place is None:
            raise InputError(f"no product {asin!r} in {self.folder}: it has {len(self)} products")
        return int(self._by_asin[place])

    def _read_product(self, asin: str) -> Product:
        return Product.from_json(self._products[self.row(asin)])

    def price(self, asin: str) -> float:
        """What a product is sold at, in dollars."""
        return float(self._prices[self.row(asin)])

    def listing(self, row: int) -> tuple[str, str, str]:
        """ASIN, title and price tag, as a results page shows them."""
        asin, title, price_tag = json.loads(self._listings[row])
        return asin, title, price_tag

    def _search(self, query: str) -> list[int]:
        return self._index.search(query)[0]

    def rows_where(self, field: str, value: str) -> list[int]:
        """Rows whose ``category`` or ``query`` is a value."""
        codes, names = (
            map_array(self.folder / f"{field}.npy"),
            TextColumn(self.folder / f"{field}_names"),
        )
        code = names.find(value)
        return [] if code is None else [int(row) for row in np.flatnonzero(codes == code)]

    def report(self) -> list[str]:
        """What the catalogue holds, a fact a line: counts, how nouns were found, and each oddity of the raw files."""
        goals = ", ".join(f"{count} {kind} goals" for kind, count in self.manifest["goals"].items())
        lines = [f"{len(self)} products, {goals}", f"nouns of titles by {self.manifest['nouns']}"]
        return [
            *lines,
            *(f"{count} x {what}" for what, count in self.manifest["oddities"].items()),
            f"kept in {self.folder}",
        ]

    # --- goals ------------------------------------------------------------------------------------

    @cached_property
    def goal_kind(self) -> str:
        """The goals that papers use on this size of catalogue: people's on the full set, synthetic ones below it."""
        counts = self.manifest["goals"]
        return HUMAN if counts[HUMAN] >= min(1000, counts[SYNTHETIC] or 1) else SYNTHETIC

    def goal_ids(self, kind: str) -> tuple[str, ...]:
        """Ids of all goals in WebShop's order before it shuffles them."""
        return tuple(goal_id_of(kind, row) for row in range(self.manifest["goals"][kind]))

    @cache  # noqa: B019 - stores live as long as the process
    def _goals(self, kind: str) -> TextColumn:
        return TextColumn(self.folder / f"goals-{kind}")

    def goal(self, goal_id: str) -> Goal:
        """The goal of an id; :class:`InputError` if there is none."""
        goals: dict[str, int] = self.manifest["goals"]
        named = GOAL_ID.fullmatch(goal_id)
        kind, row = (KINDS[named[1]], int(named[2])) if named else ("", 0)
        if row >= goals.get(kind, 0):
            counts = " and ".join(f"{count} {kind} goals ({kind[0]}0, ..)" for kind, count in goals.items())
            raise InputError(f"no goal {goal_id!r} in {self.folder}: it has {counts}")
        return goal_from_json(self._goals(kind)[row])

    def splits(self, kind: str) -> dict[str, Any]:
        """Our splits of the goals of a kind, as they were built, with the names of the held-out queries."""
        splits: dict[str, Any] = json.loads((self.folder / f"splits-{kind}.json").read_text(encoding="utf-8"))
        return splits


def goal_id_of(kind: str, row: int) -> str:
    """``h12``: the human goal of row 12, ``s12``: the synthetic one. The product is the answer, so no id names it."""
    return f"{kind[0]}{row}"


def goal_from_json(text: str) -> Goal:
    """The goal that a store keeps as one line of JSON."""
    raw = json.loads(text)
    raw["options"] = tuple(tuple(option) if isinstance(option, list) else option for option in raw["options"])
    return Goal(**{**raw, "attributes": tuple(raw["attributes"])})


def read_manifest(folder: Path) -> dict[str, Any]:
    """What a built folder says of itself; :class:`DataError` if it is none or of another format."""
    path = folder / MANIFEST
    if not path.is_file():
        raise DataError(
            f"{folder}: no built WebShop catalogue (no {MANIFEST}); run `taspo-bench data import webshop FILES...`"
        )
    manifest: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if manifest.get("format") != FORMAT:
        raise DataError(
            f"{folder}: built in format {manifest.get('format')!r}, this version reads {FORMAT}; import it again"
        )
    return manifest


@cache
def open_store(folder: Path) -> Store:
    """The store in a folder, one object a process."""
    return Store(folder)
