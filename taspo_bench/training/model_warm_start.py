"""The warm start of a language model: supervised learning of an adapter on reference episodes.

What is learned is how the benchmark is spoken to, and how it is searched: responses only, never what is read. Some of
the episodes come with guidance, so that the policy knows what it is.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
import torch

from taspo_bench.api import TextEnv
from taspo_bench.config import CellConfig
from taspo_bench.episode import Episode, Guidance
from taspo_bench.errors import RunError
from taspo_bench.policies.chat_format import ChatFormat
from taspo_bench.policies.language_model import LanguageModel
from taspo_bench.policies.window import window_prompt
from taspo_bench.taspo.analyzers.replay import ReplayAnalyzer
from taspo_bench.training.scoring import micro_batches, score
from taspo_bench.training.warm_start import reference_group
from taspo_bench.transcript import TokenSequence, guided_sequences, sequences

EPISODES_PER_STEP = 4
REPORT_EVERY = 5  # steps
GUIDED_SHARE = 0.3
LEARNING_RATE = 1e-3  # at its highest, where the configuration says nothing else
Example = tuple[Episode, Guidance | None]


@dataclass(frozen=True)
class AdapterSettings:
    """minutes: how long to train; noise: share of detours in reference episodes, played but not learned from."""

    minutes: float
    noise: float = 0.15


def train_adapter(
    make_env: Callable[[], TextEnv],
    policy: LanguageModel,
    config: CellConfig,
    settings: AdapterSettings,
    report: Callable[[dict[str, float]], None] = lambda entry: None,
) -> list[dict[str, float]]:
    """Train a policy's adapter for some minutes, the learning rate falling to nothing; gives the curve of losses.

    Raises:
        RunError: if the training split has no task that the reference solution wins.
    """
    begun = time.monotonic()
    env = make_env()
    examples = _examples(env, policy, config, settings)
    weights = [weight for weight in policy.model.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(weights, lr=config.learning_rate, weight_decay=config.weight_decay)
    curve: list[dict[str, float]] = []
    losses: list[float] = []
    share = 0.0
    policy.model.train()
    while share < 1.0:
        rate = min(1.0, (len(losses) + 1) / 10) * (1.0 - share)
        for parameters in optimizer.param_groups:
            parameters["lr"] = config.learning_rate * rate
        losses.append(_learn(policy, [next(examples) for _ in range(EPISODES_PER_STEP)], config.micro_batch_tokens))
        torch.nn.utils.clip_grad_norm_(weights, config.grad_clip)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        minutes = (time.monotonic() - begun) / 60
        share = minutes / settings.minutes
        if len(losses) % REPORT_EVERY == 0 or share >= 1.0:
            entry = {"steps": float(len(losses)), "loss": float(np.mean(losses[-REPORT_EVERY:])), "minutes": minutes}
            curve.append(entry)
            report(entry)
    policy.model.eval()
    return curve


def _examples(
    env: TextEnv, policy: LanguageModel, config: CellConfig, settings: AdapterSettings
) -> Iterator[Example]:
    """Endless reference episodes, some with guidance of the configured scope; played as they are asked for."""
    train = env.splits()["train"].task_ids
    generator = np.random.default_rng((config.seed, 13))
    fmt = policy.format
    assert isinstance(fmt, ChatFormat)
    analyzer = ReplayAnalyzer(
        env, config.guidance_scope, config.guidance_reveal, count_tokens=lambda text: len(fmt.guide(text))
    )
    for lap in count():
        found = False
        for place in generator.permutation(len(train)):
            detours = np.random.default_rng((config.seed, lap, int(place)))
            group = reference_group(env, train[int(place)], detours, settings.noise)
            if not group.episodes:
                continue
            member = int(generator.integers(len(group.episodes)))
            episode, guidance = group.episodes[member], None
            if generator.random() < GUIDED_SHARE and len(group.episodes) > 1:
                guidance = analyzer.guide(group)[member] or None
            tokenize(env, episode, fmt)
            found = True
            yield episode, guidance
        if not found:
            raise RunError(f"{env.name}: the reference solution wins no training task; nothing to learn from")


def tokenize(env: TextEnv, episode: Episode, fmt: ChatFormat) -> None:
    """Fill in the token ids of a reference episode as the policy would have met and sampled them.

    Where each turn has a prompt of its own, the episode is played once more: prompts tell of the state.
    """
    if fmt.window is not None:
        env.reset(options={"task_id": episode.task_id})
    past: list[tuple[str, str]] = []
    for turn in episode.turns:
        if fmt.window is None:
            turn.prompt_ids = fmt.observe(turn.observation, is_first=not past)
        else:
            first = episode.turns[0].observation
            prompt = window_prompt(env, first, past, turn.observation, fmt.window, fmt.instruction)
            turn.prompt_ids, turn.restarts = fmt.observe(prompt, is_first=True), True
            env.step(turn.action)
        turn.response_ids = fmt.respond(turn.action)
        turn.sampled = len(turn.response_ids) if turn.sampled else 0
        past.append((turn.observation, turn.action))


def _learn(policy: LanguageModel, examples: Sequence[Example], budget: int) -> float:
    """The gradient of maximum likelihood on the learned turns of some episodes; gives the mean token loss."""
    owned: list[tuple[Episode, TokenSequence]] = []
    for episode, guidance in examples:
        found = sequences(episode) if guidance is None else guided_sequences(episode, guidance, policy.format)
        owned += [(episode, sequence) for sequence in found]
    spans = [[span for span in sequence.spans if episode.turns[span.turn].sampled] for episode, sequence in owned]
    kept = [place for place in range(len(owned)) if spans[place]]
    total = sum(span.stop - span.start for place in kept for span in spans[place])
    summed = 0.0
    for batch in micro_batches([owned[place][1] for place in kept], budget):
        places = [kept[index] for index in batch]
        with torch.autocast(policy.device.type, torch.bfloat16, enabled=_has_fast_bfloat16(policy.device)):
            scored = score(policy, [owned[place][1] for place in places], [spans[place] for place in places])
        loss = -scored.logprobs.sum() / total
        loss.backward()
        summed += float(loss.detach())
    return summed


def _has_fast_bfloat16(device: torch.device) -> bool:
    """Whether half precision, good enough for gradients of maximum likelihood, is also faster."""
    if device.type == "cpu":
        capabilities: Any = getattr(torch.cpu, "get_capabilities", dict)  # since torch 2.8
        return bool(capabilities().get("avx512_bf16"))
    return device.type == "cuda" and torch.cuda.is_bf16_supported()
