"""Log-probabilities of responses under a policy, and the scorer that credit schemes ask for shifts.

The vocabulary is spread out only at response tokens, never over prompts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from taspo_bench.api import TextEnv
from taspo_bench.credit import Array
from taspo_bench.episode import Episode, Guidance
from taspo_bench.policies.language_model import CachedConversation, LanguageModel
from taspo_bench.policies.policy import Conversation
from taspo_bench.policies.slot_cache import Prefixes, SlotCache
from taspo_bench.rollout import remaining_steps
from taspo_bench.transcript import Span, TokenSequence, guided_branches, guided_sequences

TOKEN_BUDGET = 16384  # padded tokens in one forward pass
KEPT_BYTES = 2 << 30  # of the rollout's keys and values, from rollout to scoring
ENOUGH_TOKENS = 1024  # below, a pass costs more for being one than for its padding


def micro_batches(sequences: Sequence[TokenSequence], budget: int = TOKEN_BUDGET) -> Iterator[list[int]]:
    """Indices of sequences of like lengths, each batch within a budget of padded tokens.

    The longest first; a batch that holds enough work ends where the next sequence would be mostly padding.
    """
    batch: list[int] = []
    width = 0
    for index in sorted(range(len(sequences)), key=lambda i: (-len(sequences[i]), i)):
        length = len(sequences[index])
        is_full = (len(batch) + 1) * width > budget
        is_wasteful = len(batch) * width >= ENOUGH_TOKENS and length < 0.75 * width
        if batch and (is_full or is_wasteful):
            yield batch
            batch = []
        if not batch:
            width = length
        batch.append(index)
    if batch:
        yield batch


@dataclass
class Scored:
    """Values of response tokens, flat over sequences and their spans in order.

    logprobs (N,); distributions (N, V), the log-probabilities that each was drawn from; slices[s][k] is where span k
    of sequence s stands.
    """

    logprobs: torch.Tensor
    distributions: torch.Tensor
    slices: list[list[slice]]

    def entropy(self) -> torch.Tensor:
        """Entropy (N,) of each token's distribution."""
        return -(self.distributions.exp() * self.distributions).sum(dim=-1)


def score(
    policy: LanguageModel,
    sequences: Sequence[TokenSequence],
    spans: Sequence[Sequence[Span]],
    main_lines: Prefixes | None = None,
) -> Scored:
    """One forward pass over one micro-batch; differentiable unless the caller says otherwise.

    Args:
        main_lines: of sequences that hold branches alone, the keys and values of what the branches left.
    """
    width = max(len(sequence) for sequence in sequences)
    ids = np.zeros((len(sequences), width), dtype=np.int64)
    positions = np.tile(np.arange(width), (len(sequences), 1))
    for line, sequence in enumerate(sequences):
        ids[line, : len(sequence)] = sequence.ids
        positions[line, : len(sequence)] = sequence.positions
    device = policy.device
    mask = None
    if any(sequence.has_branches for sequence in sequences):
        trunk = 0 if main_lines is None else main_lines.width
        mask = torch.from_numpy(_branch_mask(sequences, width, trunk)).to(device)
    hidden = policy.hidden(torch.from_numpy(ids).to(device), torch.from_numpy(positions).to(device), mask, main_lines)
    lines, columns = [], []
    slices: list[list[slice]] = []
    filled = 0
    for line, wanted in enumerate(spans):
        slices.append([])
        for span in wanted:
            count = span.stop - span.start
            lines.append(np.full(count, line))
            columns.append(np.arange(span.start, span.stop))
            slices[-1].append(slice(filled, filled + count))
            filled += count
    row, column = np.concatenate(lines), np.concatenate(columns)
    distributions = torch.log_softmax(policy.head(hidden[row, column - 1]).float(), dim=-1)
    targets = torch.from_numpy(ids[row, column]).to(device)
    return Scored(distributions.gather(1, targets[:, None])[:, 0], distributions, slices)


def _branch_mask(sequences: Sequence[TokenSequence], width: int, kept: int = 0) -> np.ndarray:
    """(B, 1, L, kept + L), True where a token may look: its own line so far, and the main line up to its branch.

    The first ``kept`` keys are those of main lines that the sequences do not hold.
    """
    mask = np.zeros((len(sequences), 1, width, kept + width), dtype=bool)
    causal = np.tri(width, dtype=bool)
    for line, sequence in enumerate(sequences):
        size = len(sequence)
        branch, prefix = np.array(sequence.branch), np.array(sequence.prefix)
        own = (branch[:, None] == branch[None, :]) & causal[:size, :size]
        trunk = (branch[None, :] == 0) & (np.arange(size)[None, :] < prefix[:, None])
        mask[line, 0, :size, :kept] = np.arange(kept)[None, :] < prefix[:, None]
        mask[line, 0, :size, kept : kept + size] = own | trunk
        mask[line, 0, size:, kept] = True  # padding looks somewhere, so that no row of the softmax is empty
    return mask


