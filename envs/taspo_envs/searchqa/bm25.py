"""BM25 over passages: built by bm25s, kept in memory or memory-mapped from disk, the same ranking everywhere.

The index is a sparse matrix of term weights by column. Files of one index are shared by every process that opens it.
"""

from __future__ import annotations

import json
import logging
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

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


@dataclass(frozen=True)
class Bm25Index:
    """Term weights (data, row numbers, column starts) and the vocabulary that names the columns."""

    data: NDArray[np.float32]
    rows: NDArray[np.int32]
    starts: NDArray[np.int64]
    vocabulary: dict[str, int]
    size: int

    @classmethod
    def build(cls, texts: Iterable[str], progress: Callable[[int], None] = lambda done: None) -> Bm25Index:
        """Index texts in their order; ``progress`` is told now and then how many have been read."""
        vocabulary: dict[str, int] = {}
        ids = [
            [vocabulary.setdefault(term, len(vocabulary)) for term in terms(text)]
            for text in _counted(texts, progress)
        ]
        if not vocabulary:
            return cls(np.zeros(0, np.float32), np.zeros(0, np.int32), np.zeros(1, np.int64), {}, len(ids))
        engine = bm25s.BM25(k1=K1, b=B, method="lucene")
        engine.index((ids, vocabulary), create_empty_token=False, show_progress=False)
        scores = engine.scores
        return cls(scores["data"], scores["indices"], np.asarray(scores["indptr"], np.int64), vocabulary, len(ids))

    def top(self, query: str, k: int) -> tuple[list[int], list[float]]:
        """The best ``k`` row numbers and their scores: score falling, ties by ascending row, no score of 0."""
        columns = [column for term in terms(query) if (column := self.vocabulary.get(term)) is not None]
        if not columns:
            return [], []
        spans = [slice(self.starts[column], self.starts[column + 1]) for column in columns]
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
        """Write the arrays and the vocabulary into an existing folder."""
        np.save(folder / "data.npy", self.data)
        np.save(folder / "rows.npy", self.rows)
        np.save(folder / "starts.npy", self.starts)
        (folder / "vocabulary.json").write_text(
            json.dumps({"size": self.size, "terms": list(self.vocabulary)}, ensure_ascii=False), encoding="utf-8"
        )

    @classmethod
    def open(cls, folder: Path) -> Bm25Index:
        """Map a saved index into memory; processes that open it share its pages."""
        vocabulary = json.loads((folder / "vocabulary.json").read_text(encoding="utf-8"))
        arrays: dict[str, NDArray[Any]] = {
            name: np.load(folder / f"{name}.npy", mmap_mode="r") for name in ("data", "rows", "starts")
        }
        numbered = {term: number for number, term in enumerate(vocabulary["terms"])}
        return cls(arrays["data"], arrays["rows"], arrays["starts"], numbered, vocabulary["size"])


def _counted(texts: Iterable[str], progress: Callable[[int], None]) -> Iterator[str]:
    done = 0
    for done, text in enumerate(texts, 1):
        yield text
        if done % 10_000 == 0:
            progress(done)
    progress(done)
