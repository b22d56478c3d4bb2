"""The served index answers over HTTP what it answers in its own process."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import httpx
import pytest

from taspo_envs.searchqa.remote import HttpRetriever
from taspo_envs.searchqa.server import app
from taspo_envs.searchqa.splits import embedded

uvicorn = pytest.importorskip("uvicorn", reason="the extra serve is not installed")


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    server = uvicorn.Server(uvicorn.Config(app(embedded().open_retriever()), port=0, log_level="error"))
    started = threading.Event()
    startup = server.startup

    async def announced(sockets: object = None) -> None:
        await startup(sockets)
        started.set()

    server.startup = announced
    thread = threading.Thread(target=server.run)
    thread.start()
    assert started.wait(30)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join()


def test_the_client_gets_what_the_index_gives(url: str) -> None:
    local = embedded().open_retriever()
    queries = ["capital of Bol Mun", "mayor", "nothing known", "river of Bran Rel"]
    for ours, theirs in zip(local.search(queries, 3), HttpRetriever(url).search(queries, 3), strict=True):
        assert [(h.passage.title, h.passage.text) for h in ours] == [
            (h.passage.title, h.passage.text) for h in theirs
        ]
        assert [h.score for h in ours] == pytest.approx([h.score for h in theirs])


def test_documents_come_bare_unless_scores_are_asked_for(url: str) -> None:
    answer = httpx.post(f"{url}/retrieve", json={"queries": ["capital", "mayor"], "topk": 2}).json()
    assert [len(documents) for documents in answer["result"]] == [2, 2]
    assert all(set(document) == {"id", "contents"} for documents in answer["result"] for document in documents)


def test_requests_that_make_no_sense_are_refused(url: str) -> None:
    assert httpx.post(f"{url}/retrieve", json={"queries": "text", "topk": 2}).status_code == 422
    assert httpx.post(f"{url}/retrieve", json={"queries": ["x"], "topk": 0}).status_code == 422


def test_health_says_that_it_is_there(url: str) -> None:
    assert httpx.get(f"{url}/health").json() == {"status": "ok"}
