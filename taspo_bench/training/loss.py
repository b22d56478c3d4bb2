"""The policy loss: a clipped surrogate in which every trajectory weighs the same (docs/method.md, step 9)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from taspo_bench.credit import Credit
from taspo_bench.episode import Episode


def token_weights(episodes: Sequence[Episode]) -> list[list[NDArray[np.float32]]]:
    """Weights of the mean over trajectories of the mean over turns of the mean over sampled tokens.

    One array (n_response_tokens,) per turn; tokens that were not sampled (a forced end) weigh 0. All weights add up
    to 1, and each trajectory's to 1 / N, whatever its length.
    """
    weights = []
    trained = sum(any(turn.sampled for turn in episode.turns) for episode in episodes)
    for episode in episodes:
        turns = sum(turn.sampled > 0 for turn in episode.turns)
        arrays = []
        for turn in episode.turns:
            array = np.zeros(len(turn.response_ids), dtype=np.float32)
            if turn.sampled:
                array[: turn.sampled] = 1.0 / (trained * turns * turn.sampled)
            arrays.append(array)
        weights.append(arrays)
    return weights


def token_credit(episode: Episode, credit: Credit) -> list[NDArray[np.float32]]:
    """Credit spread over each turn's response tokens (n_response_tokens,)."""
    return [
        np.broadcast_to(np.asarray(value, dtype=np.float32), (len(turn.response_ids),))
        for turn, value in zip(episode.turns, credit.turns, strict=True)
    ]


def surrogate(
    logprobs: torch.Tensor, old_logprobs: torch.Tensor, credit: torch.Tensor, clip: float, dual_clip: float
) -> torch.Tensor:
    """Token losses (N,) of PPO's clipped surrogate, with the dual clip for negative credit (arXiv 1912.09729)."""
    ratio = torch.exp(logprobs - old_logprobs)
    objective = torch.minimum(ratio * credit, ratio.clamp(1 - clip, 1 + clip) * credit)
    objective = torch.where(credit < 0, torch.maximum(objective, dual_clip * credit), objective)
    return -objective


def k3(logprobs: torch.Tensor, reference: torch.Tensor) -> torch.Tensor:
    """Token estimates (N,) of KL(policy || reference): exp(r) - r - 1 with r = log reference - log policy."""
    log_ratio = reference - logprobs
    return torch.exp(log_ratio) - log_ratio - 1
