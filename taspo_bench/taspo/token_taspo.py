"""TASPO at the level of tokens: the ablation of its granularity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from taspo_bench.credit import Array, Credit
from taspo_bench.episode import Episode
from taspo_bench.taspo.scheme import TASPO, action_spans
from taspo_bench.taspo.weights import fallback_reason


class TokenTASPO(TASPO):
    """Centre, squash and weigh over all sampled tokens of a trajectory in place of its actions.

    Weights average 1 over the trajectory's sampled tokens. Falls back where TASPO does, so that the two differ in
    granularity alone; a token without a finite shift keeps w = 1.
    """

    name: ClassVar[str] = "token_taspo"

    def episode_credit(self, episode: Episode, advantage: float, shifts: Sequence[Array] | None) -> Credit:
        """Credit of one episode, an array (n_response_tokens,) per turn."""
        reason = fallback_reason(action_spans(episode, shifts), has_guidance=shifts is not None)
        if shifts is None or reason:
            return Credit.uniform(episode, advantage, reason)
        weights = [np.ones(len(shift)) for shift in shifts]
        counts = [
            np.isfinite(shift) & (np.arange(len(shift)) < turn.sampled)
            for turn, shift in zip(episode.turns, shifts, strict=True)
        ]
        scores = np.concatenate([shift[mask] for shift, mask in zip(shifts, counts, strict=True)])
        found = self.rule.weights(self.rule.with_margin(scores), advantage)
        ends = np.cumsum([int(mask.sum()) for mask in counts])
        for weight, mask, part in zip(weights, counts, np.split(found, ends[:-1]), strict=True):
            weight[mask] = part
        return Credit([advantage * weight for weight in weights], advantage)
