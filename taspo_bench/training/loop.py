"""The training loop: rollouts, credit, one clipped policy-gradient update; again.

It knows no method and no benchmark by name. Which tasks an update plays, and every draw in it, follow from the seed
and the number of the update alone, so a run that was broken off goes on with the same numbers.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import torch

from taspo_bench.api import TextEnv
from taspo_bench.config import CellConfig
from taspo_bench.credit import Credit, CreditScheme, is_equal, reaches, teaches
from taspo_bench.episode import Episode, Group
from taspo_bench.policies.language_model import LanguageModel
from taspo_bench.rollout import Start, rollout
from taspo_bench.taspo.analyzers import Analyzer
from taspo_bench.taspo.credit_metrics import credit_metrics
from taspo_bench.training.loss import k3, surrogate, token_credit, token_weights
from taspo_bench.training.scoring import PolicyScorer, micro_batches, score
from taspo_bench.transcript import Span, TokenSequence, sequences


@dataclass
class Trained:
    """What one update did: its line of metrics, and all the episodes it played."""

    metrics: dict[str, object]
    episodes: list[Episode]


class Stopwatch:
    """Seconds by phase."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        begun = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - begun


def update_starts(config: CellConfig, task_ids: Sequence[str], number: int) -> list[Start]:
    """What update ``number`` plays: the next tasks of an endless sequence of shuffled passes over the training split,
    ``group_size`` rollouts of each, one group after the other."""
    first = number * config.tasks_per_update
    starts = []
    for place in range(config.tasks_per_update):
        lap, index = divmod(first + place, len(task_ids))
        order = np.random.default_rng((config.seed, lap)).permutation(len(task_ids))
        starts += [
            Start(task_ids[int(order[index])], "train", config.seed, (config.seed, number, place, member))
            for member in range(config.group_size)
        ]
    return starts


def grouped(episodes: Sequence[Episode], config: CellConfig, number: int) -> list[Group]:
    """The groups of the episodes that :func:`update_starts` asked for."""
    size = config.group_size
    return [
        Group(episodes[first].task_id, list(episodes[first : first + size]), update=number)
        for first in range(0, len(episodes), size)
    ]


