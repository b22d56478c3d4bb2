"""Questions and passages: what every data source of Search-QA is read into."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Passage:
    """One piece of text that a retriever can return. ``id`` names it within its corpus."""

    id: str
    title: str
    text: str

    def shown(self) -> str:
        """The passage in one line, its title in front unless the text says it anyway."""
        text = " ".join(self.text.split())
        title = " ".join(self.title.split())
        return text if title in text else f"{title}: {text}"


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
    hops: tuple[Hop, ...] = field(default=())
