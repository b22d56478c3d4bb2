"""TASPO as a credit scheme (arXiv 2608.31077): outcome advantage times one bounded weight per turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from taspo_bench.credit import Array, Credit, Scorer, group_advantages, guided_shifts
from taspo_bench.episode import Episode, Group
from taspo_bench.taspo.weights import WeightRule, fallback_reason


class TASPO:
    """A w_t on every response token of turn t; w_t from how guidance shifts the likelihood of the executed action.

    The guidance of the group (made from other verified successes) shifts the likelihood of the sampled tokens; the
    mean shift of each executed action, centred in its trajectory and oriented by the sign of A, is its weight.
    A turn without a text has shift 0 and takes part in the centring as 0.

    Args:
        eps, tau, kappa, orient, preserve_mean: see :class:`taspo_bench.taspo.weights.WeightRule`.
    """

    name: ClassVar[str] = "taspo"
    uses_guidance: ClassVar[bool] = True

    def __init__(
        self,
        eps: float = 0.4,
        tau: float = 0.5,
        kappa: float = 0.0,
        orient: bool = True,
        preserve_mean: bool = True,
    ) -> None:
        self.rule = WeightRule(eps, tau, kappa, orient, preserve_mean)

    def credit(self, group: Group, scorer: Scorer) -> list[Credit]:
        """Credit of each episode, one float per turn; ``fallback`` says why an episode kept w = 1."""
        advantages = group_advantages(group.returns).tolist()
        shifts = guided_shifts(group, scorer)
        return [
            self.episode_credit(episode, advantage, shift)
            for episode, advantage, shift in zip(group.episodes, advantages, shifts, strict=True)
        ]

    def episode_credit(self, episode: Episode, advantage: float, shifts: Sequence[Array] | None) -> Credit:
        """Credit of one episode from its token shifts, one array per turn; None for an episode without guidance."""
        spans = action_spans(episode, shifts)
        if reason := fallback_reason(spans, has_guidance=shifts is not None):
            return Credit.uniform(episode, advantage, reason)
        scores = self.rule.turn_scores([span for span in spans if span is not None])
        return Credit((advantage * self.rule.weights(scores, advantage)).tolist(), advantage)


def action_spans(episode: Episode, shifts: Sequence[Array] | None) -> list[Array | None]:
    """The part of each turn's shifts that belongs to the executable action; None where there is no such part."""
    if shifts is None:
        return [None] * len(episode.turns)
    return [
        None if turn.action_span is None else shift[slice(*turn.action_span)]
        for turn, shift in zip(episode.turns, shifts, strict=True)
    ]
