"""The loss: each trajectory weighs the same, only sampled tokens carry gradient, clipping as in PPO."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from taspo_bench.credit import Credit
from taspo_bench.episode import Episode, Turn
from taspo_bench.training.loss import k3, surrogate, token_credit, token_weights


def episode_of(shape: list[tuple[int, int]]) -> Episode:
    """An episode of turns with (sampled, forced) response tokens."""
    turns = [
        Turn(
            "o", "r", "a", response_ids=[1] * (sampled + forced), logprobs=[0.0] * (sampled + forced), sampled=sampled
        )
        for sampled, forced in shape
    ]
    return Episode("corridor", "key-1", "key", turns)


turn_shapes = st.tuples(st.integers(1, 5), st.integers(0, 1))
episode_shapes = st.lists(st.lists(turn_shapes, min_size=1, max_size=6), min_size=1, max_size=5)


@given(episode_shapes)
def test_every_trajectory_weighs_the_same_and_every_turn_in_it(shapes):
    episodes = [episode_of(shape) for shape in shapes]
    for episode, arrays in zip(episodes, token_weights(episodes), strict=True):
        sums = [array.sum() for array in arrays]
        np.testing.assert_allclose(sums, 1 / (len(episodes) * len(episode.turns)), rtol=1e-5)


@given(episode_shapes)
def test_tokens_that_were_not_sampled_weigh_nothing(shapes):
    episodes = [episode_of(shape) for shape in shapes]
    for episode, arrays in zip(episodes, token_weights(episodes), strict=True):
        for turn, array in zip(episode.turns, arrays, strict=True):
            assert (array[: turn.sampled] > 0).all()
            assert not array[turn.sampled :].any()


def test_credit_is_spread_over_the_whole_response_or_given_per_token():
    episode = episode_of([(2, 0), (3, 1)])
    spread = token_credit(episode, Credit([0.5, np.array([1.0, 2.0, 3.0, 4.0])], 1.0))
    assert [array.tolist() for array in spread] == [[0.5, 0.5], [1.0, 2.0, 3.0, 4.0]]


def test_at_ratio_one_the_gradient_is_that_of_plain_policy_gradient():
    logprobs = torch.tensor([-1.0, -2.0, -0.5], requires_grad=True)
    credit = torch.tensor([1.5, -0.5, 0.25])
    surrogate(logprobs, logprobs.detach(), credit, 0.2, 3.0).sum().backward()
    assert torch.allclose(logprobs.grad, -credit)


def test_clipping_values_by_hand():
    old = torch.zeros(5)
    ratio = torch.tensor([1.5, 1.5, 0.5, 0.5, 10.0])
    credit = torch.tensor([1.0, -1.0, 1.0, -1.0, -1.0])
    loss = surrogate(torch.log(ratio), old, credit, clip=0.2, dual_clip=3.0)
    assert torch.allclose(loss, torch.tensor([-1.2, 1.5, -0.5, 0.8, 3.0]))


def test_k3_is_zero_for_equal_policies_and_positive_otherwise():
    assert float(k3(torch.tensor([-1.0]), torch.tensor([-1.0]))) == 0.0
    assert (k3(torch.tensor([-1.0, -1.0]), torch.tensor([-2.0, -0.1])) > 0).all()
    assert abs(float(k3(torch.tensor([0.0]), torch.tensor([np.log(2.0)]))) - (1 - np.log(2.0))) < 1e-6
