"""The archive of a submission: a gzipped tar of a few plain files, written and read strictly.

Why .tar.gz and not .zip: it is read once, front to back, so every limit holds while bytes are still coming in, and
there is no second directory at the end that may tell another story than the members do. The reader knows one kind of
tar block only, the plain file of POSIX ustar. Links, folders, devices, long-name and extended headers are not
handled with care, they are not handled at all: it refuses them. It never writes, so no path can lead anywhere.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import re
import tarfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

from taspo_bench.errors import InputError

MANIFEST = "manifest.json"
EPISODES = re.compile(r"episodes/[a-z0-9][a-z0-9_]{0,39}\.jsonl")

BLOCK = 512
CHUNK = 1 << 16
PACKED_LIMIT = 256 << 20
"""Bytes of an archive as it lies on disk."""
UNPACKED_LIMIT = 1 << 30
"""Bytes of everything in it."""
LINE_LIMIT = 4 << 20
"""Bytes of one episode, and of the manifest."""
MEMBER_COUNT_LIMIT = 64

KINDS = {
    b"1": "a hard link",
    b"2": "a symbolic link",
    b"3": "a device",
    b"4": "a device",
    b"5": "a folder",
    b"6": "a pipe",
    b"x": "an extended header",
    b"g": "an extended header",
    b"L": "a long-name header",
    b"K": "a long-name header",
    b"S": "a sparse file",
}


class MalformedSubmission(InputError):
    """The archive cannot be read as a submission; the message names the place."""


def shown(text: str, limit: int = 80) -> str:
    """Untrusted text as it may stand in a message: quoted, ASCII, one line, cut."""
    cut = text if len(text) <= limit else f"{text[:limit]}..."
    return ascii(cut)


def write_archive(path: Path, members: Iterable[tuple[str, bytes]]) -> None:
    """Write members in the order given, whole or not at all; equal members give equal bytes."""
    temporary = path.with_name(path.name + ".tmp")
    try:
        with (
            temporary.open("wb") as raw,
            gzip.GzipFile(fileobj=raw, mode="wb", filename="", mtime=0) as packed,
            tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive,
        ):
            for name, content in members:
                entry = tarfile.TarInfo(name)
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
        os.replace(temporary, path)
    except OSError as error:
        raise InputError(f"{path}: cannot write there ({error.strerror}); name another file") from error
    finally:
        temporary.unlink(missing_ok=True)


class Member:
    """One file of an archive, readable once and only while it is the newest one."""

    def __init__(self, name: str, size: int, stream: _Inflated) -> None:
        self.name = name
        self.size = size
        self._left = size
        self._stream = stream
        self._hash = hashlib.sha256()

    def read(self) -> bytes:
        """All of it; for the manifest, which is small."""
        if self.size > LINE_LIMIT:
            raise MalformedSubmission(f"{self.name}: {self.size} bytes; at most {LINE_LIMIT} are allowed")
        return b"".join(self._chunks())

    def lines(self) -> Iterator[bytes]:
        """Its lines without their ends, each checked to be of bearable length and closed by a single LF."""
        rest, number = b"", 1
        for chunk in self._chunks():
            *whole, rest = (rest + chunk).split(b"\n")
            for line in whole:
                yield line
                number += 1
            if len(rest) > LINE_LIMIT:
                raise MalformedSubmission(f"{self.name}, line {number}: longer than {LINE_LIMIT} bytes")
        if rest:
            raise MalformedSubmission(f"{self.name}, line {number}: cut off (the last line has no end)")

    def skip_rest(self) -> str:
        """Read on to the member's end; the SHA-256 of all of it."""
        for _ in self._chunks():
            pass
        return self._hash.hexdigest()

    def skip_padding(self) -> None:
        """From the end of the member to the next header."""
        self._stream.take(-self.size % BLOCK)

    def _chunks(self) -> Iterator[bytes]:
        while self._left:
            chunk = self._stream.take(min(self._left, CHUNK))
            self._left -= len(chunk)
            self._hash.update(chunk)
            yield chunk


