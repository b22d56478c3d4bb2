"""Scoring: branches see what they should, shifts are differences of two plain passes, only sampled tokens count."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from corridor import play
from taspo_bench.episode import Guidance
from taspo_bench.training import scoring
from taspo_bench.training.scoring import PolicyScorer, micro_batches, score
from taspo_bench.transcript import TokenSequence, full, guided
from tiny_world import corridor_episodes, corridor_policy, make_corridor


@pytest.fixture(scope="module")
def policy():
    return corridor_policy()


@pytest.fixture(scope="module")
def episodes(policy):
    return corridor_episodes(policy)


def plain_logprobs(policy, context: list[int], response: list[int]) -> np.ndarray:
    ids = torch.tensor([context + response])
    with torch.inference_mode():
        logprobs = torch.log_softmax(policy.model(input_ids=ids).logits[0], -1)
    first = len(context)
    return np.array([float(logprobs[first + k - 1, token]) for k, token in enumerate(response)])


def context_of(episode, turn: int) -> list[int]:
    before = [i for t in episode.turns[:turn] for i in t.prompt_ids + t.response_ids]
    return before + episode.turns[turn].prompt_ids


def test_a_batch_scores_like_single_passes(policy, episodes):
    sequences = [full(episode) for episode in episodes]
    with torch.inference_mode():
        scored = score(policy, sequences, [sequence.spans for sequence in sequences])
    for episode, slices in zip(episodes, scored.slices, strict=True):
        for index, where in enumerate(slices):
            expected = plain_logprobs(policy, context_of(episode, index), episode.turns[index].response_ids)
            np.testing.assert_allclose(scored.logprobs[where].numpy(), expected, atol=1e-4)


def test_turn_guidance_stands_before_its_own_response_and_nowhere_else(policy, episodes):
    texts = [[None if turn % 2 else f"take key {turn}" for turn in range(len(e.turns))] for e in episodes]
    guidance = [Guidance(given, "turn") for given in texts]
    shifts = PolicyScorer(policy, make_corridor).shift(episodes, guidance)
    for episode, given, shift in zip(episodes, texts, shifts, strict=True):
        for index, turn in enumerate(episode.turns):
            if given[index] is None:
                assert not shift[index].any()
                continue
            context = context_of(episode, index)
            guided_context = [*context[:-1], *policy.format.guide(given[index]), context[-1]]
            expected = plain_logprobs(policy, guided_context, turn.response_ids) - np.array(turn.logprobs)
            np.testing.assert_allclose(shift[index][: turn.sampled], expected[: turn.sampled], atol=1e-4)
            assert not shift[index][turn.sampled :].any()


def test_trajectory_guidance_stands_in_front_of_everything(policy, episodes):
    guidance = [Guidance(["unlock door"] * len(episode.turns), "trajectory") for episode in episodes]
    shifts = PolicyScorer(policy, make_corridor).shift(episodes, guidance)
    for episode, shift in zip(episodes, shifts, strict=True):
        for index, turn in enumerate(episode.turns):
            context = policy.format.guide("unlock door") + context_of(episode, index)
            expected = plain_logprobs(policy, context, turn.response_ids) - np.array(turn.logprobs)
            np.testing.assert_allclose(shift[index][: turn.sampled], expected[: turn.sampled], atol=1e-4)


def test_kept_contexts_give_the_same_shifts_and_are_not_computed_again(policy, monkeypatch):
    scorer = PolicyScorer(policy, make_corridor)
    episodes = corridor_episodes(policy, batch=4, on_end=scorer.remember)  # two caches
    guidance = [
        Guidance([None if (turn + place) % 3 == 1 else f"take key {turn}" for turn in range(len(e.turns))], "turn")
        for place, e in enumerate(episodes)
    ]
    sizes = []
    hidden = policy.hidden
    monkeypatch.setattr(policy, "hidden", lambda ids, *rest: sizes.append(ids.numel()) or hidden(ids, *rest))
    kept = scorer.shift(episodes, guidance)
    with_contexts = sum(sizes)
    sizes.clear()
    scorer.forget()
    whole = scorer.shift(episodes, guidance)
    assert 0 < with_contexts < sum(sizes) / 2
    for ours, expected in zip(kept, whole, strict=True):
        for turn, turn_expected in zip(ours, expected, strict=True):
            np.testing.assert_allclose(turn, turn_expected, atol=1e-5)


def test_contexts_beyond_the_limit_and_guidance_in_front_are_scored_whole(policy, monkeypatch):
    scorer = PolicyScorer(policy, make_corridor)
    episodes = corridor_episodes(policy, on_end=scorer.remember)
    in_front = [Guidance(["unlock door"] * len(episode.turns), "trajectory") for episode in episodes]
    kept = scorer.shift(episodes, in_front)
    scorer.forget()
    assert [[t.tolist() for t in e] for e in kept] == [
        [t.tolist() for t in e] for e in scorer.shift(episodes, in_front)
    ]
    monkeypatch.setattr(scoring, "KEPT_BYTES", 10)
    corridor_episodes(policy, on_end=scorer.remember)
    assert not scorer._contexts


def test_spans_cover_the_responses_and_nothing_else(policy, episodes):
    for episode in episodes:
        sequence = full(episode)
        marked = {place for span in sequence.spans for place in range(span.start, span.stop)}
        assert [sequence.ids[place] for place in sorted(marked)] == [i for t in episode.turns for i in t.response_ids]
        assert sequence.ids == [i for t in episode.turns for i in t.prompt_ids + t.response_ids]


def test_a_guided_sequence_keeps_the_clean_main_line(policy, episodes):
    episode = max(episodes, key=lambda e: len(e.turns))
    texts = ["look"] * len(episode.turns)
    sequence = guided(episode, Guidance(texts, "turn"), policy.format)
    main = [token for token, branch in zip(sequence.ids, sequence.branch, strict=True) if branch == 0]
    assert main == full(episode).ids


def test_micro_batches_hold_every_sequence_once_within_the_budget():
    sequences = []
    for length in (5, 300, 40, 41, 39, 1000, 7, 2000):
        sequence = TokenSequence()
        sequence.extend([1] * length)
        sequences.append(sequence)
    batches = list(micro_batches(sequences, budget=2100))
    assert sorted(index for batch in batches for index in batch) == list(range(len(sequences)))
    for batch in batches:
        assert len(batch) * max(len(sequences[index]) for index in batch) <= 2100


def test_remaining_steps_follow_the_episode(policy):
    episode = play(["look", "open box 2", "take key", "drop key", "take key", "unlock door"])
    steps = PolicyScorer(policy, make_corridor_of_any_length).remaining_steps(episode)
    assert steps.tolist() == [3, 3, 2, 1, 2, 1, 0]


def make_corridor_of_any_length():
    return make_corridor(max_steps=20)
