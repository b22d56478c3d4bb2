"""Questions and passages: what every data source of Search-QA is read into."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Passage:
    """One piece of text that a retriever can return. ``id`` names it by its content within a corpus."""

    id: str
    title: str
    text: str

    @classmethod
    def of(cls, title: str, text: str) -> Passage:
        """A passage with blanks collapsed, and an id that follows from its title and text."""
        title, text = " ".join(title.split()), " ".join(text.split())
        digest = hashlib.sha1(f"{title}\n{text}".encode()).hexdigest()
        return cls(f"{title}#{digest[:12]}", title, text)

    def shown(self) -> str:
        """The passage in one line, its title in front unless the text says it anyway."""
        return self.text if self.title in self.text else f"{self.title}: {self.text}"

    def indexed(self) -> str:
        """The text that is indexed: the title counts twice, for it says what the passage is about."""
        return f"{self.title}\n{self.title}\n{self.text}"


@dataclass(frozen=True, slots=True)
class Hop:
    """One step of a known way to the answer: a query, and the passage that it is to find (None if not known)."""

    query: str
    passage_id: str | None


@dataclass(frozen=True, slots=True)
class Question:
    """One task.

    family: data set, or the number of hops for embedded data; results are tabled by it.
    answers: every accepted answer, never shown to a policy.
    hops: reference searches, in order; where the data name no gold passages, the question itself is searched.
    """

    id: str
    family: str
    text: str
    answers: tuple[str, ...]
    hops: tuple[Hop, ...]
