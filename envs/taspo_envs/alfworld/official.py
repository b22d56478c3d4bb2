"""The official ALFWorld games, read from an unpacked folder or straight from a release archive.

A first opening reads every game once and writes a compact index (one SQLite file in the user's cache folder,
``$TASPO_CACHE`` overrides it); from then on listing the splits and opening any game takes milliseconds. The data
itself is never changed. The ids of the release stand in ``official_ids.txt.xz``: a game that is missing is named.
"""

from __future__ import annotations

import hashlib
import json
import logging
import lzma
import os
import sqlite3
import tarfile
import tempfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from taspo_bench.api import DataStamp, Kind, Split
from taspo_bench.cache import cache_folder
from taspo_bench.errors import DataError, InputError
from taspo_envs.alfworld.generation import split_task

RELEASE = "json_2.1.1"
GAME_FILE = "game.tw-pddl"
KINDS: dict[str, Kind] = {"train": "train", "valid_seen": "seen", "valid_unseen": "unseen"}
_UNSPLIT = "valid_train"
"""200 more games of the release; they belong to no split, and can be opened by id."""
_INDEX_VERSION = 3
_LEFT_OUT = ("movable", "Sliced")
"""Words in the names of folders that the release leaves out, whatever is in them."""
_TEXTS = ("pddl_problem", "pddl_domain", "grammar")
_ARCHIVES = ("json_2.1.*tw-pddl.tar.xz", "json_2.1.*tw-pddl.zip")
_LOG = logging.getLogger(__name__)


class IncompleteDataError(DataError):
    """The data are not the complete release: a failed check, and not a wrong argument."""

    exit_code = 1


class Found(NamedTuple):
    """One game file of a source: where it belongs, and its bytes (None: there is no such file in the folder)."""

    split: str
    task_id: str
    content: bytes | None


class OfficialData:
    """The three splits of the release, and each of their games by id (``TASK/TRIAL``)."""

    def __init__(self, path: Path, source: str) -> None:
        self.path = locate(path)
        self.source = source
        self.index = _index_of(self.path)
        with closing(_open(self.index)) as database:
            rows = database.execute("SELECT split, id FROM game ORDER BY id").fetchall()
            self._meta = dict(database.execute("SELECT key, value FROM meta").fetchall())
        self._logic: dict[int, tuple[str, str, str]] = {}
        self.ids = {name: tuple(task_id for split, task_id in rows if split == name) for name in (*KINDS, _UNSPLIT)}
        self.skipped: dict[str, str] = json.loads(self._meta["skipped"])
        self._require_complete()

    def splits(self) -> dict[str, Split]:
        return {name: Split(name, kind, self.ids[name]) for name, kind in KINDS.items()}

    def has(self, task_id: str) -> bool:
        return any(task_id in ids for ids in self.ids.values())

    def family_name(self, task_id: str) -> str:
        """ALFWorld's name of the task type, with which every id begins."""
        return task_id.partition("-")[0]

    def stamp(self) -> DataStamp:
        return DataStamp(self.source, RELEASE, self._meta["sha256"])

    def check(self) -> list[str]:
        reasons = Counter(self.skipped.values())
        left_out = "; ".join(f"{count} {reason}" for reason, count in sorted(reasons.items())) or "none"
        counts = ", ".join(f"{name} {len(self.ids[name])}" for name in KINDS)
        return [f"complete release: {counts}", f"left out: {left_out}"]

    def game(self, task_id: str) -> dict[str, Any]:
        """The JSON object of a game file.

        Raises:
            InputError: no split has a game of that id.
            DataError: the game was left out, and why.
        """
        with closing(_open(self.index)) as database:
            row = database.execute(
                "SELECT logic, task, problem, walkthrough FROM game WHERE id = ?", (task_id,)
            ).fetchone()
            if row is None:
                if task_id in self.skipped:
                    raise DataError(
                        f"game {task_id!r} of {self.path} cannot be played: {self.skipped[task_id]}; take another, "
                        "or fetch the data again with `taspo-bench data fetch alfworld`"
                    )
                raise InputError(f"unknown task id {task_id!r}: ids look like {self.ids['valid_seen'][0]!r}")
            if row[0] not in self._logic:
                (self._logic[row[0]],) = database.execute(
                    "SELECT domain, head, tail FROM logic WHERE rowid = ?", (row[0],)
                )
        domain, head, tail = self._logic[row[0]]
        return {
            "pddl_domain": domain,
            "grammar": f"{head}{json.dumps(row[1])}{tail}",
            "pddl_problem": zlib.decompress(row[2]).decode(),
            "solvable": True,
            "walkthrough": json.loads(row[3]),
        }

    def _require_complete(self) -> None:
        for name, expected in official_ids().items():
            missing = sorted(set(expected) - set(self.ids[name]))
            strange = sorted(set(self.ids[name]) - set(expected))
            if missing or strange:
                count = f"{name} of {self.path} has {len(self.ids[name])} playable games instead of {len(expected)}"
                named = [f"{task_id} ({self.skipped.get(task_id, 'no such file')})" for task_id in missing[:3]]
                named += [f"{task_id} (not in the release)" for task_id in strange[:3]]
                more = (
                    f" and {len(missing + strange) - len(named)} more" if len(missing + strange) > len(named) else ""
                )
                raise IncompleteDataError(
                    f"{count}: {', '.join(named)}{more}; fetch the data again with `taspo-bench data fetch alfworld`"
                )


