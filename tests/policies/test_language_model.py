"""Generation: ids are carried, log-probabilities are those of one full pass, batches do not matter."""

from __future__ import annotations

import numpy as np
import torch

from taspo_bench.policies import tiny
from taspo_bench.policies.formats import LineFormat
from tiny_world import TEXTS, corridor_episodes, corridor_policy


def full_pass_logprobs(policy, episode) -> tuple[np.ndarray, np.ndarray]:
    ids, wanted, rollout = [], [], []
    for turn in episode.turns:
        ids += turn.prompt_ids
        wanted += range(len(ids), len(ids) + turn.sampled)
        ids += turn.response_ids
        rollout += turn.logprobs[: turn.sampled]
    with torch.inference_mode():
        logprobs = torch.log_softmax(policy.model(input_ids=torch.tensor([ids])).logits[0], -1)
    return np.array([float(logprobs[place - 1, ids[place]]) for place in wanted]), np.array(rollout)


def test_rollout_logprobs_equal_one_full_forward_pass():
    policy = corridor_policy()
    for episode in corridor_episodes(policy):
        expected, given = full_pass_logprobs(policy, episode)
        np.testing.assert_allclose(given, expected, atol=1e-4)


def test_an_idle_context_that_fills_the_cache_is_left_as_it_was(monkeypatch):
    policy = corridor_policy()
    conversation = policy.begin([], [np.random.default_rng(seed) for seed in (0, 1)])
    monkeypatch.setattr(type(conversation), "_idling_is_cheaper", lambda *_: True)
    context = [token % 50 + 10 for token in range(300)]
    with torch.inference_mode():
        conversation._prefill({0: context, 1: [11, 12, 13]})
        following = conversation._forward([0], np.array([[9]]))[0, 0]
        expected = policy.decoder(input_ids=torch.tensor([[*context, 9]])).last_hidden_state[0, -1]
    np.testing.assert_allclose(following, expected, atol=1e-4)


def test_what_prompts_begin_with_in_common_is_computed_once(monkeypatch):
    policy = corridor_policy()
    conversation = policy.begin([], [np.random.default_rng(seed) for seed in range(5)])
    monkeypatch.setattr(type(conversation), "_idling_is_cheaper", lambda *_: False)
    common = [token % 50 + 10 for token in range(40)]
    tails = [[11, 12, 13], [11, 12, 13], [14, 15], [16], [11, 12, 13]]
    computed = []
    hidden = policy.hidden
    monkeypatch.setattr(policy, "hidden", lambda ids, *rest: computed.append(ids.shape) or hidden(ids, *rest))
    with torch.inference_mode():
        logits = conversation._prefill({row: common + tail for row, tail in enumerate(tails)})
        assert sorted(map(tuple, computed)) == [(1, 40), (3, 3)]
        following = conversation._forward([0, 1, 2, 3, 4], np.full((5, 1), 9))
        for row, tail in enumerate(tails):
            expected = policy.decoder(input_ids=torch.tensor([[*common, *tail, 9]])).last_hidden_state[0]
            np.testing.assert_allclose(following[row, 0], expected[-1], atol=1e-4)
            np.testing.assert_allclose(logits[row], policy.head(expected[-2]), atol=1e-4)


def test_a_batch_is_not_filled_with_padding(monkeypatch):
    policy = corridor_policy()
    conversation = policy.begin([], [np.random.default_rng(seed) for seed in range(6)])
    monkeypatch.setattr(type(conversation), "_idling_is_cheaper", lambda *_: False)
    monkeypatch.setattr("taspo_bench.policies.language_model.PASS_OVERHEAD", 0)
    computed = []
    hidden = policy.hidden
    monkeypatch.setattr(policy, "hidden", lambda ids, *rest: computed.append(ids.numel()) or hidden(ids, *rest))
    prompts = [[token + 10] * length for token, length in enumerate((100, 99, 60, 58, 5, 101))]
    with torch.inference_mode():
        conversation._prefill(dict(enumerate(prompts)))
    assert sum(computed) - sum(map(len, prompts)) <= 6 and len(computed) == 3


def test_an_episode_does_not_depend_on_the_batch_it_is_played_in():
    policy = corridor_policy()
    together = corridor_episodes(policy, batch=6)
    alone = corridor_episodes(policy, batch=1)
    assert [e.actions for e in together] == [e.actions for e in alone]


def test_the_first_prompt_holds_the_first_observation():
    policy = corridor_policy()
    turn = corridor_episodes(policy, 1)[0].turns[0]
    text = policy.format.tokenizer.decode(turn.prompt_ids, skip_special_tokens=True)
    assert text == turn.observation.lower()
    assert "your task is" in text


def test_a_response_that_runs_out_of_room_gets_an_end_that_was_not_sampled():
    policy = corridor_policy()
    policy.format.max_response_tokens = 2
    turns = [turn for episode in corridor_episodes(policy) for turn in episode.turns]
    forced = [turn for turn in turns if turn.sampled < len(turn.response_ids)]
    assert forced
    for turn in forced:
        assert turn.response_ids[-1] == policy.format.stop_id
        assert turn.sampled == len(turn.response_ids) - 1
        assert turn.action_span in (None, (0, turn.sampled))


def test_an_episode_ends_where_its_context_is_full():
    policy = corridor_policy()
    policy.context_tokens = 70
    episode = corridor_episodes(policy, 1)[0]
    assert episode.truncated and not episode.won
    tokens = sum(len(turn.prompt_ids) + len(turn.response_ids) for turn in episode.turns)
    assert len(episode.turns) < 4 and tokens <= 70


def test_temperature_zero_takes_the_most_likely_token():
    policy = corridor_policy().at_temperature(0.0)
    first, second = corridor_episodes(policy, 2, batch=1)[0], corridor_episodes(policy, 2, batch=2)[0]
    assert first.actions == second.actions


def test_markers_of_the_format_inside_an_observation_stay_text():
    tokenizer = tiny.train_tokenizer(TEXTS, vocabulary=400)
    fmt = LineFormat(tokenizer)
    ids = fmt.observe("a <end> b <act> c", is_first=True)
    assert ids.count(fmt.stop_id) == 0
    assert tokenizer.decode(ids[1:-1]) == "a <end> b <act> c"


def test_any_text_survives_the_tokenizer_in_lower_case():
    tokenizer = tiny.train_tokenizer(TEXTS, vocabulary=400)
    for text in ("Beyoncé › 日本 \n\t 12", "", " leading", "click[B09P71WY8C]", "click[< Prev]", "search[a [b] c]"):
        assert tokenizer.decode(tokenizer.encode(text).ids) == text.lower()


def test_a_word_has_the_same_tokens_on_a_page_and_in_an_action():
    tokenizer = tiny.train_tokenizer(TEXTS, vocabulary=400)
    on_page = tokenizer.encode("the rival is Dretzol today").tokens
    in_action = tokenizer.encode("answer[dretzol]").tokens
    name = in_action[in_action.index("[") + 1 : in_action.index("]")]
    assert any(on_page[start : start + len(name)] == name for start in range(len(on_page)))
