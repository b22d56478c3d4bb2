"""The index ranks as the BM25 formula says, the same way in memory, on disk and in any process."""

from __future__ import annotations

import math
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taspo_envs.searchqa.bm25 import K1, B, Bm25Index, terms

WORDS = ["zorvia", "melkan", "river", "capital", "mayor", "book"]
texts = st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=8).map(" ".join), min_size=1, max_size=12)
queries = st.lists(st.sampled_from([*WORDS, "unknown"]), max_size=4).map(" ".join)


def by_the_formula(corpus: list[str], query: str) -> list[tuple[int, float]]:
    documents = [terms(text) for text in corpus]
    mean = sum(map(len, documents)) / len(documents)
    scored = []
    for row, document in enumerate(documents):
        counts, score = Counter(document), 0.0
        for term in terms(query):
            n = sum(term in other for other in documents)
            idf = math.log(1 + (len(documents) - n + 0.5) / (n + 0.5))
            score += idf * counts[term] / (counts[term] + K1 * (1 - B + B * len(document) / mean))
        if score > 0:
            scored.append((row, score))
    return sorted(scored, key=lambda pair: (-round(pair[1], 5), pair[0]))


@given(texts, queries, st.integers(1, 15))
def test_scores_are_those_of_the_formula(corpus: list[str], query: str, k: int) -> None:
    rows, scores = Bm25Index.build(corpus).top(query, k)
    expected = by_the_formula(corpus, query)[:k]
    assert scores == pytest.approx([score for _, score in expected], rel=1e-4)
    assert len(set(rows)) == len(rows)


def test_equal_passages_are_ranked_in_their_order() -> None:
    index = Bm25Index.build(["other text"] + ["capital of Zorvia"] * 20)
    assert index.top("Zorvia", 5)[0] == [1, 2, 3, 4, 5]


def test_a_query_of_unknown_words_or_of_none_finds_nothing() -> None:
    index = Bm25Index.build(["capital of Zorvia"])
    assert index.top("nowhere", 3) == ([], [])
    assert index.top("the of", 3) == ([], [])


def test_an_index_of_no_words_finds_nothing() -> None:
    assert Bm25Index.build(["", "..."]).top("anything", 3) == ([], [])


def test_a_saved_index_is_mapped_and_ranks_as_before(tmp_path: Path) -> None:
    corpus = [f"capital number {n} of Zorvia{n % 7}" for n in range(100)]
    built = Bm25Index.build(corpus)
    built.save(tmp_path)
    opened = Bm25Index.open(tmp_path)
    assert type(opened.data).__name__ == "memmap"
    for query in ("capital Zorvia3", "number 12", "Zorvia0"):
        assert opened.top(query, 10) == built.top(query, 10)


def test_threads_get_what_one_thread_gets() -> None:
    index = Bm25Index.build([f"capital number {n} of Zorvia{n % 7}" for n in range(200)])
    asked = [f"capital Zorvia{n % 7} {n}" for n in range(200)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda query: index.top(query, 3), asked)) == [index.top(query, 3) for query in asked]


def test_case_accents_and_endings_make_no_difference() -> None:
    assert terms("The Cafés of BEYONCÉ") == terms("cafe beyonce")


def test_progress_is_told_the_number_of_texts() -> None:
    told: list[int] = []
    Bm25Index.build((f"word{n}" for n in range(25_000)), told.append)
    assert told == [10_000, 20_000, 25_000]
