"""WebShop's raw files and the clean-up that turns a raw product into the one that pages and rewards see.

Files (princeton-nlp/WebShop): ``items_shuffle*.json`` (a list of products), ``items_ins_v2*.json`` (ASIN ->
attributes and an optional instruction), ``items_human_ins*.json`` (ASIN -> list of human instructions).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from taspo_bench.errors import DataError

DEFAULT_PRICE = 100.0
NO_ATTRIBUTES = "DUMMY_ATTR"
MAX_ASIN_LENGTH = 10


@dataclass(frozen=True)
class Product:
    """One cleaned product. ``options``: option name -> values, all in lower case, in the catalogue's order."""

    asin: str
    title: str
    category: str
    query: str
    product_category: str
    description: str
    bullets: tuple[str, ...]
    pricing: tuple[float, ...]
    price_tag: str
    options: dict[str, tuple[str, ...]]
    attributes: tuple[str, ...]
    nouns: tuple[str, ...] = ()
    """Nouns of the title, as the tagger named by the data stamp gives them; filled when a store is built."""

    def to_json(self) -> str:
        """One line of JSON, for the store."""
        return json.dumps(asdict(self), ensure_ascii=False, separators=(",", ":"))

    @staticmethod
    def from_json(text: str) -> Product:
        """The product that :meth:`to_json` wrote."""
        raw = json.loads(text)
        raw["options"] = {name: tuple(values) for name, values in raw["options"].items()}
        for name in ("bullets", "pricing", "attributes", "nouns"):
            raw[name] = tuple(raw[name])
        return Product(**raw)


@dataclass
class Oddities:
    """What a catalogue holds beside plain products, counted while it is read."""

    counts: Counter[str] = field(default_factory=Counter)

    def note(self, what: str) -> None:
        self.counts[what] += 1


def clean_pricing(pricing: str | None) -> tuple[tuple[float, ...], str]:
    """Raw price text -> (one price, or the two ends of a range), and the tag that pages show.

    No price means 100 dollars. Text after each dollar sign is read as a number once all but digits and dots are
    dropped; more than two prices are cut to two. Raises :class:`DataError` where no number is left.
    """
    if not pricing:
        return (DEFAULT_PRICE,), f"${DEFAULT_PRICE}"
    try:
        prices = tuple(float(Decimal(re.sub(r"[^\d.]", "", part))) for part in pricing.split("$")[1:])
    except (AttributeError, InvalidOperation):  # upstream stops at a price that is no text
        prices = ()
    if not prices:
        raise DataError(
            f"pricing {pricing!r}: no dollar price can be read from it; write it as '$12.34' or leave it empty"
        )
    tag = f"${prices[0]}" if len(prices) == 1 else f"${prices[0]} to ${prices[1]}"
    return prices[:2], tag


def clean_options(customization: dict[str, Any] | None) -> dict[str, tuple[str, ...]]:
    """Raw customization options -> lower-case option names and values; a null list of values is left out."""
    if not customization:
        return {}
    return {
        name.lower(): tuple(content["value"].strip().replace("/", " | ").lower() for content in contents)
        for name, contents in customization.items()
        if contents is not None
    }


def clean_product(raw: dict[str, Any], attributes: dict[str, Any], oddities: Oddities) -> Product:
    """One raw product with its entry of the attribute file, cleaned as WebShop does on loading.

    Raises :class:`DataError` for a product that WebShop could not load either (a missing key, an unreadable price,
    an option without a text value). Where WebShop loads it but crashes on use, the value is defined: a missing
    description or bullet is empty text.
    """
    try:
        bullets = raw["small_description"]
        if not isinstance(bullets, list):
            oddities.note("small_description is not a list")
            bullets = [bullets]
        pricing, price_tag = clean_pricing(_text(raw.get("pricing") or ""))
        customization = raw["customization_options"]
        for values in customization.values() if customization else ():
            if values is None:
                oddities.note("option list that is null")
        return Product(
            asin=raw["asin"],
            title=_text(raw["name"]),
            category=_text(raw["category"]),
            query=_text(raw["query"]).lower().strip(),
            product_category=_text(raw["product_category"]),
            description=_text(raw["full_description"] or ""),
            bullets=_texts([bullet or "" for bullet in bullets]),
            pricing=pricing,
            price_tag=price_tag,
            options=clean_options(customization),
            attributes=_texts(attributes.get("attributes", [NO_ATTRIBUTES])),
        )
    except (KeyError, AttributeError, TypeError) as error:
        raise DataError(
            f"product {raw.get('asin')!r}: its field cannot be used ({type(error).__name__}: {error}); "
            "give it the fields of WebShop's raw schema"
        ) from error


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.40} is not text")
    return value


def _texts(values: object) -> tuple[str, ...]:
    if not isinstance(values, list):
        raise TypeError(f"{values!r:.40} is not a list")
    return tuple(_text(value) for value in values)


def read_products(
    raws: Iterable[dict[str, Any]], attributes: dict[str, Any], oddities: Oddities
) -> Iterator[Product]:
    """Cleaned products in catalogue order; ASINs longer than 10 characters, ``nan`` and repeats are left out."""
    seen: set[str] = set()
    for raw in raws:
        asin = raw.get("asin")
        if not isinstance(asin, str) or asin == "nan" or len(asin) > MAX_ASIN_LENGTH:
            oddities.note("unusable asin")
        elif asin in seen:
            oddities.note("asin seen before")
        else:
            seen.add(asin)
            product = clean_product(raw, attributes.get(asin, {}), oddities)
            _note_oddities(product, raw, oddities)
            yield product


def _note_oddities(product: Product, raw: dict[str, Any], oddities: Oddities) -> None:
    if not raw.get("pricing"):
        oddities.note("no price (100.0 is used)")
    if len(product.pricing) == 2 and product.pricing[0] > product.pricing[1]:
        oddities.note("price range from high to low")
    if not product.title.strip():
        oddities.note("empty name")
    if product.attributes == (NO_ATTRIBUTES,):
        oddities.note("no attributes")


def iter_json_array(path: Path, chunk: int = 1 << 20) -> Iterator[dict[str, Any]]:
    """The objects of a JSON array, one after the other, holding only one chunk of the file in memory."""
    decoder = json.JSONDecoder()
    with path.open(encoding="utf-8") as file:
        text, start = file.read(chunk), 0
        if not text.lstrip().startswith("["):
            raise DataError(f"{path}: not a JSON list of products; give WebShop's items_shuffle*.json")
        start = text.index("[") + 1
        while True:
            while start < len(text) and text[start] in " \t\r\n,":
                start += 1
            if text[start : start + 1] == "]":
                return
            try:
                value, start = decoder.raw_decode(text, start)
            except json.JSONDecodeError as error:
                more = file.read(chunk)
                if not more:
                    raise DataError(
                        f"{path}: broken JSON near character {error.pos}; download the file again"
                    ) from error
                text, start = text[start:] + more, 0
                continue
            yield value


def read_json_object(path: Path) -> dict[str, Any]:
    """A JSON file that holds an object; :class:`DataError` if it does not."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: cannot be read as JSON ({error}); download the file again") from error
    if not isinstance(value, dict):
        raise DataError(f"{path}: holds a {type(value).__name__}, expected an object keyed by ASIN")
    return value
