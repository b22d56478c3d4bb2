"""What a turn of Search-QA says: one search, one answer, or nothing usable."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from taspo_envs.searchqa.scoring import extract_answer

_SEARCH_TAG = re.compile(r"<search>(.*?)</search>", re.DOTALL)
_PLAIN = re.compile(r"\s*(search|answer)\[(.*)\]\s*", re.DOTALL)
_PLAIN_START = re.compile(r"\b(search|answer)\[")


@dataclass(frozen=True, slots=True)
class Action:
    """A parsed turn: ``kind`` says what it is, ``text`` the query or the answer, or why the turn is invalid."""

    kind: Literal["search", "answer", "invalid"]
    text: str


def parse(response: str) -> Action:
    """Read a turn.

    Tags may stand anywhere in it: the first complete ``<search>`` or the last complete ``<answer>``. Without tags the
    whole turn must be ``search[..]`` or ``answer[..]``. Both kinds in one turn make it invalid. An empty answer
    is an answer: it ends the episode, and never scores.
    """
    query, answer = _SEARCH_TAG.search(response), extract_answer(response)
    if query and answer is not None:
        return Action("invalid", "a turn holds one search or one answer, not both")
    if query:
        return _named("search", query[1])
    if answer is not None:
        return _named("answer", answer)
    plain = _PLAIN.fullmatch(response)
    if plain is None:
        return Action("invalid", "no search[..] and no answer[..] in this turn")
    if _PLAIN_START.search(plain[2]):
        return Action("invalid", "a turn holds one search or one answer, not several")
    return _named("search" if plain[1] == "search" else "answer", plain[2])


def _named(kind: Literal["search", "answer"], text: str) -> Action:
    # A lone surrogate is no text that could be searched, sent or written down.
    text = " ".join(text.split()).encode(errors="replace").decode()
    if kind == "search" and not text:
        return Action("invalid", "the search is empty")
    return Action(kind, text)
