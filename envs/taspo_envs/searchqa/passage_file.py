"""Passages on disk: one line of JSON each, and a memory-mapped table of where each line starts."""

from __future__ import annotations

import json
import mmap
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import overload

import numpy as np

from taspo_envs.searchqa.questions import Passage

_LINES, _STARTS = "passages.jsonl", "passage_starts.npy"


def write(folder: Path, passages: Iterable[Passage]) -> Iterator[Passage]:
    """Write passages into a folder and pass them on, in one go; the table is complete when the iterator ends."""
    starts = [0]
    with (folder / _LINES).open("wb") as file:
        for passage in passages:
            line = json.dumps([passage.title, passage.text], ensure_ascii=False, separators=(",", ":"))
            starts.append(starts[-1] + file.write(line.encode() + b"\n"))
            yield passage
    np.save(folder / _STARTS, np.array(starts, dtype=np.int64))


class PassageFile(Sequence[Passage]):
    """The passages that :func:`write` wrote; processes that open them share the pages in memory."""

    def __init__(self, folder: Path) -> None:
        self._starts = np.load(folder / _STARTS, mmap_mode="r")
        with (folder / _LINES).open("rb") as file:
            self._lines = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    def __len__(self) -> int:
        return len(self._starts) - 1

    @overload
    def __getitem__(self, index: int) -> Passage: ...
    @overload
    def __getitem__(self, index: slice) -> list[Passage]: ...
    def __getitem__(self, index: int | slice) -> Passage | list[Passage]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if not 0 <= index < len(self):
            raise IndexError(index)
        title, text = json.loads(self._lines[int(self._starts[index]) : int(self._starts[index + 1])])
        return Passage.of(title, text)
