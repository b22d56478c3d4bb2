"""A hosted model plays: whatever its server does, every episode is accounted for."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from chat_server import (
    Behaviour,
    ChatServer,
    chat_server,
    chooses,
    cuts_off,
    drips,
    hangs,
    hangs_up,
    raw,
    refuses,
    replies,
    says,
)
from corridor import Corridor
from taspo_bench.api import Split
from taspo_bench.episode import Episode
from taspo_bench.errors import InputError
from taspo_bench.evaluation.evaluate import evaluate
from taspo_bench.evaluation.results import split_record
from taspo_bench.policies.endpoint import EndpointPolicy, count_outcomes
from taspo_bench.policies.window import parse_action, window_prompt

KEY = "sk-secret-0123456789"
TASKS = Split("valid_unseen", "unseen", ("key-1", "key-2", "key-3", "key-4"))
BUSY = raw(b"slow down", status=429, headers={"Retry-After": "0"})


def plays(prompt: str) -> str:
    """Open the boxes one after another, and take what there is."""
    _, _, now = prompt.rpartition("Now, at turn")
    if "You take the key" in now:
        return "<think>Now I have it.</think><action>unlock door</action>"
    if "A key lies in it" in now:
        return "<action>take key</action>"
    box = next((box for box in range(1, 5) if f"\nopen box {box}\n" in prompt), 1)
    return f"<think>It may lie in box {box}.</think>\n<action> open  box {box} </action>"


GOOD = replies(plays)


def policy(server: ChatServer, folder: Path | None = None, **settings: Any) -> EndpointPolicy:
    return EndpointPolicy(f"endpoint:{server.url}#pupil", folder=folder, settings={"attempts": 2, **settings})


def play(server: ChatServer, folder: Path | None = None, split: Split = TASKS, **settings: Any) -> list[Episode]:
    return evaluate(Corridor, policy(server, folder, **settings), split)


def test_a_model_that_plays_well_wins_and_its_words_are_kept() -> None:
    with chat_server(GOOD) as server:
        episodes = play(server)
    assert all(episode.won and not episode.error for episode in episodes)
    assert episodes[1].actions == ["open box 1", "open box 2", "take key", "unlock door"]
    assert episodes[1].turns[0].response.startswith("<think>It may lie in box 1.</think>")


@pytest.mark.parametrize(
    ("behaviour", "outcome", "reason"),
    [
        (BUSY, "endpoint failure", "status 429"),
        (raw(b"oops", status=500, headers={"Retry-After": "0"}), "endpoint failure", "status 500"),
        (raw(b"who are you", status=401), "endpoint failure", "status 401"),
        (raw(b"", status=302, headers={"Location": "http://127.0.0.1:9/"}), "endpoint failure", "status 302"),
        (hangs, "endpoint failure", "no whole answer within 0.3 s"),
        (drips, "endpoint failure", "no whole answer within 0.3 s"),
        (raw(b"not json"), "endpoint failure", "not a chat completion"),
        (raw(b'{"choices": []}'), "endpoint failure", "not a chat completion"),
        (raw(b'{"choices": [{"message": {"content": ["parts"]}}]}'), "endpoint failure", "not text"),
        (raw(b"plain words", headers={"Content-Encoding": "gzip"}), "endpoint failure", "DecodingError"),
        (raw(b" " * 1_100_000), "endpoint failure", "more than 1000000 bytes"),
        (cuts_off, "endpoint failure", "RemoteProtocolError"),
        (hangs_up, "endpoint failure", "RemoteProtocolError"),
        (says(""), "format failure", ""),
        (says(None), "format failure", ""),
        (refuses, "format failure", ""),
        (says("I would open the boxes."), "format failure", ""),
        (says("<action>look"), "format failure", ""),
        (says(f"<action>{'look ' * 5000}</action>"), "format failure", ""),
        (says("\ud800<action>\ud800</action>"), "lost", ""),
        (says(f"{'Let me see. ' * 20_000}<action>look</action>"), "lost", ""),
        (says("<action>dance</action>"), "lost", ""),
    ],
)
def test_every_episode_is_accounted_for_whatever_the_server_does(
    behaviour: Behaviour, outcome: str, reason: str
) -> None:
    with chat_server(behaviour) as server:
        episodes = play(server, timeout=0.3 if behaviour in (hangs, drips) else 20.0)
    counts = count_outcomes(episodes)
    assert counts[outcome] == sum(counts.values()) == len(TASKS)
    assert all(reason in episode.error for episode in episodes)
    record = split_record(episodes, TASKS)
    assert (record["n"], record["success"], record["score"]) == (4, 0.0, 0.0)
    assert record["errors"] == (4 if outcome == "endpoint failure" else 0)


def test_no_server_at_all_is_a_failure_of_each_episode() -> None:
    nobody = EndpointPolicy("endpoint:http://127.0.0.1:9/v1#pupil", settings={"attempts": 1})
    episodes = evaluate(Corridor, nobody, TASKS)
    assert count_outcomes(episodes)["endpoint failure"] == 4 and "ConnectError" in episodes[0].error


def test_one_bad_episode_does_not_touch_the_others() -> None:
    """Box 1 leads nowhere, box 2 to a dead server, box 3 to nonsense."""

    def by_prompt(prompt: str) -> Behaviour:
        if "You open box 1. A key" in prompt:
            return says("<action>look</action>")
        if "You open box 2. A key" in prompt:
            return BUSY
        return says("What?") if "You open box 3. A key" in prompt else GOOD

    with chat_server(chooses(by_prompt)) as server:
        episodes = play(server)
    assert count_outcomes(episodes) == {
        "won": 1,
        "lost": 1,
        "format failure": 1,
        "endpoint failure": 1,
        "environment failure": 0,
    }
    assert len(episodes[1].turns) == 2 and not episodes[1].won and episodes[1].score == 0.0
    assert len(episodes[2].turns) == Corridor.default_max_steps


@pytest.mark.parametrize("first", [BUSY, raw(b"not json"), raw(b"", 503, {"Retry-After": "0"}), hangs, cuts_off])
def test_a_failure_that_passes_costs_no_episode(first: Behaviour) -> None:
    with chat_server(first, GOOD) as server:
        judged = policy(server, concurrency=1, timeout=1.0 if first is hangs else 20.0)
        episodes = evaluate(Corridor, judged, TASKS)
    assert count_outcomes(episodes)["won"] == 4
    assert judged.endpoint.usage.failed == 1


def test_the_server_is_left_alone_for_as_long_as_it_asks() -> None:
    times: list[float] = []

    def noted(handler: Any, body: dict[str, Any]) -> None:
        times.append(time.monotonic())
        (raw(b"", 429, {"Retry-After": "0.3"}) if len(times) == 1 else GOOD)(handler, body)

    with chat_server(noted) as server:
        assert play(server, split=Split("one", "unseen", ("key-1",)))[0].won
    assert times[1] - times[0] >= 0.3


def test_as_many_requests_are_open_at_once_as_is_allowed_and_no_more() -> None:
    together = threading.Barrier(3)

    def waits(handler: Any, body: dict[str, Any]) -> None:
        together.wait(20)
        says("<action>look</action>")(handler, body)

    many = Split("many", "unseen", tuple(f"key-{number}" for number in range(1, 10)))
    with chat_server(waits) as server:
        episodes = play(server, split=many, concurrency=3)
    assert server.most_open == 3
    assert count_outcomes(episodes)["lost"] == 9


def test_a_dead_server_is_not_asked_for_ever() -> None:
    many = Split("many", "unseen", tuple(f"key-{number}" for number in range(1, 41)))
    with chat_server(raw(b"", 401)) as server:
        episodes = play(server, split=many, give_up=5, concurrency=1)
    assert len(server.requests) == 5
    assert count_outcomes(episodes)["endpoint failure"] == 40
    assert "given up after 5 failures in a row, the last: status 401" in episodes[-1].error


def test_an_evaluation_that_is_repeated_asks_only_for_what_it_lacks(tmp_path: Path) -> None:
    is_ill = True
    with chat_server(chooses(lambda prompt: BUSY if is_ill and "box 3. A key" in prompt else GOOD)) as server:
        first = play(server, tmp_path)
        asked = len(server.requests)
        is_ill = False
        judged = policy(server, tmp_path)
        again = evaluate(Corridor, judged, TASKS)
    assert count_outcomes(first)["endpoint failure"] == 1 and count_outcomes(again)["won"] == 4
    assert len(server.requests) - asked == judged.endpoint.usage.requests == len(["take key", "unlock door"])
    assert [again[n].actions for n in (0, 1, 3)] == [first[n].actions for n in (0, 1, 3)]


def test_two_episodes_with_one_prompt_are_two_samples(tmp_path: Path) -> None:
    with chat_server(says("<action>unlock door</action>")) as server:
        play(server, tmp_path)
    assert len(server.requests) == 4 * Corridor.default_max_steps
    assert all("draw" not in request and request["temperature"] == 0.0 for request in server.requests)


def test_tokens_and_cost_are_counted_and_garbled_counts_are_not() -> None:
    answer = "<action>look</action>"
    usage = {"prompt_tokens": 1000, "completion_tokens": 10}
    one = Split("one", "unseen", ("key-1",))
    with chat_server(says(answer, usage), says(answer, {"prompt_tokens": "many"}), says(answer, [])) as server:
        judged = policy(server, prices=[2.0, 8.0])
        evaluate(Corridor, judged, one)
    assert (judged.endpoint.usage.prompt_tokens, judged.endpoint.usage.completion_tokens) == (1000, 10)
    assert judged.endpoint.usage.cost == pytest.approx(0.00208)


def test_the_key_is_sent_and_stands_nowhere_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASPO_ENDPOINT_KEY", f" {KEY}\n")
    leaks = raw(f"bad key {KEY}".encode(), 500, {"Retry-After": "0"})
    with chat_server(leaks, says(f"<action>say {KEY}</action>"), leaks) as server:
        judged = policy(server, tmp_path, concurrency=1)
        episodes = evaluate(Corridor, judged, TASKS)
    assert {headers["Authorization"] for headers in server.headers} == {f"Bearer {KEY}"}
    assert all(KEY not in episode.to_json() for episode in episodes)
    assert "[key]" in episodes[0].turns[0].action and "[key]" in episodes[-1].error
    assert not any(KEY in path.read_text() for path in tmp_path.rglob("*") if path.is_file())
    assert KEY not in judged.name


def test_a_host_that_knows_the_limit_by_its_newer_name_is_understood() -> None:
    unknown = raw(b'{"error": "Unsupported parameter: use max_completion_tokens"}', 400)
    with chat_server(unknown, GOOD) as server:
        episodes = play(server, concurrency=1, max_tokens=77)
    assert count_outcomes(episodes)["won"] == 4
    assert server.requests[0]["max_tokens"] == server.requests[1]["max_completion_tokens"] == 77
    assert all("max_tokens" not in request for request in server.requests[1:])


def test_it_works_where_an_event_loop_is_running_already() -> None:
    async def notebook_cell(server: ChatServer) -> list[Episode]:
        return play(server)

    with chat_server(GOOD) as server:
        assert count_outcomes(asyncio.run(notebook_cell(server)))["won"] == 4


@pytest.mark.parametrize(
    "address",
    [
        "endpoint:http://127.0.0.1:9/v1",
        "endpoint:#pupil",
        "endpoint:127.0.0.1/v1#pupil",
        "endpoint:http://#pupil",
        "endpoint:http://host:port/v1#pupil",
        f"endpoint:http://me:{KEY}@127.0.0.1/v1#pupil",
        f"endpoint:http://{KEY}@127.0.0.1/v1#pupil",
        f"endpoint:http://127.0.0.1/v1?key={KEY}#pupil",
    ],
)
def test_an_address_that_cannot_be_used_is_refused_without_repeating_a_key(address: str) -> None:
    with pytest.raises(InputError) as refused:
        EndpointPolicy(address)
    assert KEY not in str(refused.value) and "\n" not in str(refused.value)


@pytest.mark.parametrize("key", ["sk-ключ", "sk-two\nlines"])
def test_a_key_that_no_header_can_hold_is_refused_without_repeating_it(
    key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TASPO_ENDPOINT_KEY", key)
    with pytest.raises(InputError, match="TASPO_ENDPOINT_KEY") as refused:
        EndpointPolicy("endpoint:http://127.0.0.1:9/v1#pupil")
    assert "sk-" not in str(refused.value)


@pytest.mark.parametrize(
    "settings", [{"concurrency": 0}, {"timeout": "soon"}, {"patience": 3}, {"prices": [1]}, {"window": -1}]
)
def test_a_setting_that_cannot_be_used_is_named(settings: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=f"--set {next(iter(settings))}"):
        EndpointPolicy("endpoint:http://127.0.0.1:9/v1#pupil", settings=settings)


# --- prompt and answer ---------------------------------------------------------------------------


def test_the_prompt_holds_rules_task_the_last_turns_and_what_may_be_done() -> None:
    env = Corridor()
    first, _ = env.reset(options={"task_id": "key-4"})
    past = []
    seen = first
    for box in (1, 2, 3):
        past.append((seen, f"open box {box}"))
        seen = env.step(f"open box {box}")[0]
    prompt = window_prompt(env, first, past, seen, window=2)
    assert first in prompt and "You open box 3. It is empty." in prompt
    assert "Turn 1 action" not in prompt and "Turn 2 action: open box 2" in prompt
    assert "Turn 3 observation: You open box 2. It is empty." in prompt
    assert "\nopen box 4\nlook\n" in prompt and "\nopen box 1\n" not in prompt
    assert "Actions left: 9." in prompt


def test_a_window_of_nothing_shows_the_present_alone() -> None:
    env = Corridor()
    first, _ = env.reset(options={"task_id": "key-4"})
    seen = env.step("open box 1")[0]
    assert "Turn 1" not in window_prompt(env, first, [(first, "open box 1")], seen, window=0)


def test_no_prompt_tells_the_beginning_twice() -> None:
    env = Corridor()
    first, _ = env.reset(options={"task_id": "key-4"})
    assert window_prompt(env, first, [], first, window=4).count(first) == 1
    seen = env.step("open box 1")[0]
    second = window_prompt(env, first, [(first, "open box 1")], seen, window=4)
    assert second.count(first) == 1 and "Turn 1 action: open box 1" in second


@pytest.mark.parametrize(
    ("answer", "action"),
    [
        ("<action>look</action>", "look"),
        ("<think>x</think><action> go  to\nbed 1 </action> bye", "go to bed 1"),
        ("<action>one</action><action>two</action>", "two"),
        (
            "I must reason and write the action between <action> and </action>. <action>go to shelf 1</action>",
            "go to shelf 1",
        ),
        ("The tag <action> holds it: <action>go to shelf 1</action>", "go to shelf 1"),
        ("<answer>Paris</answer> Wait, rather <answer>Lyon</answer>", "<answer>Lyon</answer>"),
        ("<answer>Paris</answer> or <answer>Ly", "<answer>Paris</answer>"),
        ("<action><search>river</search></action>", "<search>river</search>"),
        ("<think>maybe <action>no</action></think><action>yes</action>", "yes"),
        ("maybe <action>no</action></think><action>yes</action>", "yes"),
        ("<action>yes</action> since <think>more</think>", "yes"),
        ("<think>a <think><action>no</action></think><action>yes</action></think>", "yes"),
        pytest.param("<think>" * 50_000 + "<action>no</action></think><action>yes</action>", "yes", id="many"),
        ("<search>river of Lar</search>", "<search>river of Lar</search>"),
        ("<answer>Var Drar</answer>", "<answer>Var Drar</answer>"),
        ("<action>search[river]</action>", "search[river]"),
        ("<action></action>", ""),
        ("<action>look", ""),
        ("look", ""),
        ("", ""),
    ],
)
def test_the_action_is_the_last_whole_tagged_span_behind_the_reasoning(answer: str, action: str) -> None:
    assert parse_action(answer) == action