@cache
def official_ids() -> dict[str, tuple[str, ...]]:
    """The ids of the release by split, in order."""
    text = lzma.decompress(Path(__file__).with_name("official_ids.txt.xz").read_bytes()).decode()
    lines = [line.split(" ", 1) for line in text.splitlines()]
    return {name: tuple(task_id for split, task_id in lines if split == name) for name in KINDS}


@cache
def open_official(path: str | None) -> OfficialData:
    """The data at a path, or where ALFWorld keeps them (``$ALFWORLD_DATA``, else ``~/.cache/alfworld``)."""
    if path is None:
        return OfficialData(default_folder(), "official")
    return OfficialData(Path(path).expanduser(), Path(path).resolve().name)


def default_folder() -> Path:
    """ALFWorld's own data folder."""
    return Path(os.environ.get("ALFWORLD_DATA") or "~/.cache/alfworld").expanduser()


def locate(path: Path) -> Path:
    """The folder with the splits, or the archive, that ``path`` means.

    ``path`` is one of them, or a folder that has one of them in it or in its folder ``alfworld``.
    """
    if path.is_file():
        return path
    for folder in (path, path / "alfworld"):
        for inner in (folder / RELEASE, folder):
            if any((inner / split).is_dir() for split in KINDS):
                return inner
        for pattern in _ARCHIVES:
            if found := sorted(folder.glob(pattern)):
                return found[-1]
    raise DataError(
        f"no ALFWorld games at {path}: expected {RELEASE}/train, or an archive {_ARCHIVES[1]}, there or in its "
        "folder alfworld; fetch them with `taspo-bench data fetch alfworld`"
    )


def read_json(content: bytes | None) -> dict[str, Any]:
    """The playable game in a game file.

    Raises:
        DataError: why it cannot be played; a few words that fit a list and a sentence.
    """
    if content is None:
        raise DataError("without a game file")
    try:
        data = json.loads(content)
    except (ValueError, RecursionError):
        raise DataError("not a complete JSON file") from None
    if not isinstance(data, dict) or not all(_is_text(data.get(key)) for key in _TEXTS):
        raise DataError("not a game file")
    if "solvable" not in data:
        raise DataError("without the solvable flag")
    if data["solvable"] is not True:
        raise DataError("unsolvable" if data["solvable"] is False else "with a solvable flag of another kind")
    return data


def _is_text(value: Any) -> bool:
    """Whether a JSON value is text that can be stored (a lone surrogate cannot)."""
    return isinstance(value, str) and value == value.encode(errors="replace").decode()


def scan(path: Path) -> Iterator[Found]:
    """Every game of a folder or an archive, in no particular order."""
    if path.is_dir():
        for split in (*KINDS, _UNSPLIT):
            for trial in _trials(path / split):
                file = trial / GAME_FILE
                content = file.read_bytes() if file.is_file() else None
                yield Found(split, f"{trial.parent.name}/{trial.name}", content)
        return
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                for name in archive.namelist():
                    if place := _place(name):
                        yield Found(*place, archive.read(name))
        else:
            with tarfile.open(path) as tar:
                for member in tar:
                    if (place := _place(member.name)) and (stored := tar.extractfile(member)):
                        yield Found(*place, stored.read())
    except (tarfile.TarError, zipfile.BadZipFile, lzma.LZMAError, EOFError, zlib.error) as error:
        reason = str(error).partition("\n")[0]
        raise DataError(f"archive {path} is broken ({reason}): fetch it again") from None


