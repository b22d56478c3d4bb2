"""Language models on the command line: warm start, training, evaluation and export, one from the other's folder."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from chat_world import chat_policy
from taspo_bench.cli import app

pytest.importorskip("peft", reason="needs the extra taspo-bench[peft]")

SMALL = ["--set", "max_turns=3", "--set", "context_tokens=2048"]


def taspo_bench(*words: object) -> str:
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == 0, (result.output, result.exception)
    return result.output


@pytest.mark.slow
def test_an_adapter_goes_from_warm_start_to_training_evaluation_and_export(tmp_path):
    policy = chat_policy()
    model, start, run, merged = (tmp_path / name for name in ("model", "start", "run", "merged"))
    policy.model.save_pretrained(model)
    policy.format.tokenizer.save_pretrained(model)
    taspo_bench("warm-start", "--env", "alfworld", "--model", model, "--minutes", "0.02", "--out", start, *SMALL)
    card = json.loads((start / "card.json").read_text())
    assert card["model"] == str(model) and card["env"] == "alfworld" and card["curve"]
    taspo_bench(
        "run", "--method", "taspo", "--env", "alfworld", "--model", model, "--preset", "smoke", "--jobs", "1",
        "--set", f"warm_start={start}", "--set", "updates=1", "--set", "eval_tasks=2", "--out", run, *SMALL,
    )  # fmt: skip
    cell = run / "cells" / "taspo" / "alfworld" / "seed-0"
    assert json.loads((cell / "config.json").read_text())["warm_start_card"] == card
    trained = cell / "policy-last"
    assert (trained / "start" / "adapter_config.json").is_file()
    ask = ["eval", "--env", "alfworld", "--split", "valid_unseen", "--tasks", "1", "--temperature", "0"]
    taspo_bench(*ask, "--policy", model, "--adapter", trained, "--out", tmp_path / "a")
    taspo_bench("export", "--model", model, "--adapter", trained, "--out", merged)
    taspo_bench(*ask, "--policy", merged, "--out", tmp_path / "b")
    first, second = (json.loads((tmp_path / name / "eval.json").read_text())["splits"] for name in "ab")
    assert first == second
