"""`taspo-bench eval --policy endpoint:...` from the shell, against a local server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from chat_server import Behaviour, chat_server, chooses, raw, says
from taspo_bench.episode import read_episodes
from taspo_bench.registry import make_env

KEY = "sk-secret-0123456789"
USAGE = {"prompt_tokens": 100, "completion_tokens": 10}


def taspo_bench(*args: object, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from taspo_bench.cli import main; main()", *map(str, args)],
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "200", **env},
    )


def evaluate(url: str, out: Path, *args: object, **env: str) -> subprocess.CompletedProcess[str]:
    policy = f"endpoint:{url}#pupil"
    return taspo_bench(
        "eval", "--policy", policy, "--env", "searchqa", "--split", "valid_seen", "--tasks", 6, "--out", out, *args,
        "--set", "attempts=2", TASPO_ENDPOINT_KEY=KEY, **env,
    )  # fmt: skip


@pytest.fixture(scope="module")
def answers() -> dict[str, str]:
    """A right answer to each question of the split."""
    env = make_env("searchqa")
    found = {}
    for task_id in env.splits()["valid_seen"].task_ids:
        _, info = env.reset(options={"task_id": task_id})
        found[info["instruction"]] = env.solve()[-1]
    return found


def knows(answers: dict[str, str]) -> Behaviour:
    def behaviour(prompt: str) -> Behaviour:
        question = prompt.split("Question: ")[1].split("\n")[0]
        return says(f"<think>I know.</think><action>{answers[question]}</action>", USAGE)

    return chooses(behaviour)


def test_an_evaluation_ends_with_scores_an_account_and_its_cost(tmp_path: Path, answers: dict[str, str]) -> None:
    with chat_server(knows(answers)) as server:
        done = evaluate(server.url, tmp_path, "--set", "prices=[1.0, 4.0]")
    assert done.returncode == 0, done.stderr
    account = "valid_seen: 6 episodes: 6 won, 0 lost, 0 format failure, 0 endpoint failure, 0 environment failure"
    assert account in done.stdout and "requests 6" in done.stdout
    record: dict[str, Any] = json.loads((tmp_path / "eval.json").read_text())
    assert record["method"] == f"endpoint:{server.url}#pupil"
    assert record["splits"]["valid_seen"]["success"] == 1.0
    assert record["endpoint"]["usage"]["cost"] == pytest.approx(6 * (100 * 1.0 + 10 * 4.0) / 1e6)
    assert len(list(read_episodes(tmp_path / "eval-valid_seen.jsonl.gz"))) == 6


def test_episodes_that_the_endpoint_failed_in_count_as_lost_and_the_exit_code_says_so(
    tmp_path: Path, answers: dict[str, str]
) -> None:
    def half(prompt: str) -> Behaviour:
        question = prompt.split("Question: ")[1].split("\n")[0]
        return knows(answers) if len(question) % 2 else raw(f"down {KEY}".encode(), 503, {"Retry-After": "0"})

    with chat_server(chooses(half)) as server:
        done = evaluate(server.url, tmp_path)
    assert done.returncode == 1
    record = json.loads((tmp_path / "eval.json").read_text())
    counts = record["endpoint"]["outcomes"]["valid_seen"]
    failed = counts["endpoint failure"]
    assert 0 < failed < 6 and counts["won"] == 6 - failed
    assert record["splits"]["valid_seen"]["success"] == pytest.approx(counts["won"] / 6)
    assert f"{failed} of 6 episodes could not be played" in done.stderr and "status 503" in done.stderr
    assert KEY not in done.stdout + done.stderr
    assert not any(KEY.encode() in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--policy", "endpoint:http://127.0.0.1:9/v1"], "name the model"),
        (["--policy", "endpoint:http://127.0.0.1:9/v1#m", "--set", "speed=9"], "--set speed=9"),
        (["--policy", "expert", "--set", "concurrency=2"], "settings, not --policy expert"),
        (["--policy", "expertt"], "endpoint:URL#MODEL"),
    ],
)
def test_bad_input_is_one_line(args: list[str], message: str) -> None:
    done = taspo_bench("eval", "--env", "searchqa", *args)
    assert done.returncode == 2 and message in done.stderr and done.stderr.count("\n") == 1
