"""A causal language model as a policy: batched generation with a cache kept per live episode.

Only new tokens are ever computed: an observation is appended to the cached context of its episode, a response token
by token. Works with any decoder of transformers whose attention takes a four-dimensional mask.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import PreTrainedModel

from taspo_bench.api import TextEnv
from taspo_bench.errors import InputError
from taspo_bench.policies.formats import Format
from taspo_bench.policies.policy import Response
from taspo_bench.policies.slot_cache import ContextCache, SlotCache
from taspo_bench.policies.window import NO_ACTION, window_prompt

FLOAT_COPY_COST = 20
"""Multiply-adds that take as long as copying one number, on the processors that were measured."""
PASS_TOKENS = {"cpu": 16}
PASS_TOKENS_ELSEWHERE = 512
"""A forward pass costs what as many tokens do: the weights are read once, on a GPU at far less than its pace ..."""
PASS_OVERHEAD = 10**8
"""... and in small models what as many multiply-adds do."""
SHORTEST_SHARED = 16


class LanguageModel:
    """A transformers decoder with its token format, as a :class:`~taspo_bench.policies.policy.Policy`.

    Args:
        temperature: of sampling; 0 takes the most likely token. Log-probabilities are always those of temperature 1.
        context_tokens: an episode whose context would grow beyond ends there.
    """

    def __init__(
        self,
        name: str,
        model: PreTrainedModel,
        fmt: Format,
        temperature: float = 1.0,
        context_tokens: int = 4096,
    ) -> None:
        self.name = name
        self.model = model
        self.format = fmt
        self.temperature = temperature
        self.context_tokens = context_tokens
        self.decoder = model.get_decoder()
        self.head = model.get_output_embeddings()
        self.parameters = sum(weight.numel() for weight in self.decoder.layers.parameters())
        names = inspect.signature(type(self.decoder).forward).parameters
        self._cache_name = "cache" if "cache" in names else "past_key_values"
        kinds = set(getattr(self.decoder.config, "layer_types", None) or ())
        self._slides = "sliding_attention" in kinds
        if kinds - {"full_attention", "sliding_attention"}:
            raise InputError(
                f"model {name!r}: layers of kind {', '.join(sorted(kinds))}; only attention can be cached"
            )

    @property
    def device(self) -> torch.device:
        return self.head.weight.device

    @property
    def has_adapter(self) -> bool:
        return hasattr(self.model, "disable_adapter")

    def without_adapter(self) -> AbstractContextManager[None]:
        """Within this context the model is what it was before its adapter was trained."""
        without: AbstractContextManager[None] = self.model.disable_adapter()  # type: ignore[operator]
        return without

    def at_temperature(self, temperature: float) -> LanguageModel:
        """The same weights, sampled at another temperature."""
        return LanguageModel(self.name, self.model, self.format, temperature, self.context_tokens)

    def begin(self, envs: Sequence[TextEnv], generators: Sequence[np.random.Generator]) -> CachedConversation:
        return CachedConversation(self, envs, generators)

    def hidden(
        self, ids: torch.Tensor, positions: torch.Tensor, mask: torch.Tensor | None, cache: ContextCache | None = None
    ) -> torch.Tensor:
        """Last hidden states (B, L, H). ``mask`` (B, 1, L, keys) is True where a token may look; None is causal."""
        cached = {} if cache is None else {self._cache_name: cache}
        masks: Any = mask
        if self._slides and mask is not None:
            keys = positions if cache is None else cache.key_positions(positions)
            near = positions[:, None, :, None] - keys[:, None, None, :] < self.decoder.config.sliding_window
            masks = {"full_attention": mask, "sliding_attention": mask & near}
        states: torch.Tensor = self.decoder(
            input_ids=ids, attention_mask=masks, position_ids=positions, use_cache=cache is not None, **cached
        ).last_hidden_state
        return states


class CachedConversation:
    """A :class:`~taspo_bench.policies.policy.Conversation`. Slot i of ``cache`` holds the context of index i."""

    def __init__(
        self, policy: LanguageModel, envs: Sequence[TextEnv], generators: Sequence[np.random.Generator]
    ) -> None:
        self.policy = policy
        self.envs = envs
        self.generators = generators
        device = policy.device
        self.cache = SlotCache(len(generators), policy.head.weight.dtype, device)
        self.lengths = np.zeros(len(generators), dtype=np.int64)
        self.pending: list[list[int]] = [[] for _ in generators]  # of the context, not yet in the cache
        self.past: list[list[tuple[str, str]]] = [[] for _ in generators]
        self.prompts: list[list[int]] = [[] for _ in generators]  # of the newest turn, where each has its own

    @torch.inference_mode()
    def respond(self, live: Sequence[int], observations: Sequence[str]) -> list[Response]:
        fmt = self.policy.format
        seen = dict(zip(live, observations, strict=True))
        prompts = {index: self._prompt(index, text) for index, text in seen.items()}
        room = self.policy.context_tokens - fmt.max_response_tokens
        fits = [i for i in live if self.lengths[i] + len(self.pending[i]) + len(prompts[i]) <= room]
        if fmt.window is None:
            new = {index: self.pending[index] + prompts[index] for index in fits}
        else:
            new = {index: self._beyond_shared(index, prompts[index]) for index in fits}
        sampled = self._sample_responses(fits, self._prefill(new))
        responses = []
        for index, text in seen.items():
            response = Response("", "", exhausted=True)
            if index in sampled:
                response = self._response(prompts[index], *sampled[index])
                self.past[index].append((text, response.action or NO_ACTION))
            responses.append(response)
        return responses

    def _prompt(self, index: int, observation: str) -> list[int]:
        """Ids of this turn's prompt: what is new to the context, or all of it where each turn has its own."""
        fmt = self.policy.format
        past = self.past[index]
        if fmt.window is None:
            return fmt.observe(observation, is_first=not past)
        self.lengths[index], self.pending[index] = 0, []
        first = past[0][0] if past else observation
        prompt = window_prompt(self.envs[index], first, past, observation, fmt.window, fmt.instruction)
        return fmt.observe(prompt, is_first=True)

    def _beyond_shared(self, index: int, prompt: list[int]) -> list[int]:
        """What the cache lacks of a prompt: it still holds the beginning that the prompt shares with the last one."""
        before, self.prompts[index] = self.prompts[index], prompt
        shared = self.lengths[index] = _common_beginning([before, prompt])
        return prompt[shared:]

    def _prefill(self, new: dict[int, list[int]]) -> dict[int, torch.Tensor]:
        """Append ids to the cached contexts; logits (V,) after each one's last.

        What contexts begin with in common is computed once: an instruction, and a prompt that several rollouts have.
        """
        first: dict[tuple[int, ...], int] = {}
        fresh = [row for row in new if not self.lengths[row]]
        twins = {row: first.setdefault(tuple(new[row]), row) for row in fresh}
        beginnings = list(first.values())
        unlike = {row: ids for row, ids in new.items() if twins.get(row, row) == row}
        shared = _common_beginning([new[row] for row in beginnings])
        if len(beginnings) > 1 and shared >= SHORTEST_SHARED:
            source, *others = beginnings
            self._forward([source], np.array([new[source][:shared]], dtype=np.int64))
            self.cache.copy(source, others, shared)
            self.lengths[beginnings] = shared
            unlike |= {row: new[row][shared:] for row in beginnings}
        logits = self._append(unlike)
        for row, twin in twins.items():
            if row != twin:
                self.cache.copy(twin, [row], len(new[row]))
                self.lengths[row] = len(new[row])
                logits[row] = logits[twin]
        for row in new:
            self.pending[row] = []
        return logits

    def _append(self, new: dict[int, list[int]]) -> dict[int, torch.Tensor]:
        """Append ids to the cached contexts, rows of like lengths together; logits (V,) after each one's last."""
        tokens = PASS_TOKENS.get(self.policy.device.type, PASS_TOKENS_ELSEWHERE)
        affordable = tokens + PASS_OVERHEAD // self.policy.parameters  # padding, for one pass less
        batches: list[list[int]] = []
        wasted = 0
        for row in sorted(new, key=lambda row: -len(new[row])):
            wasted += len(new[batches[-1][0]]) - len(new[row]) if batches else 0
            if not batches or wasted > affordable:
                batches.append([])
                wasted = 0
            batches[-1].append(row)
        logits: dict[int, torch.Tensor] = {}
        for rows in batches:
            padded = np.zeros((len(rows), len(new[rows[0]])), dtype=np.int64)
            for line, row in enumerate(rows):
                padded[line, : len(new[row])] = new[row]
            hidden = self._forward(rows, padded)
            last = [len(new[row]) - 1 for row in rows]
            picked = self.policy.head(hidden[torch.arange(len(rows)), last]).float()
            for line, row in enumerate(rows):
                logits[row] = picked[line]
                self.lengths[row] += len(new[row])
        return logits

    def _forward(self, rows: list[int], ids: NDArray[np.int64]) -> torch.Tensor:
        """Hidden states (rows, L, H) of new tokens behind the rows' cached contexts; lengths are left alone."""
        device = self.policy.device
        steps = ids.shape[1]
        # one column more than any context has: idle slots leave what they compute there
        self.cache.reserve(max(int(self.lengths[rows].max()) + steps, int(self.lengths.max()) + 1))
        whole = self._idling_is_cheaper(len(rows), steps)
        lines = list(range(self.cache.slots)) if whole else rows
        positions = np.minimum(self.lengths[lines][:, None] + np.arange(steps), self.cache.capacity - 1)
        if whole:
            every = np.zeros((self.cache.slots, steps), dtype=np.int64)
            every[rows] = ids
            ids = every
        where = torch.from_numpy(positions).to(device)
        self.cache.rows = None if whole else torch.tensor(rows, device=device)
        self.cache.columns = where
        self.cache.width = int(positions[[lines.index(row) for row in rows]].max()) + 1
        mask = torch.arange(self.cache.width, device=device)[None, None, None, :] <= where[:, None, :, None]
        hidden = self.policy.hidden(torch.from_numpy(ids).to(device), where, mask, self.cache)
        return hidden[rows] if whole else hidden

    def _idling_is_cheaper(self, rows: int, steps: int) -> bool:
        """Whether computing all slots, some for nothing, costs less than copying the cached contexts of some."""
        slots = self.cache.slots
        copied = rows * int(self.lengths.max()) * self.cache.floats_per_token
        return (slots - rows) * steps * self.policy.parameters <= FLOAT_COPY_COST * copied

    def _sample_responses(
        self, rows: list[int], logits: dict[int, torch.Tensor]
    ) -> dict[int, tuple[list[int], list[float]]]:
        fmt = self.policy.format
        sampled: dict[int, tuple[list[int], list[float]]] = {row: ([], []) for row in rows}
        active = rows
        current = torch.stack([logits[row] for row in rows]) if rows else torch.empty(0)
        for _ in range(fmt.max_response_tokens):
            if not active:
                break
            tokens, logprobs = self._sample(active, current)
            going = []
            for line, row in enumerate(active):
                sampled[row][0].append(tokens[line])
                sampled[row][1].append(logprobs[line])
                if not fmt.ends(sampled[row][0]):
                    going.append(line)
                elif tokens[line] == fmt.stop_id:
                    self.pending[row] = [fmt.stop_id]
                else:
                    self.pending[row] = [tokens[line], fmt.stop_id]
            active = [active[line] for line in going]
            if active:
                ids = np.array([[tokens[line]] for line in going], dtype=np.int64)
                current = self.policy.head(self._forward(active, ids)[:, 0]).float()
                self.lengths[active] += 1
        for row in active:  # out of room: a forced end, which is in the context but was not sampled
            self.pending[row] = [fmt.stop_id]
        return sampled

    def _sample(self, rows: list[int], logits: torch.Tensor) -> tuple[list[int], list[float]]:
        """One token a row by inverse transform with the row's own generator, so that batches do not matter."""
        logprobs = torch.log_softmax(logits, dim=-1)
        if self.policy.temperature == 0:
            tokens = logits.argmax(dim=-1)
        else:
            is_cold = self.policy.temperature != 1
            drawn = torch.log_softmax(logits / self.policy.temperature, dim=-1) if is_cold else logprobs
            mass = drawn.exp().double().cumsum(dim=-1)
            draws = torch.tensor([[self.generators[row].random()] for row in rows], dtype=torch.float64)
            tokens = torch.searchsorted(mass, draws.to(mass.device) * mass[:, -1:], right=True)[:, 0]
            tokens = tokens.clamp(max=logits.shape[-1] - 1)
        chosen = logprobs.gather(1, tokens[:, None])[:, 0]
        return tokens.tolist(), chosen.tolist()

    def _response(self, prompt_ids: list[int], ids: list[int], logprobs: list[float]) -> Response:
        fmt = self.policy.format
        sampled = len(ids)
        if ids[-1] != fmt.stop_id:
            ids, logprobs = [*ids, fmt.stop_id], [*logprobs, 0.0]
        text, action, span = fmt.parse(ids, sampled)
        return Response(text, action, prompt_ids, ids, logprobs, span, sampled, restarts=fmt.window is not None)


def _common_beginning(prompts: Sequence[Sequence[int]]) -> int:
    """How many ids all prompts begin with in common, short of the last of the shortest."""
    shortest = max(min(map(len, prompts), default=0) - 1, 0)
    return next((place for place in range(shortest) if len({prompt[place] for prompt in prompts}) > 1), shortest)
