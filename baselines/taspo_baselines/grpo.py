"""GRPO (arXiv 2402.03300): the normalised outcome of the trajectory on every one of its tokens."""

from __future__ import annotations

from typing import ClassVar

from taspo_bench.credit import Credit, Scorer, group_advantages
from taspo_bench.episode import Group


class GRPO:
    """A_i = (R_i - mean R) / (std R + 1e-6), std with ddof 1."""

    name: ClassVar[str] = "grpo"
    uses_guidance: ClassVar[bool] = False

    def credit(self, group: Group, scorer: Scorer) -> list[Credit]:
        """The same advantage on every turn of an episode. Asks nothing of the scorer."""
        advantages = group_advantages(group.returns).tolist()
        return [
            Credit.uniform(episode, advantage) for episode, advantage in zip(group.episodes, advantages, strict=True)
        ]
