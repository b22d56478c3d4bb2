"""A small untrained policy over the corridor world, for tests."""

from __future__ import annotations

from functools import partial

from corridor import Corridor
from taspo_bench.policies import tiny
from taspo_bench.policies.language_model import LanguageModel
from taspo_bench.rollout import Start, rollout

TEXTS = [
    "Your task is to unlock the door. You see box 1, box 2, box 3, box 4, and a door.",
    "You open box 1. A key lies in it. It is empty. Nothing happens. You take the key.",
    "take key unlock door open box 1 open box 2 look drop key hint",
]
make_corridor = partial(Corridor, max_steps=4)


def corridor_policy(seed: int = 0) -> LanguageModel:
    """A two-layer decoder with random weights and a vocabulary of the corridor's words."""
    tokenizer = tiny.train_tokenizer(TEXTS, vocabulary=400)
    model = tiny.build(tokenizer.get_vocab_size(), seed, hidden=32, layers=2, heads=2)
    policy = tiny.tiny_policy(model, tokenizer)
    policy.format.max_response_tokens = 6
    return policy


def corridor_episodes(policy: LanguageModel, count: int = 6, batch: int = 64, on_end=None) -> list:  # type: ignore
    starts = [Start(f"key-{1 + k % 3}", "train", 0, (7, k)) for k in range(count)]
    return rollout(make_corridor, policy, starts, batch, on_end=on_end)
