"""Whatever is done to a submission is refused with its place named, or changes nothing."""

from __future__ import annotations

import copy
import gzip
import io
import json
import os
import pickle
import re
import sys
import tarfile
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from submission_builder import (
    Json,
    Members,
    edit_episodes,
    edit_manifest,
    evaluation,
    packed,
    raw_archive,
    submission,
    unpacked,
)
from typer.testing import CliRunner

from taspo_bench.leaderboard.archive import LINE_LIMIT, UNPACKED_LIMIT
from taspo_bench.leaderboard.commands import submit_app
from taspo_bench.leaderboard.verify import Verdict, verify

TASKS = 8
FIRST = 0
"""The first episode of the archive; all are won."""


@pytest.fixture(scope="module")
def members(tmp_path_factory: pytest.TempPathFactory) -> Members:
    folder = tmp_path_factory.mktemp("tampering")
    played = evaluation(folder / "played", "alfworld", 1.0, tasks=TASKS)
    found = unpacked(submission(folder / "whole.tar.gz", [played]))
    records = [json.loads(line) for line in found["episodes/alfworld.jsonl"].splitlines()]
    assert records[FIRST]["won"] and len(records[FIRST]["actions"]) > 3
    return found


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
    assert _matches(place, verdict.problems), verdict.problems
    assert all(problem.isascii() and problem.isprintable() for problem in verdict.problems)


def _matches(pattern: str, problems: list[str]) -> bool:
    return any(re.search(pattern, problem) for problem in problems)


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
    "split size": (_set(f"{SEEN}/tasks", TASKS), r"splits.valid_seen: 8 tasks"),
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
    assert _matches(place, verdict.problems), verdict.problems


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
    _assert_malformed(verified(tmp_path, edit_episodes(members, change)), rf"episodes/alfworld.jsonl, {place}")


def _assert_malformed(verdict: Verdict, pattern: str) -> None:
    assert verdict.exit_code == 2
    assert verdict.benchmarks == {}
    assert _matches(pattern, [verdict.malformed]), verdict.malformed
    assert len(verdict.malformed) < 400
    assert verdict.malformed.isprintable()


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
    _assert_malformed(verified(tmp_path, edit_manifest(members, change)), rf"manifest.json, {place}|{place}")


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
    _assert_malformed(verified(tmp_path, change(members)), place)


def _entry(name: str, kind: bytes = tarfile.REGTYPE, target: str = "", size: int = 0) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname, entry.size = kind, target, size
    return entry


FOREIGN_MEMBERS: dict[str, tuple[tarfile.TarInfo, bytes, str]] = {
    "path that leads out": (
        _entry("../evil.txt", size=1),
        b"x",
        r"member 3 \('../evil.txt'\): a path that leads out",
    ),
    "path that leads out later": (_entry("episodes/../../evil", size=1), b"x", r"a path that leads out"),
    "absolute path": (_entry("/tmp/evil.txt", size=1), b"x", r"member 3 \('/tmp/evil.txt'\): an absolute path"),
    "drive": (_entry("C:\\evil.txt", size=1), b"x", r"an absolute path"),
    "symbolic link": (_entry("episodes/x.jsonl", tarfile.SYMTYPE, "/etc/passwd"), b"", r"is a symbolic link"),
    "hard link": (_entry("episodes/x.jsonl", tarfile.LNKTYPE, "/etc/passwd"), b"", r"is a hard link"),
    "device": (_entry("episodes/x.jsonl", tarfile.CHRTYPE), b"", r"is a device"),
    "pipe": (_entry("episodes/x.jsonl", tarfile.FIFOTYPE), b"", r"is a pipe"),
    "folder": (_entry("episodes", tarfile.DIRTYPE), b"", r"is a folder"),
    "nested archive": (_entry("inner.tar.gz", size=4), b"\x1f\x8b\x08\0", r"'inner.tar.gz'\): a submission holds"),
    "pickle": (_entry("policy.pkl", size=5), pickle.dumps(1), r"'policy.pkl'\): a submission holds"),
    "weights": (_entry("model.safetensors", size=1), b"x", r"a submission holds manifest.json and episodes"),
    "other case": (_entry("episodes/ALFWORLD.jsonl", size=1), b"x", r"a submission holds"),
    "manifest twice": (_entry(M, size=1), b"x", r"'manifest.json' stands in the archive twice"),
    "undeclared benchmark": (_entry("episodes/webshop.jsonl", size=1), b"\n", r"names no benchmark 'webshop'"),
}


@pytest.mark.parametrize("name", FOREIGN_MEMBERS)
def test_a_foreign_member_is_refused(members: Members, tmp_path: Path, name: str) -> None:
    entry, content, place = FOREIGN_MEMBERS[name]
    own = [(_entry(member, size=len(text)), text) for member, text in members.items()]
    archive = raw_archive(tmp_path / "tampered.tar.gz", [*own, (entry, content)])
    _assert_malformed(verify(archive), place)


@pytest.mark.parametrize(
    ("form", "long_name"), [(tarfile.PAX_FORMAT, "é" * 5), (tarfile.GNU_FORMAT, "y" * 200)], ids=["pax", "gnu"]
)
def test_an_extended_header_is_refused(members: Members, tmp_path: Path, form: int, long_name: str) -> None:
    entry = _entry(long_name, size=1)
    archive = raw_archive(tmp_path / "tampered.tar.gz", [(entry, b"x")], form)
    _assert_malformed(verify(archive), r"member 1 .*header")


def _tar(members: Members) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, content in members.items():
            tar.addfile(_entry(name, size=len(content)), io.BytesIO(content))
    return file.getvalue()


