"""Control: TASPO's own weights, given to the wrong turns."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from taspo_bench.credit import Array, Credit
from taspo_bench.episode import Episode
from taspo_bench.taspo.scheme import TASPO


class RandomWeights(TASPO):
    """TASPO's weights permuted within each trajectory: the same spread, bound and mean, without the information.

    The permutation is drawn from a generator of its own, keyed by the task and the actions, so that equal episodes
    get equal credit.
    """

    name: ClassVar[str] = "random_weights"

    def episode_credit(self, episode: Episode, advantage: float, shifts: Sequence[Array] | None) -> Credit:
        """TASPO's credit of one episode in a random order of its turns."""
        credit = super().episode_credit(episode, advantage, shifts)
        generator = np.random.default_rng(zlib.crc32("\n".join([episode.task_id, *episode.actions]).encode()))
        turns = [credit.turns[turn] for turn in generator.permutation(len(credit.turns))]
        return Credit(turns, credit.advantage, credit.fallback)
