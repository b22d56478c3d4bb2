"""A second random control, for the study's exploration: the order is drawn anew for every episode of every update."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from taspo_bench.credit import Array, Credit, Scorer
from taspo_bench.episode import Episode, Group
from taspo_bench.taspo.scheme import TASPO


class FreshRandom(TASPO):
    """TASPO's weights permuted within each trajectory, equal episodes each in an order of their own."""

    name: ClassVar[str] = "fresh_random"
    generator: np.random.Generator

    def credit(self, group: Group, scorer: Scorer) -> list[Credit]:
        """One value per turn; the order depends on the update, the task and the place in the group alone."""
        self.generator = np.random.default_rng([group.update, *group.task_id.encode()])
        return super().credit(group, scorer)

    def episode_credit(self, episode: Episode, advantage: float, shifts: Sequence[Array] | None) -> Credit:
        """TASPO's credit of one episode in a random order of its turns."""
        credit = super().episode_credit(episode, advantage, shifts)
        turns = [credit.turns[turn] for turn in self.generator.permutation(len(credit.turns))]
        return Credit(turns, credit.advantage, credit.fallback)
