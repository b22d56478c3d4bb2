"""What a scheme did to the outcome advantages of a batch, in a handful of figures for the log of every update."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from taspo_bench.credit import Array, Credit
from taspo_bench.episode import Group


def credit_metrics(groups: Sequence[Group], credits: Sequence[Sequence[Credit]]) -> dict[str, float]:
    """Figures over all episodes of the groups, for any credit scheme; w is a turn's mean credit over A.

    Returns:
        guidance_coverage: share of episodes with guidance.
        guided_turns: share of turns that see a text.
        weighted: share of episodes of which some w differs from 1.
        weight_spread: standard deviation of w over the turns of an episode, mean over weighted episodes.
        weight_deviation: largest abs(w - 1).
        sign_flips: turns whose credit has the other sign than A.
        conservation_error: largest abs(mean over the turns of credit - A).
    """
    episodes = [episode for group in groups for episode in group.episodes]
    guidance = [given for group in groups for given in (group.guidance or [None] * len(group.episodes))]
    flat = [credit for of_group in credits for credit in of_group]
    turns = [credit.per_turn() for credit in flat]
    weights = [_weights(values, credit.advantage) for values, credit in zip(turns, flat, strict=True)]
    weighted = [w for w in weights if np.abs(w - 1.0).max(initial=0.0) > 1e-9]
    texts = sum(text is not None for given in guidance if given for text in given.texts)
    return {
        "guidance_coverage": sum(map(bool, guidance)) / max(1, len(episodes)),
        "guided_turns": texts / max(1, sum(len(episode.turns) for episode in episodes)),
        "weighted": len(weighted) / max(1, len(episodes)),
        "weight_spread": float(np.mean([w.std() for w in weighted])) if weighted else 0.0,
        "weight_deviation": max((float(np.abs(w - 1.0).max()) for w in weighted), default=0.0),
        "sign_flips": float(
            sum(int((values * credit.advantage < 0).sum()) for values, credit in zip(turns, flat, strict=True))
        ),
        "conservation_error": max(
            (abs(float(v.mean()) - credit.advantage) for v, credit in zip(turns, flat, strict=True) if len(v)),
            default=0.0,
        ),
    }


def _weights(credit: Array, advantage: float) -> Array:
    return credit / advantage if advantage else np.ones(len(credit))
