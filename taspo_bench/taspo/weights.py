"""The TASPO rule: from token shifts to one weight per turn (arXiv 2608.31077; steps 4 to 7 of the method).

    d_t = mean of D_tk over the executable action span          turn score
    c_t = d_t - mean_t d_t                                       centre
    q_t = tanh(sign(A) c_t / tau)                                orient and squash
    w_t = 1 + (eps / 2) (q_t - mean_t q_t)                       weight

Weights average 1 over the turns and stay closer than eps to 1, so the outcome advantage A keeps its sign and its
sum. Whatever is missing or not finite makes the whole trajectory keep w = 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from taspo_bench.credit import Array
from taspo_bench.errors import InputError


@dataclass(frozen=True)
class WeightRule:
    """Settings of the rule.

    eps: bound of |w - 1|, in [0, 1]: above 1 a weight could turn the sign of the advantage.
    tau: temperature of the squash, in nats.
    kappa: margin; shifts with |D| < kappa count as 0.
    orient: multiply by sign(A) before the squash (off: an ablation).
    preserve_mean: subtract the mean of q, so that weights average 1 (off: an ablation).
    """

    eps: float = 0.4
    tau: float = 0.5
    kappa: float = 0.0
    orient: bool = True
    preserve_mean: bool = True

    def __post_init__(self) -> None:
        if not 0 <= self.eps <= 1:
            raise InputError(f"eps {self.eps!r}: give a number from 0 to 1, so that no weight changes a sign")
        if not (self.tau > 0 and np.isfinite(self.tau)):
            raise InputError(f"tau {self.tau!r}: give a number above 0")
        if not self.kappa >= 0:
            raise InputError(f"kappa {self.kappa!r}: give a number of at least 0")

    def turn_scores(self, spans: Sequence[Array]) -> Array:
        """Turn scores d (T,) from the token shifts of each turn's action span; NaN where no shift is finite."""
        return np.array([self._turn_score(np.asarray(span, dtype=np.float64)) for span in spans], dtype=np.float64)

    def _turn_score(self, span: Array) -> float:
        finite = span[np.isfinite(span)]
        if not len(finite):
            return float("nan")
        return _mean(self.with_margin(finite))

    def with_margin(self, shifts: Array) -> Array:
        """Shifts (n,) with those inside the margin set to 0."""
        return np.where(np.abs(shifts) < self.kappa, 0.0, shifts)

    def weights(self, scores: Array, advantage: float) -> Array:
        """Weights w (n,) of n scores d, whether of turns or of tokens. All 1 if any of the inputs is not finite."""
        scores = np.asarray(scores, dtype=np.float64)
        if not len(scores) or not np.isfinite(advantage) or not np.isfinite(scores).all() or advantage == 0:
            return np.ones(len(scores))
        sign = np.sign(advantage) if self.orient else 1.0
        with np.errstate(over="ignore"):  # an infinite ratio squashes to 1 like any large one
            q = np.tanh(sign * (scores - _mean(scores)) / self.tau)
        return 1.0 + self.eps / 2 * (q - (q.mean() if self.preserve_mean else 0.0))


def _mean(values: Array) -> float:
    # divided before the sum: the sum of huge finite values overflows
    return float(np.sum(values / len(values)))


def fallback_reason(spans: Sequence[Array | None], has_guidance: bool) -> str:
    """Why a trajectory must keep w = 1, or "".

    Args:
        spans: token shifts of each turn's action span; None where no action could be parsed.
        has_guidance: whether the trajectory has any guidance at all.
    """
    if not has_guidance:
        return "no guidance"
    if len(spans) < 2:
        return "one turn"
    for turn, span in enumerate(spans):
        if span is None or not len(span):
            return f"turn {turn}: no action span"
        if not np.isfinite(span).any():
            return f"turn {turn}: no finite shift"
    return ""
