"""A scorer with known answers, and episodes to go with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from taspo_bench.credit import Array
from taspo_bench.episode import Episode, Group, Guidance, Turn


@dataclass
class FixedScorer:
    """Shifts and remaining steps by the episode's seed; counts what it is asked."""

    shifts: dict[int, list[Array]] = field(default_factory=dict)
    remaining: dict[int, Array] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)

    def shift(self, episodes: Sequence[Episode], guidance: Sequence[Guidance]) -> list[list[Array]]:
        assert len(episodes) == len(guidance) and all(guidance)
        self.requests.append("shift")
        return [self.shifts[episode.seed] for episode in episodes]

    def remaining_steps(self, episode: Episode) -> Array:
        self.requests.append("remaining_steps")
        return self.remaining[episode.seed]


def episode(score: float, spans: Sequence[tuple[int, int] | None], tokens: int = 3, seed: int = 0) -> Episode:
    """An episode whose turns have ``tokens`` sampled tokens each, and these action spans."""
    turns = [
        Turn(f"observation {number}", "act", f"action {number}", f"state {number}", response_ids=[1] * tokens)
        for number in range(len(spans))
    ]
    for turn, span in zip(turns, spans, strict=True):
        turn.action_span, turn.sampled, turn.logprobs = span, tokens, [0.0] * tokens
    if turns:
        turns[-1].reward = score
    return Episode("corridor", "key-2", "key", turns, won=score == 1.0, score=score, seed=seed)


def guided(episodes: Sequence[Episode], update: int = 0) -> Group:
    """A group in which every episode has guidance on all turns."""
    texts = [Guidance(["do this"] * len(member.turns)) if member.turns else None for member in episodes]
    return Group("key-2", list(episodes), texts, update)


def arrays(rows: Sequence[Sequence[float]]) -> list[Array]:
    return [np.array(row, dtype=np.float64) for row in rows]
