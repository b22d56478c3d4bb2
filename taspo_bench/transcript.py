"""An episode as token sequences with spans. The trainer and the scorer see nothing else of it.

A sequence has a main line, read causally, and branches. A branch leaves the main line after ``prefix`` tokens, sees
those and itself, and nothing else sees it. Turn guidance is a branch: the privileged text and a copy of the turn's
response, so one pass scores the clean and the guided response of every turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from taspo_bench.episode import Episode, Guidance
from taspo_bench.policies.formats import Format


@dataclass
class Span:
    """Where a turn's response stands in a sequence: tokens [start, stop), sampled or forced. Never at index 0."""

    turn: int
    start: int
    stop: int
    is_guided: bool = False


@dataclass
class TokenSequence:
    """ids (L,); positions (L,) for rotary embeddings; branch (L,), 0 on the main line; prefix (L,), how many main
    tokens a branch token may see (unused on the main line); spans of the responses."""

    ids: list[int] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    branch: list[int] = field(default_factory=list)
    prefix: list[int] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def has_branches(self) -> bool:
        return bool(self.branch) and self.branch[-1] > 0

    def extend(self, ids: Iterable[int]) -> int:
        """Append to the main line; gives the index of the first new token."""
        start = len(self.ids)
        self.ids += ids
        added = len(self.ids) - start
        self.positions += range(start, start + added)
        self.branch += [0] * added
        self.prefix += [0] * added
        return start

    def extend_branch(self, prefix: int, ids: list[int]) -> int:
        """Append a new branch that leaves the main line after ``prefix`` tokens."""
        start = len(self.ids)
        number = (self.branch[-1] if self.branch else 0) + 1
        self.ids += ids
        self.positions += range(prefix, prefix + len(ids))
        self.branch += [number] * len(ids)
        self.prefix += [prefix] * len(ids)
        return start


def full(episode: Episode) -> TokenSequence:
    """The whole episode as one sequence; one forward pass scores every turn."""
    sequence = TokenSequence()
    _append_turns(sequence, episode, range(len(episode.turns)))
    return sequence


def sequences(episode: Episode) -> list[TokenSequence]:
    """The episode as it was sampled: one sequence, or one for each turn that began with a context of its own."""
    found = []
    for stretch in _stretches(episode):
        sequence = TokenSequence()
        _append_turns(sequence, episode, stretch)
        found.append(sequence)
    return found


def guided_sequences(episode: Episode, guidance: Guidance, fmt: Format) -> list[TokenSequence]:
    """What :func:`sequences` gives, with the privileged text; an own prompt without a text gives an empty one."""
    return [
        _guided_prompt(episode, turns.start, guidance, fmt)
        if episode.turns[turns.start].restarts
        else guided(episode, guidance, fmt, turns)
        for turns in _stretches(episode)
    ]


def guided(episode: Episode, guidance: Guidance, fmt: Format, turns: range | None = None) -> TokenSequence:
    """Turns of one context (all by default) with the episode's privileged text.

    Scope ``trajectory``: the text stands in front of everything but what opens the conversation, and the main line's
    spans are the guided ones. Scope ``turn``: the clean turns up to the last that has a text, and one branch per
    such turn.
    """
    sequence = TokenSequence()
    turns = range(len(episode.turns)) if turns is None else turns
    if guidance.scope == "trajectory":
        text = next(text for text in guidance.texts if text is not None)
        _append_turns(sequence, episode, turns, fmt.guide(text), fmt.head_tokens)
        return sequence
    last = max((turn for turn in turns if guidance.texts[turn] is not None), default=turns.start - 1)
    _append_turns(sequence, episode, range(turns.start, last + 1))
    _append_branches(sequence, episode, guidance, fmt, turns)
    return sequence


def guided_branches(episode: Episode, guidance: Guidance, fmt: Format) -> TokenSequence:
    """The branches of :func:`guided` alone, for a main line whose keys and values are kept elsewhere."""
    sequence = TokenSequence()
    _append_branches(sequence, episode, guidance, fmt, range(len(episode.turns)))
    return sequence


def _append_branches(
    sequence: TokenSequence, episode: Episode, guidance: Guidance, fmt: Format, turns: range
) -> None:
    """Append one branch for each of the turns that has a text."""
    before = 0  # tokens of the main line in front of the turn
    for index in turns:
        turn, text = episode.turns[index], guidance.texts[index]
        prompt = before + len(turn.prompt_ids)
        before = prompt + len(turn.response_ids)
        if text is None:
            continue
        prefix = prompt - fmt.cue_tokens
        front = fmt.guide(text) + turn.prompt_ids[len(turn.prompt_ids) - fmt.cue_tokens :]
        start = sequence.extend_branch(prefix, front + turn.response_ids) + len(front)
        sequence.spans.append(Span(index, start, start + len(turn.response_ids), is_guided=True))


def _guided_prompt(episode: Episode, index: int, guidance: Guidance, fmt: Format) -> TokenSequence:
    """One turn with a context of its own, its text where :func:`guided` would put it; empty if it has none."""
    sequence = TokenSequence()
    text = guidance.texts[index]
    if text is not None:
        prompt = len(episode.turns[index].prompt_ids)
        place = fmt.head_tokens if guidance.scope == "trajectory" else prompt - fmt.cue_tokens
        _append_turns(sequence, episode, range(index, index + 1), fmt.guide(text), place)
    return sequence


def _stretches(episode: Episode) -> list[range]:
    """Runs of turns that share one growing context."""
    total = len(episode.turns)
    starts = [index for index, turn in enumerate(episode.turns) if index == 0 or turn.restarts]
    return [range(start, stop) for start, stop in pairwise([*starts, total])]


def _append_turns(
    sequence: TokenSequence, episode: Episode, turns: range, guidance: Sequence[int] = (), place: int = 0
) -> None:
    """Append turns, with ids of guidance set in after the first ``place`` ids."""
    for index in turns:
        turn = episode.turns[index]
        prompt = turn.prompt_ids
        if index == turns.start:
            prompt = [*prompt[:place], *guidance, *prompt[place:]]
        sequence.extend(prompt)
        start = sequence.extend(turn.response_ids)
        sequence.spans.append(Span(index, start, len(sequence), is_guided=bool(guidance)))
