"""Scores equal the field's scorer, apart from the rule that an empty prediction never scores."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taspo_envs.searchqa.scoring import contains_gold, exact_match, extract_answer, normalise, token_f1

ROOT = Path(__file__).resolve().parents[3]
RECORDED = Path(os.environ.get("TASPO_GOLDEN", ROOT.parent / "shared" / "golden")) / "searchqa"
COPIES = ROOT / "tests" / "golden_copies" / "searchqa"
FILES = sorted(RECORDED.glob("*.json.gz")) + sorted(COPIES.glob("*.json.gz"))


@pytest.fixture(params=FILES, ids=lambda path: f"{path.parent.parent.name}-{path.name}")
def recorded(request: pytest.FixtureRequest) -> dict[str, Any]:
    with gzip.open(request.param, "rt", encoding="utf-8") as file:
        values: dict[str, Any] = json.load(file)
    return values


def test_normal_forms_are_the_recorded_ones(recorded: dict[str, Any]) -> None:
    for pair in recorded["pairs"]:
        assert normalise(pair["prediction"]) == pair["prediction_normalised"]
        assert [normalise(gold) for gold in pair["golds"]] == pair["golds_normalised"]


def test_exact_match_containment_and_f1_are_the_recorded_ones(recorded: dict[str, Any]) -> None:
    for pair in recorded["pairs"]:
        scores = float(pair["prediction_normalised"] != "")  # the one deviation
        prediction, golds = pair["prediction"], pair["golds"]
        assert exact_match(prediction, golds) == pair["em"] * scores, pair
        assert contains_gold(prediction, golds) == pair["subem"] * scores, pair
        best = pair["f1"] or 0.0  # recorded as null where there is no gold answer
        assert token_f1(prediction, golds) == pytest.approx(best * scores), pair
        for gold, f1 in zip(golds, pair["f1_each"], strict=True):
            assert token_f1(prediction, [gold]) == pytest.approx(f1 * scores), pair


def test_a_gold_answer_may_be_one_string(recorded: dict[str, Any]) -> None:
    for pair in recorded["gold_given_as_string"]:
        scores = normalise(pair["prediction"]) != ""
        assert exact_match(pair["prediction"], pair["golds_as_string"]) == (pair["em"] and scores)
        assert contains_gold(pair["prediction"], pair["golds_as_string"]) == (pair["subem"] and scores)


def test_the_last_complete_answer_is_extracted(recorded: dict[str, Any]) -> None:
    for case in recorded["extraction"]:
        answer = extract_answer(case["completion"])
        assert answer == case["extracted"], case
        scores = normalise(answer or "") != ""  # our one deviation: an empty prediction never scores
        assert exact_match(answer or "", case["golds"]) == (case["score_em"] and scores), case
        assert contains_gold(answer or "", case["golds"]) == (case["score_subem"] and scores), case


@pytest.mark.parametrize(
    "one, other",
    [("the", "A"), ("The the", ""), ("1,000", "1000"), ("3.5", "35"), ("5", "-5"), ("U.S.", "US"),
     ("twenty-one", "twentyone")],
)  # fmt: skip
def test_forms_that_the_field_takes_for_equal(one: str, other: str) -> None:
    assert normalise(one) == normalise(other)


@pytest.mark.parametrize("one, other", [("Beyoncé", "Beyonce"), ("New-York", "New York")])
def test_forms_that_the_field_tells_apart(one: str, other: str) -> None:
    assert not exact_match(one, [other])


@given(st.text(), st.lists(st.text(), max_size=3))
def test_exact_match_implies_the_other_scores(prediction: str, golds: list[str]) -> None:
    f1 = token_f1(prediction, golds)
    assert 0 <= f1 <= 1
    if exact_match(prediction, golds):
        assert contains_gold(prediction, golds) and f1 == 1


@given(st.sampled_from(["", " ", "the", "A an", "...", "-"]), st.lists(st.text(), max_size=3))
def test_an_empty_prediction_never_scores(prediction: str, golds: list[str]) -> None:
    assert not exact_match(prediction, [prediction, *golds])
    assert not contains_gold(prediction, [prediction, *golds])
    assert token_f1(prediction, [prediction, *golds]) == 0
