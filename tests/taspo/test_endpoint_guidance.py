"""Guidance by a hosted model: whatever the server does, items get fewer, never wrong, and nothing crashes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from chat_server import Behaviour, chat_server, drips, hangs, hangs_up, raw, says
from corridor import play
from taspo_bench.endpoint import ChatEndpoint
from taspo_bench.episode import Group, Guidance
from taspo_bench.errors import InputError, RunError
from taspo_bench.taspo.analyzers.endpoint import EndpointAnalyzer
from taspo_bench.taspo.analyzers.language_model import SelfAnalyzer, parse_object
from taspo_bench.taspo.guidance import Item, Source, item_defect

KEY = "sk-secret-0123456789"
TARGET = 1
TAKE = {
    "kind": "progress",
    "statement": "take key",
    "sources": [{"trajectory": 0, "step": 1, "action": "take key", "observation": "A key lies in it."}],
}
EVIDENCE = {"items": [TAKE]}
FITS = {"items": [{"id": "e0", "step": 2, "quote": "A key lies in it."}]}
GOOD = [says(EVIDENCE), says(FITS)]


def group() -> Group:
    """A success, and a failure that sees the key."""
    return Group("key-2", [play(["open box 2", "take key", "unlock door"]), play(["look", "open box 2", "look"])])


def changed(**source: object) -> dict[str, Any]:
    return {"items": [{**TAKE, "sources": [{**TAKE["sources"][0], **source}]}]}  # type: ignore[dict-item]


def ask(endpoint: ChatEndpoint, prompt: str) -> str:
    [answer] = endpoint.ask([prompt])
    if isinstance(answer, RunError):
        raise answer
    return answer


def guide(folder: Path, *behaviours: Behaviour, timeout: float = 20.0, **settings: Any) -> Guidance:
    """Guidance of the failure; every item that comes out is checked once more."""
    with chat_server(*behaviours) as server:
        analyzer = EndpointAnalyzer(ChatEndpoint(server.url, "judge", folder, timeout=timeout), **settings)
        everyone = analyzer.guide(group())
    assert len(everyone) == 2 and not everyone[0]
    guidance = everyone[TARGET]
    assert guidance is not None and len(guidance.texts) == 3
    for record in guidance.items:
        item = Item(**{**record, "sources": tuple(Source(**source) for source in record["sources"])})
        assert item_defect(item, group(), TARGET) == ""
    return guidance


def test_a_verified_item_stands_at_the_turn_that_it_quotes(tmp_path: Path) -> None:
    guidance = guide(tmp_path, *GOOD)
    assert guidance.texts == [None, None, "take key"]
    assert guidance.items[0]["sources"][0]["trajectory"] == 0


def test_a_fenced_answer_is_read(tmp_path: Path) -> None:
    fenced = says(f"Here it is:\n```json\n{json.dumps(EVIDENCE)}\n```")
    assert guide(tmp_path, fenced, says(FITS)).texts[2] == "take key"


def test_trajectory_scope_shows_only_what_fits_the_first_observation(tmp_path: Path) -> None:
    assert not guide(tmp_path / "a", *GOOD, scope="trajectory")
    assert guide(tmp_path / "b", *GOOD, scope="trajectory", reveal=True).texts == ["take key"] * 3
    first = {"items": [{"id": "e0", "step": 0, "quote": "unlock the door"}]}
    assert guide(tmp_path / "c", says(EVIDENCE), says(first), scope="trajectory").texts == ["take key"] * 3


@pytest.mark.parametrize(
    "evidence",
    [
        changed(observation="A key lies in box 3."),
        changed(action="take the golden key"),
        changed(observation=""),
        changed(step=0, action="take key"),
        changed(step=7),
        changed(step=-1),
        changed(trajectory=1, step=0, action="look"),
        changed(trajectory=5),
        changed(step="1"),
        {"items": [{**TAKE, "sources": []}]},
        {"items": [{**TAKE, "kind": "praise"}]},
        {"items": [{**TAKE, "statement": "x" * 801}]},
        {"items": [{**TAKE, "statement": ""}]},
        {"items": [{"statement": "take key"}, None, 3, [TAKE]]},
        {"items": "take key"},
        {"items": {}},
        {},
    ],
)
def test_evidence_that_does_not_check_out_gives_no_guidance(tmp_path: Path, evidence: dict[str, Any]) -> None:
    assert not guide(tmp_path, says(evidence), says(FITS))


def test_a_bad_item_does_not_take_the_good_one_with_it(tmp_path: Path) -> None:
    bad = changed(observation="invented")["items"]
    assert guide(tmp_path, says({"items": [*bad, {"kind": 1}, TAKE]}), says(FITS)).texts[2] == "take key"


@pytest.mark.parametrize(
    "aligned",
    [
        {"items": [{"id": "e0", "step": 2, "quote": "The door opens."}]},
        {"items": [{"id": "e0", "step": 1, "quote": "A key lies in it."}]},
        {"items": [{"id": "e0", "step": 99, "quote": "A key lies in it."}]},
        {"items": [{"id": "e7", "step": 2, "quote": "A key lies in it."}]},
        {"items": [{"id": 0, "step": 2, "quote": "A key lies in it."}]},
        {"items": [], "reason": "nothing fits"},
        {"items": None},
    ],
)
def test_an_alignment_that_does_not_check_out_gives_no_guidance(tmp_path: Path, aligned: dict[str, Any]) -> None:
    guidance = guide(tmp_path, says(EVIDENCE), says(aligned))
    assert not guidance and guidance.reason.startswith("abstained")


@pytest.mark.parametrize(
    "behaviour",
    [
        says("I would rather not."),
        says(None),
        says(""),
        says('{"items": [' * 5000),
        says("[" * 100_000),
        says("[1, 2]"),
        raw(b"not json"),
        raw(b"[]"),
        raw(b'{"choices": []}'),
        raw(b'{"choices": [{"message": {"content": ["parts"]}}]}'),
        raw(b"\xff\xfe\x00", headers={"Content-Type": "application/json"}),
        raw(b"x", headers={"Content-Encoding": "gzip"}),
        raw(b" " * 1_100_000),
        raw(b"slow down", status=429, headers={"Retry-After": "0"}),
        raw(b"slow down", status=429, headers={"Retry-After": "Thu, 01 Jan 1970 00:00:00 GMT"}),
        raw(b"down", status=503, headers={"Retry-After": "0"}),
        raw(b"no such model", status=404),
        raw(b"who are you", status=401),
        raw(b"", status=302, headers={"Location": "http://127.0.0.1:9/"}),
        hangs,
        drips,
        hangs_up,
    ],
)
@pytest.mark.parametrize("step", ["extract", "align"])
def test_a_server_that_misbehaves_costs_the_guidance_and_nothing_else(
    tmp_path: Path, behaviour: Behaviour, step: str
) -> None:
    behaviours = [behaviour] if step == "extract" else [says(EVIDENCE), behaviour]
    guidance = guide(tmp_path, *behaviours, timeout=0.3 if behaviour in (hangs, drips) else 20.0)
    assert not guidance and guidance.reason


def test_no_server_at_all_costs_the_guidance(tmp_path: Path) -> None:
    analyzer = EndpointAnalyzer(ChatEndpoint("http://127.0.0.1:9/v1", "judge", tmp_path))
    assert not any(analyzer.guide(group()))


@pytest.mark.parametrize(
    "first", [raw(b"", status=429, headers={"Retry-After": "0"}), raw(b"not json"), hangs, says("Sorry?")]
)
def test_one_failure_is_retried(tmp_path: Path, first: Behaviour) -> None:
    assert guide(tmp_path, first, *GOOD, timeout=1.0 if first is hangs else 20.0).texts[2] == "take key"


def test_there_is_one_retry_and_no_more(tmp_path: Path) -> None:
    busy = raw(b"", status=429, headers={"Retry-After": "0"})
    with chat_server(busy) as server:
        endpoint = ChatEndpoint(server.url, "judge", tmp_path)
        with pytest.raises(RunError, match="status 429"):
            ask(endpoint, "hello")
        assert len(server.requests) == endpoint.usage.failed == 2


def test_items_and_tokens_are_limited(tmp_path: Path) -> None:
    many = {"items": [{**TAKE, "statement": f"advice {number}"} for number in range(16)]}
    fits = {"items": [{"id": f"e{number}", "step": 2, "quote": "A key lies in it."} for number in range(16)]}
    guidance = guide(tmp_path, says(many), says(fits), max_tokens=7)
    assert guidance.texts[2] == "advice 0\nadvice 1\nadvice 2"
    assert len(guidance.items) == 3


def test_equal_requests_are_answered_from_the_disk(tmp_path: Path) -> None:
    with chat_server(*GOOD) as server:
        first = EndpointAnalyzer(ChatEndpoint(server.url, "judge", tmp_path)).guide(group())
        endpoint = ChatEndpoint(server.url, "judge", tmp_path)
        again = EndpointAnalyzer(endpoint).guide(group())
        assert first == again
        assert len(server.requests) == 2
        assert (endpoint.usage.requests, endpoint.usage.cached) == (0, 2)


def test_a_broken_cache_file_is_asked_again(tmp_path: Path) -> None:
    with chat_server(says("one"), says("two")) as server:
        ask(ChatEndpoint(server.url, "judge", tmp_path), "hello")
        for path in (tmp_path / "cache").iterdir():
            path.write_text('{"answer": ')
        assert ask(ChatEndpoint(server.url, "judge", tmp_path), "hello") == "two"


def test_the_request_is_deterministic_and_says_nothing_of_the_outcome(tmp_path: Path) -> None:
    with chat_server(*GOOD) as server:
        EndpointAnalyzer(ChatEndpoint(server.url, "judge", tmp_path)).guide(group())
    align = server.requests[1]
    assert align["temperature"] == 0 and align["model"] == "judge"
    prompt = align["messages"][0]["content"]
    assert "The attempt:" in prompt and "open box 2" in prompt
    final = group().episodes[TARGET].final_observation
    assert final not in prompt.split("The attempt:")[1].split("Step 2")[1]
    assert not any(word in prompt.lower() for word in ("reward", "success", "won", "score", "fail"))


def test_tokens_and_cost_are_counted(tmp_path: Path) -> None:
    with chat_server(says("yes", {"prompt_tokens": 2000, "completion_tokens": 500}), says("no", "free")) as server:
        endpoint = ChatEndpoint(server.url, "judge", tmp_path, prices=(1.0, 4.0))
        ask(endpoint, "a")
        ask(endpoint, "b")
    assert (endpoint.usage.prompt_tokens, endpoint.usage.completion_tokens) == (2000, 500)
    assert endpoint.usage.cost == pytest.approx(0.004)


def test_every_request_is_in_the_audit_file_and_the_key_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TASPO_ENDPOINT_KEY", KEY)
    with chat_server(raw(f"bad key {KEY}".encode(), 500, {"Retry-After": "0"}), says(f"your key is {KEY}")) as server:
        answer = ask(ChatEndpoint(server.url, "judge", tmp_path), "hello")
        assert [headers["Authorization"] for headers in server.headers] == [f"Bearer {KEY}"] * 2
    assert answer == "your key is [key]"
    lines = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()]
    assert [(line["schema"], line["attempt"]) for line in lines] == [(1, 1), (1, 2)]
    assert lines[0]["error"].startswith("status 500") and lines[1]["answer"] == answer
    assert not any(KEY in path.read_text() for path in tmp_path.rglob("*") if path.is_file())


def test_without_a_key_no_authorization_is_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TASPO_ENDPOINT_KEY", raising=False)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with chat_server(says("yes")) as server:
        ask(ChatEndpoint(server.url, "judge", tmp_path), "hello")
    assert "Authorization" not in server.headers[0]


@pytest.mark.parametrize("url", ["localhost:8000", "https://two..dots/v1", f"https://{'long' * 20}.org/v1"])
def test_an_address_that_cannot_be_one_is_refused(tmp_path: Path, url: str) -> None:
    with pytest.raises(InputError, match="base address"):
        ChatEndpoint(url, "judge", tmp_path)


def test_the_policy_itself_can_give_guidance() -> None:
    answers = iter([json.dumps(EVIDENCE), json.dumps(FITS)])
    guidance = SelfAnalyzer(lambda prompt, max_tokens: next(answers)).guide(group())[TARGET]
    assert guidance is not None and guidance.texts == [None, None, "take key"]


def test_a_policy_that_cannot_answer_gives_no_guidance() -> None:
    for answer in ("open box 2", "", "{", '{"items": [{}]}'):
        assert not any(SelfAnalyzer(lambda prompt, max_tokens, answer=answer: answer).guide(group()))  # type: ignore[misc]


@pytest.mark.parametrize(
    ("text", "found"),
    [('{"a": 1}', {"a": 1}), ('so: {"a": {"b": 2}} ok', {"a": {"b": 2}}), ("[1]", None), ("}{", None), ("", None)],
)
def test_the_json_object_of_an_answer_is_found(text: str, found: dict[str, Any] | None) -> None:
    assert parse_object(text) == found
