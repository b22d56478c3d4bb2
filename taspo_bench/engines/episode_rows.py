"""Episodes as the rows that TRL trains on: ids as they were sampled, and one value per completion token.

The prompt is what stood before the first response. The completion is all that followed: responses, and between them
what the environment said.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from taspo_bench.episode import Episode
from taspo_bench.transcript import full


def rows(episodes: Sequence[Episode], filler: int) -> dict[str, Any]:
    """What a ``rollout_func`` of TRL returns, one entry per episode.

    ``env_mask`` is 1 on sampled tokens and 0 on those of the environment and on forced ends; ``logprobs`` are those
    of the rollout, 0 where nothing was sampled. An episode without a turn becomes one ``filler`` token that counts
    for nothing. ``verified_return`` goes on to the reward function.
    """
    fields: dict[str, Any] = {"prompt_ids": [], "completion_ids": [], "logprobs": [], "env_mask": []}
    for episode in episodes:
        ids, first = full(episode).ids or [filler, filler], _first(episode)
        sampled = [np.arange(len(turn.response_ids)) < turn.sampled for turn in episode.turns]
        logprobs = [np.asarray(turn.logprobs) for turn in episode.turns]
        fields["prompt_ids"].append(ids[:first])
        fields["completion_ids"].append(ids[first:])
        fields["logprobs"].append(spread(episode, logprobs, len(ids) - first).tolist())
        fields["env_mask"].append(spread(episode, sampled, len(ids) - first).astype(int).tolist())
    return {**fields, "verified_return": [episode.ret for episode in episodes]}


def spread(episode: Episode, values: Sequence[NDArray[Any]], width: int) -> NDArray[np.float64]:
    """Values of the response tokens, one array per turn, at their places among ``width`` completion tokens."""
    line = np.zeros(width)
    first = _first(episode)
    for span, value in zip(full(episode).spans, values, strict=True):
        line[span.start - first : span.stop - first] = value
    return line


def stacked(
    episodes: Sequence[Episode], values: Sequence[Sequence[NDArray[Any]] | None], like: torch.Tensor
) -> torch.Tensor:
    """:func:`spread` for a batch, as a tensor of the shape (B, T) of ``like``; None is a row of zeros."""
    width = like.shape[1]
    lines = [
        np.zeros(width) if given is None else spread(episode, given, width)
        for episode, given in zip(episodes, values, strict=True)
    ]
    return torch.from_numpy(np.stack(lines).astype(np.float32)).to(like.device)


def _first(episode: Episode) -> int:
    """Index of the first token of the first response."""
    return len(episode.turns[0].prompt_ids) if episode.turns else 1
