"""What a retriever is, and the one that searches a BM25 index in this process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from taspo_envs.searchqa.bm25 import Bm25Index
from taspo_envs.searchqa.questions import Passage


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage that was found, and its score."""

    passage: Passage
    score: float


class Retriever(Protocol):
    """Finds passages. ``RunError`` if it cannot be asked; an answer of no passages means that there are none."""

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """The best ``k`` passages of each query, best first."""


@dataclass(frozen=True)
class Bm25Retriever:
    """BM25 over passages that stand in memory or in a memory-mapped file."""

    index: Bm25Index
    passages: Sequence[Passage]

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        found = []
        for query in queries:
            rows, scores = self.index.top(query, k)
            found.append([Hit(self.passages[row], score) for row, score in zip(rows, scores, strict=True)])
        return found
