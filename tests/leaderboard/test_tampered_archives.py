"""Archives that are no submission's: refused before anything of them is written anywhere."""

from __future__ import annotations

import gzip
import io
import os
import pickle
import sys
import tarfile
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from judgement import assert_malformed
from submission_builder import Members, packed, raw_archive
from typer.testing import CliRunner

from taspo_bench.leaderboard.archive import UNPACKED_LIMIT
from taspo_bench.leaderboard.commands import submit_app
from taspo_bench.leaderboard.verify import verify

M = "manifest.json"


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
    assert_malformed(verify(archive), place)


@pytest.mark.parametrize(
    ("form", "long_name"), [(tarfile.PAX_FORMAT, "é" * 5), (tarfile.GNU_FORMAT, "y" * 200)], ids=["pax", "gnu"]
)
def test_an_extended_header_is_refused(members: Members, tmp_path: Path, form: int, long_name: str) -> None:
    entry = _entry(long_name, size=1)
    archive = raw_archive(tmp_path / "tampered.tar.gz", [(entry, b"x")], form)
    assert_malformed(verify(archive), r"member 1 .*header")


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
    assert_malformed(verify(archive), place)


@pytest.mark.parametrize("share", [0.01, 0.3, 0.6, 0.9, 0.999])
def test_a_truncated_archive_is_refused(members: Members, tmp_path: Path, share: float) -> None:
    whole = packed(tmp_path / "tampered.tar.gz", members)
    whole.write_bytes(whole.read_bytes()[: int(share * whole.stat().st_size)])
    assert_malformed(verify(whole), r"cut off")


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
