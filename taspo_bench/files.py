"""Files and folders that are written whole or not at all."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from taspo_bench.errors import InputError


def write_text(path: Path, text: str) -> None:
    """Write text whole or not at all."""
    temporary = path.with_name(path.name + ".tmp")
    try:
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def write_json(path: Path, value: Any) -> None:
    """Write JSON whole or not at all; half a surrogate pair, which UTF-8 does not have, as an escape."""
    text = json.dumps(value, indent=1, ensure_ascii=False) + "\n"
    write_text(path, text.encode("utf-8", "backslashreplace").decode("utf-8"))


def refuse_unwritable(folder: Path) -> None:
    """Make an output folder, and find out now, not after the work, whether it takes files."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".writable.tmp"
        probe.write_text("")
        probe.unlink()
    except OSError as error:
        raise InputError(f"--out {folder}: cannot write there ({error.strerror}); name another folder") from error


def refuse_replacing(folder: Path, mark: str) -> None:
    """Refuse an output folder that would be replaced whole, unless it is absent, empty, or has ``mark`` in it."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"--out {folder}: this is a file; name a folder")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / mark).is_file():
        raise InputError(
            f"--out {folder}: holds other files (no {mark}), which would be removed; name a new or an empty folder"
        )


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """A temporary folder to fill, which then takes the place of ``folder``; after an error it is removed."""
    folder = folder.resolve()
    temporary = folder.with_name(folder.name + ".tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    try:
        yield temporary
        shutil.rmtree(folder, ignore_errors=True)
        os.replace(temporary, folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
