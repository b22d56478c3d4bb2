"""StepOPSD (arXiv 2605.27140): token weights from a successful sibling's guidance, equally strong at every step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from scipy.special import expit

from taspo_bench.credit import Array, Credit, Scorer, check_range, group_advantages, guided_shifts
from taspo_bench.episode import Episode, Group


class StepOPSD:
    """A [(1 - l) + l clip(2 sigmoid(sign(A) D), 1 - clip, 1 + clip)] at each token, balanced over the steps.

    The changes w - 1 of a step are scaled so that their mean absolute value is the same at every step: the mean over
    the trajectory's steps (a step that changes nothing stays as it is). A step whose change sits in few of many
    tokens is scaled up, so that this rule alone does not bound a token's weight.

    Args:
        mix: l. clip: bound of the weight before mixing. Both in [0, 1]; the defaults are AgentOPSD's.
    """

    name: ClassVar[str] = "step_opsd"
    uses_guidance: ClassVar[bool] = True

    def __init__(self, mix: float = 0.5, clip: float = 0.2) -> None:
        check_range("mix", mix, 0, 1)
        check_range("clip", clip, 0, 1)
        self.mix = mix
        self.clip = clip

    def credit(self, group: Group, scorer: Scorer) -> list[Credit]:
        """One array per turn; an episode without guidance keeps A."""
        credits = []
        advantages = group_advantages(group.returns).tolist()
        for episode, advantage, shifts in zip(group.episodes, advantages, guided_shifts(group, scorer), strict=True):
            if shifts is None:
                credits.append(Credit.uniform(episode, advantage, "no guidance"))
            else:
                weights = self.token_weights(episode, shifts, advantage)
                credits.append(Credit([advantage * weight for weight in weights], advantage))
        return credits

    def token_weights(self, episode: Episode, shifts: Sequence[Array], advantage: float) -> list[Array]:
        """Weights of each turn's tokens; 1 on tokens that were not sampled."""
        changes = [
            np.where(np.arange(len(shift)) < turn.sampled, self._change(shift, advantage), 0.0)
            for turn, shift in zip(episode.turns, shifts, strict=True)
        ]
        strengths = np.array(
            [np.abs(change).sum() / max(1, turn.sampled) for turn, change in zip(episode.turns, changes, strict=True)]
        )
        level = strengths.mean() if len(strengths) else 0.0
        return [
            1.0 + (change * (level / strength) if strength else change)
            for change, strength in zip(changes, strengths, strict=True)
        ]

    def _change(self, shift: Array, advantage: float) -> Array:
        finite = np.where(np.isfinite(shift), shift, 0.0)
        weight = np.clip(2.0 * expit(np.sign(advantage) * finite), 1.0 - self.clip, 1.0 + self.clip)
        return self.mix * (weight - 1.0)
