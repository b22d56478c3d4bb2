"""Whatever is done to a submission is refused with its place named, or changes nothing."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from judgement import assert_malformed, matches
from submission_builder import Json, Members, edit_episodes, edit_manifest, packed

from taspo_bench.leaderboard.archive import LINE_LIMIT
from taspo_bench.leaderboard.verify import Verdict, verify

FIRST = 0
"""The first episode of the archive."""


def verified(folder: Path, members: Members) -> Verdict:
    return verify(packed(folder / "tampered.tar.gz", members))


def test_the_untouched_submission_is_verified(members: Members, tmp_path: Path) -> None:
    verdict = verified(tmp_path, members)
    assert (verdict.verdict, verdict.problems, verdict.exit_code) == ("verified", [], 0)


def _at(index: int, **values: Any) -> Callable[[list[Json]], None]:
    return lambda records: records[index].update(values)


def _action(index: int, step: int, action: str) -> Callable[[list[Json]], None]:
    return lambda records: records[index]["actions"].__setitem__(step, action)


def _copied(records: list[Json]) -> None:
    records.append(copy.deepcopy(records[FIRST]))


def _dropped(records: list[Json]) -> None:
    del records[FIRST]


def _longer(records: list[Json]) -> None:
    record = records[FIRST]
    record["actions"].append("look")
    record["trace"].append("0" * 12)
    record["steps"] += 1


def _reordered(records: list[Json]) -> None:
    records[FIRST]["actions"].reverse()


def _moved(records: list[Json]) -> None:
    records[FIRST]["split"], records[-1]["split"] = records[-1]["split"], records[FIRST]["split"]


def _lost_instead(records: list[Json]) -> None:
    records[FIRST].update(won=False, score=0.0)


FALSE_EPISODES: dict[str, tuple[Callable[[list[Json]], None], str]] = {
    "action changed": (_action(FIRST, 1, "look"), r"line 1 .*step 2, action 'look': the replay departs here"),
    "useless action changed": (_action(FIRST, 0, "sing a song"), r"step 1, action 'sing a song'"),
    "actions reordered": (_reordered, r"line 1 .*step 1"),
    "action of hostile text": (_action(FIRST, 0, "\x1b[31m[/red]</script>"), r"step 1, action '\\x1b\[31m"),
    "trace changed": (lambda r: r[FIRST]["trace"].__setitem__(2, "0" * 12), r"step 3, action"),
    "won changed to lost": (_lost_instead, r"claimed not won with score 0, the replay gives won with score 1"),
    "score changed": (
        _at(FIRST, score=0.5),
        r"line 1 .*claimed won with score 0.5, the replay gives won with score 1",
    ),
    "seed changed": (_at(FIRST, seed=7), r"line 1 .*seed 7\): manifest.json names no such seed"),
    "task id unknown": (_at(FIRST, task_id="no/such/task"), r"'no/such/task' seed 0\): no such task in this split"),
    "task id with a path": (_at(FIRST, task_id="../../etc/passwd"), r"no such task in this split"),
    "split unknown": (_at(FIRST, split="test"), r"manifest.json names no such split"),
    "tasks moved between splits": (_moved, r"line 1 .*no such task in this split"),
    "episode doubled": (_copied, r"a second episode of the same task and seed"),
    "episode missing": (_dropped, r"claimed.episodes: 8, but 7 are in the archive"),
    "actions behind the end": (_longer, r"steps, but the end of the episode was reached after"),
}


@pytest.mark.parametrize("name", FALSE_EPISODES)
def test_a_false_episode_differs_and_is_named(members: Members, tmp_path: Path, name: str) -> None:
    change, place = FALSE_EPISODES[name]
    verdict = verified(tmp_path, edit_episodes(members, change))
    assert verdict.exit_code == 1
    assert matches(place, verdict.problems), verdict.problems
    assert all(problem.isascii() and problem.isprintable() for problem in verdict.problems)


def _set(path: str, value: Any) -> Callable[[Json], None]:
    def change(manifest: Json) -> None:
        *parents, last = path.split("/")
        place = manifest
        for key in parents:
            place = place[key]
        place[last] = value

    return change


ALF = "benchmarks/alfworld"
SEEN = f"{ALF}/splits/valid_seen"
FALSE_MANIFESTS: dict[str, tuple[Callable[[Json], None], str]] = {
    "data hash": (_set(f"{ALF}/data/sha256", "0" * 64), r"alfworld.data.sha256: '0000.*but the data here has '"),
    "data version": (_set(f"{ALF}/data/version", "99"), r"alfworld.data.version: '99', but"),
    "split hash": (_set(f"{SEEN}/sha256", "0" * 64), r"splits.valid_seen: 102 tasks with sha256 000000000000, but"),
    "split size": (_set(f"{SEEN}/tasks", 8), r"splits.valid_seen: 8 tasks"),
    "training split": (lambda m: _rename_split(m, "train"), r"splits.train: no evaluation split"),
    "unknown split": (lambda m: _rename_split(m, "hard"), r"splits.hard: no evaluation split of this data; known"),
    "longer limit": (_set(f"{ALF}/max_turns", 51), r"alfworld.max_turns: 51; the benchmark allows 50"),
    "shorter limit": (_set(f"{ALF}/max_turns", 2), r"the step limit was reached after 2"),
    "claimed success": (
        _set(f"{SEEN}/claimed/success", 0.99),
        r"valid_seen.claimed.success: 0.990000, but the replays",
    ),
    "claimed score": (_set(f"{SEEN}/claimed/score", 0.99), r"valid_seen.claimed.score: 0.990000"),
    "claimed episodes": (_set(f"{SEEN}/claimed/episodes", 102), r"claimed.episodes: 102, but 8 are"),
    "seeds": (_set("seeds", [1]), r"seed 0\): manifest.json names no such seed"),
    "more seeds": (_set("seeds", [0, 1]), r"claimed.success"),
}


def _rename_split(manifest: Json, name: str) -> None:
    splits = manifest["benchmarks"]["alfworld"]["splits"]
    splits[name] = splits.pop("valid_seen")


@pytest.mark.parametrize("name", FALSE_MANIFESTS)
def test_a_false_manifest_differs_and_is_named(members: Members, tmp_path: Path, name: str) -> None:
    change, place = FALSE_MANIFESTS[name]
    verdict = verified(tmp_path, edit_manifest(members, change))
    assert verdict.exit_code == 1
    assert matches(place, verdict.problems), verdict.problems


def test_a_missing_episode_that_is_not_claimed_counts_0(members: Members, tmp_path: Path) -> None:
    before = verified(tmp_path, members).benchmarks["alfworld"].splits["valid_seen"]

    def claims(manifest: Json) -> None:
        claimed = manifest["benchmarks"]["alfworld"]["splits"]["valid_seen"]["claimed"]
        claimed["episodes"] -= 1
        claimed["success"] -= 1 / 102
        claimed["score"] -= 1 / 102

    verdict = verified(tmp_path, edit_manifest(edit_episodes(members, _dropped), claims))
    after = verdict.benchmarks["alfworld"].splits["valid_seen"]
    assert verdict.verdict == "verified"
    assert after.missing == before.missing + 1
    assert after.success == pytest.approx(before.success - 1 / 102)


MALFORMED_EPISODES: dict[str, tuple[Callable[[list[Json]], None], str]] = {
    "step count": (_at(FIRST, steps=1), r"line 1: steps is 1, but actions has"),
    "extra field": (_at(FIRST, weights="AAAA"), r"line 1, weights: Extra inputs"),
    "score over 1": (_at(FIRST, score=1.5), r"line 1, score: Input should be less than or equal to 1"),
    "huge seed": (_at(FIRST, seed=10**30), r"line 1, seed: Input should be less than"),
    "negative steps": (_at(FIRST, steps=-1), r"line 1, steps: Input should be greater"),
    "won as text": (_at(FIRST, won="true"), r"line 1, won: Input should be a valid boolean"),
    "score as boolean": (_at(FIRST, score=True), r"line 1, score: Input should be a valid number"),
    "seed as float": (_at(FIRST, seed=0.0), r"line 1, seed: Input should be a valid integer"),
    "actions as text": (_at(FIRST, actions="look"), r"line 1, actions: Input should be a valid list"),
    "an action that is none": (_action(FIRST, 0, None), r"line 1, actions.0: Input should be a valid string"),  # type: ignore[arg-type]
    "long action": (_action(FIRST, 1, "x" * 1_000_000), r"line 1, actions.1: String should have at most 4096"),
    "lone surrogate": (_action(FIRST, 0, "\ud800"), r"line 1, actions.0: Input should be a valid string"),
    "no task id": (lambda records: records[FIRST].pop("task_id"), r"line 1, task_id: Field required"),
}


@pytest.mark.parametrize("name", MALFORMED_EPISODES)
def test_a_malformed_episode_is_named(members: Members, tmp_path: Path, name: str) -> None:
    change, place = MALFORMED_EPISODES[name]
    assert_malformed(verified(tmp_path, edit_episodes(members, change)), rf"episodes/alfworld.jsonl, {place}")


MALFORMED_MANIFESTS: dict[str, tuple[Callable[[Json], None], str]] = {
    "extra field": (_set("weights", "AAAA"), r"weights: Extra inputs are not permitted"),
    "extra field of long name": (_set("w" * 1_000_000, 1), r"www\.\.\.: Extra inputs"),
    "other schema": (_set("schema_version", 2), r"schema_version"),
    "long name": (_set("name", "x" * 1_000_000), r"name: String should have at most 120"),
    "control characters": (_set("name", "a\x1b[2Jb"), r"name: has control or formatting characters"),
    "turned writing direction": (_set("name", "a\u202eb"), r"name: has control or formatting characters"),
    "line break": (_set("method", "a\nb"), r"method: has control"),
    "script address": (_set("code", "javascript:alert(1)"), r"code: is no https:// address"),
    "address that ends an attribute": (_set("code", 'https://a.org/"onclick="x'), r"code: is no https:// address"),
    "seeds twice": (_set("seeds", [0, 0]), r"a seed stands in seeds twice"),
    "no seeds": (_set("seeds", []), r"seeds: List should have at least 1 item"),
    "seed as text": (_set("seeds", ["0"]), r"seeds.0: Input should be a valid integer"),
    "no benchmark": (_set("benchmarks", {}), r"benchmarks: Dictionary should have at least 1 item"),
    "unknown benchmark": (
        lambda m: m["benchmarks"].update(chess=m["benchmarks"].pop("alfworld")),
        r"benchmarks.chess: no such benchmark is installed here; known: alfworld",
    ),
    "benchmark that is a path": (
        lambda m: m["benchmarks"].update({"../x": m["benchmarks"].pop("alfworld")}),
        r"benchmarks.../x.*pattern",
    ),
    "huge budget": (_set(f"{ALF}/budget/environment_steps", 10**40), r"environment_steps: Input should be less than"),
}


@pytest.mark.parametrize("name", MALFORMED_MANIFESTS)
def test_a_malformed_manifest_is_named(members: Members, tmp_path: Path, name: str) -> None:
    change, place = MALFORMED_MANIFESTS[name]
    assert_malformed(verified(tmp_path, edit_manifest(members, change)), rf"manifest.json, {place}|{place}")


def _swap(name: str, old: bytes, new: bytes) -> Callable[[Members], Members]:
    def change(members: Members) -> Members:
        assert old in members[name]
        return {**members, name: members[name].replace(old, new, 1)}

    return change


def _prefixed(name: str, prefix: bytes) -> Callable[[Members], Members]:
    return lambda members: {**members, name: prefix + members[name]}


E = "episodes/alfworld.jsonl"
M = "manifest.json"
BROKEN_TEXT: dict[str, tuple[Callable[[Members], Members], str]] = {
    "NaN": (_swap(E, b'"score":1.0', b'"score":NaN'), r"alfworld.jsonl, line 1: not JSON \(NaN is not a number"),
    "infinity": (_swap(E, b'"score":1.0', b'"score":-Infinity'), r"line 1: not JSON \(-Infinity"),
    "overflowing float": (_swap(E, b'"score":1.0', b'"score":1e999'), r"line 1, score: Input should be"),
    "5,000 digits": (_swap(E, b'"seed":0', b'"seed":' + b"9" * 5000), r"line 1: not JSON"),
    "not UTF-8": (_prefixed(E, b"\xff"), r"line 1: byte 0 is not UTF-8"),
    "byte order mark": (_prefixed(E, b"\xef\xbb\xbf"), r"line 1: begins with a byte order mark"),
    "byte order mark in the manifest": (_prefixed(M, b"\xef\xbb\xbf"), r"manifest.json: begins with a byte order"),
    "UTF-16": (lambda m: {**m, M: m[M].decode().encode("utf-16")}, r"manifest.json: .*not UTF-8"),
    "CRLF": (lambda m: {**m, E: m[E].replace(b"\n", b"\r\n")}, r"line 1: has carriage returns"),
    "blank line": (_prefixed(E, b"\n"), r"line 1: not JSON"),
    "no last line end": (lambda m: {**m, E: m[E][:-1]}, r"line 16: cut off"),
    "line cut short": (lambda m: {**m, E: m[E][:-30] + b"\n"}, r"line 16: not JSON"),
    "key twice": (_swap(E, b'{"split"', b'{"won":false,"split"'), r"line 1: not JSON \(the key 'won' stands in one"),
    "nested deeply": (_prefixed(E, b"[" * 100_000), r"line 1: nested too deeply|line 1: not JSON"),
    "manifest of another kind": (lambda m: {**m, M: b"[]"}, r"manifest.json: Input should be a valid dictionary"),
    "empty manifest": (lambda m: {**m, M: b""}, r"manifest.json: not JSON"),
    "line without end": (_prefixed(E, b"x" * (LINE_LIMIT + 70_000)), r"line 1: longer than"),
    "huge manifest": (lambda m: {**m, M: b" " * (LINE_LIMIT + 1)}, r"manifest.json: 4194305 bytes; at most"),
}


@pytest.mark.parametrize("name", BROKEN_TEXT)
def test_broken_text_is_named(members: Members, tmp_path: Path, name: str) -> None:
    change, place = BROKEN_TEXT[name]
    assert_malformed(verified(tmp_path, change(members)), place)
