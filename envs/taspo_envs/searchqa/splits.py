"""The loaded data of Search-QA: its questions, its splits, and the passages that can be searched."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from taspo_bench.api import DataStamp, Kind, Split, split_by_name
from taspo_bench.errors import DataError
from taspo_envs.searchqa.bm25 import Bm25Index
from taspo_envs.searchqa.generator import encyclopedia
from taspo_envs.searchqa.questions import Passage, Question
from taspo_envs.searchqa.retrievers import Bm25Retriever
from taspo_envs.searchqa.store import folder_store, official_store, open_store, retriever_files

KINDS: dict[str, Kind] = {"train": "train", "valid_seen": "seen", "valid_unseen": "unseen"}
MANIFEST = "manifest.json"
VERSION = "2"


@dataclass(frozen=True)
class Dataset:
    """Everything that an environment reads; shared by all environments of a process."""

    questions: dict[str, Question]
    splits: dict[str, Split]
    stamp: DataStamp
    open_retriever: Callable[[], Bm25Retriever]
    notes: tuple[str, ...] = ()


def fingerprint(passages: Iterable[Passage], questions: Iterable[Question]) -> str:
    """sha256 over every passage and question, in order."""
    digest = hashlib.sha256()
    for passage in passages:
        digest.update(f"{passage.id}\t{passage.title}\t{passage.text}\n".encode())
    for question in questions:
        hops = [[hop.query, hop.passage_id] for hop in question.hops]
        line = json.dumps([question.id, question.family, question.text, question.answers, hops])
        digest.update(line.encode() + b"\n")
    return digest.hexdigest()


def manifest() -> dict[str, Any]:
    """The frozen splits of the embedded data: version, sha256 of the data, and the ids of each split."""
    text = files("taspo_envs.searchqa").joinpath(MANIFEST).read_text(encoding="utf-8")
    frozen: dict[str, Any] = json.loads(text)
    return frozen


def generated_manifest() -> dict[str, Any]:
    """What the manifest has to say of the data that the generator writes."""
    made = encyclopedia()
    questions = [question for part in made.questions.values() for question in part]
    return {
        "version": VERSION,
        "sha256": fingerprint(made.passages, questions),
        "splits": {
            name: {"kind": KINDS[name], "sha256": split.sha256, "task_ids": list(split.task_ids)}
            for name, part in made.questions.items()
            for split in [Split(name, KINDS[name], tuple(question.id for question in part))]
        },
    }


@cache
def embedded() -> Dataset:
    """The generated encyclopedia, checked against the manifest."""
    frozen = manifest()
    if generated_manifest() != frozen:
        raise DataError(
            "the embedded Search-QA data differ from their manifest: the generator was changed or the installation "
            "is broken; reinstall, or write the manifest again with python -m taspo_envs.searchqa.splits"
        )
    made = encyclopedia()
    questions = {question.id: question for part in made.questions.values() for question in part}
    splits = [Split(name, part["kind"], tuple(part["task_ids"])) for name, part in frozen["splits"].items()]
    return Dataset(
        questions,
        split_by_name(splits),
        DataStamp("embedded", frozen["version"], frozen["sha256"]),
        cache(lambda: in_memory(made.passages)),
    )


def load(data: str) -> Dataset:
    """The data that ``embedded``, ``official`` or a folder stands for, read once in a process."""
    if data == "embedded":
        return embedded()
    store = official_store() if data == "official" else folder_store(Path(data))
    return _stored(store.folder)


@cache
def _stored(folder: Path) -> Dataset:
    store = open_store(folder)
    return Dataset(
        store.questions(),
        store.splits,
        store.stamp,
        cache(lambda: Bm25Retriever(*retriever_files(store))),
        store.notes,
    )


def in_memory(passages: Sequence[Passage]) -> Bm25Retriever:
    """A retriever over passages that are all in memory."""
    return Bm25Retriever(Bm25Index.build(passage.indexed() for passage in passages), passages)


if __name__ == "__main__":
    import os

    target = Path(__file__).with_name(MANIFEST)
    temporary = target.with_suffix(".tmp")
    temporary.write_text(json.dumps(generated_manifest(), indent=0) + "\n", encoding="utf-8")
    os.replace(temporary, target)
