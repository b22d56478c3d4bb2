"""Keys and values of live contexts, kept from turn to turn."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import torch
from transformers.cache_utils import Cache


class ContextCache(Cache, ABC):
    """Cached contexts that a forward pass writes behind or reads."""

    def __init__(self) -> None:
        super().__init__(layers=[])
        self.width = 0

    @abstractmethod
    def key_positions(self, positions: torch.Tensor) -> torch.Tensor:
        """Where in its context each key of a pass over tokens at ``positions`` (B, L) stands: (B or 1, keys)."""

    def get_seq_length(self, layer_idx: int = 0) -> int:
        return self.width


class SlotCache(ContextCache):
    """Keys and values of many contexts of different lengths, one slot each.

    ``rows`` and ``columns`` (set before a forward pass) say where the new keys go; the pass sees the first ``width``
    columns of its rows. What lies beyond a context's length is never attended to: masks go by position.
    """

    def __init__(self, slots: int, dtype: torch.dtype, device: torch.device) -> None:
        super().__init__()
        self.slots = slots
        self.device = device
        self.capacity = 0
        self.rows: torch.Tensor | None = None
        self.columns = torch.empty(0, 0, dtype=torch.long)
        self._dtype = dtype
        self._every = torch.arange(slots, device=device)
        self._keys: list[torch.Tensor] = []
        self._values: list[torch.Tensor] = []

    def reserve(self, columns: int) -> None:
        """Make room for contexts of that many tokens."""
        if columns <= self.capacity:
            return
        self.capacity = max(columns, self.capacity * 3 // 2, 256)
        for store in (self._keys, self._values):
            for layer, old in enumerate(store):
                new = old.new_zeros(old.shape[0], old.shape[1], self.capacity, old.shape[3])
                new[:, :, : old.shape[2]] = old
                store[layer] = new

    def copy(self, source: int, rows: Sequence[int], width: int) -> None:
        """Give other contexts the first tokens of one."""
        for store in (*self._keys, *self._values):
            store[list(rows), :, :width] = store[source, :, :width].clone()

    @property
    def floats_per_token(self) -> int:
        """Numbers that one token of one context takes."""
        return sum(part.shape[1] * part.shape[3] for part in (*self._keys, *self._values))

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, layer_idx: int, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        if layer_idx == len(self._keys):
            for stores, states in ((self._keys, key_states), (self._values, value_states)):
                shape = (self.slots, states.shape[1], self.capacity, states.shape[3])
                stores.append(torch.zeros(shape, dtype=self._dtype, device=self.device))
        rows = self._every if self.rows is None else self.rows
        seen = []
        for store, new in ((self._keys[layer_idx], key_states), (self._values[layer_idx], value_states)):
            store[rows[:, None], :, self.columns] = new.transpose(1, 2).to(self._dtype)
            part = store[:, :, : self.width]
            seen.append(part if self.rows is None else part[self.rows])
        return seen[0], seen[1]

    def key_positions(self, positions: torch.Tensor) -> torch.Tensor:
        return torch.arange(self.width, device=positions.device)[None]

    def get_mask_sizes(self, query_length: int, layer_idx: int) -> tuple[int, int]:
        return self.width, 0

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in (*self._keys, *self._values))

    def read(self, rows: torch.Tensor, width: int, layer_idx: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys and values (rows, heads, width, size) of the first tokens of some contexts, copied."""
        return self._keys[layer_idx][rows, :, :width], self._values[layer_idx][rows, :, :width]


class Prefixes(ContextCache):
    """The first ``width`` tokens of some contexts of a :class:`SlotCache`. New keys, behind them, are not kept."""

    def __init__(self, contexts: SlotCache, rows: Sequence[int], width: int) -> None:
        super().__init__()
        self.width = width
        self._contexts = contexts
        self._rows = torch.tensor(rows, device=contexts.device)

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, layer_idx: int, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        keys, values = self._contexts.read(self._rows, self.width, layer_idx)
        return torch.cat([keys, key_states], dim=2), torch.cat([values, value_states], dim=2)

    def key_positions(self, positions: torch.Tensor) -> torch.Tensor:
        before = torch.arange(self.width, device=positions.device).expand(len(positions), -1)
        return torch.cat([before, positions], dim=1)

    def get_mask_sizes(self, query_length: int, layer_idx: int) -> tuple[int, int]:
        return self.width + query_length, 0
