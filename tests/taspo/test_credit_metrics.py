"""The figures that every update logs about its credit."""

from __future__ import annotations

import numpy as np
import pytest

from fixed_scorer import FixedScorer, arrays, episode, guided
from taspo_bench.credit import Credit
from taspo_bench.episode import Group
from taspo_bench.taspo.credit_metrics import credit_metrics
from taspo_bench.taspo.scheme import TASPO


def pair() -> Group:
    return guided([episode(score, [(0, 3)] * 2, seed=seed) for seed, score in enumerate((1.0, 0.0))])


def test_taspo_conserves_credit_and_flips_no_sign() -> None:
    rows = arrays([[1.0] * 3, [-1.0] * 3])
    group = pair()
    group.guidance[1].texts[0] = None  # type: ignore[union-attr]
    figures = credit_metrics([group], [TASPO().credit(group, FixedScorer({0: rows, 1: rows}))])
    q = np.tanh(1.0 / 0.5)
    assert figures == pytest.approx(
        {
            "guidance_coverage": 1.0,
            "guided_turns": 0.75,
            "weighted": 1.0,
            "weight_spread": 0.2 * q,
            "weight_deviation": 0.2 * q,
            "sign_flips": 0.0,
            "conservation_error": 0.0,
        }
    )


def test_flips_and_lost_credit_are_seen() -> None:
    figures = credit_metrics([pair()], [[Credit([1.0, -0.5], 1.0), Credit([-1.0, np.array([-1.0, -1.0])], -1.0)]])
    assert figures["sign_flips"] == 1
    assert figures["conservation_error"] == 0.75
    assert figures["weighted"] == 0.5


def test_a_plain_group_has_no_guidance_and_no_weights() -> None:
    group = Group("key-2", pair().episodes)
    figures = credit_metrics([group], [[Credit.uniform(member, 1.0) for member in group.episodes]])
    assert set(figures.values()) == {0.0}


def test_an_empty_batch_gives_zeros() -> None:
    assert set(credit_metrics([], []).values()) == {0.0}
