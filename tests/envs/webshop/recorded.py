"""Recorded values of upstream's WebShop and the catalogues that they were recorded on.

The folders: the copies that the project keeps, and ``$TASPO_GOLDEN/webshop`` (by default the shared one) if present.
Files named ``real_*`` belong to the thousand real products of ``$TASPO_DATA/webshop``, the others to ``catalogue``.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from taspo_envs.webshop.build import Source
from taspo_envs.webshop.catalogue import Oddities, Product, iter_json_array, read_json_object, read_products
from taspo_envs.webshop.nouns import LexiconTagger

ROOT = Path(__file__).parents[3]
COPIES = ROOT / "tests" / "golden_copies" / "webshop"
GOLDEN = Path(os.environ.get("TASPO_GOLDEN", ROOT.parent / "shared" / "golden")) / "webshop"
DATA = Path(os.environ.get("TASPO_DATA", ROOT.parent / "shared" / "data")) / "webshop"


def files(pattern: str) -> list[Any]:
    """Recorded files of a kind, as parameters; a skipped one where the shared folder is not there."""
    found = [*sorted(COPIES.glob(pattern)), *sorted(GOLDEN.glob(pattern))]
    if not GOLDEN.is_dir():
        found.append(GOLDEN)
    return [
        pytest.param(path, id=f"{path.parent.parent.name}-{path.name.partition('.')[0]}", marks=_skips(path))
        for path in found
    ]


def _skips(path: Path) -> list[pytest.MarkDecorator]:
    if not path.is_file():
        return [pytest.mark.skip(reason=f"no recorded values in {path}: set TASPO_GOLDEN")]
    if path.name.startswith("real_") and not DATA.is_dir():
        return [pytest.mark.skip(reason=f"no real data in {DATA}: set TASPO_DATA")]
    return []


@cache
def read(path: Path) -> dict[str, Any]:
    """A recorded file."""
    value: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    return value


class RecordedTagger:
    """The nouns that upstream's tagger gave, by title; the lexicon's for a title that was not recorded."""

    name = "recorded"

    def __init__(self, nouns: dict[str, list[str]]) -> None:
        self._nouns = nouns

    def nouns(self, title: str) -> tuple[str, ...]:
        recorded = self._nouns.get(title)
        return LexiconTagger().nouns(title) if recorded is None else tuple(recorded)

    def tag(self, products: Iterable[Product]) -> Iterator[Product]:
        for product in products:
            yield replace(product, nouns=self.nouns(product.title))


@cache
def source(path: Path) -> Source:
    """The catalogue that a recorded file belongs to."""
    if path.name.startswith("real_"):
        products = list(iter_json_array(next(DATA.glob("items_shuffle*.json"))))
        attributes = read_json_object(next(DATA.glob("items_ins_v2*.json")))
        return Source(products, attributes, read_json_object(next(DATA.glob("items_human_ins*.json"))), "real", "")
    raw = read(path.parent / "catalogue.json.gz")
    return Source(raw["products"], raw["attributes"], raw["human_instructions"], "recorded", "")


@cache
def products(path: Path) -> dict[str, Product]:
    """The cleaned products of a recorded file's catalogue, by ASIN."""
    raw = source(path)
    return {product.asin: product for product in read_products(raw.products, raw.attributes, Oddities())}


@cache
def tagger(path: Path) -> RecordedTagger:
    """Nouns for the titles of a recorded file's catalogue, from the file of rewards beside it."""
    if path.name.startswith("real_"):
        by_asin = read(path.parent / "real_rewards.json.gz")["nouns_of_all_titles"]
        return RecordedTagger({product.title: by_asin[asin] for asin, product in products(path).items()})
    return RecordedTagger(read(path.parent / "rewards.json.gz")["nouns"])
