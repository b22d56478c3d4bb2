"""RLOO (arXiv 2402.14740): the outcome less the mean of the other rollouts of the group."""

from __future__ import annotations

from typing import ClassVar

from taspo_bench.credit import Credit, Scorer, group_advantages
from taspo_bench.episode import Group


class RLOO:
    """A_i = R_i - mean of R_j over j != i."""

    name: ClassVar[str] = "rloo"
    uses_guidance: ClassVar[bool] = False

    def credit(self, group: Group, scorer: Scorer) -> list[Credit]:
        """The same advantage on every turn of an episode. Asks nothing of the scorer."""
        advantages = group_advantages(group.returns, normalize="leave_one_out").tolist()
        return [
            Credit.uniform(episode, advantage) for episode, advantage in zip(group.episodes, advantages, strict=True)
        ]
