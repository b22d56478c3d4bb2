"""SERL (arXiv 2605.19447): hindsight scales the tokens of the action alone; all others keep the outcome advantage."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from taspo_baselines.rlsd import RLSD
from taspo_bench.credit import Array
from taspo_bench.episode import Turn


class SERL(RLSD):
    """RLSD's weight on the tokens of the executable action; 1 on the rest, and on a turn without an action."""

    name: ClassVar[str] = "serl"

    def token_weights(self, turn: Turn, shift: Array, advantage: float, update: int) -> Array:
        """Weights of a turn's tokens from their shifts (n,)."""
        weights = np.ones(len(shift))
        if turn.action_span is not None:
            action = slice(*turn.action_span)
            weights[action] = super().token_weights(turn, shift, advantage, update)[action]
        return weights