def read_members(path: Path) -> Iterator[Member]:
    """The members of an archive one after the other; each must be read before the next is asked for.

    Raises:
        MalformedSubmission: not a submission's archive: another format, a member of another kind or name than a
            submission has, a size over a limit, or an archive that is cut off.
    """
    if not path.is_file():
        raise MalformedSubmission(f"{path}: no such file; name the archive that `taspo-bench submit pack` wrote")
    if path.stat().st_size > PACKED_LIMIT:
        raise MalformedSubmission(f"{path}: {path.stat().st_size} bytes; at most {PACKED_LIMIT} are allowed")
    seen: set[str] = set()
    with path.open("rb") as file:
        stream = _Inflated(file)
        while (header := stream.take(BLOCK)) != bytes(BLOCK):
            name, size = _parse_header(header, len(seen) + 1)
            if name in seen:
                raise MalformedSubmission(f"member {len(seen) + 1}: {shown(name)} stands in the archive twice")
            if len(seen) == MEMBER_COUNT_LIMIT:
                raise MalformedSubmission(f"more than {MEMBER_COUNT_LIMIT} members")
            seen.add(name)
            member = Member(name, size, stream)
            yield member
            member.skip_rest()
            member.skip_padding()
        stream.expect_zeros()


def _parse_header(block: bytes, number: int) -> tuple[str, int]:
    place = f"member {number}"
    if block[257:262] != b"ustar":
        raise MalformedSubmission(f"{place}: no tar header; the archive must be a .tar.gz")
    if _octal(block[148:156], place) != sum(block) - sum(block[148:156]) + 8 * ord(" "):
        raise MalformedSubmission(f"{place}: the checksum of its header is wrong")
    name = block[:100].split(b"\0", 1)[0].decode("latin-1")
    kind = block[156:157]
    if kind not in (b"0", b"\0"):
        what = KINDS.get(kind, f"of unknown kind {kind!r}")
        raise MalformedSubmission(f"{place} ({shown(name)}): is {what}; only plain files are allowed")
    # the field behind "ustar\0" (POSIX) lengthens the name; GNU's "ustar " has times there
    if block[345:500].strip(b"\0") or (name != MANIFEST and not EPISODES.fullmatch(name)):
        raise MalformedSubmission(f"{place} ({shown(name)}): {_wrong_name(name)}")
    size = _octal(block[124:136], place)
    if size > UNPACKED_LIMIT:
        raise MalformedSubmission(f"{place} ({name}): {size} bytes; at most {UNPACKED_LIMIT} are allowed")
    return name, size


def _wrong_name(name: str) -> str:
    if name.startswith(("/", "\\")) or re.match(r"[A-Za-z]:", name):
        return "an absolute path"
    if ".." in re.split(r"[/\\]", name):
        return "a path that leads out of the archive"
    return f"a submission holds {MANIFEST} and episodes/BENCHMARK.jsonl, nothing else"


def _octal(field: bytes, place: str) -> int:
    digits = field.strip(b" \0")
    if not re.fullmatch(rb"[0-7]{1,12}", digits):
        raise MalformedSubmission(f"{place}: a number of its header is not octal")
    return int(digits, 8)


class _Inflated:
    """The bytes of a gzip file, taken piece by piece; never more than a chunk of them is held."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._inflate = zlib.decompressobj(wbits=31)
        self._buffer = bytearray()
        self._total = 0

    def take(self, count: int) -> bytes:
        """Exactly ``count`` bytes."""
        while len(self._buffer) < count:
            if not self._fill():
                raise MalformedSubmission(f"the archive is cut off at byte {self._total} of its contents")
        taken = bytes(self._buffer[:count])
        del self._buffer[:count]
        return taken

    def expect_zeros(self) -> None:
        """Nothing but zero bytes may follow the last member."""
        while self._buffer or self._fill():
            if self._buffer.strip(b"\0"):
                raise MalformedSubmission("there is something behind the end of the archive")
            self._buffer.clear()

    def _fill(self) -> bool:
        """Inflate a little more; False at the end of the file."""
        while not self._inflate.eof:
            packed = self._inflate.unconsumed_tail or self._file.read(CHUNK)
            try:
                piece = self._inflate.decompress(packed, CHUNK)
            except zlib.error as error:
                headless = "header" in str(error)
                where = "no gzip file; it must be a .tar.gz" if headless else f"broken behind byte {self._total}"
                raise MalformedSubmission(f"the archive is {where} ({error})") from error
            self._total += len(piece)
            if self._total > UNPACKED_LIMIT:
                raise MalformedSubmission(f"the archive unpacks to more than {UNPACKED_LIMIT} bytes")
            self._buffer += piece
            if piece:
                return True
            if not packed:
                raise MalformedSubmission(f"the archive is cut off at byte {self._total} of its contents")
        if self._inflate.unused_data or self._file.read(1):
            raise MalformedSubmission("there is something behind the end of the archive")
        return False