def _zip(members: Members) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("manifest.json", b"0" * 50_000_000)
    return file.getvalue()


def _with_size(members: Members, size: int) -> bytes:
    entry = _entry(M, size=size)
    return gzip.compress(entry.tobuf(tarfile.GNU_FORMAT) + bytes(512))


def _bomb(members: Members) -> bytes:
    return gzip.compress(_entry(M, size=len(members[M])).tobuf(tarfile.USTAR_FORMAT) + bytes(300_000_000), 1)


def _bad_checksum(members: Members) -> bytes:
    tar = bytearray(_tar(members))
    tar[0] ^= 1
    return gzip.compress(bytes(tar))


BROKEN_ARCHIVES: dict[str, tuple[Callable[[Members], bytes], str]] = {
    "zip bomb": (_zip, r"the archive is no gzip file"),
    "gzip bomb": (_bomb, r"manifest.json: "),
    "size of 8 TB": (
        lambda m: _with_size(m, 8 << 40),
        r"member 1: a number of its header is not octal|member 1 .*bytes",
    ),
    "size over the limit": (
        lambda m: _with_size(m, UNPACKED_LIMIT + 1),
        r"member 1 \(manifest.json\): 1073741825 bytes",
    ),
    "not compressed": (_tar, r"no gzip file"),
    "empty file": (lambda m: b"", r"cut off at byte 0"),
    "text": (lambda m: b"hello", r"no gzip file"),
    "gzip of text": (lambda m: gzip.compress(b"hello" * 500), r"member 1: no tar header"),
    "no members": (lambda m: gzip.compress(bytes(1024)), r"member 1 must be manifest.json"),
    "episodes first": (
        lambda m: gzip.compress(_tar(dict(reversed(m.items())))),
        r"member 1 must be manifest.json, not e",
    ),
    "episodes missing": (lambda m: gzip.compress(_tar({M: m[M]})), r"episodes/alfworld.jsonl: missing, though"),
    "wrong checksum": (_bad_checksum, r"member 1: the checksum of its header is wrong"),
    "text behind the archive": (lambda m: gzip.compress(_tar(m)) + b"more", r"behind the end of the archive"),
    "second gzip stream": (lambda m: gzip.compress(_tar(m)) * 2, r"behind the end of the archive"),
    "members behind the end": (lambda m: gzip.compress(_tar(m) + _tar(m)), r"behind the end of the archive"),
    "broken byte": (lambda m: _flipped(gzip.compress(_tar(m))), r"the archive is broken behind byte"),
}


def _flipped(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 255]) + data[middle + 1 :]


@pytest.mark.parametrize("name", BROKEN_ARCHIVES)
def test_a_broken_archive_is_refused(members: Members, tmp_path: Path, name: str) -> None:
    make, place = BROKEN_ARCHIVES[name]
    archive = tmp_path / "tampered.tar.gz"
    archive.write_bytes(make(members))
    _assert_malformed(verify(archive), place)


@pytest.mark.parametrize("share", [0.01, 0.3, 0.6, 0.9, 0.999])
def test_a_truncated_archive_is_refused(members: Members, tmp_path: Path, share: float) -> None:
    whole = packed(tmp_path / "tampered.tar.gz", members)
    whole.write_bytes(whole.read_bytes()[: int(share * whole.stat().st_size)])
    _assert_malformed(verify(whole), r"cut off")


def test_a_bomb_is_refused_in_little_memory(members: Members, tmp_path: Path) -> None:
    archive = tmp_path / "bomb.tar.gz"
    archive.write_bytes(_bomb(members))
    tracemalloc.start()
    verify(archive)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 32 << 20


def test_a_missing_file_and_a_folder_are_malformed(tmp_path: Path) -> None:
    assert verify(tmp_path / "none.tar.gz").exit_code == 2
    assert verify(tmp_path).exit_code == 2


class WriteWatch:
    """Names every file that is opened for writing, made, moved or removed while it watches."""

    def __init__(self) -> None:
        self.active = False
        self.touched: list[str] = []
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.active:
            return
        if event == "open" and isinstance(arguments[2], int):
            if arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
                self.touched.append(str(arguments[0]))
        elif event in ("os.mkdir", "os.symlink", "os.link", "os.remove", "os.rmdir"):
            self.touched.append(str(arguments[0]))
        elif event == "os.rename":
            self.touched.extend(map(str, arguments[:2]))


@pytest.fixture(scope="module")
def watch() -> Iterator[WriteWatch]:
    yield WriteWatch()


@pytest.mark.parametrize("name", ["path that leads out", "absolute path", "symbolic link", "hard link", "pickle"])
def test_nothing_is_written_outside_the_target_folder(
    members: Members, tmp_path: Path, watch: WriteWatch, name: str
) -> None:
    entry, content, _ = FOREIGN_MEMBERS[name]
    own = [(_entry(member, size=len(text)), text) for member, text in members.items()]
    archive = raw_archive(tmp_path / "tampered.tar.gz", [(entry, content), *own])
    target = tmp_path / "target"
    watch.touched.clear()
    watch.active = True
    result = CliRunner().invoke(submit_app, ["verify", str(archive), "--out", str(target)])
    watch.active = False
    assert result.exit_code == 2
    assert watch.touched, "the result itself is written"
    caches = ("__pycache__", os.devnull)
    outside = [
        path for path in watch.touched if not path.startswith(str(target)) and not any(c in path for c in caches)
    ]
    assert outside == []
    assert {path.name for path in target.iterdir()} == {"tampered.json", "tampered.txt"}
