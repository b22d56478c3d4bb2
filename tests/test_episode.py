"""Stored episodes: what is read back is what was written, whatever the text."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taspo_bench.episode import SCHEMA, Episode, Turn, read_episodes, write_episodes
from taspo_bench.files import write_json


def said(text: str) -> Episode:
    return Episode("corridor", "key-1", "keys", [Turn("You see a door.", text, "look")], final_observation=text)


@pytest.mark.parametrize("name", ["episodes.jsonl", "episodes.jsonl.gz"])
@pytest.mark.parametrize("text", ["a \ud83d b", "\udc00", "\\\ud83d", "\\ud83d", "\U0001f600 \ude00"])
def test_half_a_surrogate_pair_is_stored_and_read_back(tmp_path: Path, name: str, text: str) -> None:
    write_episodes(tmp_path / name, [said(text)])
    assert list(read_episodes(tmp_path / name)) == [said(text)]


@given(st.text())
def test_text_that_utf_8_has_is_stored_as_it_is(text: str) -> None:
    episode = said(text)
    plain = json.dumps({"schema": SCHEMA, **asdict(episode)}, ensure_ascii=False, separators=(",", ":"))
    assert episode.to_json() == plain
    assert Episode.from_json(plain) == episode


def test_json_files_take_half_a_surrogate_pair_too(tmp_path: Path) -> None:
    write_json(tmp_path / "eval.json", {"error": "\ud83d"})
    assert json.loads((tmp_path / "eval.json").read_text()) == {"error": "\ud83d"}
