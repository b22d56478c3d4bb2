"""Chat models at play and in scoring: one growing conversation, or a prompt of its own for each turn."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import numpy as np
import pytest
import torch

from chat_world import FAMILIES, chat_policy
from corridor import Corridor
from taspo_bench.episode import Guidance
from taspo_bench.rollout import Start, rollout
from taspo_bench.training.scoring import PolicyScorer, score
from taspo_bench.transcript import sequences

make_env = partial(Corridor, max_steps=4)
WAYS = [{}, {"window": 2, "style": "think"}]


def play(policy, count: int = 4, batch: int = 64, **more):
    starts = [Start(f"key-{1 + k % 3}", "train", 0, (7, k)) for k in range(count)]
    return rollout(make_env, policy, starts, batch, **more)


def contexts(episode) -> list[list[int]]:
    """The ids before each response."""
    before: list[int] = []
    found = []
    for turn in episode.turns:
        before = list(turn.prompt_ids) if turn.restarts else before + turn.prompt_ids
        found.append(before)
        before = before + turn.response_ids
    return found


def plain_logprobs(policy, context: list[int], response: list[int]) -> np.ndarray:
    with torch.inference_mode():
        logits = policy.model(input_ids=torch.tensor([context + response])).logits[0]
    logprobs = torch.log_softmax(logits.float(), -1)
    return np.array([float(logprobs[len(context) + k - 1, token]) for k, token in enumerate(response)])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("family", FAMILIES)
def test_rollout_logprobs_equal_one_full_forward_pass(family, way):
    policy = chat_policy(family, **way)
    for episode in play(policy):
        for turn, context in zip(episode.turns, contexts(episode), strict=True):
            expected = plain_logprobs(policy, context, turn.response_ids)[: turn.sampled]
            np.testing.assert_allclose(turn.logprobs[: turn.sampled], expected, atol=2e-4)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("family", ["smollm2", "gemma"])
def test_scores_equal_one_full_forward_pass(family, way):
    policy = chat_policy(family, **way)
    for episode in play(policy):
        found = sequences(episode)
        assert len(found) == (len(episode.turns) if way else 1)
        with torch.inference_mode():
            scored = score(policy, found, [sequence.spans for sequence in found])
        places = [where for slices in scored.slices for where in slices]
        for turn, context, where in zip(episode.turns, contexts(episode), places, strict=True):
            expected = plain_logprobs(policy, context, turn.response_ids)
            np.testing.assert_allclose(scored.logprobs[where].numpy(), expected, atol=2e-4)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("scope", ["turn", "trajectory"])
def test_guidance_shifts_are_differences_of_plain_passes(scope, way):
    policy = chat_policy("gemma", **way)
    fmt = policy.format
    for episode in play(policy, 2):
        texts = [None if scope == "turn" and turn % 2 else "take key" for turn in range(len(episode.turns))]
        shift = PolicyScorer(policy, make_env).shift([episode], [Guidance(texts, scope)])[0]
        for index, (turn, context) in enumerate(zip(episode.turns, contexts(episode), strict=True)):
            if texts[index] is None:
                assert not shift[index].any()
                continue
            place = fmt.head_tokens if scope == "trajectory" else len(context) - fmt.cue_tokens
            guided = context[:place] + fmt.guide("take key") + context[place:]
            expected = (
                plain_logprobs(policy, guided, turn.response_ids)[: turn.sampled] - turn.logprobs[: turn.sampled]
            )
            np.testing.assert_allclose(shift[index][: turn.sampled], expected, atol=4e-4)
            assert not shift[index][turn.sampled :].any()


@pytest.mark.parametrize("template", ["gemma", "qwen3"])  # gemma: layers with a sliding window
def test_shifts_behind_kept_contexts_are_those_of_whole_passes(template):
    policy = chat_policy(template)
    scorer = PolicyScorer(policy, make_env)
    episodes = play(policy, 3, on_end=scorer.remember)
    guidance = [Guidance([None, *["take key"] * (len(episode.turns) - 1)], "turn") for episode in episodes]
    kept = scorer.shift(episodes, guidance)
    assert scorer._contexts
    scorer.forget()
    for ours, whole in zip(kept, scorer.shift(episodes, guidance), strict=True):
        for turn, expected in zip(ours, whole, strict=True):
            np.testing.assert_allclose(turn, expected, atol=4e-4)


@pytest.mark.parametrize("way", WAYS)
def test_an_episode_does_not_depend_on_the_batch_it_is_played_in(way):
    policy = chat_policy(**way)
    assert [e.actions for e in play(policy, 6, batch=6)] == [e.actions for e in play(policy, 6, batch=1)]


def test_a_conversation_grows_by_the_ids_that_were_sampled():
    policy = chat_policy()
    for episode in play(policy):
        before = contexts(episode)
        for turn, (shorter, longer) in enumerate(pairwise(before)):
            assert longer[: len(shorter)] == shorter
            assert longer[len(shorter) :][: len(episode.turns[turn].response_ids)] == episode.turns[turn].response_ids


def test_a_prompt_with_a_window_shows_the_task_the_last_turns_and_the_actions():
    policy = chat_policy(window=1, style="think", max_response_tokens=4)
    turn = play(policy, 1)[0].turns[3]
    text = policy.format.decode(turn.prompt_ids)
    assert "Your task is to unlock the door." in text and "open box 1\nopen box 2" in text
    assert "Turn 3 action" in text and "Turn 2 action" not in text and turn.restarts


def test_a_forced_end_is_in_the_context_but_was_not_sampled():
    policy = chat_policy(max_response_tokens=2, style="think")
    for turn in play(policy)[0].turns:
        assert turn.response_ids[-1] == policy.format.stop_id
        assert turn.sampled == 2 or turn.response_ids[turn.sampled - 1] == policy.format.stop_id


def test_a_prompt_that_does_not_fit_ends_the_episode():
    policy = chat_policy()
    policy.context_tokens = 40
    episode = play(policy, 1)[0]
    assert episode.truncated and not episode.turns


def test_half_precision_scores_what_it_sampled_within_its_rounding():
    policy = chat_policy("qwen3", spread=1.0)
    policy.model.to(torch.bfloat16)
    for episode in play(policy, 2):
        for turn, context in zip(episode.turns, contexts(episode), strict=True):
            expected = plain_logprobs(policy, context, turn.response_ids)[: turn.sampled]
            np.testing.assert_allclose(turn.logprobs[: turn.sampled], expected, atol=0.1)
