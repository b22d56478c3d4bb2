"""Files of the field's formats are read, and broken ones are refused with file, line and reason."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from taspo_bench.errors import DataError
from taspo_envs.searchqa.questions import Passage
from taspo_envs.searchqa.readers import read_passages, read_questions

GOLDEN = {"id": "test_1", "question": "Who told it?", "golden_answers": ["Ann", "Ann Lee"]}
PARAGRAPHS = [("Noise", "Nothing here."), ("The Book", "It is by Ann."), ("Ann", "Ann was born in Rome.")]
HOTPOT = {
    "_id": "a1",
    "question": "Where was the author of The Book born?",
    "answer": "Rome",
    "supporting_facts": [["Ann", 0], ["The Book", 0]],
    "context": [[title, [text]] for title, text in PARAGRAPHS],
}
MUSIQUE = {
    "id": "2hop__1_2",
    "question": HOTPOT["question"],
    "answer": "Rome",
    "answer_aliases": ["Roma"],
    "paragraphs": [
        {"idx": n, "title": title, "paragraph_text": text, "is_supporting": n > 0}
        for n, (title, text) in enumerate(PARAGRAPHS)
    ],
}
IRCOT = {
    "question_id": "q1",
    "question_text": HOTPOT["question"],
    "answers_objects": [{"number": "", "date": {"day": "", "month": "", "year": ""}, "spans": ["Rome"]}],
    "contexts": MUSIQUE["paragraphs"],
}


def lines(path: Path, *records: Any) -> Path:
    path.write_text("".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in records), encoding="utf-8")
    return path


def test_questions_with_golden_answers(tmp_path: Path) -> None:
    [(question, paragraphs)] = read_questions(lines(tmp_path / "nq.jsonl", GOLDEN), "nq")
    assert (question.id, question.family, question.text) == ("nq/test_1", "nq", "Who told it?")
    assert question.answers == ("Ann", "Ann Lee") and paragraphs == []
    assert [(hop.query, hop.passage_id) for hop in question.hops] == [("Who told it?", None)]


def test_questions_without_ids_are_named_by_their_text(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "NQ-open.jsonl", {"question": "who a", "answer": ["x"]}, {"question": "who b", "answer": "y"}
    )
    first, second = (question for question, _ in read_questions(path, "nq"))
    assert first.id != second.id and first.id.startswith("nq/") and second.answers == ("y",)


@pytest.mark.parametrize("record, answers", [(HOTPOT, ("Rome",)), (MUSIQUE, ("Rome", "Roma")), (IRCOT, ("Rome",))])
@pytest.mark.parametrize("as_list", [True, False])
def test_questions_with_paragraphs(tmp_path: Path, record: Any, answers: tuple[str, ...], as_list: bool) -> None:
    path = tmp_path / "set.json"
    path.write_text(json.dumps([record], indent=2) if as_list else json.dumps(record))
    [(question, paragraphs)] = read_questions(path, "hotpotqa")
    assert paragraphs == [Passage.of(title, text) for title, text in PARAGRAPHS]
    assert question.answers == answers
    # the paragraph that the question names is searched first
    assert [hop.query for hop in question.hops] == ["The Book", "Ann"]
    assert [hop.passage_id for hop in question.hops] == [paragraphs[1].id, paragraphs[2].id]


def test_both_forms_of_passages_and_packed_files(tmp_path: Path) -> None:
    path = tmp_path / "wiki.jsonl.gz"
    records = [{"id": 1, "contents": '"Ann"\nAnn was born.'}, {"id": 2, "title": "Ann", "text": " Ann  was born. "}]
    with gzip.open(path, "wt") as file:
        file.write("\n".join(map(json.dumps, records)))
    assert list(read_passages(path)) == [Passage.of("Ann", "Ann was born.")] * 2


def test_a_passage_shows_its_title_only_where_the_text_does_not() -> None:
    assert Passage.of("Ann", "Ann was born.").shown() == "Ann was born."
    assert Passage.of("Ann", "She was born.").shown() == "Ann: She was born."


@pytest.mark.parametrize(
    "records, line, reason",
    [
        ([], 1, "empty"),
        ([GOLDEN, '{"id": "test_2", "question": "Wh'], 2, "cut off"),
        ([GOLDEN, "", "[1, 2]"], 3, "expected an object, found list"),
        ([GOLDEN, GOLDEN], 2, "'test_1' stands already in line 1"),
        ([GOLDEN, {**GOLDEN, "id": 2.5}], 2, "the id is 2.5"),
        ([{**GOLDEN, "question": 7}], 1, "'question' must be a text"),
        ([{**GOLDEN, "question": " "}], 1, "'question' must be a text"),
        ([{**GOLDEN, "golden_answers": []}], 1, "'golden_answers' must be an answer"),
        ([{**GOLDEN, "golden_answers": ["x", 3]}], 1, "'golden_answers' must be an answer"),
        ([{"id": 1, "question": "who?"}], 1, "'answer' must be an answer"),
        ([HOTPOT, {**HOTPOT, "_id": "a2", "context": "text"}], 2, "'context' must be a list"),
        ([{**MUSIQUE, "paragraphs": {}}], 1, "'paragraphs' must be a list"),
        ([{**MUSIQUE, "paragraphs": ["x"]}], 1, "expected an object inside"),
        ([{**IRCOT, "answers_objects": [{"spans": "Rome"}]}], 1, "'spans' must be a list"),
        ([{**IRCOT, "answers_objects": [{}]}], 1, "'spans' must be a list"),
    ],
)
def test_broken_questions_are_refused_with_their_line(
    tmp_path: Path, records: list[Any], line: int, reason: str
) -> None:
    path = lines(tmp_path / "nq.jsonl", *records)
    with pytest.raises(DataError) as caught:
        list(read_questions(path, "nq"))
    assert f"{path}, line {line}: " in str(caught.value) and reason in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text, line, reason",
    [
        ('[{"title": "a", "text": "b"},\n {"title": "c", "te', 2, "cut off"),
        ('[{"title": "a", "text": "b"}\n', 1, "cut off"),
        ("[\n\n3]", 3, "expected an object, found int"),
        ('[{"title": "a", "text": "b"},\n{"title": "c"}]', 2, "neither a question"),
        ('[{"title": "a", "text": 5}]', 1, "'text' must be a text"),
        ('[{"title": null, "text": "b"}]', 1, "'title' must be a text"),
        ('{"id": 1, "contents": "a"}\n{"id": 1, "contents": "b"}', 2, "1 stands already in line 1"),
        ("[]", 1, "empty"),
    ],
)
def test_broken_passages_are_refused_with_their_line(tmp_path: Path, text: str, line: int, reason: str) -> None:
    path = tmp_path / "corpus.json"
    path.write_text(text)
    with pytest.raises(DataError) as caught:
        list(read_passages(path))
    assert f"{path}, line {line}: " in str(caught.value) and reason in str(caught.value)


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    (tmp_path / "latin.jsonl").write_bytes(b'{"title": "\xe9"}')
    (tmp_path / "cut.jsonl.gz").write_bytes(gzip.compress(b'{"title": "a", "text": "b"}\n' * 500)[:40])
    (tmp_path / "plain.jsonl.gz").write_bytes(b"not packed")
    for name, reason in [("missing.jsonl", "no such file"), ("latin.jsonl", "not UTF-8"),
                         ("cut.jsonl.gz", "cannot be read"), ("plain.jsonl.gz", "cannot be read")]:  # fmt: skip
        with pytest.raises(DataError, match=reason):
            list(read_passages(tmp_path / name))
