"""GiGPO (arXiv 2505.10978): the outcome advantage, and a step advantage among turns that met the same state."""

from __future__ import annotations

from collections import defaultdict
from typing import ClassVar

import numpy as np

from taspo_bench.credit import Array, Credit, Scorer, check_range, group_advantages
from taspo_bench.episode import Episode, Group


class GiGPO:
    """A_i + omega * A_step.

    A turn's anchor is its agent-visible state (``Turn.state_key``). The discounted returns of all turns of the group
    with one anchor are normalised among themselves as GRPO normalises outcomes; an anchor met once gives 0. So a
    group that was won throughout teaches too: the way that was shorter from a state is the better one.

    Args:
        omega: weight of the step advantage, at least 0.
        gamma: discount of the rewards from a turn to the end of its episode, in [0, 1].
    """

    name: ClassVar[str] = "gigpo"
    uses_guidance: ClassVar[bool] = False
    learns_from_equal_returns: ClassVar[bool] = True

    def __init__(self, omega: float = 1.0, gamma: float = 0.95) -> None:
        check_range("omega", omega, 0)
        check_range("gamma", gamma, 0, 1)
        self.omega = omega
        self.gamma = gamma

    def credit(self, group: Group, scorer: Scorer) -> list[Credit]:
        """One value per turn; its sign may differ from the outcome's. Asks nothing of the scorer."""
        advantages = group_advantages(group.returns).tolist()
        steps = self.step_advantages(group)
        return [
            Credit((advantage + self.omega * step).tolist(), advantage)
            for advantage, step in zip(advantages, steps, strict=True)
        ]

    def step_advantages(self, group: Group) -> list[Array]:
        """A_step of each turn, one array (T,) per episode."""
        anchors: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for index, episode in enumerate(group.episodes):
            for step, turn in enumerate(episode.turns):
                anchors[turn.state_key].append((index, step))
        returns = [self.discounted_returns(episode) for episode in group.episodes]
        found = [np.zeros(len(episode.turns)) for episode in group.episodes]
        for places in anchors.values():
            values = group_advantages([float(returns[index][step]) for index, step in places])
            for (index, step), value in zip(places, values, strict=True):
                found[index][step] = value
        return found

    def discounted_returns(self, episode: Episode) -> Array:
        """Discounted sum of rewards from each turn on (T,)."""
        returns = np.zeros(len(episode.turns))
        following = 0.0
        for step in reversed(range(len(episode.turns))):
            following = episode.turns[step].reward + self.gamma * following
            returns[step] = following
        return returns
