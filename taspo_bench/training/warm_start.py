"""The warm start of the tiny policy: supervised learning on reference episodes of the training split.

Half of the episodes come with guidance, so that the policy learns to read it. Training stops while the policy,
without guidance, still fails most tasks: reinforcement learning has to have something to do.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
from tokenizers import Tokenizer
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from transformers import LlamaForCausalLM

from taspo_bench.api import TextEnv
from taspo_bench.episode import Episode, Group, Guidance, Turn
from taspo_bench.errors import RunError
from taspo_bench.policies import tiny
from taspo_bench.policies.formats import LineFormat
from taspo_bench.policies.language_model import LanguageModel
from taspo_bench.policies.scripted import random_action
from taspo_bench.rollout import Start, rollout
from taspo_bench.taspo.analyzers.replay import ReplayAnalyzer
from taspo_bench.taspo.guidance import Scope
from taspo_bench.training.scoring import PolicyScorer, micro_batches, score
from taspo_bench.transcript import Span, TokenSequence, full, guided

EPISODES_PER_TASK = 3
BATCH_TOKENS = 4096
PROBES = 96  # training tasks that success is measured on
STEPS_PER_ROUND = ((0.5, 10), (0.2, 25), (0.0, 50))  # by share of the target that is reached: success climbs fast
TEXT = -1  # the turn number of a stretch that is no response
COPY_LENGTHS = (8, 32, 256)  # tokens of a stretch to copy: the shortest, the longest at first, the longest in the end
COPY_LOSS = 0.8  # nats a token, mean of ten steps, at which longer stretches come
COPY_STEPS = 800  # at most
AVERAGING = 0.98  # of the moving average over steps that is played and kept: single steps differ much in success


@dataclass(frozen=True)
class WarmStartSettings:
    """seed; target: success on training tasks, without guidance, at which to stop; minutes: the latest stop;
    noise: share of detours in reference episodes, which are played but not learned from;
    max_turns: step limit of the episodes that success is measured on, the benchmark's own if unset;
    threads: processor threads (another number changes the weights slightly);
    text_weight, clean_weight: of a token of the observations, and of a response without guidance, against 1 of a
    response that has guidance (reading guidance is to be learned before solving without it)."""

    seed: int = 0
    target: float = 0.25
    minutes: float = 14.0
    max_turns: int | None = None
    threads: int = 1
    learning_rate: float = 2e-3
    noise: float = 0.15
    text_weight: float = 0.1
    clean_weight: float = 0.3


@dataclass
class WarmStart:
    """The trained policy, its tokenizer, and what was measured: one entry a round; steps count those of practice."""

    policy: LanguageModel
    tokenizer: Tokenizer
    curve: list[dict[str, float]]


def reference_episode(env: TextEnv, task_id: str, generator: np.random.Generator, noise: float) -> Episode:
    """A demonstration with random detours. ``sampled`` is 0 on detours: they are not to be learned."""
    observation, _ = env.reset(options={"task_id": task_id})
    episode = Episode(env.name, task_id, env.task(task_id).family, split="train")
    over = False
    met = observation
    taken: list[str] = []
    plan: list[str] = []
    while not over:
        is_detour = generator.random() < noise
        if is_detour or not plan:
            plan = [_detour(env, observation, taken, generator)] if is_detour else env.demonstrate(met, generator)
        if not plan:
            break
        action = plan.pop(0)
        taken.append(action)
        turn = Turn(observation, action, action, state_key=env.state_key, sampled=0 if is_detour else 1)
        episode.turns.append(turn)
        observation, _, terminated, truncated, info = env.step(action)
        met += "\n" + observation
        if is_detour:
            plan = []
        over = terminated or truncated
        episode.won, episode.score = bool(info["won"]), float(info["score"])
    return episode


def _detour(env: TextEnv, observation: str, taken: list[str], generator: np.random.Generator) -> str:
    """A random action, or one that is likely to fail here: out of turn, or done already. Its failing is to be met."""
    out_of_turn = taken + env.solve()[1:]
    if out_of_turn and generator.random() < 0.5:
        return out_of_turn[int(generator.integers(len(out_of_turn)))]
    return random_action(env, observation, generator)


def reference_groups(env: TextEnv, task_ids: Sequence[str], settings: WarmStartSettings) -> list[Group]:
    """A few winning reference episodes for each task."""
    return [
        reference_group(env, task_id, np.random.default_rng((settings.seed, number)), settings.noise)
        for number, task_id in enumerate(task_ids)
    ]


def reference_group(env: TextEnv, task_id: str, generator: np.random.Generator, noise: float) -> Group:
    """Reference episodes of one task, the first without detours; those that they lost are left out."""
    episodes = [
        reference_episode(env, task_id, generator, noise if member else 0.0) for member in range(EPISODES_PER_TASK)
    ]
    return Group(task_id, [episode for episode in episodes if episode.won])


def tokenize(episode: Episode, fmt: LineFormat) -> None:
    """Fill in the token ids of a reference episode. Detours keep ``sampled`` 0; learned turns are sampled whole."""
    for index, turn in enumerate(episode.turns):
        turn.prompt_ids = fmt.observe(turn.observation, is_first=index == 0)
        turn.response_ids = fmt.respond(turn.response)
        turn.sampled = len(turn.response_ids) if turn.sampled else 0


def warm_start(
    make_env: Callable[[], TextEnv],
    settings: WarmStartSettings,
    report: Callable[[dict[str, float]], None] = lambda entry: None,
) -> WarmStart:
    """Train a tiny policy from scratch until its success without guidance reaches the target.

    Raises:
        RunError: if the training split has no task that the reference solution wins.
    """
    torch.set_num_threads(settings.threads)
    env = make_env()
    task_ids = list(env.splits()["train"].task_ids)
    groups = [group for group in reference_groups(env, task_ids, settings) if group.episodes]
    if not groups:
        raise RunError(f"{env.name}: the reference solution wins no training task; nothing to learn from")
    texts = [text for group in groups for episode in group.episodes for text in _texts(episode)]
    tokenizer = tiny.train_tokenizer(texts, markers=env.markers)
    policy = tiny.tiny_policy(tiny.build(tokenizer.get_vocab_size(), settings.seed), tokenizer)
    fmt = policy.format
    assert isinstance(fmt, LineFormat)
    for group in groups:
        for episode in group.episodes:
            tokenize(episode, fmt)
    probes = task_ids[:: max(1, len(task_ids) // PROBES)][:PROBES]
    optimizer = torch.optim.AdamW(policy.model.parameters(), lr=settings.learning_rate, weight_decay=0.01)
    examples = _examples(env, groups, fmt, settings)
    begun = time.monotonic()
    steps = practise_copying(policy, optimizer, settings)
    average = AveragedModel(policy.model, multi_avg_fn=get_ema_multi_avg_fn(AVERAGING))
    averaged = tiny.tiny_policy(cast(LlamaForCausalLM, average.module), tokenizer)
    curve: list[dict[str, float]] = []
    envs = [make_env() for _ in probes]
    for probed in envs:
        probed.max_steps = settings.max_turns or probed.max_steps
    best = (0.0, copy.deepcopy(average.module.state_dict()))
    while not curve or (curve[-1]["success"] < settings.target and curve[-1]["minutes"] < settings.minutes):
        length = next(count for share, count in STEPS_PER_ROUND if best[0] >= share * settings.target)
        losses = []
        for number in range(length):
            losses.append(_learn(policy, optimizer, next(examples), settings, steps + number))
            average.update_parameters(policy.model)
        steps += length
        starts = [Start(task, "train", 0, (settings.seed, steps, place)) for place, task in enumerate(probes)]
        played = rollout(make_env, averaged, starts, batch=len(starts), envs=envs)
        success = float(np.mean([episode.won for episode in played]))
        entry = {
            "steps": float(steps),
            "loss": float(np.mean(losses)),
            "success": success,
            "minutes": (time.monotonic() - begun) / 60,
        }
        curve.append(entry)
        report(entry)
        if success > best[0]:
            best = (success, copy.deepcopy(average.module.state_dict()))
    if curve[-1]["success"] < settings.target:
        averaged.model.load_state_dict(best[1])
    return WarmStart(averaged, tokenizer, curve)


def practise_copying(policy: LanguageModel, optimizer: torch.optim.Optimizer, settings: WarmStartSettings) -> int:
    """Learn to repeat stretches of random tokens, short ones first; gives the number of steps it took.

    Acting is mostly copying names from the text. A small decoder finds out how within two minutes here; on long pages
    alone it does not within half an hour.
    """
    generator = np.random.default_rng((settings.seed, 11))
    vocabulary = int(policy.model.config.vocab_size)
    shortest, longest, final = COPY_LENGTHS
    losses: list[float] = []
    policy.model.train()
    for number in range(COPY_STEPS):
        length = int(generator.integers(shortest, longest + 1))
        once = generator.integers(0, vocabulary, (BATCH_TOKENS // (2 * length), length))
        ids = torch.from_numpy(np.concatenate([once, once], axis=1))
        logits = policy.model(ids[:, :-1]).logits[:, length:]
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, length + 1 :].flatten())
        loss.backward()
        _descend(policy, optimizer, settings, number)
        losses.append(float(loss.detach()))
        if len(losses) >= 10 and np.mean(losses[-10:]) < COPY_LOSS:
            if longest >= final:
                break
            longest, losses = 2 * longest, []
    policy.model.eval()
    return number + 1


def reading(
    make_env: Callable[[], TextEnv], policy: LanguageModel, task_ids: Sequence[str], seed: int
) -> dict[str, float]:
    """How well the policy reads turn guidance, on fresh reference episodes.

    Returns:
        turns: reference actions that had guidance.
        clean, guided: their mean token log-probability without and with it.
    """
    env = make_env()
    fmt = policy.format
    assert isinstance(fmt, LineFormat)
    analyzer = ReplayAnalyzer(env, scope="turn", count_tokens=lambda text: len(fmt.encode(text)))
    scorer = PolicyScorer(policy, make_env)
    clean: list[float] = []
    shifts: list[float] = []
    for group in reference_groups(env, task_ids, WarmStartSettings(seed=seed + 1)):
        for episode in group.episodes:
            tokenize(episode, fmt)
            for turn, logprobs in zip(episode.turns, _clean_logprobs(policy, episode), strict=True):
                turn.logprobs = logprobs
        pairs = [(episode, text) for episode, text in zip(group.episodes, analyzer.guide(group), strict=True) if text]
        found = scorer.shift([episode for episode, _ in pairs], [text for _, text in pairs])
        for (episode, text), shift in zip(pairs, found, strict=True):
            for index, turn in enumerate(episode.turns):
                if turn.sampled and text.texts[index] is not None:
                    clean.append(float(np.mean(turn.logprobs)))
                    shifts.append(float(shift[index].mean()))
    if not clean:
        return {"turns": 0.0, "clean": 0.0, "guided": 0.0}
    return {
        "turns": float(len(clean)),
        "clean": float(np.mean(clean)),
        "guided": float(np.mean(clean) + np.mean(shifts)),
    }


@torch.inference_mode()
def _clean_logprobs(policy: LanguageModel, episode: Episode) -> list[list[float]]:
    sequence = full(episode)
    scored = score(policy, [sequence], [sequence.spans])
    return [scored.logprobs[where].tolist() for where in scored.slices[0]]


def _texts(episode: Episode) -> Iterator[str]:
    for turn in episode.turns:
        yield turn.observation
        yield turn.response


def _examples(
    env: TextEnv, groups: Sequence[Group], fmt: LineFormat, settings: WarmStartSettings
) -> Iterator[list[tuple[Episode, Guidance | None]]]:
    """Endless batches of episodes, every second one with guidance, of either scope, revealing or not."""
    kinds: list[tuple[Scope, bool]] = [("turn", False), ("turn", True), ("trajectory", True)]
    analyzers = [
        ReplayAnalyzer(env, scope, reveal, count_tokens=lambda text: len(fmt.encode(text))) for scope, reveal in kinds
    ]
    generator = np.random.default_rng((settings.seed, 7))
    batch: list[tuple[Episode, Guidance | None]] = []
    tokens = 0
    while True:
        for place in generator.permutation(len(groups)):
            group = groups[int(place)]
            member = int(generator.integers(len(group.episodes)))
            episode = group.episodes[member]
            guidance = None
            if generator.random() < 0.5 and len(group.episodes) > 1:
                guidance = analyzers[int(generator.integers(len(analyzers)))].guide(group)[member] or None
            batch.append((episode, guidance))
            tokens += sum(len(turn.prompt_ids) + len(turn.response_ids) for turn in episode.turns)
            if tokens >= BATCH_TOKENS:
                yield batch
                batch, tokens = [], 0


def _between(sequence: TokenSequence) -> list[Span]:
    """The stretches of the main line that are no response: reading them teaches to copy names."""
    stretches = []
    start = 1
    for span in sequence.spans:
        if sequence.branch[span.start] == 0:
            if span.start > start:
                stretches.append(Span(TEXT, start, span.start))
            start = span.stop
    return stretches


def _weight(span: Span, settings: WarmStartSettings) -> float:
    if span.turn == TEXT:
        return settings.text_weight
    return 1.0 if span.is_guided else settings.clean_weight


def _learn(
    policy: LanguageModel,
    optimizer: torch.optim.Optimizer,
    batch: Sequence[tuple[Episode, Guidance | None]],
    settings: WarmStartSettings,
    number: int,
) -> float:
    """One step of maximum likelihood on the learned turns of a batch; gives the mean token loss."""
    sequences: list[TokenSequence] = []
    spans: list[list[Span]] = []
    for episode, guidance in batch:
        sequence = full(episode) if guidance is None else guided(episode, guidance, policy.format)
        wanted = [span for span in sequence.spans if episode.turns[span.turn].sampled]
        if wanted:
            sequences.append(sequence)
            spans.append(wanted + _between(sequence))
    weights = [[_weight(span, settings) for span in wanted] for wanted in spans]
    total = sum(
        weight * (span.stop - span.start)
        for wanted, given in zip(spans, weights, strict=True)
        for span, weight in zip(wanted, given, strict=True)
    )
    policy.model.train()
    sum_loss = 0.0
    for chosen in micro_batches(sequences):
        scored = score(policy, [sequences[i] for i in chosen], [spans[i] for i in chosen])
        weight = np.concatenate(
            [np.full(span.stop - span.start, w) for i in chosen for span, w in zip(spans[i], weights[i], strict=True)]
        )
        loss = -(scored.logprobs * torch.from_numpy(weight.astype(np.float32))).sum() / total
        loss.backward()
        sum_loss += float(loss.detach())
    _descend(policy, optimizer, settings, number)
    policy.model.eval()
    return sum_loss


def _descend(
    policy: LanguageModel, optimizer: torch.optim.Optimizer, settings: WarmStartSettings, number: int
) -> None:
    """Follow the gradient that has been added up, and clear it; the rate rises over the first steps."""
    for parameters in optimizer.param_groups:
        parameters["lr"] = settings.learning_rate * min(1.0, (number + 1) / 50)
    torch.nn.utils.clip_grad_norm_(policy.model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
