"""The verifier under fuzz: whatever the bytes are, a verdict or an error of the package's own comes out.

`make test` runs a short share of it; `pytest -m slow tests/leaderboard/test_fuzz.py` goes on for five minutes.
"""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from submission_builder import Members, evaluation, packed, submission, unpacked

from taspo_bench.errors import TaspoBenchError
from taspo_bench.leaderboard.verdict import as_json, page
from taspo_bench.leaderboard.verify import verify

ENVS = ("alfworld", "searchqa", "webshop")
SLOW_SECONDS = 300
LONGEST = 15.0
"""Seconds that one small archive may take, whatever stands in it (on a busy machine)."""


@pytest.fixture(scope="module")
def bases(tmp_path_factory: pytest.TempPathFactory) -> list[Members]:
    folder = tmp_path_factory.mktemp("fuzz")
    found = []
    for env in ENVS:
        played = evaluation(folder / env, env, 0.7, tasks=3)
        found.append(unpacked(submission(folder / f"{env}.tar.gz", [played])))
    return found


WORDS = [
    "",
    " ",
    "look",
    "search[",
    "search[a]",
    "search[]",
    "answer[]",
    "click[buy now]",
    "click[back to search]",
    "]",
    "[",
    "go to cabinet 1",
    "take apple 1 from",
    "put a in/on b",
    "move a to b",
    "\\",
    "(" * 200,
    "a" * 4096,
    "\x00",
    "\x1b[2J",
    "\ufeff",
    "\u202e",
    "\U0001f600",
    "é",
    "{}",
    "{0}",
    "%s",
    "../..",
    "<script>",
    "-1",
    "0",
    "1e400",
    "NaN",
    "null",
    "\n",
    "search[" + "the " * 800 + "]",
    "search[" + "(" * 900 + "]",
    "answer[" + "x" * 4000 + "]",
    "put " + "in/on " * 600,
]
VALUES: list[Any] = [
    None,
    True,
    False,
    0,
    1,
    -1,
    2**31,
    2**53,
    2**64,
    10**40,
    0.0,
    -0.0,
    0.5,
    1.5,
    1e308,
    [],
    {},
    [[]],
    {"a": {}},
    "0" * 12,
]


def value(random: Random) -> Any:
    if random.random() < 0.3:
        return "".join(chr(random.randrange(1, 0xD7FF)) for _ in range(random.randrange(8)))
    return random.choice([*VALUES, *WORDS])


def change_json(random: Random, members: Members) -> Members:
    """Change, remove, double or rename one thing anywhere in the manifest or in an episode."""
    name = random.choice(list(members))
    lines = members[name].decode().splitlines() if name.endswith("l") else [members[name].decode()]
    number = random.randrange(len(lines))
    record = json.loads(lines[number])
    place: Any = record
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            break
        key = random.choice(keys)
        if isinstance(place[key], dict | list) and place[key] and random.random() < 0.75:
            place = place[key]
            continue
        _edit(random, place, key)
        break
    lines[number] = json.dumps(record)
    return {**members, name: ("\n".join(lines) + "\n").encode()}


def _edit(random: Random, place: Any, key: Any) -> None:
    kind = random.randrange(5)
    if kind == 0:
        del place[key]
    elif kind == 1 and isinstance(place, list):
        place.insert(key, place[key])
    elif kind == 1:
        place[str(value(random))] = place[key]
    elif kind == 2 and isinstance(place[key], int | float) and not isinstance(place[key], bool):
        place[key] += random.choice([-1, 1, 0.5])
    else:
        place[key] = value(random)


def other_actions(random: Random, members: Members) -> Members:
    """Episodes of any length with hostile actions, consistent enough to be replayed."""
    name = next(name for name in members if name.startswith("episodes"))
    records = [json.loads(line) for line in members[name].splitlines()]
    for record in records:
        own = record["actions"] or [""]
        record["actions"] = [random.choice([*WORDS, random.choice(own)]) for _ in range(random.randrange(12))]
        record["trace"] = ["0" * 12] * len(record["actions"])
        record["steps"] = len(record["actions"])
    return {**members, name: "".join(json.dumps(record) + "\n" for record in records).encode()}


def change_bytes(random: Random, data: bytes) -> bytes:
    """Flip, cut, double or put in some bytes."""
    for _ in range(random.randrange(1, 4)):
        start = random.randrange(len(data) + 1)
        end = min(len(data), start + random.choice([0, 1, 1, 2, 8, 100, 512]))
        piece = random.choice(
            [b"", random.randbytes(end - start), data[start:end] * 2, b"\xff\xff", b"7", b"\n", b'"']
        )
        data = data[:start] + piece + data[end:]
    return data


def change_member(random: Random, members: Members) -> Members:
    name = random.choice(list(members))
    return {**members, name: change_bytes(random, members[name])}


CHANGES: list[Callable[[Random, Members], Members]] = [change_json, other_actions, change_member]


def attack(random: Random, bases: list[Members], folder: Path) -> None:
    """Make one archive and verify it."""
    archive = folder / "fuzz.tar.gz"
    members = random.choice(bases)
    for _ in range(random.randrange(3)):
        if not all(members.values()):
            break
        try:
            members = random.choice(CHANGES)(random, members)
        except (ValueError, KeyError, TypeError, AttributeError):  # changes before left no records to change
            break
    packed(archive, members)
    layer = random.randrange(6)
    if layer == 0:
        archive.write_bytes(change_bytes(random, archive.read_bytes()))
    elif layer == 1:
        archive.write_bytes(gzip.compress(change_bytes(random, gzip.decompress(archive.read_bytes())), 1))
    begun = time.perf_counter()
    try:
        verdict = verify(archive)
    except TaspoBenchError:
        return
    assert time.perf_counter() - begun < LONGEST
    assert not [problem for problem in verdict.problems if "the replay broke" in problem]
    assert json.loads(json.dumps(as_json(verdict), allow_nan=False))["verdict"] == verdict.verdict
    assert page(verdict).isascii()


@given(st.integers(0, 2**64))
@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_give_a_verdict_or_an_error_of_our_own(bases: list[Members], tmp_path: Path, seed: int) -> None:
    attack(Random(seed), bases, tmp_path)


@given(st.binary(max_size=2000))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_tar_and_any_gzip_are_refused_in_words(tmp_path: Path, data: bytes) -> None:
    archive = tmp_path / "fuzz.tar.gz"
    for content in (data, gzip.compress(data, 1)):
        archive.write_bytes(content)
        assert verify(archive).exit_code == 2


@pytest.mark.slow
def test_five_minutes_of_fuzzing_find_no_foreign_exception(bases: list[Members], tmp_path: Path) -> None:
    end = time.monotonic() + SLOW_SECONDS
    seed = 0
    while time.monotonic() < end:
        try:
            attack(Random(seed), bases, tmp_path)
        except Exception as error:
            raise AssertionError(f"seed {seed}: {type(error).__name__}: {error}") from error
        seed += 1
    print(f"{seed} archives in {SLOW_SECONDS} s")
    assert seed > 100
