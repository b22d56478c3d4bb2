"""Folders and imported files become whole stores with disjoint splits, or nothing."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from faulty_server import FaultyServer

from taspo_bench.api import Split
from taspo_bench.errors import DataError
from taspo_envs.searchqa.env import SearchQAEnv
from taspo_envs.searchqa.store import folder_store, import_files, official_store, prepare

ROOT = Path(__file__).resolve().parents[3]
REAL = Path(os.environ.get("TASPO_DATA", ROOT.parent / "shared" / "data"))
needs_real_data = pytest.mark.skipif(not (REAL / "searchqa").is_dir(), reason=f"no data in {REAL / 'searchqa'}")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TASPO_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "searchqa"


def write(path: Path, records: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(map(json.dumps, records)))
    return path


def golden(count: int, mark: str = "") -> list[dict[str, Any]]:
    return [
        {"id": f"{mark}{n}", "question": f"What is {mark} {n}?", "golden_answers": [f"answer {n}"]}
        for n in range(count)
    ]


def corpus(count: int) -> list[dict[str, Any]]:
    return [{"id": n, "contents": f"Title {n}\nThis is answer {n}."} for n in range(count)]


def test_one_file_of_a_seen_set_is_split_by_a_fixed_hash(tmp_path: Path) -> None:
    files = [write(tmp_path / "nq_questions.jsonl", golden(200)), write(tmp_path / "wiki.jsonl", corpus(10))]
    store = prepare(files, "test")
    sizes = {name: len(split) for name, split in store.splits.items()}
    assert sizes["train"] + sizes["valid_seen"] == 200 and 140 <= sizes["train"] <= 180
    assert any("split by a hash" in note for note in store.notes)
    grown = prepare([write(tmp_path / "more" / "nq_questions.jsonl", golden(300)), files[1]], "test")
    assert set(store.splits["train"].task_ids) < set(grown.splits["train"].task_ids)


def test_named_parts_are_kept_and_evaluation_questions_leave_training(tmp_path: Path) -> None:
    dev = [*golden(5, "dev"), {"id": "x", "question": "what is train 3", "golden_answers": ["y"]}]
    files = [
        write(tmp_path / "hotpotqa" / "train.jsonl", golden(20, "train")),
        write(tmp_path / "hotpotqa" / "dev.jsonl", dev),
        write(tmp_path / "wiki.jsonl", corpus(10)),
    ]
    store = prepare(files, "test")
    assert len(store.splits["train"]) == 19 and len(store.splits["valid_seen"]) == 6
    assert "hotpotqa/train3" not in store.splits["train"].task_ids


def test_equal_questions_of_several_files_are_kept_once(tmp_path: Path) -> None:
    same = [{"question": record["question"], "answer": record["golden_answers"]} for record in golden(6)]
    namesake = {"id": "other", "question": golden(1)[0]["question"], "golden_answers": ["another one"]}
    files = [
        write(tmp_path / "popqa_a.jsonl", [*golden(6), namesake]),
        write(tmp_path / "popqa_b.jsonl", same),
        write(tmp_path / "wiki.jsonl", corpus(3)),
    ]
    store = prepare(files, "test")
    assert len(store.questions()) == 7
    assert "popqa: 6 questions stand there twice, kept once" in store.notes


def test_one_question_with_other_answers_in_a_second_file_is_kept_once_with_all_of_them(tmp_path: Path) -> None:
    record = {"id": "x", "question": "who wrote x?", "golden_answers": ["Xavier"]}
    files = [
        write(tmp_path / "popqa_a.jsonl", [*golden(3), record]),
        write(tmp_path / "popqa_b.jsonl", [{**record, "golden_answers": ["Bob", "Xavier"]}]),
        write(tmp_path / "popqa_c.jsonl", [{**record, "golden_answers": ["Xavier", "Bob", "Al"]}]),
        write(tmp_path / "wiki.jsonl", corpus(3)),
    ]
    store = prepare(files, "test")
    Split.check_disjoint(store.splits)
    assert len(store.splits["valid_unseen"]) == 4
    assert store.questions()["popqa/x"].answers == ("Xavier", "Bob", "Al")
    assert "popqa: 2 questions stand there again with other answers, which are joined" in store.notes


def test_answers_from_training_are_joined_to_the_question_that_is_kept_for_evaluation(tmp_path: Path) -> None:
    files = [
        write(tmp_path / "nq" / "train.jsonl", golden(3)),
        write(tmp_path / "nq" / "dev.jsonl", [{**golden(1)[0], "golden_answers": ["zero"]}]),
    ]
    store = prepare(files, "test")
    assert store.splits["valid_seen"].task_ids == ("nq/0",) and len(store.splits["train"]) == 2
    assert store.questions()["nq/0"].answers == ("zero", "answer 0")


def test_one_id_for_two_questions_is_refused(tmp_path: Path) -> None:
    files = [
        write(tmp_path / "nq" / "train.jsonl", golden(2)),
        write(tmp_path / "nq" / "dev.jsonl", [{**golden(1)[0], "question": "another one"}]),
    ]
    with pytest.raises(DataError, match="the id 'nq/0' stands for 'another one' and for"):
        prepare(files, "test")


def test_unseen_sets_are_never_trained_on(tmp_path: Path) -> None:
    names = ["triviaqa", "popqa", "2wikimultihopqa", "musique", "bamboogle"]
    files = [write(tmp_path / f"{name}_train.jsonl", golden(4, name)) for name in names]
    store = prepare([*files, write(tmp_path / "wiki.jsonl", corpus(3))], "test")
    assert len(store.splits["train"]) == 0
    families = Counter(question.family for question in store.questions().values())
    assert families == {"triviaqa": 4, "popqa": 4, "2wiki": 4, "musique": 4, "bamboogle": 4}
    assert len(store.splits["valid_unseen"]) == 20


def test_questions_without_passages_are_left_out_unless_nothing_has_any(tmp_path: Path) -> None:
    questions = write(tmp_path / "NQ-open.dev.jsonl", golden(10))
    paragraphs = [{"title": f"T{n}", "paragraph_text": f"answer {n}", "is_supporting": True} for n in range(4)]
    own = [{"id": n, "question": f"q {n}", "answer": f"answer {n}", "paragraphs": paragraphs} for n in range(3)]
    other = write(tmp_path / "musique_corpus.jsonl", corpus(2))
    store = prepare([questions, write(tmp_path / "musique.json", own), other], "test")
    assert {question.family for question in store.questions().values()} == {"musique"}
    assert any("all left out" in note for note in store.notes)
    assert len(prepare([questions], "test").questions()) == 10


def test_equal_passages_are_kept_once(tmp_path: Path) -> None:
    records = [{"title": "A", "text": "One  text."}, {"title": "A", "text": "One text."}, {"title": "B", "text": "x"}]
    assert prepare([write(tmp_path / "corpus.jsonl", records)], "test").passages == 2


def test_questions_that_no_answer_can_score_are_left_out(tmp_path: Path) -> None:
    records = [*golden(3), {"id": "e", "question": "which sign?", "golden_answers": ["---"]}]
    store = prepare([write(tmp_path / "nq.jsonl", records), write(tmp_path / "wiki.jsonl", corpus(3))], "test")
    assert len(store.questions()) == 3
    assert any("1 questions left out" in note for note in store.notes)


def test_a_broken_file_leaves_nothing_behind(tmp_path: Path, cache: Path) -> None:
    good, bad = write(tmp_path / "nq.jsonl", golden(3)), tmp_path / "wiki.jsonl"
    bad.write_text(json.dumps(corpus(1)[0]) + "\n" + '{"id": 1, "cont')
    with pytest.raises(DataError, match=r"wiki\.jsonl, line 2: not a whole JSON object"):
        import_files([good, bad])
    assert list(cache.iterdir()) == []
    with pytest.raises(DataError, match="taspo-bench data import searchqa"):
        official_store()


def test_a_file_that_names_no_set_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="names no data set; rename"):
        import_files([write(tmp_path / "mine" / "questions.jsonl", golden(3))])


def test_imported_files_are_the_official_data_until_the_next_import(tmp_path: Path) -> None:
    told: list[int] = []
    wiki = write(tmp_path / "wiki.jsonl", corpus(5))
    lines = import_files([write(tmp_path / "nq.jsonl", golden(30)), wiki], told.append)
    assert "nq.jsonl: 30 questions of nq, 0 paragraphs of their own" in lines and told == [5]
    env = SearchQAEnv(data="official")
    assert env.data_stamp().source == "official"
    import_files([write(tmp_path / "nq.jsonl", golden(40)), wiki])
    assert len(official_store().questions()) == 40


def test_changed_files_make_a_new_store_and_unchanged_ones_do_not(tmp_path: Path, cache: Path) -> None:
    folder = tmp_path / "data"
    path = write(folder / "searchqa" / "nq.jsonl", golden(5))
    write(folder / "searchqa" / "wiki.jsonl", corpus(5))
    first = folder_store(folder)
    assert folder_store(folder).folder == first.folder
    write(path, golden(6))
    second = folder_store(folder)
    assert second.folder != first.folder and second.stamp.sha256 != first.stamp.sha256


def test_a_store_survives_only_whole(tmp_path: Path) -> None:
    files = [write(tmp_path / "nq.jsonl", golden(5)), write(tmp_path / "wiki.jsonl", corpus(5))]
    store = prepare(files, "test")
    (store.folder / "stamp.json").write_text("{")
    with pytest.raises(DataError, match="damaged"):
        prepare(files, "test")


def test_a_folder_without_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no folder"):
        SearchQAEnv(data=str(tmp_path))
    (tmp_path / "searchqa").mkdir()
    with pytest.raises(DataError, match="no file of questions"):
        SearchQAEnv(data=str(tmp_path))


def test_questions_alone_need_a_server(tmp_path: Path) -> None:
    write(tmp_path / "searchqa" / "nq.jsonl", golden(5))
    with pytest.raises(DataError, match="TASPO_RETRIEVER"):
        SearchQAEnv(data=str(tmp_path))
    with FaultyServer("well") as server:
        env = SearchQAEnv(data=str(tmp_path), retriever=server.url)
        env.reset(seed=0)
        assert "Text of some words" in env.step("search[some words]")[0]


def test_a_corpus_too_large_for_this_machine_is_refused_before_it_is_read(tmp_path: Path) -> None:
    huge = tmp_path / "wiki.jsonl"
    huge.touch()
    os.truncate(huge, 10**12)  # a hole: it takes no space
    with pytest.raises(DataError, match="needs about 8000 GB of memory"):
        import_files([huge])


@pytest.fixture(scope="module")
def real_data(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The real data's folder, with its store in a cache that the tests of this module share."""
    return str(tmp_path_factory.mktemp("real"))


