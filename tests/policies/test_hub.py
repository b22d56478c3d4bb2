"""What is said before a model is downloaded, against a local hub."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from huggingface_hub import constants

from taspo_bench.errors import InputError
from taspo_bench.policies.hub import download_line
from taspo_bench.policies.models import load_model

FILES = [
    {"rfilename": "model-1.safetensors", "size": 4_000_000_000},
    {"rfilename": "model-2.safetensors", "size": 1_500_000_000},
    {"rfilename": "pytorch_model.bin", "size": 9},
]


class Hub(BaseHTTPRequestHandler):
    """Knows owner/sized and owner/unsized; answers owner/broken with an error."""

    def do_GET(self) -> None:
        name = self.path.partition("?")[0].removeprefix("/api/models/")
        status = {"owner/sized": 200, "owner/unsized": 200, "owner/broken": 500}.get(name, 404)
        body = json.dumps({"id": name, "siblings": FILES if name == "owner/sized" else []}).encode()
        self.send_response(status)
        if status == 404:
            self.send_header("X-Error-Code", "RepoNotFound")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_HEAD = do_GET

    def log_message(self, format: str, *args: object) -> None:
        """Nothing on the terminal."""


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    address = f"http://127.0.0.1:{server.server_port}"
    template = constants.HUGGINGFACE_CO_URL_TEMPLATE.replace(constants.ENDPOINT, address)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "ENDPOINT", address)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    yield address
    server.shutdown()
    thread.join()
    server.server_close()


def test_size_and_place_are_said_before_a_download(hub: str, tmp_path: Path) -> None:
    line = f"downloading owner/sized from {hub}, 5.5 GB of weights, kept in {tmp_path / 'hub'}"
    assert download_line("owner/sized") == line


@pytest.mark.parametrize("name", ["owner/unsized", "owner/broken"])
def test_a_size_that_the_hub_does_not_tell_may_be_gigabytes(hub: str, name: str) -> None:
    assert "maybe gigabytes" in str(download_line(name))


def test_nothing_is_said_of_a_model_that_is_not_downloaded(
    hub: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert download_line("owner/unknown") is None
    assert download_line(str(tmp_path)) is None
    kept = tmp_path / "hub" / "models--owner--sized"
    (kept / "refs").mkdir(parents=True)
    (kept / "refs" / "main").write_text("1234")
    (kept / "snapshots" / "1234").mkdir(parents=True)
    (kept / "snapshots" / "1234" / "model.safetensors").write_bytes(b"")
    assert download_line("owner/sized") is None
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert download_line("owner/unsized") is None


def test_loading_a_model_says_so_first(hub: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InputError, match="--model owner/sized"):
        load_model("owner/sized")
    assert capsys.readouterr().err.startswith(f"downloading owner/sized from {hub}, ")
