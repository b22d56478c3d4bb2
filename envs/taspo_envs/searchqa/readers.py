"""Files of questions and of passages, in the formats of the field, one record at a time.

Questions: JSON Lines or a JSON list of objects with ``question`` and ``golden_answers`` (FlashRAG, Search-R1) or
``answer`` (NQ-open, HotpotQA, 2Wiki, MuSiQue), or ``question_text`` and ``answers_objects`` (IRCoT). Their own
paragraphs are read where they have some: ``context`` with ``supporting_facts`` (HotpotQA, 2Wiki), ``paragraphs``
(MuSiQue), ``contexts`` (IRCoT). Passages: objects with ``contents`` (a title line, then the text), or ``title`` and
``text``. Names ending in ``.gz`` are unpacked on the way.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from taspo_bench.errors import DataError
from taspo_envs.searchqa.questions import Hop, Passage, Question

Record = dict[str, Any]
_ID_KEYS = ("id", "_id", "question_id")


def records(path: Path) -> Iterator[tuple[str, Record]]:
    """Objects of a JSON Lines file or of a JSON list, each with its place (``FILE, line N``).

    Raises:
        DataError: the file is missing, empty, cut off, or holds something that is not an object.
    """
    empty = True
    try:
        with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
            first = file.read(1)
            while first.isspace():
                first = file.read(1)
            file.seek(0)
            for place, value in _list_items(path, file.read()) if first == "[" else _lines(path, file):
                if not isinstance(value, dict):
                    raise DataError(f"{place}: expected an object, found {type(value).__name__}")
                empty = False
                yield place, value
    except FileNotFoundError as error:
        raise DataError(f"{path}: there is no such file") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8 text (byte {error.start}); save it as UTF-8") from error
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path}: cannot be read ({error})") from error
    if empty:
        raise DataError(f"{path}, line 1: the file is empty; download it again")


def _lines(path: Path, file: Iterator[str]) -> Iterator[tuple[str, Any]]:
    for number, line in enumerate(file, 1):
        if line.strip():
            place = f"{path}, line {number}"
            try:
                yield place, json.loads(line)
            except ValueError as error:
                raise DataError(f"{place}: not a whole JSON object ({error}); the file may be cut off") from error


def _list_items(path: Path, text: str) -> Iterator[tuple[str, Any]]:
    decoder, position, line = json.JSONDecoder(), text.index("[") + 1, 1
    counted = 0
    while True:
        position = _skip_blanks(text, position)
        line += text.count("\n", counted, position)
        counted = position
        if text[position : position + 1] == "]":
            return
        place = f"{path}, line {line}"
        try:
            value, position = decoder.raw_decode(text, position)
        except ValueError as error:
            raise DataError(f"{place}: not a whole JSON list ({error}); the file may be cut off") from error
        yield place, value
        position = _skip_blanks(text, position)
        if text[position : position + 1] == ",":
            position += 1
        elif text[position : position + 1] != "]":
            raise DataError(f"{place}: the list does not go on after this object; the file may be cut off")


def _skip_blanks(text: str, position: int) -> int:
    while position < len(text) and text[position] in " \t\r\n":
        position += 1
    return position


def is_questions(record: Record) -> bool:
    """Whether a file's first record makes it a file of questions; otherwise it is one of passages."""
    return "question" in record or "question_text" in record


def read_passages(path: Path) -> Iterator[Passage]:
    """The passages of a corpus file. :class:`DataError` names the line of a wrong type or of an id used twice."""
    seen: dict[object, str] = {}
    for place, record in records(path):
        _check_id(seen, record, place)
        if "contents" in record:
            title, _, text = _string(record, "contents", place).partition("\n")
            title = title.strip().strip('"') if text else ""
            text = text or record["contents"]
        elif "text" in record:
            title, text = _string(record, "title", place, empty=True), _string(record, "text", place)
        else:
            raise DataError(f"{place}: neither a question (question) nor a passage (contents, or title and text)")
        yield Passage.of(title, text)