@needs_real_data
def test_every_real_file_is_read_with_its_right_counts(real_data: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASPO_CACHE", real_data)
    notes = {note.partition(":")[0]: note for note in folder_store(REAL).notes}
    questions = {
        "NQ-open.dev.jsonl": (3610, 0),
        "hotpotqa_dev500_ircot.jsonl": (500, 4931),
        "hotpotqa_train100_hipporag.json": (100, 994),
        "musique_train100_hipporag.json": (100, 2000),
        "wiki18_nq_questions.jsonl": (1000, 0),
        "wiki18_triviaqa_questions.jsonl": (1000, 0),
        "wiki18_popqa_questions.jsonl": (1000, 0),
        "wiki18_bamboogle_questions.jsonl": (125, 0),
    }
    for name, (count, own) in questions.items():
        assert f": {count} questions of " in notes[name] and f", {own} paragraphs" in notes[name]
    passages = {"2wikimultihopqa_corpus_hipporag.json": 6119, "wiki18_nq_passages.jsonl": 3282,
                "wiki18_triviaqa_passages.jsonl": 3456, "wiki18_popqa_passages.jsonl": 2142,
                "wiki18_bamboogle_passages.jsonl": 806}  # fmt: skip
    for name, count in passages.items():
        assert notes[name] == f"{name}: {count} passages"


@needs_real_data
def test_real_splits_are_disjoint_and_train_from_seen_sets_alone(
    real_data: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TASPO_CACHE", real_data)
    env = SearchQAEnv(data=str(REAL))
    Split.check_disjoint(env.splits())
    families = {
        name: {env.task(task_id).family for task_id in split.task_ids} for name, split in env.splits().items()
    }
    assert families == {
        "train": {"nq", "hotpotqa"},
        "valid_seen": {"nq", "hotpotqa"},
        "valid_unseen": {"triviaqa", "popqa", "musique", "bamboogle"},
    }
    asked = [{env.dataset.questions[task_id].text for task_id in s.task_ids} for s in env.splits().values()]
    assert not asked[0] & (asked[1] | asked[2])


@needs_real_data
def test_the_reference_wins_the_real_hotpotqa_questions(real_data: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASPO_CACHE", real_data)
    env = SearchQAEnv(split="valid_seen", data=str(REAL))
    won = found = gold = 0
    tasks = [task_id for task_id in env.split.task_ids if task_id.startswith("hotpotqa/")]
    for task_id in tasks:
        env.reset(options={"task_id": task_id})
        for action in env.solve():
            env.step(action)
        won += env.won
        gold += len(env.question.hops)
        found += sum(f"found {hop.passage_id}" in env.state_key for hop in env.question.hops)
    assert len(tasks) == 500 and won >= 0.95 * len(tasks)
    assert found >= 0.9 * gold
