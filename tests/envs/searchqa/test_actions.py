"""A turn is one search, one answer, or invalid with a reason."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taspo_envs.searchqa.actions import parse


@pytest.mark.parametrize(
    "response, kind, text",
    [
        ("search[capital of Zorvia]", "search", "capital of Zorvia"),
        ("  answer[ Melkan ]\n", "answer", "Melkan"),
        ("<search>capital\n of Zorvia</search>", "search", "capital of Zorvia"),
        ("I need more. <search>first</search> or <search>second</search>", "search", "first"),
        ("<answer>one</answer> no, <answer>two</answer>", "answer", "two"),
        ("<answer>one</answer> <search>unfinished", "answer", "one"),
        ("search[a list [1] of things]", "search", "a list [1] of things"),
        ("answer[ \n]", "answer", ""),
        ("<answer>x</answer><answer></answer>", "answer", ""),
    ],
)
def test_what_a_usable_turn_says(response: str, kind: str, text: str) -> None:
    assert (parse(response).kind, parse(response).text) == (kind, text)


@pytest.mark.parametrize(
    "response, reason",
    [
        ("", "no search"),
        ("Melkan", "no search"),
        ("I say answer[Melkan]", "no search"),
        ("Search[capital]", "no search"),
        ("<Answer>Melkan</Answer>", "no search"),
        ("<search>a</search><answer>b</answer>", "not both"),
        ("<search><answer>b</answer></search>", "not both"),
        ("search[a] answer[b]", "not several"),
        ("search[]", "search is empty"),
        ("<search> </search>", "search is empty"),
    ],
)
def test_why_a_turn_is_invalid(response: str, reason: str) -> None:
    assert parse(response).kind == "invalid"
    assert reason in parse(response).text


@given(st.text(alphabet="<>/[]searchnw \n", max_size=60))
def test_any_text_can_be_parsed(response: str) -> None:
    action = parse(response)
    assert action.text.strip() == action.text != ""
