"""A real local server that answers retrieval requests as a script says, well or badly."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class FaultyServer:
    """Each request takes the next behaviour of ``script`` (the last one goes on for ever); ``requests`` keeps all."""

    def __init__(self, *script: str) -> None:
        self.script = list(script)
        self.requests: list[dict[str, Any]] = []
        self.released = threading.Event()
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                server.requests.append({"path": self.path, **body})
                behaviour = server.script.pop(0) if len(server.script) > 1 else server.script[0]
                BEHAVIOURS[behaviour](self, server, body)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01})
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"

    def __enter__(self) -> FaultyServer:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.released.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


def answer(body: dict[str, Any]) -> dict[str, Any]:
    """One document per query, which names the query."""
    return {
        "result": [
            [{"document": {"id": "1", "contents": f'"About {query}"\nText of {query}.'}, "score": 2.5}]
            for query in body["queries"]
        ]
    }


def send(handler: BaseHTTPRequestHandler, text: str, status: int = 200, length: int | None = None) -> None:
    data = text.encode()
    handler.send_response(status)
    handler.send_header("Content-Length", str(len(data) if length is None else length))
    handler.end_headers()
    handler.wfile.write(data)


def reset(handler: BaseHTTPRequestHandler, server: FaultyServer, body: dict[str, Any]) -> None:
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.connection.close()
    handler.close_connection = True


def slow(handler: BaseHTTPRequestHandler, server: FaultyServer, body: dict[str, Any]) -> None:
    server.released.wait()
    handler.close_connection = True


def drip(handler: BaseHTTPRequestHandler, server: FaultyServer, body: dict[str, Any]) -> None:
    """A byte now and then: no single wait is long, the whole answer never ends."""
    handler.send_response(200)
    handler.send_header("Content-Length", "100000")
    handler.end_headers()
    while not server.released.wait(0.02):
        try:
            handler.wfile.write(b" ")
        except OSError:
            break
    handler.close_connection = True


Behaviour = Callable[[BaseHTTPRequestHandler, FaultyServer, dict[str, Any]], None]
BEHAVIOURS: dict[str, Behaviour] = {
    "well": lambda handler, server, body: send(handler, json.dumps(answer(body))),
    "bare": lambda handler, server, body: send(
        handler, json.dumps({"result": [[hit["document"] for hit in part] for part in answer(body)["result"]]})
    ),
    "nothing": lambda handler, server, body: send(handler, json.dumps({"result": [[] for _ in body["queries"]]})),
    "500": lambda handler, server, body: send(handler, "internal error", status=500),
    "404": lambda handler, server, body: send(handler, "not here", status=404),
    "html": lambda handler, server, body: send(handler, "<html><body>Please log in</body></html>"),
    "half": lambda handler, server, body: send(handler, json.dumps(answer(body))[:30]),
    "cut": lambda handler, server, body: send(handler, json.dumps(answer(body))[:30], length=5000),
    "count": lambda handler, server, body: send(handler, json.dumps({"result": answer(body)["result"] * 2})),
    "shape": lambda handler, server, body: send(handler, json.dumps({"result": [[{"text": "x"}]]})),
    "object": lambda handler, server, body: send(handler, json.dumps({"result": {"a": 1}})),
    "reset": reset,
    "slow": slow,
    "drip": drip,
}