def read_questions(path: Path, family: str) -> Iterator[tuple[Question, list[Passage]]]:
    """The questions of a file, each with its own paragraphs ([] where the format has none).

    A question's id is ``FAMILY/ID``; one that has no id is named by a hash of its text.
    """
    seen: dict[object, str] = {}
    for place, record in records(path):
        given = _check_id(seen, record, place)
        text = " ".join(_string(record, "question" if "question" in record else "question_text", place).split())
        name = hashlib.sha256(text.encode()).hexdigest()[:16] if given is None else str(given)
        paragraphs = _paragraphs(record, place)
        gold = [passage for passage, supporting in paragraphs if supporting]
        # The paragraph that the question names comes first: the others are reached through it.
        gold.sort(key=lambda passage: passage.title.lower() not in text.lower())
        hops = tuple(Hop(passage.title, passage.id) for passage in gold) or (Hop(text, None),)
        question = Question(f"{family}/{name}", family, text, _answers(record, place), hops)
        yield question, [passage for passage, _ in paragraphs]


def _check_id(seen: dict[object, str], record: Record, place: str) -> object:
    given = next((record[key] for key in _ID_KEYS if key in record), None)
    if given is None:
        return None
    if not isinstance(given, (str, int)) or isinstance(given, bool) or given == "":
        raise DataError(f"{place}: the id is {given!r}; it must be a text or a whole number")
    if given in seen:
        raise DataError(f"{place}: the id {given!r} stands already in {seen[given].rpartition(', ')[2]}; remove one")
    seen[given] = place
    return given


def _string(record: Record, key: str, place: str, *, empty: bool = False) -> str:
    value = record.get(key)
    if not isinstance(value, str) or not (empty or value.strip()):
        raise DataError(
            f"{place}: {key!r} must be a text{'' if empty else ' that is not empty'}, found {value!r:.60}"
        )
    return value


def _list(record: Record, key: str, place: str) -> list[Any]:
    value = record.get(key)
    if not isinstance(value, list):
        raise DataError(f"{place}: {key!r} must be a list, found {type(value).__name__}")
    return value


def _answers(record: Record, place: str) -> tuple[str, ...]:
    if "answers_objects" in record:
        key = "answers_objects"
        values = [span for part in _list(record, key, place) for span in _list(_object(part, place), "spans", place)]
    else:
        key = "golden_answers" if "golden_answers" in record else "answer"
        value = record.get(key)
        aliases = _list(record, "answer_aliases", place) if "answer_aliases" in record else []
        values = (value if isinstance(value, list) else [value]) + aliases
    if not values or not all(isinstance(value, str) and value.strip() for value in values):
        raise DataError(f"{place}: {key!r} must be an answer or a list of answers, found {values!r:.60}")
    return tuple(dict.fromkeys(" ".join(value.split()) for value in values))


def _object(value: Any, place: str) -> Record:
    if not isinstance(value, dict):
        raise DataError(f"{place}: expected an object inside, found {type(value).__name__}")
    return value


def _paragraphs(record: Record, place: str) -> list[tuple[Passage, bool]]:
    """A question's own paragraphs, and whether each supports the answer."""
    key = next((key for key in ("paragraphs", "contexts") if key in record), None)
    if key is not None:
        parts = [_object(part, place) for part in _list(record, key, place)]
        return [
            (
                Passage.of(_string(part, "title", place), _string(part, "paragraph_text", place)),
                bool(part.get("is_supporting")),
            )
            for part in parts
        ]
    if "context" not in record:
        return []
    try:
        gold = {str(title) for title, _ in record.get("supporting_facts", [])}
        pairs = [(str(title), " ".join(str(part).strip() for part in parts)) for title, parts in record["context"]]
    except (TypeError, ValueError) as error:
        raise DataError(
            f"{place}: 'context' must be a list of [title, [sentence, ..]] and 'supporting_facts' of [title, number]"
        ) from error
    return [(Passage.of(title, text), title in gold) for title, text in pairs if text]
