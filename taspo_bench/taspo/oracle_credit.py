"""Control: the same bounded weights, made from what each action truly did to the distance from success."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from taspo_bench.credit import Array, Credit, Scorer, group_advantages
from taspo_bench.episode import Group
from taspo_bench.taspo.scheme import TASPO


class OracleCredit(TASPO):
    """TASPO's weights with the simulator's progress of a turn in place of its turn score."""

    name: ClassVar[str] = "oracle_credit"
    uses_guidance: ClassVar[bool] = False

    def credit(self, group: Group, scorer: Scorer) -> list[Credit]:
        """One value per turn. Asks the scorer for the optimal steps that remain, not for shifts."""
        credits = []
        for episode, advantage in zip(group.episodes, group_advantages(group.returns).tolist(), strict=True):
            if len(episode.turns) < 2:
                credits.append(Credit.uniform(episode, advantage, "one turn"))
            else:
                weights = self.rule.weights(progress(scorer.remaining_steps(episode)), advantage)
                credits.append(Credit((advantage * weights).tolist(), advantage))
        return credits


def progress(remaining: Array) -> Array:
    """Optimal steps saved by each action (T,), from the steps that remain before each turn and after the last
    (T + 1,). A state that is lost for good counts as one step worse than the worst of the others."""
    finite = remaining[np.isfinite(remaining)]
    if not len(finite):
        return np.zeros(len(remaining) - 1)
    return -np.diff(np.where(np.isfinite(remaining), remaining, finite.max() + 1.0))
