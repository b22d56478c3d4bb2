"""Nouns of product titles, which WebShop's reward compares: from spaCy where it is installed, else from a lexicon.

WebShop tags titles with spaCy at every purchase. Here they are tagged once, when a catalogue is built.
"""

from __future__ import annotations

import gzip
import importlib.util
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache, cached_property
from importlib import resources
from importlib.metadata import EntryPoint, entry_points, version
from typing import Any, Protocol

from taspo_envs.webshop.catalogue import Product

_UNITS = "km|cm|mm|m|kg|g|mg|gb|mb|tb|kb|ft|oz|k|lb"
_TOKENS = re.compile(
    rf"(?P<number>\d[\d.,]*)(?P<unit>{_UNITS})(?![^\W_])"  # 60ml: a number and its unit
    r"|(?P<word>(?:[^\W\d_]\.){2,}|[^\W_]+(?:[.&'’/][^\W_]+)*(?<!['’]s)|[^\W_]+)(?:['’]s\b)?",  # U.S., R&B, mother's
    re.IGNORECASE,
)
_SLASHED = re.compile(r"([^\W\d_]+)/([^\W\d_]+)")


class Tagger(Protocol):
    """What finds nouns. ``name`` goes into the data stamp."""

    name: str

    def nouns(self, title: str) -> tuple[str, ...]:
        """Nouns and names of a title in lower case, in order, repeats kept."""

    def tag(self, products: Iterable[Product]) -> Iterator[Product]:
        """The products with their nouns filled in."""


@cache
def _other_words() -> frozenset[str]:
    data = resources.files("taspo_envs.webshop").joinpath("not_nouns.txt.gz").read_bytes()
    return frozenset(gzip.decompress(data).decode("utf-8").split("\n"))


class LexiconTagger:
    """Takes every word of a title for a noun that the shipped lexicon does not list as another part of speech.

    The lexicon holds the words that spaCy's en_core_web_sm mostly takes for no noun in the titles and texts of
    WebShop's thousand small-set products; brand names and new words count as nouns. Against the tagger itself on
    titles left out of the lexicon: precision 0.95, recall 0.94.
    """

    name = "lexicon-2"

    def nouns(self, title: str) -> tuple[str, ...]:
        return tuple(word for word in _words(title.lower()) if word not in _other_words() and not word[0].isdigit())

    def tag(self, products: Iterable[Product]) -> Iterator[Product]:
        for product in products:
            yield replace(product, nouns=self.nouns(product.title))


def _words(title: str) -> Iterator[str]:
    for match in _TOKENS.finditer(title):
        slashed = _SLASHED.fullmatch(match["word"] or "")
        yield from slashed.groups() if slashed else (match["unit"] or match["word"],)


class SpacyTagger:
    """The nouns of an installed spaCy pipeline, as WebShop takes them. spaCy itself is imported on first use."""

    def __init__(self, pipeline: EntryPoint) -> None:
        model = pipeline.dist.version if pipeline.dist else "?"
        self.name = f"spacy {version('spacy')} {pipeline.name} {model}"
        self._pipeline = pipeline.name

    @cached_property
    def _nlp(self) -> Any:
        import spacy

        return spacy.load(self._pipeline, disable=["ner"])

    def nouns(self, title: str) -> tuple[str, ...]:
        return _nouns(self._nlp(title))

    def tag(self, products: Iterable[Product]) -> Iterator[Product]:
        pairs = ((product.title, product) for product in products)
        for doc, product in self._nlp.pipe(pairs, as_tuples=True, batch_size=256):
            yield replace(product, nouns=_nouns(doc))


def _nouns(doc: Iterable[Any]) -> tuple[str, ...]:
    return tuple(token.text.lower() for token in doc if token.pos_ in ("NOUN", "PROPN"))


@cache
def best_tagger() -> Tagger:
    """spaCy's tagger if the extra ``[webshop]`` and an English pipeline are installed, else the lexicon.

    Of several pipelines en_core_web_sm is taken, which the recorded values were made with.
    """
    pipelines = [point for point in entry_points(group="spacy_models") if point.name.startswith("en_core_web_")]
    if not pipelines or importlib.util.find_spec("spacy") is None:
        return LexiconTagger()
    return SpacyTagger(min(pipelines, key=lambda point: (not point.name.startswith("en_core_web_sm"), point.name)))
