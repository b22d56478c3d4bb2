"""From raw files to a built store: one pass over the products, one over the goals, written whole or not at all."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from taspo_bench.errors import DataError
from taspo_envs.webshop.catalogue import Oddities, Product, read_products
from taspo_envs.webshop.choices import full_choice
from taspo_envs.webshop.columns import TextColumn, TextWriter, map_array
from taspo_envs.webshop.goals import Goal, draw_price, human_goals, synthetic_count, synthetic_goals, weighted
from taspo_envs.webshop.index import IndexBuilder
from taspo_envs.webshop.nouns import Tagger
from taspo_envs.webshop.splits import MOST_EVALUATION_GOALS, split_by_query
from taspo_envs.webshop.store import FORMAT, GOAL_KINDS, HUMAN, MANIFEST, SYNTHETIC, goal_id_of

SEED = 233
"""Seed of the generator that draws prices of ranges, then caps."""
MOST_SYNTHETIC_GOALS = 1_000_000

Progress = Callable[[str, int], None]
"""Called with what is being built and how many are done."""


@dataclass(frozen=True)
class Source:
    """Raw data: products in order, entries of the attribute file, human instructions; the last two by ASIN."""

    products: Iterable[dict[str, Any]]
    attributes: dict[str, Any]
    instructions: dict[str, Any]
    name: str
    sha256: str
    most_evaluation_goals: int = MOST_EVALUATION_GOALS


def no_progress(_what: str, _done: int) -> None:
    """Progress that nobody watches."""


def build(source: Source, folder: Path, tagger: Tagger, progress: Progress = no_progress, seed: int = SEED) -> Path:
    """Build a store in a folder that is not there yet, and return it.

    Works in a temporary folder beside it and renames that at the end; if another process was faster, its folder
    stays and this one's work is dropped.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        _build_into(work, source, tagger, progress, seed)
        try:
            os.replace(work, folder)
        except OSError:
            if not (folder / MANIFEST).is_file():
                raise
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return folder


