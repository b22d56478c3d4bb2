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
        unknown = new_phrases(said.text, question)
        new = [name for name in found[step + 1] if name not in found[step]]
        if said.kind == "answer":
            sources = list(useful)
        else:
            sources = [name for phrase in unknown for name in _holding(found[step], phrase)]
        rules.append(
            Rule(
                step=step,
                statement=_statement(action, unknown, first=step == 0),
                action=action,
                quote=_quote(observations[step], unknown),
                when=(question_line(question), *(found_line(name) for name in dict.fromkeys(sources))),
                needs=tuple(unknown),
                unless=tuple(found_line(name) for name in new[:1]),
            )
        )
        useful += new[:1]
    return rules


def new_phrases(text: str, known: str) -> list[str]:
    """Runs of words of ``text`` that ``known`` does not hold, as they stand in ``text``."""
    met = {word.lower() for word in _WORD.findall(known)}
    phrases: list[str] = []
    run: tuple[int, int] | None = None
    for match in _WORD.finditer(text):
        if match[0].lower() in met:
            run = None
            continue
        if run is not None:
            phrases.pop()
        run = (run[0] if run else match.start(), match.end())
        phrases.append(text[run[0] : run[1]])
    return phrases


def _holding(found: Mapping[str, str], phrase: str) -> list[str]:
    """The first found passage that holds the phrase, if any does."""
    return [name for name, text in found.items() if phrase in text][:1]


def _statement(action: str, unknown: Sequence[str], *, first: bool) -> str:
    if unknown:
        return f"Once {unknown[-1]} is found, {action}."
    return f"At first, {action}." if first else f"Next, {action}."


def _quote(observation: str, unknown: Sequence[str]) -> str:
    """The line of an observation that the action builds on; its first line where no phrase decides."""
    lines = observation.splitlines() or [""]
    return next((line for line in lines if unknown and unknown[-1] in line), lines[0])[:200]
