"""The prompt of models that were not trained here: rules, task, the last few turns, and what may be done now.

Each turn is a prompt of its own, as in the paper; the answer reasons freely and holds
one action between tags.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from typing import Literal

from taspo_bench.api import TextEnv

MAX_ACTION = 4096
"""Characters of an action; what is longer is no action (the benchmarks' own limit)."""

Style = Literal["bare", "think"]
INSTRUCTIONS: dict[Style, str] = {
    "bare": "Answer with the one action to take now and nothing else.",
    "think": "Reason about what to do next between <think> and </think>. "
    "Then write the one action to take now between <action> and </action>.",
}
"""How to answer: the action alone, or reasoning and then the action between tags."""
RESPONSE_TOKENS: dict[Style, int] = {"bare": 32, "think": 512}
"""Longest response where none is set; that of reasoning ones is the paper's."""

NO_ACTION = "(no action found in your answer)"
_THINK_TAG = re.compile(r"<(/?)think(?:ing)?>")
_SPAN = re.compile(r"<(action|search|answer)>((?:(?!<\1>).)*?)</\1>", re.DOTALL)


def window_prompt(
    env: TextEnv,
    first: str,
    past: Sequence[tuple[str, str]],
    observation: str,
    window: int,
    instruction: str = INSTRUCTIONS["think"],
) -> str:
    """The prompt of the present turn.

    Args:
        env: at the present state; read for what the agent may know (rules, task, actions, steps).
        first: the first observation, which states the task and is shown in every prompt.
        past: observation and action of every turn so far; the last ``window`` of them are shown.
        instruction: how to answer.
    """
    shown = list(enumerate(past, 1))[len(past) - min(window, len(past)) :]
    parts = [env.briefing, f"The beginning:\n{first}"]
    if shown:
        seen_before = {turn: f"Turn {turn} observation: {seen}\n" for turn, (seen, _) in shown if turn > 1}
        turns = (f"{seen_before.get(turn, '')}Turn {turn} action: {done}" for turn, (_, done) in shown)
        parts.append("Your last turns:\n" + "\n\n".join(turns))
    if past:
        parts.append(f"Now, at turn {len(past) + 1}:\n{observation}")
    parts.append(f"Actions left: {env.max_steps - env.steps}.")
    parts.append(_choices(env))
    parts.append(instruction)
    return "\n\n".join(part for part in parts if part)


def _choices(env: TextEnv) -> str:
    fixed = env.admissible_actions
    free = [template.format("..") for template in env.action_templates]
    lines = []
    if fixed:
        lines.append("Possible actions now:\n" + "\n".join(fixed))
    if free:
        lines.append(f"{'Also possible' if fixed else 'Possible actions'}, with words of your own: {', '.join(free)}")
    return "\n".join(lines)


def parse_action(answer: str) -> str:
    """The action of an answer, "" if it holds none."""
    found = find_action(answer)
    return found[0] if found is not None else ""


def find_action(answer: str) -> tuple[str, int, int] | None:
    """The action of an answer, and from which character to which it stands there with its tags.

    It is the last whole tagged span behind any reasoning: an answer may name the tags, or think better of it, before
    it acts. ``<search>`` and ``<answer>`` keep their tags, since they say what kind of action it is.
    """
    found = _last_span(answer)
    if found is None:
        return None
    text = " ".join((found[2] if found[1] == "action" else found[0]).split())
    return (text, *found.span()) if len(text) <= MAX_ACTION else None


def is_complete(answer: str) -> bool:
    """Whether an answer has acted: it holds a whole tagged span, and is not in the midst of its reasoning."""
    is_reasoning = answer.rfind("<think") > max(map(answer.rfind, ("</think>", "</thinking>")))
    return not is_reasoning and _last_span(answer) is not None


def _last_span(answer: str) -> re.Match[str] | None:
    return next(iter(deque(_SPAN.finditer(_blank_thoughts(answer)), maxlen=1)), None)


def _blank_thoughts(answer: str) -> str:
    """The answer with its closed reasoning blanked, place for place; reasoning may have been opened by the prompt."""
    pieces, position = [], 0
    opened: int | None = 0
    for number, tag in enumerate(_THINK_TAG.finditer(answer)):
        if tag[1] and opened is not None:
            pieces += [answer[position:opened], " " * (tag.end() - opened)]
            position, opened = tag.end(), None
        elif not tag[1] and (opened is None or number == 0):
            opened = tag.start()
    return "".join(pieces) + answer[position:]
