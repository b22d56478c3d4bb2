"""Advice read off a successful episode of Search-QA.

A rule fits a turn when the passages that it builds on have been found and the one that it leads to has not. It may
name an entity only where the agent has met it (METHOD.md, "The trap"): every word of an action that the question
does not hold is demanded from the agent's own observations.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from taspo_bench.api import Rule
from taspo_envs.searchqa.actions import parse
from taspo_envs.searchqa.bm25 import STOP_WORDS

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
    """What an action says that the question does not, in the longest pieces that stand in the text ``met``.

    Pieces are spelt as they are met. Stop words say nothing, except where a text holds nothing else.
    """
    asked = {word.lower() for word in _WORD.findall(question)}
    matches = list(_WORD.finditer(text))
    new = [n for n, word in enumerate(matches) if word[0].lower() not in asked and word[0].lower() not in STOP_WORDS]
    if not new and matches and all(word[0].lower() in STOP_WORDS for word in matches):
        new = list(range(len(matches)))
    phrases = []
    while new:
        first = new[0]
        for last in reversed(new):
            phrase = text[matches[first].start() : matches[last].end()]
            spelt = re.search(rf"\b{re.escape(phrase)}\b", met, re.IGNORECASE)
            if spelt or last == first:
                phrases.append(spelt[0] if spelt else phrase)
                new = [n for n in new if n > last]
                break
    return phrases


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
