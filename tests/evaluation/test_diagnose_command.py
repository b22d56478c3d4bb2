"""`taspo-bench diagnose` on stored episodes: what it keeps, and what it does where nothing can be judged."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from taspo_bench import registry
from taspo_bench.config import resolve
from taspo_bench.episode import write_episodes
from taspo_bench.errors import InputError
from taspo_bench.evaluation.diagnose_command import diagnose_run
from taspo_bench.policies.policy import Policy
from taspo_bench.policies.scripted import ExpertPolicy, RandomPolicy
from taspo_bench.rollout import Start, rollout


def store(run: Path, env: str, policies: Sequence[Policy]) -> None:
    """One training update of one group: an episode of each policy."""
    config = resolve("smoke", {}, {"group_size": 2}, method="taspo", env=env, seed=0)
    cell = run / "cells" / "taspo" / env / "seed-0"
    (cell / "episodes").mkdir(parents=True)
    (cell / "config.json").write_text(json.dumps(config.model_dump()))
    task = registry.make_env(env).split.task_ids[0]
    start = Start(task, "train", 0, (0,))
    episodes = [rollout(lambda: registry.make_env(env), policy, [start])[0] for policy in policies]
    write_episodes(cell / "episodes" / "train-00001.jsonl.gz", episodes)


def test_a_benchmark_of_equal_returns_is_left_out_and_named(tmp_path, capsys):
    store(tmp_path, "searchqa", [ExpertPolicy(), RandomPolicy()])
    store(tmp_path, "alfworld", [RandomPolicy(), RandomPolicy()])
    diagnoses = diagnose_run(Console(width=200), tmp_path, "taspo", ["grpo", "oracle_credit"], 0)
    assert [diagnosis.env for diagnosis in diagnoses] == ["searchqa"]
    assert "alfworld seed 0" in capsys.readouterr().out
    kept = json.loads((tmp_path / "diagnosis" / "searchqa.json").read_text())
    assert kept["schema"] == 1
    assert np.isfinite(kept["estimates"]["oracle_credit"]["spearman"]["value"])


def test_nothing_but_equal_returns_is_one_clear_line(tmp_path):
    store(tmp_path, "searchqa", [ExpertPolicy(), ExpertPolicy()])
    with pytest.raises(InputError, match="no group of 'taspo' had unequal returns"):
        diagnose_run(Console(), tmp_path, "taspo", ["grpo"], 0)
