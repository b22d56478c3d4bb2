"""A chat endpoint on 127.0.0.1 that behaves, or misbehaves, as a test tells it to."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Behaviour = Callable[["Handler", dict[str, Any]], None]


@dataclass
class ChatServer:
    """``behaviours`` answer the requests in their order, the last one all that follow."""

    url: str
    behaviours: list[Behaviour]
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    closing: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)
    open_now: int = 0
    most_open: int = 0
    """The largest number of requests that were open at once."""


class Handler(BaseHTTPRequestHandler):
    server_state: ChatServer

    def do_POST(self) -> None:
        state = self.server_state
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with state.lock:
            number = len(state.requests)
            state.requests.append(body)
            state.headers.append(dict(self.headers))
            state.open_now += 1
            state.most_open = max(state.most_open, state.open_now)
        try:
            state.behaviours[min(number, len(state.behaviours) - 1)](self, body)
        finally:
            with state.lock:
                state.open_now -= 1

    def send(self, status: int, content: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        pass


def says(answer: object, usage: object = None) -> Behaviour:
    """A chat completion with this content (JSON of anything but a text)."""
    text = answer if isinstance(answer, str) or answer is None else json.dumps(answer)
    completion = {"choices": [{"message": {"role": "assistant", "content": text}}], "usage": usage}
    return lambda handler, body: handler.send(200, json.dumps(completion).encode())


def replies(answer: Callable[[str], str]) -> Behaviour:
    """A chat completion that depends on the prompt."""
    return lambda handler, body: says(answer(prompt_of(body)))(handler, body)


def chooses(behaviour: Callable[[str], Behaviour]) -> Behaviour:
    """A behaviour that depends on the prompt."""
    return lambda handler, body: behaviour(prompt_of(body))(handler, body)


def prompt_of(body: dict[str, Any]) -> str:
    return str(body["messages"][-1]["content"])


def refuses(handler: Handler, body: dict[str, Any]) -> None:
    """No content, and the reason where some hosts put it."""
    message = {"role": "assistant", "content": None, "refusal": "I cannot help with that."}
    handler.send(200, json.dumps({"choices": [{"message": message}]}).encode())


def cuts_off(handler: Handler, body: dict[str, Any]) -> None:
    """The connection ends in the middle of the answer."""
    handler.send_response(200)
    handler.send_header("Content-Length", "5000")
    handler.end_headers()
    handler.wfile.write(b'{"choices": [{"message": {"content": "<action>look')
    handler.wfile.flush()
    handler.connection.close()


def raw(content: bytes, status: int = 200, headers: dict[str, str] | None = None) -> Behaviour:
    return lambda handler, body: handler.send(status, content, headers)


def hangs(handler: Handler, body: dict[str, Any]) -> None:
    handler.server_state.closing.wait(20)


def drips(handler: Handler, body: dict[str, Any]) -> None:
    """A body that never ends, a byte at a time."""
    handler.send_response(200)
    handler.end_headers()
    while not handler.server_state.closing.wait(0.02):
        try:
            handler.wfile.write(b" ")
            handler.wfile.flush()
        except OSError:
            return


def hangs_up(handler: Handler, body: dict[str, Any]) -> None:
    handler.connection.close()


@contextmanager
def chat_server(*behaviours: Behaviour) -> Iterator[ChatServer]:
    handler = type("BoundHandler", (Handler,), {})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    server.handle_error = lambda request, address: None  # type: ignore[method-assign]
    state = ChatServer(f"http://127.0.0.1:{server.server_address[1]}/v1", list(behaviours))
    handler.server_state = state  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield state
    finally:
        state.closing.set()
        server.shutdown()
        server.server_close()
        thread.join()
