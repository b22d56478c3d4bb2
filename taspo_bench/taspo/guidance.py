"""Guidance: evidence items with exact quotes, the mechanical checks on them, and the text made of them.

An item states one thing that other verified successes of the group show, cites where they show it, and quotes the
situation of the target that it fits. An item that fails a check is dropped; a target without items has no guidance
and keeps w = 1. The target's own reward and success flag take no part in any of this.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from taspo_bench.episode import Episode, Group, Guidance

Scope = Literal["trajectory", "turn"]
Kind = Literal["requirement", "progress", "constraint", "alternative"]
KINDS: tuple[Kind, ...] = ("requirement", "progress", "constraint", "alternative")
MAX_ITEMS = 8
MAX_TOKENS = 256
MAX_STATEMENT = 800


@dataclass(frozen=True)
class Source:
    """Where an item was seen: step ``step`` of episode ``trajectory`` of the group, with exact pieces of its action
    and of the observation that stood before or after it."""

    trajectory: int
    step: int
    action: str
    observation: str


@dataclass(frozen=True)
class Item:
    """One piece of guidance for one target: ``quote`` is an exact piece of the target's observation at turn ``step``,
    where the item first fits."""

    id: str
    kind: Kind
    statement: str
    sources: tuple[Source, ...]
    step: int
    quote: str

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "sources": [asdict(source) for source in self.sources]}


def successes(group: Group) -> list[int]:
    """Indices of the verified successes of a group."""
    return [index for index, episode in enumerate(group.episodes) if episode.won and not episode.error]


def is_quoted(quote: str, text: str) -> bool:
    """Whether a quote stands in a text, whatever the white space; an empty quote stands nowhere."""
    words = " ".join(quote.split())
    return bool(words) and words in " ".join(text.split())


def observed_after(episode: Episode, step: int) -> str:
    """The observation that the action of a step led to."""
    return episode.turns[step + 1].observation if step + 1 < len(episode.turns) else episode.final_observation


def source_defect(source: Source, group: Group) -> str:
    """What is wrong with a citation; "" if it cites a verified success of the group exactly."""
    if source.trajectory not in successes(group):
        return f"trajectory {source.trajectory} is no verified success of the group"
    episode = group.episodes[source.trajectory]
    if not 0 <= source.step < len(episode.turns):
        return f"trajectory {source.trajectory} has no step {source.step}"
    turn = episode.turns[source.step]
    if not is_quoted(source.action, turn.action):
        return f"the action of step {source.step} is misquoted"
    if not any(
        is_quoted(source.observation, text) for text in (turn.observation, observed_after(episode, source.step))
    ):
        return f"the observation of step {source.step} is misquoted"
    return ""


def item_defect(item: Item, group: Group, target: int) -> str:
    """Why an item must not be shown to a target; "" if nothing is wrong with it."""
    if item.kind not in KINDS:
        return f"kind {item.kind!r}"
    if not 0 < len(item.statement.strip()) <= len(item.statement) <= MAX_STATEMENT:
        return f"a statement of {len(item.statement)} characters"
    if not item.sources:
        return "no source"
    for source in item.sources:
        if source.trajectory == target:
            return "the target is its own source"
        if defect := source_defect(source, group):
            return defect
    turns = group.episodes[target].turns
    if not 0 <= item.step < len(turns) or not is_quoted(item.quote, turns[item.step].observation):
        return "the target is misquoted"
    return ""


def compose(
    episode: Episode,
    scope: Scope,
    items: Mapping[int, Sequence[Item]],
    count_tokens: Callable[[str], int],
    max_tokens: int = MAX_TOKENS,
) -> Guidance:
    """The texts of one target: one statement a line, whole lines only, as many as fit.

    Args:
        items: for scope ``turn``, the checked items of each turn that has any; for scope ``trajectory``, those of
            the whole trajectory under key 0.
        count_tokens: length of a text in the policy's tokens.
    """
    texts = {turn: text for turn, chosen in items.items() if (text := _text(chosen, count_tokens, max_tokens))}
    if not texts:
        return abstain(episode, scope, "no item fits")
    used = {item.id: item for turn in texts for item in items[turn] if _line(item) in texts[turn].split("\n")}
    per_turn = [texts.get(0 if scope == "trajectory" else turn) for turn in range(len(episode.turns))]
    return Guidance(per_turn, scope, [item.to_json() for item in used.values()])


def _text(items: Sequence[Item], count_tokens: Callable[[str], int], max_tokens: int) -> str:
    text = ""
    for line in dict.fromkeys(map(_line, items)):
        longer = f"{text}\n{line}" if text else line
        if count_tokens(longer) <= max_tokens:
            text = longer
    return text


def _line(item: Item) -> str:
    return " ".join(item.statement.split())


def abstain(episode: Episode, scope: Scope, reason: str) -> Guidance:
    """No guidance, and why."""
    return Guidance([None] * len(episode.turns), scope, reason=reason)
