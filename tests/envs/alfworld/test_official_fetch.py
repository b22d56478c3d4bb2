"""The download of the official games, against a local server: size, progress, resume, sha256, atomic move."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from taspo_bench.errors import DataError, InputError, RunError
from taspo_envs.alfworld.fetch import fetch

CONTENT = bytes(range(256)) * 4096
DIGEST = hashlib.sha256(CONTENT).hexdigest()


class Release(BaseHTTPRequestHandler):
    """Serves the content at /games.zip (with ranges), breaks off at /broken.zip, ignores ranges at /whole.zip."""

    asked: list[str | None]

    def do_GET(self) -> None:
        asked = self.headers.get("Range")
        self.server.asked.append(asked)  # type: ignore[attr-defined]
        start = int(asked.removeprefix("bytes=").rstrip("-")) if asked and self.path != "/whole.zip" else 0
        if self.path == "/absent.zip":
            self.send_error(404)
        elif start >= len(CONTENT):
            self.send_error(416)
        else:
            self.send_response(206 if start else 200)
            self.send_header("Content-Length", str(len(CONTENT) - start))
            self.end_headers()
            body = CONTENT[start:]
            self.wfile.write(body[: len(body) // 2] if self.path == "/broken.zip" else body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[ThreadingHTTPServer]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Release)
    server.asked = []  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def address(server: ThreadingHTTPServer, name: str) -> str:
    return f"http://127.0.0.1:{server.server_address[1]}/{name}.zip"


def test_a_download_says_its_size_first_and_lands_whole(server: ThreadingHTTPServer, tmp_path: Path) -> None:
    said: list[str] = []
    pieces: list[tuple[int, int | None]] = []
    path = fetch(tmp_path, address(server, "games"), lambda *at: pieces.append(at), sha256=DIGEST, say=said.append)
    assert path == tmp_path / "games.zip" and path.read_bytes() == CONTENT
    assert "1.0 MB" in said[0] and DIGEST in said[-1]
    assert pieces[-1] == (len(CONTENT), len(CONTENT)) and len(pieces) > 1
    assert [file.name for file in tmp_path.iterdir()] == ["games.zip"]


def test_an_interrupted_download_goes_on_where_it_stopped(server: ThreadingHTTPServer, tmp_path: Path) -> None:
    (tmp_path / "games.zip.part").write_bytes(CONTENT[:300_000])
    said: list[str] = []
    path = fetch(tmp_path, address(server, "games"), sha256=DIGEST, say=said.append)
    assert path.read_bytes() == CONTENT
    assert server.asked == ["bytes=300000-"]  # type: ignore[attr-defined]
    assert "going on after 0.3 MB" in said[0]


def test_a_complete_part_needs_only_its_name(server: ThreadingHTTPServer, tmp_path: Path) -> None:
    (tmp_path / "games.zip.part").write_bytes(CONTENT)
    assert fetch(tmp_path, address(server, "games"), sha256=DIGEST, say=str).read_bytes() == CONTENT


def test_a_server_without_ranges_is_read_from_the_start(server: ThreadingHTTPServer, tmp_path: Path) -> None:
    (tmp_path / "whole.zip.part").write_bytes(b"x" * 1000)
    assert fetch(tmp_path, address(server, "whole"), sha256=DIGEST, say=str).read_bytes() == CONTENT


def test_a_broken_off_download_leaves_a_part_and_no_archive(server: ThreadingHTTPServer, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="run it again"):
        fetch(tmp_path, address(server, "broken"), say=str)
    assert [file.name for file in tmp_path.iterdir()] == ["broken.zip.part"]
    (tmp_path / "broken.zip.part").rename(tmp_path / "games.zip.part")
    assert fetch(tmp_path, address(server, "games"), sha256=DIGEST, say=str).read_bytes() == CONTENT


def test_another_sha256_is_refused_and_removed(server: ThreadingHTTPServer, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=DIGEST):
        fetch(tmp_path, address(server, "games"), sha256="0" * 64, say=str)
    assert list(tmp_path.iterdir()) == []


def test_what_is_there_is_not_downloaded_again(server: ThreadingHTTPServer, tmp_path: Path) -> None:
    for _ in range(2):
        fetch(tmp_path, address(server, "games"), sha256=DIGEST, say=str)
    assert len(server.asked) == 1  # type: ignore[attr-defined]


def test_an_absent_file_is_an_error_of_one_line(server: ThreadingHTTPServer, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="404") as error:
        fetch(tmp_path, address(server, "absent"), say=str)
    assert "\n" not in str(error.value) and list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_named(server: ThreadingHTTPServer, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="file"):
        fetch(tmp_path / "file", address(server, "games"), say=str)


@pytest.mark.parametrize("url", ["http://[::1/games.zip", f"http://{'a' * 70}.org/games.zip"])
def test_what_is_no_address_is_refused_in_one_line(url: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is no address") as error:
        fetch(tmp_path, url, say=str)
    assert "\n" not in str(error.value)
