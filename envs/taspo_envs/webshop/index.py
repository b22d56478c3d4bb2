"""BM25 over the catalogue, ranked as Lucene ranks it, on memory-mapped arrays that all processes share.

The score of a document is the sum over query words of idf * tf / (tf + k1 * (1 - b + b * len / avg)) with
idf = ln(1 + (N - df + .5) / (df + .5)); ``len`` has gone through Lucene's one-byte encoding, ``avg`` has not.
"""

from __future__ import annotations

from array import array
from collections import Counter
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from taspo_envs.webshop.analysis import analyze
from taspo_envs.webshop.catalogue import Product
from taspo_envs.webshop.columns import TextColumn, map_array

K1 = np.float32(0.9)
B = np.float32(0.4)
HITS = 50
SAMPLE = 16
"""Every sixteenth score is enough to see which ones cannot be among the best."""
TINY = np.finfo(np.float32).tiny


def document(product: Product) -> str:
    """The text that is searched for a product: title, description, first bullet, options, in lower case."""
    options = ", and ".join(f"{name}: {', '.join(values)}" for name, values in product.options.items())
    first_bullet = product.bullets[0] if product.bullets else ""
    return f"{product.title} {product.description} {first_bullet} {options}".lower()


def byte_length(length: int) -> int:
    """A document length as it survives one byte: exact below 40, then four significant bits, rounded down."""
    rest = length - 24
    if rest < 16:
        return length
    shift = rest.bit_length() - 4
    return 24 + (rest >> shift << shift)


class IndexBuilder:
    """Collects documents in catalogue order, then writes the index."""

    def __init__(self) -> None:
        self.vocabulary: dict[str, int] = {}
        self.asins: list[str] = []
        self.lengths = array("q")
        self._terms = array("i")
        self._counts = array("i")
        self._ends = array("q", [0])

    def add(self, product: Product) -> None:
        """The next document."""
        terms = analyze(document(product))
        for term, count in Counter(terms).items():
            self._terms.append(self.vocabulary.setdefault(term, len(self.vocabulary)))
            self._counts.append(count)
        self._ends.append(len(self._terms))
        self.lengths.append(len(terms))
        self.asins.append(product.asin)

    def write(self, folder: Path) -> None:
        """Write the index's arrays into a folder.

        ``by_asin``: catalogue row of the i-th document in ascending order of ids, the order in which ties stand;
        ``docs`` and ``impacts``: postings of term t at ``starts[t]:starts[t + 1]``, as (document, idf * tf part).
        """
        by_asin = np.array(sorted(range(len(self.asins)), key=self.asins.__getitem__), dtype=np.int32)
        shape = (len(self.asins), len(self.vocabulary))
        counts = sparse.csr_matrix(
            (
                np.frombuffer(self._counts, np.int32),
                np.frombuffer(self._terms, np.int32),
                np.frombuffer(self._ends, np.int64),
            ),
            shape=shape,
        )
        postings = counts[by_asin].tocsc()
        impacts = self._impacts(postings, by_asin)
        order = sorted(self.vocabulary, key=str.encode)
        columns = np.array([self.vocabulary[term] for term in order], dtype=np.int64)
        starts, picked = _reorder(postings.indptr.astype(np.int64), columns)
        np.save(folder / "by_asin.npy", by_asin)
        np.save(folder / "starts.npy", starts)
        np.save(folder / "docs.npy", postings.indices[picked].astype(np.int32))
        np.save(folder / "impacts.npy", impacts[picked])
        TextColumn.write(folder / "terms", order)

    def _impacts(self, postings: sparse.csc_matrix, by_asin: NDArray[np.int32]) -> NDArray[np.float32]:
        """Score of each posting for a query that holds its term once, in Lucene's single-precision steps."""
        lengths = np.frombuffer(self.lengths, np.int64)
        filled = int(np.count_nonzero(lengths))
        average = np.float32(lengths.sum() / max(filled, 1))
        encoded = np.array([byte_length(int(length)) for length in lengths], dtype=np.float32)[by_asin]
        inverse_norm = np.float32(1) / (K1 * ((np.float32(1) - B) + B * encoded / average))
        frequency = np.diff(postings.indptr)
        idf = np.log(1 + (filled - frequency + 0.5) / (frequency + 0.5)).astype(np.float32)
        weight = np.repeat(idf, frequency)
        saturation = np.float32(1) + postings.data.astype(np.float32) * inverse_norm[postings.indices]
        return (weight - weight / saturation).astype(np.float32)


def _reorder(indptr: NDArray[np.int64], columns: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Starts of the columns in a new order, and for each entry there the place where it stands now."""
    sizes = np.diff(indptr)[columns]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    picked = np.arange(starts[-1]) + np.repeat(indptr[:-1][columns] - starts[:-1], sizes)
    return starts, picked


class Index:
    """A written index, opened by mapping its files into memory."""

    def __init__(self, folder: Path) -> None:
        self._by_asin = map_array(folder / "by_asin.npy")
        self._starts = map_array(folder / "starts.npy")
        self._docs = map_array(folder / "docs.npy")
        self._impacts = map_array(folder / "impacts.npy")
        self._terms = TextColumn(folder / "terms")

    def search(self, query: str, hits: int = HITS) -> tuple[list[int], list[float]]:
        """Catalogue rows of the best documents with their scores; equal scores stand by ascending id.

        A word that stands twice in the query counts twice; a document that shares no word is no hit.
        """
        scores = np.zeros(len(self._by_asin))
        for term, count in Counter(analyze(query)).items():
            row = self._terms.find(term)
            if row is not None:
                part = slice(int(self._starts[row]), int(self._starts[row + 1]))
                impacts = self._impacts[part]
                scores[self._docs[part]] += impacts if count == 1 else impacts * np.float32(count)
        best = _best(scores.astype(np.float32), hits)
        return [int(row) for row in self._by_asin[best]], [float(scores[doc]) for doc in best]


def _best(scores: NDArray[np.float32], hits: int) -> NDArray[np.int64]:
    """Documents with the highest scores above zero; equal scores in their own order."""
    found = np.flatnonzero(scores >= max(_bound(scores[::SAMPLE], hits), TINY))
    if len(found) > hits:
        found = found[scores[found] >= _bound(scores[found], hits)]
    return found[np.argsort(-scores[found], kind="stable")][:hits]


def _bound(scores: NDArray[np.float32], hits: int) -> np.float32:
    """The score that ``hits`` of some scores reach, which is no more than that of all; 0 for fewer scores."""
    return np.partition(scores, -hits)[-hits] if len(scores) >= hits else np.float32(0)
