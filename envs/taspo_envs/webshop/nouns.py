"""Nouns of product titles, which WebShop's reward compares: from spaCy where it is installed, else from a lexicon.

WebShop tags titles with spaCy at every purchase. Here they are tagged once, when a catalogue is built.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from importlib import resources
from typing import Protocol

from taspo_envs.webshop.catalogue import Product

_TOKENS = re.compile(r"[^\W\d_]+(?:[.&][^\W\d_]+)*(?=n't)|n't|'s|’s|[^\W_]+(?:[.,&][^\W_]+)*|[%$#]")


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
    """Takes every word of a title for a noun that the shipped lexicon does not list as another part of speech."""

    name = "lexicon-1"

    def nouns(self, title: str) -> tuple[str, ...]:
        words = (match.group().lower() for match in _TOKENS.finditer(title))
        return tuple(word for word in words if word not in _other_words() and not word[0].isdigit())

    def tag(self, products: Iterable[Product]) -> Iterator[Product]:
        for product in products:
            yield replace(product, nouns=self.nouns(product.title))


def best_tagger() -> Tagger:
    """The tagger to build real catalogues with."""
    return LexiconTagger()
