"""A column of texts in two files, mapped into memory: bytes end to end, and where each text starts.

This is the layout of an Arrow string column; written in one pass, read without copying, shared by every process.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


def map_array(path: Path) -> NDArray[Any]:
    """A saved array, mapped into memory, as a plain array (numpy's memmap class makes every small access slow)."""
    return np.asarray(np.load(path, mmap_mode="r"))


class TextWriter:
    """Writes a column text by text, so that a catalogue never has to be in memory at once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.with_suffix(".bin").open("wb")
        self._starts = [0]

    def append(self, text: str) -> None:
        self._starts.append(self._starts[-1] + self._file.write(text.encode("utf-8", "surrogatepass")))

    def close(self) -> None:
        self._file.close()
        np.save(self._path.with_suffix(".npy"), np.array(self._starts, dtype=np.int64))


class TextColumn:
    """A written column. Indexing gives the text of a row."""

    def __init__(self, path: Path) -> None:
        self._starts = map_array(path.with_suffix(".npy"))
        self._bytes: bytes | mmap.mmap = b""
        if self._starts[-1]:
            with path.with_suffix(".bin").open("rb") as file:
                self._bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    @staticmethod
    def write(path: Path, texts: Iterable[str]) -> None:
        """Write a whole column; give the path without suffix."""
        writer = TextWriter(path)
        for text in texts:
            writer.append(text)
        writer.close()

    def __len__(self) -> int:
        return len(self._starts) - 1

    def _raw(self, row: int) -> bytes:
        return self._bytes[self._starts[row] : self._starts[row + 1]]

    def __getitem__(self, row: int) -> str:
        if not 0 <= row < len(self):
            raise IndexError(f"row {row} of a column with {len(self)} rows")
        return self._raw(row).decode("utf-8", "surrogatepass")

    def find(self, text: str) -> int | None:
        """Row of a text in a column whose rows ascend by their bytes; None if it is not there."""
        wanted = text.encode("utf-8", "surrogatepass")
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            if self._raw(middle) < wanted:
                low = middle + 1
            else:
                high = middle
        return low if low < len(self) and self._raw(low) == wanted else None
