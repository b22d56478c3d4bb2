"""AgentOPSD (arXiv 2608.05987): credit of a turn from how much it moves a running belief in success."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from scipy.special import expit, logit

from taspo_bench.credit import Array, Credit, Scorer, check_range, group_advantages, guided_shifts
from taspo_bench.episode import Episode, Group


class AgentOPSD:
    """A [(1 - l) + l w_k], w_k = clip(1 + b z_k, 1 - b, 1 + b).

    e_k = sum of the token shifts of turn k; c_k = gamma c_{k-1} + e_k; belief B_k = sigmoid(logit(B_0) + c_k), where
    B_0 is the group's success rate, at least ``margin`` away from 0 and 1; z_k is the z-score within the trajectory
    of sign(A) (B_k - B_{k-1}).

    Args:
        mix: l. bound: b. gamma: decay of the evidence. All three in [0, 1].
        margin: distance of B_0 from certainty, above 0.
    """

    name: ClassVar[str] = "agent_opsd"
    uses_guidance: ClassVar[bool] = True

    def __init__(self, mix: float = 0.5, bound: float = 0.2, gamma: float = 0.95, margin: float = 1e-3) -> None:
        for setting, value in (("mix", mix), ("bound", bound), ("gamma", gamma)):
            check_range(setting, value, 0, 1)
        check_range("margin", margin, 1e-12, 0.5)  # at 0 the belief would be infinite
        self.mix = mix
        self.bound = bound
        self.gamma = gamma
        self.margin = margin

    def credit(self, group: Group, scorer: Scorer) -> list[Credit]:
        """One value per turn; an episode without guidance keeps A."""
        prior = float(np.mean([episode.won for episode in group.episodes]))
        credits = []
        advantages = group_advantages(group.returns).tolist()
        for episode, advantage, shifts in zip(group.episodes, advantages, guided_shifts(group, scorer), strict=True):
            if shifts is None:
                credits.append(Credit.uniform(episode, advantage, "no guidance"))
            else:
                weights = self.weights(evidence(episode, shifts), prior, advantage)
                credits.append(Credit((advantage * (1.0 - self.mix + self.mix * weights)).tolist(), advantage))
        return credits

    def weights(self, e: Array, prior: float, advantage: float) -> Array:
        """w (T,) from the evidence e (T,) of the turns and the success rate of the group."""
        logits = np.full(len(e) + 1, logit(np.clip(prior, self.margin, 1.0 - self.margin)))
        total = 0.0
        for k, value in enumerate(e):
            total = self.gamma * total + value
            logits[k + 1] += total
        change = np.sign(advantage) * np.diff(expit(logits))
        if not len(change) or change.max() == change.min():
            return np.ones(len(change))
        z = (change - change.mean()) / (change.std() + 1e-8)
        return np.clip(1.0 + self.bound * z, 1.0 - self.bound, 1.0 + self.bound)


def evidence(episode: Episode, shifts: Sequence[Array]) -> Array:
    """e (T,): the sum of the finite shifts of each turn's sampled tokens."""
    sampled = [shift[: turn.sampled] for turn, shift in zip(episode.turns, shifts, strict=True)]
    return np.array([float(shift[np.isfinite(shift)].sum()) for shift in sampled])
