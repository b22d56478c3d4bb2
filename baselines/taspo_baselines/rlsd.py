"""RLSD: the outcome advantage, scaled at each token by how guidance changes the token's likelihood."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from taspo_bench.credit import Array, Credit, Scorer, check_range, group_advantages, guided_shifts
from taspo_bench.episode import Group, Turn


class RLSD:
    """A [(1 - l) + l clip(exp(sign(A) D), 1 - clip, 1 + clip)] at each token.

    D is the token shift; a shift that is not finite counts as 0. The mix l falls on a straight line from ``mix`` to
    0 over the first ``decay_updates`` updates of the policy, at least 1. ``mix`` and ``clip`` are in [0, 1].
    """

    name: ClassVar[str] = "rlsd"
    uses_guidance: ClassVar[bool] = True

    def __init__(self, mix: float = 0.5, decay_updates: int = 50, clip: float = 0.2) -> None:
        check_range("mix", mix, 0, 1)
        check_range("decay_updates", decay_updates, 1)
        check_range("clip", clip, 0, 1)
        self.mix = mix
        self.decay_updates = decay_updates
        self.clip = clip

    def credit(self, group: Group, scorer: Scorer) -> list[Credit]:
        """One array per turn; an episode without guidance keeps A."""
        credits = []
        advantages = group_advantages(group.returns).tolist()
        for episode, advantage, shifts in zip(group.episodes, advantages, guided_shifts(group, scorer), strict=True):
            if shifts is None:
                credits.append(Credit.uniform(episode, advantage, "no guidance"))
            else:
                pairs = zip(episode.turns, shifts, strict=True)
                weights = [self.token_weights(turn, shift, advantage, group.update) for turn, shift in pairs]
                credits.append(Credit([advantage * weight for weight in weights], advantage))
        return credits

    def token_weights(self, turn: Turn, shift: Array, advantage: float, update: int) -> Array:
        """Weights of a turn's tokens from their shifts (n,)."""
        mix = self.mix * max(0.0, 1.0 - update / self.decay_updates)
        finite = np.where(np.isfinite(shift), shift, 0.0)
        with np.errstate(over="ignore"):  # clipped anyway
            ratio = np.clip(np.exp(np.sign(advantage) * finite), 1.0 - self.clip, 1.0 + self.clip)
        return (1.0 - mix) + mix * ratio
