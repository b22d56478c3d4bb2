"""Download of WebShop's released files from where its authors keep them (Google Drive, as named in its setup.sh)."""

from __future__ import annotations

import tempfile
from pathlib import Path

import httpx

from taspo_bench.cache import cache_folder
from taspo_bench.errors import DataError, RunError, unknown_name
from taspo_envs.webshop.build import Progress, no_progress
from taspo_envs.webshop.locate import import_files
from taspo_envs.webshop.store import Store

HOST = "https://drive.usercontent.google.com"
FILES = {
    "small": {
        "items_shuffle_1000.json": "1EgHdxQ_YxqIQlvvq5iKlCrkEKR6-j0Ib",
        "items_ins_v2_1000.json": "1IduG0xl544V_A_jv3tHXC0kyFi7PnyBu",
        "items_human_ins.json": "14Kb5SPBk_jfdLZ_CDBNitW98QLDlKR5O",
    },
    "all": {
        "items_shuffle.json": "1A2whVgOO0euk5O13n2iYDM0bQRkkRduB",
        "items_ins_v2.json": "1s2j6NgHljiZzQNL3veZaAiyW_qDEgBNi",
        "items_human_ins.json": "14Kb5SPBk_jfdLZ_CDBNitW98QLDlKR5O",
    },
}
"""The 1,000 products and all 1.18 million."""
SIZES = {"small": "about 5 MB", "all": "about 5 GB"}
TIMEOUT_S = 60.0


def fetch(
    size: str = "small", destination: Path | None = None, progress: Progress = no_progress, host: str = HOST
) -> Store:
    """Download the ``small`` set or ``all`` and import it (into the official folder by default).

    The size of each file is told before it is downloaded, and about that of all.

    Raises :class:`RunError` when a file cannot be downloaded, with what to do by hand instead.
    """
    if size not in FILES:
        raise unknown_name("size of WebShop's data", size, FILES)
    cache_folder().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="webshop-", dir=cache_folder()) as folder:
        paths = [
            _download(
                f"{host}/download?id={file_id}&export=download&confirm=t", Path(folder) / name, SIZES[size], progress
            )
            for name, file_id in FILES[size].items()
        ]
        return import_files(paths, destination, progress)


def _download(url: str, path: Path, whole: str, progress: Progress) -> Path:
    try:
        with httpx.stream("GET", url, timeout=TIMEOUT_S, follow_redirects=True) as answer, path.open("wb") as file:
            answer.raise_for_status()
            length = answer.headers.get("Content-Length")
            size = f"{int(length) / 1e6:,.1f} MB of {whole}" if length else f"part of {whole}"
            what = f"bytes of {path.name}, {size}"
            progress(what, 0)
            for chunk in answer.iter_bytes(1 << 20):
                file.write(chunk)
                progress(what, answer.num_bytes_downloaded)
    except (httpx.HTTPError, OSError) as error:
        raise RunError(f"{path.name} from {url}: {error}; {_BY_HAND}") from error
    with path.open("rb") as file:
        if file.read(64).lstrip()[:1] not in (b"[", b"{"):
            raise DataError(f"{path.name} from {url} is not JSON but a page for people; {_BY_HAND}")
    return path


_BY_HAND = "download it in a browser and run `taspo-bench data import webshop FILES...`"
