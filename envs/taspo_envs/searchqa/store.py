"""Imported data on disk: read once, checked, indexed, and then memory-mapped by every process.

A store is a folder in the user's cache (``TASPO_CACHE``, else the system's) that appears under its name only when it
is whole. Its name follows from the source files' paths, sizes and times, so changed files make a new store.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from taspo_bench.api import DataStamp, Split, split_by_name
from taspo_bench.cache import cache_folder
from taspo_bench.errors import DataError
from taspo_envs.searchqa import passage_file
from taspo_envs.searchqa.bm25 import Bm25Index
from taspo_envs.searchqa.collection import Collection
from taspo_envs.searchqa.questions import Hop, Passage, Question

FORMAT = "5"
_STAMP, _QUESTIONS, _OFFICIAL = "stamp.json", "questions.jsonl", "official.json"
MEMORY_FACTOR = 8  # bytes of memory for a byte of passages, measured on a million of them
SUFFIXES = (".json", ".jsonl", ".json.gz", ".jsonl.gz")


@dataclass(frozen=True)
class Store:
    """A folder that :func:`prepare` made, and what its stamp says."""

    folder: Path
    stamp: DataStamp
    notes: tuple[str, ...]
    passages: int
    splits: dict[str, Split]

    def questions(self) -> dict[str, Question]:
        """All questions by id."""
        lines = (self.folder / _QUESTIONS).read_text(encoding="utf-8").splitlines()
        return {question.id: question for question in map(_question, lines)}


def stores_folder() -> Path:
    """Where stores are kept."""
    return cache_folder() / "searchqa"


def folder_store(folder: Path, progress: Callable[[int], None] = lambda done: None) -> Store:
    """The store of a data folder, made if its files are new: ``FOLDER/searchqa/*`` laid out like the test data."""
    inside = folder / "searchqa"
    if not inside.is_dir():
        raise DataError(f"data {str(folder)!r}: no folder {inside}; put the files of questions and passages there")
    files = sorted(path for path in inside.rglob("*") if path.is_file() and path.name.endswith(SUFFIXES))
    return prepare(files, source=folder.name, progress=progress)


def official_store() -> Store:
    """The store that the last :func:`import_files` made."""
    pointer = stores_folder() / _OFFICIAL
    try:
        return open_store(stores_folder() / json.loads(pointer.read_text())["store"])
    except FileNotFoundError as error:
        raise DataError(
            "no official Search-QA data here: run taspo-bench data import searchqa FILES, questions and passages"
        ) from error


def import_files(files: Sequence[Path], progress: Callable[[int], None] = lambda done: None) -> list[str]:
    """Check files, index their passages, and make them the ``official`` data of this user.

    Args:
        files: questions and passages (see :mod:`~taspo_envs.searchqa.readers`); names say which data set.
        progress: told the number of passages read, now and then.

    Returns:
        Lines that say what was read and what was made of it.

    Raises:
        DataError: with file, line and reason; nothing is kept then.
    """
    store = prepare([path.resolve() for path in files], source="official", progress=progress)
    pointer = stores_folder() / _OFFICIAL
    temporary = pointer.with_suffix(f".{os.getpid()}.tmp")
    temporary.write_text(json.dumps({"store": store.folder.name}))
    os.replace(temporary, pointer)
    counts = [f"{split.name}: {len(split)} questions" for split in store.splits.values()]
    return [*store.notes, f"{store.passages} different passages", *counts, f"kept in {store.folder}"]


def prepare(files: Sequence[Path], source: str, progress: Callable[[int], None] = lambda done: None) -> Store:
    """The store of these files, made if there is none yet: whole, or not at all."""
    if not files:
        raise DataError(f"{source}: no file of questions or passages ({', '.join(SUFFIXES)}) given")
    final = stores_folder() / f"store-{_key(files, source)}"
    if (final / _STAMP).is_file():
        return open_store(final)
    _check_memory(files)
    final.parent.mkdir(parents=True, exist_ok=True)
    making = Path(tempfile.mkdtemp(prefix="making-", dir=final.parent))
    try:
        _fill(making, files, source, progress)
        with suppress(OSError):  # another process was faster: its store is the same
            os.rename(making, final)
    finally:
        shutil.rmtree(making, ignore_errors=True)
    return open_store(final)


def _key(files: Sequence[Path], source: str) -> str:
    digest = hashlib.sha256(f"{FORMAT}\n{source}\n".encode())
    for path in files:
        try:
            status = path.stat()
        except OSError as error:
            raise DataError(f"{path}: cannot be read ({error.strerror})") from error
        digest.update(f"{path.resolve()}\t{status.st_size}\t{status.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:16]


def _check_memory(files: Sequence[Path]) -> None:
    """Say before the work what it would need, where this machine cannot do it."""
    needed = MEMORY_FACTOR * sum(path.stat().st_size * (4 if path.suffix == ".gz" else 1) for path in files)
    present = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if needed > present:
        raise DataError(
            f"indexing these files needs about {needed / 1e9:.0f} GB of memory, here are {present / 1e9:.0f} GB: "
            "import fewer passages, or questions alone and name a retrieval server in TASPO_RETRIEVER"
        )


def _fill(folder: Path, files: Sequence[Path], source: str, progress: Callable[[int], None]) -> None:
    collection = Collection(list(files))
    digest = hashlib.sha256()
    counted = 0

    def texts() -> Iterator[str]:
        nonlocal counted
        for passage in passage_file.write(folder, collection.passages()):
            counted += 1
            digest.update(f"{passage.title}\t{passage.text}\n".encode())
            yield passage.indexed()

    index = Bm25Index.build(texts(), progress)
    if counted:
        index.save(folder)
    questions, splits = collection.splits()
    Split.check_disjoint(splits)
    lines = [json.dumps(asdict(question), ensure_ascii=False) for question in questions.values()]
    digest.update("\n".join(lines).encode())
    (folder / _QUESTIONS).write_text("\n".join(lines) + "\n", encoding="utf-8")
    stamp = {
        "stamp": asdict(DataStamp(source, FORMAT, digest.hexdigest())),
        "notes": collection.notes,
        "passages": counted,
        "splits": [{"name": s.name, "kind": s.kind, "task_ids": s.task_ids} for s in splits.values()],
    }
    (folder / _STAMP).write_text(json.dumps(stamp, ensure_ascii=False), encoding="utf-8")


def open_store(folder: Path) -> Store:
    """Open a store; :class:`DataError` if it is damaged."""
    try:
        made: dict[str, Any] = json.loads((folder / _STAMP).read_text(encoding="utf-8"))
        splits = [Split(part["name"], part["kind"], tuple(part["task_ids"])) for part in made["splits"]]
        return Store(
            folder, DataStamp(**made["stamp"]), tuple(made["notes"]), made["passages"], split_by_name(splits)
        )
    except FileNotFoundError:
        raise
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"{folder}: damaged ({error!r}); delete the folder and import the files again") from error


def retriever_files(store: Store) -> tuple[Bm25Index, Sequence[Passage]]:
    """The store's index and passages, memory-mapped."""
    if not store.passages:
        raise DataError(
            f"data {store.stamp.source!r} hold questions but no passages: import a corpus too, or name a server in "
            "TASPO_RETRIEVER"
        )
    return Bm25Index.open(store.folder), passage_file.PassageFile(store.folder)


def _question(line: str) -> Question:
    record = json.loads(line)
    hops = tuple(Hop(hop["query"], hop["passage_id"]) for hop in record["hops"])
    return Question(record["id"], record["family"], record["text"], tuple(record["answers"]), hops)