def _build_into(work: Path, source: Source, tagger: Tagger, progress: Progress, seed: int) -> None:
    oddities, rng = Oddities(), random.Random(seed)
    products = read_products(source.products, source.attributes, oddities)
    asins = _write_products(work, products, tagger, rng, progress)
    after_prices = rng.getstate()
    counts = {}
    for kind in GOAL_KINDS:
        rng.setstate(after_prices)
        counts[kind] = _write_goals(work, kind, source, rng, oddities, progress)
    manifest = {
        "format": FORMAT,
        "source": source.name,
        "sha256": source.sha256,
        "products": len(asins),
        "goals": counts,
        "nouns": tagger.name,
        "seed": seed,
        "oddities": dict(sorted(oddities.counts.items())),
    }
    (work / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")


def _write_products(
    work: Path, products: Iterator[Product], tagger: Tagger, rng: random.Random, progress: Progress
) -> list[str]:
    writers = {name: TextWriter(work / name) for name in ("products", "listings")}
    index, prices = IndexBuilder(), []
    fields: dict[str, list[str]] = {"category": [], "query": []}
    for done, product in enumerate(tagger.tag(products), start=1):
        writers["products"].append(product.to_json())
        listing = [product.asin, product.title, product.price_tag]
        writers["listings"].append(json.dumps(listing, ensure_ascii=False, separators=(",", ":")))
        prices.append(draw_price(product.pricing, rng))
        index.add(product)
        for name, values in fields.items():
            values.append(getattr(product, name))
        if done % 1000 == 0:
            progress("products", done)
    for writer in writers.values():
        writer.close()
    progress("index", len(prices))
    index.write(work)
    np.save(work / "prices.npy", np.array(prices))
    TextColumn.write(work / "asins", sorted(index.asins))
    for name, values in fields.items():
        names = sorted(set(values), key=str.encode)
        codes = {value: code for code, value in enumerate(names)}
        np.save(work / f"{name}.npy", np.array([codes[value] for value in values], dtype=np.int32))
        TextColumn.write(work / f"{name}_names", names)
    return index.asins


def _stored(work: Path) -> Iterator[tuple[Product, float]]:
    products, prices = TextColumn(work / "products"), map_array(work / "prices.npy")
    for row in range(len(products)):
        yield Product.from_json(products[row]), float(prices[row])


def _write_goals(
    work: Path, kind: str, source: Source, rng: random.Random, oddities: Oddities, progress: Progress
) -> int:
    goals = TextWriter(work / f"goals-{kind}")
    rows: dict[str, int] = {}
    queries: list[str] = []
    stored: Callable[[], Iterable[tuple[Product, float]]] = partial(_stored, work)
    if kind == SYNTHETIC and (total := sum(attribute_counts(stored(), source)[1])) > MOST_SYNTHETIC_GOALS:
        oddities.counts[f"synthetic goals not built (more than {MOST_SYNTHETIC_GOALS})"] = total
        stored = tuple
    numbers: Counter[str] = Counter()
    beyond: list[str] = []
    for product, price, goal in make_goals(kind, stored, source, rng):
        name = f"{product.asin}-{kind[0]}{numbers[product.asin]}"
        numbers[product.asin] += 1
        goals.append(json.dumps(asdict(goal), ensure_ascii=False, separators=(",", ":")))
        rows[name] = len(rows)
        queries.append(product.query)
        if full_choice(product, product, goal, price) is None:
            beyond.append(name)
        if len(rows) % 1000 == 0:
            progress(f"{kind} goals", len(rows))
    goals.close()
    splits = split_by_query(list(rows), queries, beyond, source.most_evaluation_goals)
    for part in ("beyond_reach", "train", "valid_seen", "valid_unseen"):
        splits[part] = [goal_id_of(kind, rows[name]) for name in splits[part]]
    (work / f"splits-{kind}.json").write_text(json.dumps(splits), encoding="utf-8")
    return len(rows)


def make_goals(
    kind: str, priced: Callable[[], Iterable[tuple[Product, float]]], source: Source, rng: random.Random
) -> Iterator[tuple[Product, float, Goal]]:
    """Goals of a kind with the product and price that each was made from, in WebShop's order before the shuffle.

    ``priced`` is called once for each pass over the products.
    """
    counts = attribute_counts(priced(), source)[0] if kind == SYNTHETIC else Counter()
    for product, price in priced():
        with _entries_of(product):
            if kind == HUMAN:
                goals = list(human_goals(product, price, source.instructions.get(product.asin, ()), rng))
            else:
                made = synthetic_goals(product, price, source.attributes.get(product.asin, {}), rng)
                goals = [weighted(goal, counts) for goal in made]
        for goal in goals:
            yield product, price, goal


def attribute_counts(priced: Iterable[tuple[Product, float]], source: Source) -> tuple[Counter[str], list[int]]:
    """In how many synthetic goals each attribute is wanted, and how many goals each product has."""
    wanted: Counter[str] = Counter()
    counts = []
    for product, _price in priced:
        with _entries_of(product):
            entry = source.attributes.get(product.asin, {})
            counts.append(synthetic_count(product, entry))
            for attribute in entry["instruction_attributes"] if counts[-1] else ():
                wanted[attribute] += counts[-1]
    return wanted, counts


@contextmanager
def _entries_of(product: Product) -> Iterator[None]:
    """Turns what goes wrong while a product's instructions are read into a :class:`DataError` that names it."""
    try:
        yield
    except (KeyError, AttributeError, TypeError) as error:
        raise DataError(
            f"instructions of product {product.asin!r}: {type(error).__name__} {error}; give WebShop's own "
            "items_ins_v2 and items_human_ins files"
        ) from error


def sha256_of(texts: Iterable[str]) -> str:
    """One digest over texts, a line each."""
    digest = hashlib.sha256()
    for text in texts:
        digest.update(text.encode("utf-8", "surrogatepass") + b"\n")
    return digest.hexdigest()
