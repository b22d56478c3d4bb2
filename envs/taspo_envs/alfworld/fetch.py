"""Downloading the official games: one release archive, kept as it is and read without unpacking."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import httpx

from taspo_bench.errors import DataError, InputError, RunError
from taspo_envs.alfworld.official import default_folder

URL = "https://github.com/alfworld/alfworld/releases/download/0.4.2/json_2.1.3_tw-pddl.zip"
SHA256 = "5df77ea759f2211a4106082839ddbbb790f1ba4e7d097ed732cf453f72aa36cf"
_CHUNK = 1 << 18

Progress = Callable[[int, int | None], None]
"""Called with bytes so far and in all (None if the server does not say)."""


def fetch(
    destination: str | Path | None = None,
    url: str | None = None,
    progress: Progress | None = None,
    *,
    sha256: str | None = None,
    say: Callable[[str], None] = print,
) -> Path:
    """Download the release archive, and return where it lies.

    An interrupted download is kept beside the target as ``NAME.part`` and continued by the next call. The archive
    appears under its own name only when it is whole and its sha256 is right; if it is there already, nothing is
    downloaded.

    Args:
        destination: folder to put it in; ALFWorld's own data folder by default.
        url: another address, such as a mirror's.
        progress: told before the download, and of every piece that has arrived.
        sha256: what the archive must have; known for the release, not checked for another address without it.
        say: told the size before the download, and the sha256 after it.

    Raises:
        InputError: the folder cannot be written, or the address is none.
        RunError: the server cannot be reached or breaks off.
        DataError: what arrived has another sha256; it is removed.
    """
    url = url or URL
    expected = sha256 or (SHA256 if url == URL else None)
    folder = Path(destination).expanduser() if destination is not None else default_folder()
    target = folder / url.split("?")[0].rsplit("/", 1)[-1]
    partial = target.with_name(f"{target.name}.part")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if target.is_file() and (expected is None or _sha256(target) == expected):
            say(f"{target} is there already")
            return target
        _download(url, partial, progress, say)
    except OSError as error:
        raise InputError(f"cannot write {target} ({error}): give another folder") from None
    except (httpx.InvalidURL, UnicodeError) as error:
        raise InputError(f"--url {url!r} is no address ({error}): give one such as {URL}") from None
    except httpx.HTTPStatusError as error:
        raise RunError(f"{url} answers {error.response.status_code}: check the address, or try again later") from None
    except httpx.HTTPError as error:
        raise RunError(
            f"download of {url} broke off ({error or type(error).__name__}): run it again to go on"
        ) from None
    found = _sha256(partial)
    if expected is not None and found != expected:
        partial.unlink()
        raise DataError(f"{url} has sha256 {found} instead of {expected}: download it again, or from another address")
    os.replace(partial, target)
    say(f"{target} has sha256 {found}")
    return target


def _download(url: str, partial: Path, progress: Progress | None, say: Callable[[str], None]) -> None:
    have = partial.stat().st_size if partial.is_file() else 0
    headers = {"Range": f"bytes={have}-", "Accept-Encoding": "identity"} if have else {"Accept-Encoding": "identity"}
    timeout = httpx.Timeout(30.0)
    with httpx.stream("GET", url, headers=headers, follow_redirects=True, timeout=timeout) as response:
        if response.status_code == httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE:
            return  # all of it is here
        response.raise_for_status()
        if response.status_code != httpx.codes.PARTIAL_CONTENT:
            have = 0
        length = response.headers.get("Content-Length")
        total = have + int(length) if length is not None else None
        size = f"{total / 1e6:.1f} MB" if total is not None else "of a size that the server does not tell"
        say(f"downloading {url}, {size}" + (f", going on after {have / 1e6:.1f} MB" if have else ""))
        if progress is not None:
            progress(have, total)
        with open(partial, "ab" if have else "wb") as file:
            for piece in response.iter_bytes(_CHUNK):
                file.write(piece)
                have += len(piece)
                if progress is not None:
                    progress(have, total)


def _sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