def _trials(split: Path) -> Iterator[Path]:
    """Trial folders of a split, at ``TASK/TRIAL``."""
    tasks = [entry for entry in os.scandir(split) if entry.is_dir()] if split.is_dir() else []
    for task in tasks:
        yield from (Path(entry.path) for entry in os.scandir(task.path) if entry.is_dir())


def _place(member: str) -> tuple[str, str] | None:
    """(split, id) of an archive member, if it is a game of one of the splits."""
    parts = member.split("/")
    if len(parts) < 4 or parts[-1] != GAME_FILE or parts[-4] not in (*KINDS, _UNSPLIT):
        return None
    return parts[-4], f"{parts[-3]}/{parts[-2]}"


# --- the index ---------------------------------------------------------------------------------------


def _index_of(path: Path) -> Path:
    """The index of a source, built now if the source is new or has changed."""
    index = cache_folder() / f"alfworld-{_INDEX_VERSION}-{_fingerprint(path)}.sqlite"
    if not index.is_file():
        _LOG.info("indexing the ALFWorld games of %s (once)", path)
        try:
            index.parent.mkdir(parents=True, exist_ok=True)
            _build(path, index)
        except OSError as error:
            raise DataError(
                f"cannot write the index {index} ({error}): set TASPO_CACHE to a writable folder"
            ) from None
    return index


def _fingerprint(path: Path) -> str:
    """Changes when a game file (or the archive) is added, removed, resized or written again."""
    files = [path]
    if path.is_dir():
        files = [trial / GAME_FILE for split in (*KINDS, _UNSPLIT) for trial in _trials(path / split)]
    digest = hashlib.sha256()
    for file in sorted(files):
        try:
            state = file.stat()
            digest.update(
                f"{file.resolve() if file == path else file} {state.st_size} {state.st_mtime_ns}\n".encode()
            )
        except OSError:
            digest.update(f"{file} none\n".encode())
    return digest.hexdigest()[:24]


def _open(index: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{index.resolve().as_uri()}?mode=ro&immutable=1", uri=True)


def _build(path: Path, index: Path) -> None:
    """Write the index under a temporary name, then move it into place."""
    handle, name = tempfile.mkstemp(dir=index.parent, prefix="partial-")
    os.close(handle)
    try:
        with closing(sqlite3.connect(name)) as database, database:
            database.executescript(
                "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;"
                "CREATE TABLE logic (domain TEXT, head TEXT, tail TEXT);"
                "CREATE TABLE game (id TEXT PRIMARY KEY, split TEXT, logic INT, task TEXT, problem BLOB,"
                " walkthrough TEXT) WITHOUT ROWID;"
                "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT);"
            )
            database.executemany("INSERT INTO meta VALUES (?, ?)", _fill(database, scan(path)).items())
        os.replace(name, index)
    except BaseException:
        os.unlink(name)
        raise


def _kept(task_id: str, content: bytes | None) -> tuple[dict[str, Any], tuple[str, str, str]]:
    """The game of a folder, and its grammar (see :func:`split_task`); :class:`DataError` says why it is left out."""
    if any(word in task_id for word in _LEFT_OUT):
        raise DataError("left out by name (movable, sliced)")
    data = read_json(content)
    try:
        return data, split_task(data["grammar"])
    except DataError:
        raise DataError("without a task text") from None


def _fill(database: sqlite3.Connection, found: Iterator[Found]) -> Mapping[str, str]:
    """Store every playable game; what there is to say of the whole."""
    logic: dict[tuple[str, str, str], int] = {}
    digests: dict[str, str] = {}
    skipped: dict[str, str] = {}
    for split, task_id, content in found:
        try:
            data, (head, tail, task) = _kept(task_id, content)
        except DataError as error:
            skipped[task_id] = str(error)
            continue
        if task_id in digests:
            raise DataError(f"game {task_id} stands in two splits: fetch the data again")
        key = (data["pddl_domain"], head, tail)
        if key not in logic:
            row = database.execute("INSERT INTO logic VALUES (?, ?, ?)", key)
            logic[key] = row.lastrowid or 0
        problem = data["pddl_problem"].encode()
        digests[task_id] = hashlib.sha256(b"\0".join((*map(str.encode, key), task.encode(), problem))).hexdigest()
        database.execute(
            "INSERT INTO game VALUES (?, ?, ?, ?, ?, ?)",
            (task_id, split, logic[key], task, zlib.compress(problem), json.dumps(data.get("walkthrough") or [])),
        )
    whole = hashlib.sha256("\n".join(f"{task_id} {digests[task_id]}" for task_id in sorted(digests)).encode())
    return {"sha256": whole.hexdigest(), "skipped": json.dumps(skipped)}
