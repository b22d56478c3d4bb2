"""Advice read off a successful episode of Search-QA.

A rule fits a turn when the passages that it builds on have been found and the one that it leads to has not. It may
name an entity only where the agent has met it (docs/method.md, "The trap"): every word of an action that the question
does not hold is demanded from the agent's own observations.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from taspo_bench.api import Rule
from taspo_envs.searchqa.actions import parse
from taspo_envs.searchqa.bm25 import STOP_WORDS

LONGEST_PHRASE = 8  # words
_WORD = re.compile(r"\w+(?:['’.-]\w+)*")


def found_line(passage_id: str) -> str:
    """The line of a state key that says that a passage was found."""
    return f"found {passage_id}"


def question_line(question: str) -> str:
    """The line of a state key that says what was asked."""
    return f"question {question}"


def read_off(
    question: str, actions: Sequence[str], observations: Sequence[str], found: Sequence[Mapping[str, str]]
) -> list[Rule]:
    """One rule per valid action.

    ``observations[i]`` and ``found[i]`` (passage id to text, in the order of finding) stood before ``actions[i]``;
    both have one entry more than there are actions.
    """
    rules: list[Rule] = []
    useful: list[str] = []  # the best new passage of each search so far
    for step, action in enumerate(actions):
        said = parse(action)
        if said.kind == "invalid":
            continue
        needs = new_phrases(said.text, question, "\n".join(observations[: step + 1]))
        new = [name for name in found[step + 1] if name not in found[step]][:1]
        sources = useful if said.kind == "answer" else [n for phrase in needs for n in _holding(found[step], phrase)]
        rules.append(
            Rule(
                step=step,
                statement=_statement(action, needs, first=step == 0),
                action=action,
                quote=_quote(observations[step], needs),
                when=(question_line(question), *map(found_line, dict.fromkeys(sources))),
                needs=tuple(needs),
                unless=tuple(map(found_line, new)),
            )
        )
        useful = useful + new
    return rules


def new_phrases(text: str, question: str, met: str) -> list[str]:
    """What an action says that the question does not: names and words, each with the words of ``met`` around it.

    A new word is given in the longest piece of the action that stands in ``met``, spelt as there; where none does,
    with the capitalised words beside it. Stop words say nothing, except where a text holds nothing else.
    """
    asked = {word.lower() for word in _WORD.findall(question)}
    words = list(_WORD.finditer(text))
    idle = [word[0].lower() in STOP_WORDS for word in words]
    new = [n for n, word in enumerate(words) if (all(idle) or not idle[n]) and word[0].lower() not in asked]
    phrases: list[str] = []
    while new:
        _, end, phrase = _longest_met(text, words, new[0], met) or _capitalised(text, words, new[0])
        phrases.append(phrase)
        new = [n for n in new if n >= end]
    return phrases


def _longest_met(text: str, words: Sequence[re.Match[str]], new: int, met: str) -> tuple[int, int, str] | None:
    """The longest run of words [start, end) around a new word that stands in ``met``, without idle words outside."""
    for length in range(min(LONGEST_PHRASE, len(words)), 0, -1):
        for start in range(max(0, new - length + 1), min(new, len(words) - length) + 1):
            end = start + length
            if end - start > 1 and {words[start][0].lower(), words[end - 1][0].lower()} & STOP_WORDS:
                continue
            piece = text[words[start].start() : words[end - 1].end()]
            if spelt := re.search(rf"\b{re.escape(piece)}\b", met, re.IGNORECASE):
                return start, end, spelt[0]
    return None


def _capitalised(text: str, words: Sequence[re.Match[str]], new: int) -> tuple[int, int, str]:
    start, end = new, new + 1
    while start > 0 and words[start - 1][0][0].isupper():
        start -= 1
    while end < len(words) and words[end][0][0].isupper():
        end += 1
    return start, end, text[words[start].start() : words[end - 1].end()]


def _holding(found: Mapping[str, str], phrase: str) -> list[str]:
    """The first found passage that holds the phrase, if any does."""
    return [name for name, text in found.items() if phrase in text][:1]


def _statement(action: str, needs: Sequence[str], *, first: bool) -> str:
    if needs:
        return f"Once {max(needs, key=len)} is found, {action}."
    return f"At first, {action}." if first else f"Next, {action}."


def _quote(observation: str, needs: Sequence[str]) -> str:
    """The line of an observation that the action builds on; its first line where no phrase decides."""
    lines = observation.splitlines() or [""]
    return next((line for line in lines if any(phrase in line for phrase in needs)), lines[0])[:200]
