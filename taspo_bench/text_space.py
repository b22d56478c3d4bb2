"""A Text space for real text, in every kind of vector environment.

Gymnasium's Text space has 62 characters and no blank, and its shared-memory path (1.4) returns wrong text.
:class:`UnicodeText` contains any string up to a length, and brings its own shared-memory functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.spaces import Text
from gymnasium.vector.utils import shared_memory as _shared

from taspo_bench.errors import InputError

_SAMPLE_CHARSET = "abcdefghijklmnopqrstuvwxyz []0123456789"
_HEADER = 8  # bytes of length before the UTF-8 text


class UnicodeText(Text):
    """All strings of at most ``max_length`` characters, the empty one included."""

    def __init__(self, max_length: int, *, seed: int | np.random.Generator | None = None) -> None:
        super().__init__(max_length=max_length, min_length=0, charset=_SAMPLE_CHARSET, seed=seed)

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        """A short random string; the space holds far more than can be sampled."""
        length = int(self.np_random.integers(0, min(self.max_length, 40) + 1))
        return "".join(self.np_random.choice(list(_SAMPLE_CHARSET), size=length)) if length else ""

    def contains(self, x: Any) -> bool:
        return isinstance(x, str) and len(x) <= self.max_length

    def __repr__(self) -> str:
        return f"UnicodeText(max_length={self.max_length})"

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, UnicodeText) and self.max_length == other.max_length

    __hash__ = None  # type: ignore[assignment]


def _slot(space: UnicodeText) -> int:
    return _HEADER + 4 * space.max_length


@_shared.create_shared_memory.register(UnicodeText)
def _create(space: UnicodeText, n: int = 1, ctx: Any = None) -> Any:
    import multiprocessing

    return (ctx or multiprocessing).Array("B", n * _slot(space))


@_shared.write_to_shared_memory.register(UnicodeText)
def _write(space: UnicodeText, index: int, value: str, shared_memory: Any) -> None:
    if len(value) > space.max_length:
        raise InputError(
            f"a text of {len(value):,} characters does not fit its space of {space.max_length:,}: give the "
            "environment an observation_space of a greater max_length, or vector environments shared_memory=False"
        )
    data = value.encode("utf-8", "surrogatepass")
    start = index * _slot(space)
    view = memoryview(shared_memory.get_obj()).cast("B")
    view[start : start + _HEADER] = len(data).to_bytes(_HEADER, "little")
    view[start + _HEADER : start + _HEADER + len(data)] = data


class _LiveTexts(Sequence[str]):
    """The texts that stand in shared memory now.

    Gymnasium reads the buffer object once and then copies it after every step, which is right for arrays that
    share the memory; so the texts are decoded when they are looked at, and a deep copy is a plain tuple.
    """

    def __init__(self, space: UnicodeText, shared_memory: Any, n: int) -> None:
        self._slot = _slot(space)
        self._memory = shared_memory
        self._n = n

    def __len__(self) -> int:
        return self._n

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return tuple(self[i] for i in range(*index.indices(self._n)))
        if not -self._n <= index < self._n:
            raise IndexError(index)
        start = (index % self._n) * self._slot
        view = memoryview(self._memory.get_obj()).cast("B")
        length = int.from_bytes(view[start : start + _HEADER], "little")
        return bytes(view[start + _HEADER : start + _HEADER + length]).decode("utf-8", "surrogatepass")

    def __deepcopy__(self, memo: dict[int, Any]) -> tuple[str, ...]:
        return tuple(self)


@_shared.read_from_shared_memory.register(UnicodeText)
def _read(space: UnicodeText, shared_memory: Any, n: int = 1) -> Sequence[str]:
    return _LiveTexts(space, shared_memory, n)
