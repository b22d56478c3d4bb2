"""BM25 over passages: built by bm25s, kept in memory or memory-mapped from disk, the same ranking everywhere.

The index is a sparse matrix with a row per passage and a column per term. A column is found by a 64-bit hash of its
term in a sorted table, so that a process that opens an index on disk holds nothing of it in memory of its own.
"""

from __future__ import annotations

import hashlib
import logging
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path

import bm25s
import numpy as np
import Stemmer
from bm25s.stopwords import STOPWORDS_EN
from numpy.typing import NDArray

# Set on HotpotQA development questions over their own paragraphs.
K1, B = 2.0, 0.9
_WORD = re.compile(r"\w+")
STOP_WORDS = frozenset(STOPWORDS_EN)
_STEMMER = Stemmer.Stemmer("english", 0)

logging.getLogger("bm25s").setLevel(logging.WARNING)


@lru_cache(maxsize=200_000)
def _stem(word: str) -> str:
    return str(_STEMMER.stemWord(word))


def terms(text: str) -> list[str]:
    """Search terms of a text: lower case, accents folded, stop words left out, stemmed."""
    if not text.isascii():
        text = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    return [_stem(word) for word in _WORD.findall(text.lower()) if word not in STOP_WORDS]


def _keys(words: Iterable[str]) -> NDArray[np.uint64]:
    digests = b"".join(hashlib.blake2b(word.encode(), digest_size=8).digest() for word in words)
    return np.frombuffer(digests, dtype="<u8")


@dataclass(frozen=True)
class Bm25Index:
    """Weights and the rows that they stand in, column by column, and the table of columns.

    data, rows: (n_weights,) in the order of columns; starts: (n_terms + 1,) where each column begins.
    keys: (n_terms,) hashes of the terms, ascending; columns: (n_terms,) the column of each.
    """

    data: NDArray[np.float32]
    rows: NDArray[np.int32]
    starts: NDArray[np.int64]
    keys: NDArray[np.uint64]
    columns: NDArray[np.int64]

    @classmethod
    def build(cls, texts: Iterable[str], progress: Callable[[int], None] = lambda done: None) -> Bm25Index:
        """Index texts in their order; ``progress`` is told now and then how many have been read."""
        vocabulary: dict[str, int] = {}
        ids = [
            [vocabulary.setdefault(term, len(vocabulary)) for term in terms(text)]
            for text in _counted(texts, progress)
        ]
        keys = _keys(vocabulary)
        order = np.argsort(keys)
        if not vocabulary:
            return cls(np.zeros(0, np.float32), np.zeros(0, np.int32), np.zeros(1, np.int64), keys, order)
        engine = bm25s.BM25(k1=K1, b=B, method="lucene")
        engine.index((ids, vocabulary), create_empty_token=False, show_progress=False)
        matrix = engine.scores
        starts = np.asarray(matrix["indptr"], np.int64)
        return cls(matrix["data"], matrix["indices"], starts, keys[order], order)

    def top(self, query: str, k: int) -> tuple[list[int], list[float]]:
        """The best ``k`` row numbers and their scores: score falling, ties by ascending row, no score of 0."""
        wanted = _keys(terms(query))
        places = np.searchsorted(self.keys, wanted)
        known = [
            p for p, key in zip(places.tolist(), wanted, strict=True) if p < len(self.keys) and self.keys[p] == key
        ]
        if not known:
            return [], []
        columns = self.columns[known]
        spans = [slice(*span) for span in zip(self.starts[columns], self.starts[columns + 1], strict=True)]
        rows = np.concatenate([self.rows[span] for span in spans])
        scores = np.bincount(rows, weights=np.concatenate([self.data[span] for span in spans]))
        # Few passages score near the best, so most are dropped by one comparison before anything is sorted.
        highest = scores.max()
        for share in (0.6, 0.4, 0.2, 0.0):
            best = np.flatnonzero(scores > share * highest)
            if len(best) >= k:
                break
        best = best[np.lexsort((best, -scores[best]))][:k]
        return best.tolist(), scores[best].tolist()

    def save(self, folder: Path) -> None:
        """Write the arrays into an existing folder."""
        for name, array in vars(self).items():
            np.save(folder / f"{name}.npy", array)

    @classmethod
    def open(cls, folder: Path) -> Bm25Index:
        """Map a saved index into memory; processes that open it share its pages."""
        return cls(**{part.name: np.load(folder / f"{part.name}.npy", mmap_mode="r") for part in fields(cls)})


def _counted(texts: Iterable[str], progress: Callable[[int], None]) -> Iterator[str]:
    done = 0
    for done, text in enumerate(texts, 1):
        yield text
        if done % 10_000 == 0:
            progress(done)
    progress(done)