@dataclass
class Trainer:
    """One policy being trained by one credit scheme on one benchmark."""

    config: CellConfig
    policy: LanguageModel
    scheme: CreditScheme
    analyzer: Analyzer | None
    make_env: Callable[[], TextEnv]
    task_ids: Sequence[str]
    env_steps: int = 0
    optimizer: torch.optim.AdamW = field(init=False)

    def __post_init__(self) -> None:
        config = self.config
        self.optimizer = torch.optim.AdamW(
            [weight for weight in self.policy.model.parameters() if weight.requires_grad],
            lr=config.learning_rate,
            weight_decay=config.weight_decay,
        )
        self.scorer = PolicyScorer(self.policy, self.make_env, config.micro_batch_tokens)
        self._envs: list[TextEnv] = []
        self._reference: LanguageModel | None = None
        if config.kl_coef > 0 and not self.policy.has_adapter:
            frozen = copy.deepcopy(self.policy.model).requires_grad_(False)
            self._reference = LanguageModel("reference", frozen, self.policy.format)

    def update(self, number: int) -> Trained:
        """Play, credit and learn once. ``number`` counts from 0."""
        watch = Stopwatch()
        with watch.phase("rollout"):
            groups = self.play(number)
        informative = [group for group in groups if reaches(group, self.scheme)]
        if self.analyzer is not None and self.scheme.uses_guidance:
            with watch.phase("guidance"):
                for group in informative:
                    group.guidance = self.analyzer.guide(group)
        with watch.phase("scoring"):
            credited = [(group, self.scheme.credit(group, self.scorer)) for group in informative]
            self.scorer.forget()
        taught = [(group, credits) for group, credits in credited if teaches(group, credits)]
        informative, credits = [group for group, _ in taught], [credits for _, credits in taught]
        with watch.phase("update"):
            learned = self.learn(number, informative, credits)
        keep_credit(informative, credits)
        episodes = [episode for group in groups for episode in group.episodes]
        self.env_steps += sum(len(episode.turns) for episode in episodes)
        metrics: dict[str, object] = {
            "update": number,
            "env_steps": self.env_steps,
            **outcomes(episodes),
            "groups_skipped": equal_share(groups),
            **learned,
            **credit_metrics(informative, credits),
            "seconds": watch.seconds,
        }
        return Trained(metrics, episodes)

    def play(self, number: int) -> list[Group]:
        """The groups of an update: its tasks, ``group_size`` rollouts each."""
        config = self.config
        starts = update_starts(config, self.task_ids, number)
        self.scorer.forget()
        is_scored = self.analyzer is not None and self.scheme.uses_guidance and config.guidance_scope == "turn"
        keep = self.scorer.remember if is_scored else None
        played = rollout(self.make_env, self.policy, starts, config.batch, self._envs, on_end=keep)
        return grouped(played, config, number)

    def learn(self, number: int, groups: Sequence[Group], credits: Sequence[Sequence[Credit]]) -> dict[str, float]:
        """One or more optimizer steps on the episodes of the informative groups."""
        pairs = [
            (episode, credit)
            for group, group_credits in zip(groups, credits, strict=True)
            for episode, credit in zip(group.episodes, group_credits, strict=True)
            if any(turn.sampled for turn in episode.turns)
        ]
        config = self.config
        warmup = min(1.0, (number + 1) / config.warmup_updates) if config.warmup_updates else 1.0
        for parameters in self.optimizer.param_groups:
            parameters["lr"] = config.learning_rate * warmup
        order = np.random.default_rng((config.seed, number, 1)).permutation(len(pairs))
        steps = [
            self._step([pairs[index] for index in part])
            for part in np.array_split(order, config.minibatches)
            if len(part)
        ]
        names = ("loss", "kl", "entropy", "clip_fraction", "grad_norm")
        return {name: float(np.mean([step[name] for step in steps])) if steps else 0.0 for name in names}

    def _step(self, pairs: list[tuple[Episode, Credit]]) -> dict[str, float]:
        config = self.config
        episodes = [episode for episode, _ in pairs]
        owned = [(place, sequence) for place, episode in enumerate(episodes) for sequence in sequences(episode)]
        weights = token_weights(episodes)
        credit = [token_credit(episode, given) for episode, given in pairs]
        old_logprobs = [[np.array(turn.logprobs, dtype=np.float32) for turn in e.turns] for e in episodes]
        sums = dict.fromkeys(("loss", "kl", "entropy", "clip_fraction"), 0.0)
        self.policy.model.train()
        self.optimizer.zero_grad(set_to_none=True)
        for batch in micro_batches([sequence for _, sequence in owned], config.micro_batch_tokens):
            chosen = [owned[index][1] for index in batch]
            spans = [sequence.spans for sequence in chosen]
            scored = score(self.policy, chosen, spans)
            old, weight, given = (
                self._flat([values[owned[i][0]][span.turn] for i in batch for span in owned[i][1].spans])
                for values in (old_logprobs, weights, credit)
            )
            loss = (weight * surrogate(scored.logprobs, old, given, config.clip, config.dual_clip)).sum()
            sums["loss"] += float(loss.detach())
            with torch.set_grad_enabled(config.entropy_coef > 0):  # else its gradient would only cost memory
                entropy = (weight * scored.entropy()).sum()
            total = loss - config.entropy_coef * entropy
            if config.kl_coef > 0:
                reference = self._reference_logprobs(chosen, spans)
                divergence = (weight * k3(scored.logprobs, reference)).sum()
                total = total + config.kl_coef * divergence
                sums["kl"] += float(divergence.detach())
            total.backward()
            ratio = torch.exp(scored.logprobs.detach() - old)
            sums["entropy"] += float(entropy.detach())
            sums["clip_fraction"] += float((weight * ((ratio - 1).abs() > config.clip)).sum())
        norm = torch.nn.utils.clip_grad_norm_(self.policy.model.parameters(), config.grad_clip)
        self.optimizer.step()
        self.policy.model.eval()
        return {**sums, "grad_norm": float(norm)}

    @torch.no_grad()
    def _reference_logprobs(self, chosen: list[TokenSequence], spans: list[list[Span]]) -> torch.Tensor:
        """Under the policy as it was before training: without its adapter where it has one, else a frozen copy."""
        if self._reference is not None:
            return score(self._reference, chosen, spans).logprobs
        with self.policy.without_adapter():
            return score(self.policy, chosen, spans).logprobs

    def _flat(self, arrays: Sequence[np.ndarray]) -> torch.Tensor:
        return torch.from_numpy(np.concatenate(arrays).astype(np.float32)).to(self.policy.device)


def equal_share(groups: Sequence[Group]) -> float:
    """Share of groups whose returns are all equal."""
    return float(np.mean([is_equal(group.returns) for group in groups]))


def outcomes(episodes: Sequence[Episode]) -> dict[str, float]:
    """How a batch of episodes went, for the log of its update."""
    turns = [turn for episode in episodes for turn in episode.turns]
    return {
        "success": float(np.mean([episode.won for episode in episodes])),
        "score": float(np.mean([episode.score for episode in episodes])),
        "turns": float(np.mean([len(episode.turns) for episode in episodes])),
        "valid_actions": float(np.mean([turn.is_action_valid for turn in turns])) if turns else 0.0,
        "response_tokens": float(sum(turn.sampled for turn in turns)),
        "errors": float(sum(bool(episode.error) for episode in episodes)),
    }


def keep_credit(groups: Sequence[Group], credits: Sequence[Sequence[Credit]]) -> None:
    """Store credit and guidance with the episodes, for the report and the diagnostics."""
    for group, group_credits in zip(groups, credits, strict=True):
        for index, (episode, credit) in enumerate(zip(group.episodes, group_credits, strict=True)):
            per_turn = credit.per_turn()
            episode.credit = per_turn.tolist()
            episode.advantage = credit.advantage
            if credit.advantage:
                episode.weights = (per_turn / credit.advantage).tolist()
            if group.guidance:
                episode.guidance = group.guidance[index]
