"""The embedded encyclopedia: the same everywhere, with unseen entities and unseen patterns."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter

from taspo_envs.searchqa import splits
from taspo_envs.searchqa.bm25 import terms
from taspo_envs.searchqa.generator import encyclopedia
from taspo_envs.searchqa.questions import Question
from taspo_envs.searchqa.splits import manifest


def entities(question: Question) -> set[str]:
    return {hop.passage_id.split("/")[0] for hop in question.hops if hop.passage_id} | set(question.answers)


def pattern(question: Question) -> tuple[str, ...]:
    return tuple(hop.passage_id.split("/")[1] for hop in question.hops if hop.passage_id)


def test_the_data_are_the_same_in_a_process_with_another_hash_seed() -> None:
    script = "from taspo_envs.searchqa.splits import generated_manifest; print(generated_manifest()['sha256'])"
    made = subprocess.run(
        [sys.executable, "-c", script], env={"PYTHONHASHSEED": "7"}, capture_output=True, text=True, check=True
    )
    assert made.stdout.strip() == manifest()["sha256"]


def test_the_manifest_is_what_the_generator_makes() -> None:
    assert splits.generated_manifest() == manifest()


def test_sizes_and_shares_of_hops() -> None:
    made = encyclopedia()
    assert 1900 <= len(made.passages) <= 2100
    assert {name: len(part) for name, part in made.questions.items()} == {
        "train": 1200,
        "valid_seen": 100,
        "valid_unseen": 100,
    }
    for part in made.questions.values():
        hops = Counter(question.family for question in part)
        assert [round(hops[f"{n}-hop"] / len(part), 2) for n in (1, 2, 3)] == [0.5, 0.33, 0.17]


def test_questions_and_ids_are_unique_and_no_answer_stands_in_its_question() -> None:
    everything = [question for part in encyclopedia().questions.values() for question in part]
    assert len({question.id for question in everything}) == len(everything)
    assert len({question.text for question in everything}) == len(everything)
    assert not any(question.answers[0] in question.text for question in everything)


def test_no_entity_of_an_unseen_question_stands_in_training() -> None:
    questions = encyclopedia().questions
    trained = set().union(*map(entities, questions["train"]))
    assert not any(entities(question) & trained for question in questions["valid_unseen"])
    assert all(entities(question) <= trained | entities(question) for question in questions["valid_seen"])


def test_no_pattern_of_an_unseen_question_over_several_hops_stands_in_training() -> None:
    questions = encyclopedia().questions
    trained = set(map(pattern, questions["train"]))
    assert not any(pattern(q) in trained for q in questions["valid_unseen"] if len(q.hops) > 1)
    assert all(pattern(q) in trained for q in questions["valid_unseen"] if len(q.hops) == 1)


def test_names_are_distinct_as_search_terms_and_none_stands_in_another() -> None:
    names = {
        name
        for passage in encyclopedia().passages
        for name in (passage.title, passage.text.partition(". ")[0].partition(" is ")[2])
    }
    assert len({tuple(sorted(terms(name))) for name in names}) == len(names)
    assert not any(one != other and one in other for one in names for other in names)


def test_unseen_names_are_new_combinations_of_words_of_training() -> None:
    questions = encyclopedia().questions
    trained = {word for question in questions["train"] for name in entities(question) for word in name.split()}
    unseen = {word for question in questions["valid_unseen"] for name in entities(question) for word in name.split()}
    assert unseen <= trained


def test_passages_are_short_and_state_one_fact() -> None:
    for passage in encyclopedia().passages:
        entity, relation = passage.id.split("/")
        assert passage.text.startswith(f"The {relation} of {entity} is ")
        assert 12 <= len(passage.text.split()) <= 30
