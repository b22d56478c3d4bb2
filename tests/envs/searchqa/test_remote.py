"""A remote retriever: what every kind of trouble comes to, and that none of it becomes a wrong zero."""

from __future__ import annotations

from pathlib import Path

import pytest
from faulty_server import FaultyServer

from taspo_bench.errors import InputError, RunError
from taspo_envs.searchqa.env import SearchQAEnv
from taspo_envs.searchqa.questions import Passage
from taspo_envs.searchqa.remote import HttpRetriever, remote
from taspo_envs.searchqa.retrievers import Hit

TROUBLE = {
    "500": "status 500",
    "html": "no retrieval result ('<html>",
    "half": "no retrieval result",
    "cut": "no whole answer",
    "count": "results for 2 queries, asked for 1",
    "shape": "no retrieval result",
    "object": "no retrieval result",
    "reset": "no whole answer",
    "slow": "no whole answer within 0.5 s",
    "drip": "no whole answer within 0.5 s",
}


def client(server: FaultyServer, cache: Path | None = None) -> HttpRetriever:
    return HttpRetriever(server.url, timeout=0.5 if {"slow", "drip"} & set(server.script) else 10, tries=3, pause=0,
                         cache=cache)  # fmt: skip


def about(query: str, score: float = 2.5) -> list[Hit]:
    return [Hit(Passage.of(f"About {query}", f"Text of {query}."), score)]


@pytest.mark.parametrize("form, score", [("well", 2.5), ("bare", 0.0)])
def test_both_forms_of_answer_are_read(form: str, score: float) -> None:
    with FaultyServer(form) as server:
        assert client(server).search(["a", "b"], 3) == [about("a", score), about("b", score)]
        assert server.requests == [{"path": "/retrieve", "queries": ["a", "b"], "topk": 3, "return_scores": True}]


@pytest.mark.parametrize("trouble", TROUBLE)
def test_trouble_that_passes_is_tried_again(trouble: str) -> None:
    with FaultyServer(trouble, trouble, "well") as server:
        assert client(server).search(["a"], 3) == [about("a")]
        assert len(server.requests) == 3


@pytest.mark.parametrize("trouble", TROUBLE)
def test_trouble_that_stays_is_one_line_after_the_last_try(trouble: str) -> None:
    with FaultyServer(trouble) as server:
        with pytest.raises(RunError) as caught:
            client(server).search(["a"], 3)
        assert len(server.requests) == 3
    message = str(caught.value)
    assert message.startswith(f"retriever {server.url}/retrieve: ") and TROUBLE[trouble] in message
    assert "3 tries" in message and "resume" in message and "\n" not in message


def test_a_refused_request_is_not_tried_again() -> None:
    with FaultyServer("404") as server:
        with pytest.raises(RunError, match="status 404"):
            client(server).search(["a"], 3)
        assert len(server.requests) == 1


def test_no_server_at_all_is_one_line() -> None:
    with FaultyServer("well") as server:
        pass
    with pytest.raises(RunError, match=r"no whole answer .*refused.*3 tries"):
        client(server).search(["a"], 3)


def test_an_empty_result_is_a_result() -> None:
    with FaultyServer("nothing") as server:
        assert client(server).search(["a"], 3) == [[]]


def test_equal_queries_are_asked_once() -> None:
    with FaultyServer("well") as server:
        retriever = client(server)
        assert retriever.search(["a", "b", "a"], 3) == [about("a"), about("b"), about("a")]
        retriever.search(["b"], 3)
        assert [request["queries"] for request in server.requests] == [["a", "b"]]
        retriever.search(["b"], 5)
        assert server.requests[1]["topk"] == 5


def test_many_queries_go_in_few_requests() -> None:
    with FaultyServer("well") as server:
        queries = [f"q{n}" for n in range(600)]
        assert client(server).search(queries, 3) == [about(query) for query in queries]
        assert [len(request["queries"]) for request in server.requests] == [256, 256, 88]


def test_results_on_disk_serve_a_later_run(tmp_path: Path) -> None:
    with FaultyServer("well", "500") as server:
        client(server, tmp_path).search(["a", "b"], 3)
        assert client(server, tmp_path).search(["b", "a"], 3) == [about("b"), about("a")]
        assert len(server.requests) == 1


def test_a_damaged_result_on_disk_is_asked_for_again(tmp_path: Path) -> None:
    with FaultyServer("well") as server:
        client(server, tmp_path).search(["a"], 3)
        [file] = tmp_path.rglob("*.json")
        file.write_text('[{"document"')
        assert client(server, tmp_path).search(["a"], 3) == [about("a")]
        assert client(server, tmp_path).search(["a"], 3) == [about("a")]
        assert len(server.requests) == 2


def test_nothing_is_kept_of_a_failed_request(tmp_path: Path) -> None:
    with FaultyServer("half") as server, pytest.raises(RunError):
        client(server, tmp_path).search(["a"], 3)
    assert list(tmp_path.rglob("*.json")) == []


@pytest.mark.parametrize(
    "address",
    [
        "localhost:8000",
        "ftp://localhost",
        "http://",
        "http://[::1",
        "http://localhost:port",
        "http://127.0.0.1:99999",
        f"http://{'a' * 70}.org",
        "http://a..b",
        "http://xn--a",
        "http://a\nb",
        "http://localhost/\ud800",
    ],
)
def test_an_address_that_no_request_can_be_sent_to_is_refused_in_one_line(address: str) -> None:
    with pytest.raises(InputError, match="such as http://") as error:
        SearchQAEnv(retriever=address)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("address", ["http://[::1]:8000", "https://retriever.example/retrieve", "http://é.example/"])
def test_an_address_of_any_host_is_taken(address: str) -> None:
    assert HttpRetriever(address).url.endswith("/retrieve")


@pytest.fixture
def played() -> SearchQAEnv:
    env = SearchQAEnv()
    env.reset(options={"task_id": env.split.task_ids[0]})
    return env


def test_a_dead_retriever_stops_the_step_and_leaves_the_state_resumable(played: SearchQAEnv) -> None:
    with FaultyServer("well", "500", "500", "500", "well") as server:
        played.retriever = client(server)
        played.step("search[one]")
        before = played.snapshot()
        with pytest.raises(RunError):
            played.step("search[two]")
        assert played.snapshot() == before
        assert "Text of two" in played.step("search[two]")[0]


def test_environments_of_a_process_share_one_client(monkeypatch: pytest.MonkeyPatch) -> None:
    with FaultyServer("well") as server:
        monkeypatch.setenv("TASPO_RETRIEVER", server.url)
        one, other = SearchQAEnv(), SearchQAEnv()
        assert one.retriever is other.retriever is remote(server.url)
        for env in (one, other):
            env.reset(seed=1)
            assert "Text of river" in env.step("search[river]")[0]
        assert len(server.requests) == 1


def test_searches_of_several_environments_go_in_one_request() -> None:
    with FaultyServer("well") as server:
        envs = [SearchQAEnv(retriever=server.url) for _ in range(4)]
        for env in envs:
            env.reset(seed=1)
        actions = ["search[one]", "<search>two</search>", "answer[three]", "search[one]"]
        SearchQAEnv.foresee(envs, actions)
        shown = [env.step(action)[0] for env, action in zip(envs, actions, strict=True)]
        assert [text.removeprefix("1. ") for text in shown] == [
            "About one: Text of one.",
            "About two: Text of two.",
            "Answered: three",
            "About one: Text of one.",
        ]
        assert [request["queries"] for request in server.requests] == [["one", "two"]]
