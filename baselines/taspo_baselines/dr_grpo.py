"""Dr. GRPO (arXiv 2503.20783): the outcome less the group's mean, not divided by its spread."""

from __future__ import annotations

from typing import ClassVar

from taspo_bench.credit import Credit, Scorer, group_advantages
from taspo_bench.episode import Group


class DrGRPO:
    """A_i = R_i - mean R."""

    name: ClassVar[str] = "dr_grpo"
    uses_guidance: ClassVar[bool] = False

    def credit(self, group: Group, scorer: Scorer) -> list[Credit]:
        """The same advantage on every turn of an episode. Asks nothing of the scorer."""
        advantages = group_advantages(group.returns, normalize="none").tolist()
        return [
            Credit.uniform(episode, advantage) for episode, advantage in zip(group.episodes, advantages, strict=True)
        ]
