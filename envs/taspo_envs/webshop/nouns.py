"""Nouns of product titles, which WebShop's reward compares: from spaCy where it is installed, else from a lexicon.

WebShop tags titles with spaCy at every purchase. Here they are tagged once, when a catalogue is built.
"""

from __future__ import annotations

import gzip
import importlib.util
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from importlib import resources
from typing import Protocol

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
    """The nouns of an installed spaCy pipeline, as WebShop takes them."""

    def __init__(self, pipeline: str) -> None:
        import spacy

        self._nlp = spacy.load(pipeline, disable=["ner"])
        self.name = f"spacy {spacy.__version__} {pipeline} {self._nlp.meta['version']}"

    def nouns(self, title: str) -> tuple[str, ...]:
        return tuple(token.text.lower() for token in self._nlp(title) if token.pos_ in ("NOUN", "PROPN"))

    def tag(self, products: Iterable[Product]) -> Iterator[Product]:
        pairs = self._nlp.pipe(((product.title, product) for product in products), as_tuples=True, batch_size=256)
        for doc, product in pairs:
            yield replace(
                product, nouns=tuple(token.text.lower() for token in doc if token.pos_ in ("NOUN", "PROPN"))
            )


def best_tagger() -> Tagger:
    """spaCy's tagger if the extra ``[webshop]`` and an English pipeline are installed, else the lexicon."""
    if importlib.util.find_spec("spacy") is None:
        return LexiconTagger()
    import spacy

    installed = sorted(name for name in spacy.util.get_installed_models() if name.startswith("en_core_web_"))
    return SpacyTagger(min(installed, key=_preference)) if installed else LexiconTagger()


def _preference(pipeline: str) -> tuple[bool, str]:
    """en_core_web_sm first: the recorded values were made with it."""
    return not pipeline.startswith("en_core_web_sm"), pipeline