@dataclass
class _Guided:
    """A sequence with guided spans, the place of its episode in the request, and its slot where a cache holds it."""

    episode: int
    slot: int
    sequence: TokenSequence
    spans: list[Span]


class PolicyScorer:
    """What credit schemes may ask: shifts under the frozen policy, and distances in the simulator."""

    def __init__(self, policy: LanguageModel, make_env: Callable[[], TextEnv], budget: int = TOKEN_BUDGET) -> None:
        self.policy = policy
        self.budget = budget
        self._make_env = make_env
        self._env: TextEnv | None = None
        self._contexts: dict[int, tuple[Episode, SlotCache, int]] = {}  # by the identity of the episode
        self._kept: list[SlotCache] = []

    def remember(self, conversation: Conversation, episodes: Sequence[Episode]) -> None:
        """Keep the contexts of episodes that were just played, so that shifts need not compute them again.

        They are those of the policy as it is: :meth:`forget` them before it learns. Contexts beyond
        ``KEPT_BYTES`` are not kept, and those of turns with prompts of their own are of no use.
        """
        if not isinstance(conversation, CachedConversation) or self.policy.format.window is not None:
            return
        cache = conversation.cache
        if sum(kept.nbytes for kept in (*self._kept, cache)) <= KEPT_BYTES:
            self._kept.append(cache)
            self._contexts |= {id(episode): (episode, cache, slot) for slot, episode in enumerate(episodes)}

    def forget(self) -> None:
        """Free what :meth:`remember` kept."""
        self._contexts, self._kept = {}, []

    @torch.inference_mode()
    def shift(self, episodes: Sequence[Episode], guidance: Sequence[Guidance]) -> list[list[Array]]:
        """See :meth:`taspo_bench.credit.Scorer.shift`. Clean log-probabilities are those of the rollout.

        The shifts are kept with the turns, so that other schemes can be tried on stored episodes.
        """
        shifts = [[np.zeros(len(turn.response_ids)) for turn in episode.turns] for episode in episodes]
        for cache, owned in self._guided(episodes, guidance):
            for batch in micro_batches([one.sequence for one in owned], self.budget):
                chosen = [owned[index] for index in batch]
                sequences = [one.sequence for one in chosen]
                main_lines = None
                if cache is not None:
                    longest = max(max(sequence.prefix) for sequence in sequences)
                    main_lines = Prefixes(cache, [one.slot for one in chosen], longest)
                result = score(self.policy, sequences, [one.spans for one in chosen], main_lines)
                values = result.logprobs.double().cpu().numpy()
                for one, slices in zip(chosen, result.slices, strict=True):
                    for span, where in zip(one.spans, slices, strict=True):
                        turn = episodes[one.episode].turns[span.turn]
                        difference = values[where] - np.asarray(turn.logprobs)
                        difference[turn.sampled :] = 0.0
                        shifts[one.episode][span.turn] = difference
                        turn.shift = difference.tolist()
        return shifts

    def _guided(
        self, episodes: Sequence[Episode], guidance: Sequence[Guidance]
    ) -> list[tuple[SlotCache | None, list[_Guided]]]:
        """What is to be scored, by the cache that holds its contexts; None where it is scored whole."""
        found: dict[int, tuple[SlotCache | None, list[_Guided]]] = {}
        for index, (episode, text) in enumerate(zip(episodes, guidance, strict=True)):
            kept = self._contexts.get(id(episode)) if text.scope == "turn" else None
            cache, slot = kept[1:] if kept else (None, 0)
            if cache is None:
                sequences = guided_sequences(episode, text, self.policy.format)
            else:
                sequences = [guided_branches(episode, text, self.policy.format)]
            owned = found.setdefault(id(cache), (cache, []))[1]
            for sequence in sequences:
                if spans := [span for span in sequence.spans if span.is_guided]:
                    owned.append(_Guided(index, slot, sequence, spans))
        return list(found.values())

    def remaining_steps(self, episode: Episode) -> Array:
        """See :meth:`taspo_bench.credit.Scorer.remaining_steps`; replays the episode in an environment."""
        if self._env is None:
            self._env = self._make_env()
        return remaining_steps(self._env, episode)
