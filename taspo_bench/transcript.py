"""An episode as token sequences with spans. The trainer and the scorer see nothing else of it.

A sequence has a main line, read causally, and branches. A branch leaves the main line after ``prefix`` tokens, sees
those and itself, and nothing else sees it. Turn guidance is a branch: the privileged text and a copy of the turn's
response, so one pass scores the clean and the guided response of every turn.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from taspo_bench.episode import Episode, Guidance, Turn
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
    _append_turns(sequence, episode.turns)
    return sequence


def guided(episode: Episode, guidance: Guidance, fmt: Format) -> TokenSequence:
    """The episode with its privileged text.

    Scope ``trajectory``: the text stands in front of everything, and the main line's spans are the guided ones.
    Scope ``turn``: the clean episode up to the last turn that has a text, and one branch per such turn.
    """
    sequence = TokenSequence()
    if guidance.scope == "trajectory":
        sequence.extend(fmt.guide(next(text for text in guidance.texts if text is not None)))
        _append_turns(sequence, episode.turns, is_guided=True)
        return sequence
    last = max((turn for turn, text in enumerate(guidance.texts) if text is not None), default=-1)
    _append_turns(sequence, episode.turns[: last + 1])
    for span in list(sequence.spans):
        text = guidance.texts[span.turn]
        if text is None:
            continue
        prefix = span.start - fmt.cue_tokens
        cue = sequence.ids[prefix : span.start]
        response = sequence.ids[span.start : span.stop]
        front = fmt.guide(text) + cue
        start = sequence.extend_branch(prefix, front + response) + len(front)
        sequence.spans.append(Span(span.turn, start, start + len(response), is_guided=True))
    return sequence


def _append_turns(sequence: TokenSequence, turns: list[Turn], is_guided: bool = False) -> None:
    for index, turn in enumerate(turns):
        sequence.extend(turn.prompt_ids)
        start = sequence.extend(turn.response_ids)
        sequence.spans.append(Span(index, start, len(sequence), is_guided))
