"""Real questions made into splits: which data set a file belongs to, which part of it is training.

NQ and HotpotQA are seen sets, and training comes from them alone; the other five are unseen. A seen set whose files
say which part they are (train in the name) keeps those parts; otherwise a fixed hash of the question's text sends
four of five questions to training.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from taspo_bench.api import Kind, Split, split_by_name
from taspo_bench.errors import DataError
from taspo_envs.searchqa.questions import Passage, Question
from taspo_envs.searchqa.readers import is_questions, read_passages, read_questions, records
from taspo_envs.searchqa.scoring import exact_match, normalise

SETS: dict[str, Kind] = {
    "nq": "seen",
    "hotpotqa": "seen",
    "triviaqa": "unseen",
    "popqa": "unseen",
    "2wiki": "unseen",
    "musique": "unseen",
    "bamboogle": "unseen",
}
_MARKS = {
    "hotpotqa": "hotpot",
    "triviaqa": "trivia",
    "popqa": "popqa",
    "2wiki": "2wiki",
    "musique": "musique",
    "bamboogle": "bamboogle",
    "nq": r"(?<![a-z])nq(?![a-z])|natural.?questions",
}
TRAIN_SHARE = 0.8


def set_of(path: Path) -> str | None:
    """The data set that a file's name, or its folder's, stands for; None if it names none."""
    for name in (path.name, path.parent.name):
        for family, mark in _MARKS.items():
            if re.search(mark, name.lower()):
                return family
    return None


@dataclass
class Collection:
    """Questions of several files, and notes on what was left out or decided on the way."""

    files: list[Path]
    parts: dict[str, list[tuple[str, Question]]] = field(default_factory=dict)  # set -> (train | rest, question)
    notes: list[str] = field(default_factory=list)

    def passages(self) -> Iterator[Passage]:
        """Read every file: passages are given out, each content once; questions are kept."""
        kinds = {path: is_questions(next(records(path))[1]) for path in self.files}
        corpora = [path for path, questions in kinds.items() if not questions]
        seen: set[str] = set()
        for path in self.files:
            total = 0
            for passage in self._questions(path, corpora) if kinds[path] else read_passages(path):
                total += 1
                if passage.id not in seen:
                    seen.add(passage.id)
                    yield passage
            if not kinds[path]:
                self.notes.append(f"{path.name}: {total} passages")

    def _questions(self, path: Path, corpora: list[Path]) -> Iterator[Passage]:
        family = set_of(path)
        if family is None:
            raise DataError(f"{path}: its name names no data set; rename the file or its folder to hold one of: "
                            f"{', '.join(SETS)}")  # fmt: skip
        part = "train" if "train" in path.name.lower() else "rest"
        read: list[tuple[str, Question]] = []
        own = hopeless = 0
        for question, paragraphs in read_questions(path, family):
            if any(exact_match(answer, [answer]) for answer in question.answers):
                read.append((part, question))
            else:
                hopeless += 1
            own += len(paragraphs)
            yield from paragraphs
        note = f"{path.name}: {len(read) + hopeless} questions of {family}, {own} paragraphs of their own"
        if hopeless:
            note += f"; {hopeless} questions left out, their answers are empty when normalised"
        if corpora and not own and not any(_serves(corpus, path) for corpus in corpora):
            note += "; all left out, no file here brings passages for them"
            read = []
        self.notes.append(note)
        if read:
            self.parts.setdefault(family, []).extend(read)

    def splits(self) -> tuple[dict[str, Question], dict[str, Split]]:
        """The questions by id, and the three splits; each split's order is that of a hash of its ids.

        A question that would stand in training and in evaluation is kept for evaluation alone.
        """
        chosen: dict[str, list[Question]] = {"train": [], "valid_seen": [], "valid_unseen": []}
        for family, questions in self.parts.items():
            seen = SETS[family] == "seen"
            by_hash = seen and len({part for part, _ in questions}) == 1
            for part, question in self._distinct(questions):
                training = seen and (_hash(question.text) < TRAIN_SHARE if by_hash else part == "train")
                chosen["train" if training else f"valid_{SETS[family]}"].append(question)
            if by_hash:
                count = sum(question.family == family for question in chosen["train"])
                self.notes.append(f"{family}: split by a hash of the question, {count} for training")
        asked = {normalise(q.text) for name in ("valid_seen", "valid_unseen") for q in chosen[name]}
        kept = [question for question in chosen["train"] if normalise(question.text) not in asked]
        if both := len(chosen["train"]) - len(kept):
            self.notes.append(f"{both} training questions left out, evaluation asks them too")
        chosen["train"] = kept
        named = {question.id: question for part in chosen.values() for question in part}
        kinds: dict[str, Kind] = {"train": "train", "valid_seen": "seen", "valid_unseen": "unseen"}
        splits = [Split(name, kinds[name], tuple(sorted((q.id for q in chosen[name]), key=_hash))) for name in kinds]
        return named, split_by_name(splits)

    def _distinct(self, questions: list[tuple[str, Question]]) -> Iterator[tuple[str, Question]]:
        """The questions of a set, each once; two that share an id and not their text are an error."""
        merged, twice = self._merged(questions)
        known: set[tuple[str, frozenset[str]]] = set()
        for part, question in merged:
            key = (normalise(question.text), frozenset(map(normalise, question.answers)))
            twice += key in known
            if key not in known:
                known.add(key)
                yield part, question
        if twice:
            self.notes.append(f"{questions[0][1].family}: {twice} questions stand there twice, kept once")

    def _merged(self, questions: list[tuple[str, Question]]) -> tuple[list[tuple[str, Question]], int]:
        """Each id once with the answers of all its records, and how many records said nothing new."""
        by_id: dict[str, tuple[str, Question]] = {}
        twice = joined = 0
        # Parts for evaluation come first: a question that stands in training too stays with them.
        for part, question in sorted(questions, key=lambda pair: pair[0] == "train"):
            kept, first = by_id.setdefault(question.id, (part, question))
            if first is question:
                continue
            if first.text != question.text:
                raise DataError(
                    f"the id {question.id!r} stands for {first.text!r} and for {question.text!r}: rename one"
                )
            answers = tuple(dict.fromkeys((*first.answers, *question.answers)))
            twice += answers == first.answers
            joined += answers != first.answers
            by_id[question.id] = kept, replace(first, answers=answers)
        if joined:
            self.notes.append(
                f"{questions[0][1].family}: {joined} questions stand there again with other answers, which are joined"
            )
        return list(by_id.values()), twice


def _serves(corpus: Path, questions: Path) -> bool:
    """Whether a corpus is there for a file of questions: it names no data set, or its name differs in one word."""
    return set_of(corpus) is None or corpus.name.replace("passages", "questions") == questions.name


def _hash(text: str) -> float:
    """A fixed number in [0, 1) for a text."""
    return int(hashlib.sha256(text.encode()).hexdigest()[:12], 16) / 16**12
