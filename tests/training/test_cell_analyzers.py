"""A cell whose guidance comes from a hosted model, or from the policy itself."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from chat_server import Behaviour, chat_server, chooses, hangs_up, raw, refuses, says
from corridor import Corridor, play
from taspo_bench.config import CellConfig, resolve
from taspo_bench.episode import Group, read_episodes
from taspo_bench.errors import InputError
from taspo_bench.run import Plan
from taspo_bench.taspo.analyzers.settings import check_analyzer
from taspo_bench.training.analyzer import make_analyzer
from taspo_bench.training.cell import run_cell
from tiny_world import corridor_policy

KEY = "sk-secret-0123456789"
SMALL = {"updates": 2, "tasks_per_update": 3, "group_size": 4, "eval_tasks": 2, "save_every": 1}
USAGE = {"prompt_tokens": 1000, "completion_tokens": 100}
STEP = re.compile(r"^Step (\d+)\nobservation: (.*?)\naction: (.*?)$", re.DOTALL | re.MULTILINE)


def settings(**overrides: Any) -> CellConfig:
    return resolve(
        "smoke", {}, {**SMALL, "analyzer": "endpoint", **overrides}, method="taspo", env="searchqa", seed=3
    )


def analyst(prompt: str) -> Behaviour:
    """Advises the first action of the first success, and finds that it fits the beginning of every attempt."""
    if "The attempt:" in prompt:
        quote = prompt.split("The attempt:\nStep 0\nobservation: ")[1].splitlines()[0]
        return says({"items": [{"id": "e0", "step": 0, "quote": quote}]}, USAGE)
    number, rest = prompt.split("Trajectory ", 1)[1].split(":\n", 1)
    step, observation, action = STEP.findall(rest)[0]
    source = {"trajectory": int(number), "step": int(step), "action": action, "observation": observation[:100]}
    return says({"items": [{"kind": "progress", "statement": action, "sources": [source]}]}, USAGE)


def metrics(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def guided(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("guided")
    with pytest.MonkeyPatch.context() as patch, chat_server(chooses(analyst)) as server:
        patch.setenv("TASPO_ENDPOINT_KEY", KEY)
        run_cell(settings(analyzer_endpoint=f"{server.url}#judge", analyzer_prices=[2.0, 10.0]), folder)
        assert {request["model"] for request in server.requests} == {"judge"}
        assert server.most_open <= 8
    return folder


def test_a_hosted_model_guides_a_run(guided: Path) -> None:
    assert max(line["guidance_coverage"] for line in metrics(guided)) > 0
    assert max(line["weighted"] for line in metrics(guided)) > 0
    episodes = [e for path in sorted((guided / "episodes").glob("train-*")) for e in read_episodes(path)]
    items = [item for episode in episodes if episode.guidance for item in episode.guidance.items]
    assert items and all(item["sources"] and item["quote"] for item in items)
    assert (guided / "eval.json").is_file()


def test_what_the_hosted_model_costs_is_in_the_metrics(guided: Path) -> None:
    last = metrics(guided)[-1]
    assert last["analyzer_requests"] > 0 and last["analyzer_failed"] == 0
    assert last["analyzer_prompt_tokens"] == 1000 * last["analyzer_requests"]
    assert last["analyzer_cost"] == pytest.approx(0.003 * last["analyzer_requests"])


def test_requests_and_answers_stay_in_the_cells_folder_and_the_key_does_not(guided: Path) -> None:
    lines = (guided / "analyzer" / "audit.jsonl").read_text().splitlines()
    assert len(lines) == metrics(guided)[-1]["analyzer_requests"]
    assert list((guided / "analyzer" / "cache").glob("*.json"))
    assert not any(KEY.encode() in path.read_bytes() for path in guided.rglob("*") if path.is_file())


@pytest.mark.parametrize(
    "behaviour",
    [raw(b"busy", 429, {"Retry-After": "0"}), raw(b"not json"), says("I would rather not."), refuses, hangs_up],
)
def test_a_server_that_misbehaves_leaves_plain_outcome_credit(tmp_path: Path, behaviour: Behaviour) -> None:
    with chat_server(behaviour) as server:
        run_cell(settings(updates=1, eval_tasks=1, analyzer_endpoint=f"{server.url}#judge"), tmp_path)
        assert server.requests
    [line] = metrics(tmp_path)
    assert line["guidance_coverage"] == line["weighted"] == line["sign_flips"] == 0
    assert line["analyzer_requests"] > 0
    assert (tmp_path / "eval.json").is_file()


class Killed(BaseException):
    """Stands for a kill between two updates."""


def test_the_count_of_tokens_goes_on_where_a_run_was_broken_off(guided: Path, tmp_path: Path) -> None:
    def kill(phase: str, done: int, total: int) -> None:
        if phase == "train" and done == 1:
            raise Killed

    with chat_server(chooses(analyst)) as server:
        config = settings(analyzer_endpoint=f"{server.url}#judge", analyzer_prices=[2.0, 10.0])
        with pytest.raises(Killed):
            run_cell(config, tmp_path, kill)
        run_cell(config, tmp_path)
    whole, resumed = metrics(guided)[-1], metrics(tmp_path)[-1]
    assert resumed["analyzer_cost"] == pytest.approx(whole["analyzer_cost"]) != 0
    assert resumed["analyzer_requests"] == whole["analyzer_requests"]


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"analyzer": "self"}, "tiny policy"),
        ({"analyzer": "endpoint"}, "analyzer_endpoint="),
        ({"analyzer": "endpoint", "analyzer_endpoint": "http://127.0.0.1/v1"}, "name the model"),
        ({"analyzer": "endpoint", "analyzer_endpoint": f"http://me:{KEY}@127.0.0.1/v1#judge"}, "TASPO_ENDPOINT_KEY"),
        ({"analyzer_endpoint": "http://127.0.0.1/v1#judge"}, "add --set analyzer=endpoint"),
        (
            {"analyzer": "endpoint", "analyzer_endpoint": "http://h/v1#judge", "guidance_source": "nearest"},
            "guidance_source",
        ),
        ({"analyzer": "endpoint", "analyzer_endpoint": "http://h/v1#judge", "guidance_bank": 4}, "guidance_bank"),
    ],
)
def test_settings_that_do_not_go_together_are_refused_before_the_run(overrides: dict[str, Any], message: str) -> None:
    plan = Plan.make(["taspo"], ["searchqa"], [0], "smoke", "embedded", overrides)
    with pytest.raises(InputError, match=message) as refused:
        plan.cells()
    assert KEY not in str(refused.value)


def test_the_address_may_be_written_as_that_of_a_policy() -> None:
    check_analyzer(settings(analyzer_endpoint="endpoint:http://127.0.0.1:9/v1#judge"))


def test_a_policy_that_answers_no_questions_cannot_guide_itself(tmp_path: Path) -> None:
    config = settings(analyzer="self", policy="corridor")
    with pytest.raises(InputError, match="answers no questions"):
        make_analyzer(config, Corridor(), corridor_policy(), tmp_path)


def test_a_policy_that_answers_with_noise_guides_nobody(tmp_path: Path) -> None:
    policy = corridor_policy()
    policy.format.ask = lambda question: policy.format.observe(question[-200:], is_first=True)  # type: ignore[attr-defined]
    analyzer = make_analyzer(settings(analyzer="self", policy="corridor"), Corridor(), policy, tmp_path)
    guidance = analyzer.guide(
        Group("key-2", [play(["open box 2", "take key", "unlock door"]), play(["look", "open box 2"])])
    )
    assert not any(guidance) and all(given is not None and given.reason for given in guidance)
