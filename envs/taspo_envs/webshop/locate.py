"""Where catalogues lie: embedded, imported, or a folder of raw files; their built stores are in the user's cache."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from taspo_bench.cache import cache_folder
from taspo_bench.errors import DataError
from taspo_envs.webshop.build import Progress, Source, build, no_progress, sha256_of
from taspo_envs.webshop.catalogue import iter_json_array, read_json_object
from taspo_envs.webshop.embedded import build_embedded, frozen
from taspo_envs.webshop.nouns import LexiconTagger, best_tagger
from taspo_envs.webshop.store import FORMAT, MANIFEST, Store, open_store

PATTERNS = {
    "products": "items_shuffle*.json",
    "attributes": "items_ins_v2*.json",
    "instructions": "items_human_ins*.json",
}


def official_folder() -> Path:
    """Where ``data import webshop`` puts its store."""
    return cache_folder() / "webshop" / "official"


def store_of(data: str) -> Store:
    """The store of ``embedded``, ``official`` or a folder, built first if need be.

    A folder is a built store, or holds raw files in itself or in its subfolder ``webshop``.
    """
    try:
        return open_store(_folder_of(data))
    except OSError as error:
        raise DataError(f"WebShop data {data!r}: {error}; set TASPO_CACHE to a folder that can be written") from error


def _folder_of(data: str) -> Path:
    if data == "embedded":
        folder = cache_folder() / "webshop" / f"embedded-{FORMAT}-{LexiconTagger.name}-{frozen()['sha256'][:16]}"
        return folder if (folder / MANIFEST).is_file() else build_embedded(folder)
    if data == "official":
        if not (official_folder() / MANIFEST).is_file():
            raise DataError(
                "official WebShop data is not installed: run `taspo-bench data fetch webshop`, or download WebShop's "
                "items_*.json files and run `taspo-bench data import webshop FILES...`"
            )
        return official_folder()
    root = Path(data)
    if not root.is_dir():
        raise DataError(
            f"data {data!r}: there is no such folder; give embedded, official, or a folder of WebShop files"
        )
    for folder in (root, root / "webshop"):
        if (folder / MANIFEST).is_file():
            return folder
        if any(folder.glob(PATTERNS["products"])):
            return _built(raw_files(list(folder.glob("*.json"))))
    raise DataError(
        f"{root}: neither it nor its subfolder webshop holds {PATTERNS['products']}; give WebShop's raw files"
    )


def raw_files(files: list[Path]) -> dict[str, Path]:
    """Which file is which, by name; the largest where several fit. :class:`DataError` if one is missing."""
    found = {}
    for role, pattern in PATTERNS.items():
        fitting = [path for path in files if path.match(pattern)]
        if fitting:
            found[role] = max(fitting, key=lambda path: path.stat().st_size)
        elif role != "instructions":
            raise DataError(
                f"no {role} file: give one named {pattern} beside {', '.join(map(str, files)) or 'nothing'}"
            )
    return found


def open_source(files: dict[str, Path], name: str) -> Source:
    """Raw files as a source to build from; the digest covers their bytes."""
    digests = [f"{role} {_sha256(path)}" for role, path in sorted(files.items())]
    return Source(
        products=iter_json_array(files["products"]),
        attributes=read_json_object(files["attributes"]),
        instructions=read_json_object(files["instructions"]) if "instructions" in files else {},
        name=name,
        sha256=sha256_of(digests),
    )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _built(files: dict[str, Path]) -> Path:
    """The cached store of raw files; files of another size or date are built anew."""
    tagger = best_tagger()
    stats = [
        (role, str(path.resolve()), path.stat().st_size, path.stat().st_mtime_ns) for role, path in files.items()
    ]
    key = hashlib.sha256(json.dumps([FORMAT, tagger.name, stats]).encode()).hexdigest()
    folder = cache_folder() / "webshop" / f"store-{key[:16]}"
    if not (folder / MANIFEST).is_file():
        build(open_source(files, files["products"].parent.name), folder, tagger)
    return folder


def import_files(files: list[Path], destination: Path | None = None, progress: Progress = no_progress) -> Store:
    """Build raw files into a destination (the official folder by default) and open it."""
    for path in files:
        if not path.is_file():
            raise DataError(f"{path}: there is no such file")
    folder = destination or official_folder()
    if (folder / MANIFEST).is_file():
        raise DataError(f"{folder} already holds a built catalogue: remove it first, or give another destination")
    build(open_source(raw_files(files), "official"), folder, best_tagger(), progress)
    return open_store(folder)
