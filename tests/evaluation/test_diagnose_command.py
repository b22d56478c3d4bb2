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
from taspo_bench.episode import Guidance, write_episodes
from taspo_bench.errors import InputError
from taspo_bench.evaluation.diagnose_command import diagnose_run
from taspo_bench.policies.policy import Policy
from taspo_bench.policies.scripted import ExpertPolicy, RandomPolicy
from taspo_bench.rollout import Start, rollout


def store(run: Path, env: str, policies: Sequence[Policy], has_guidance: bool = True) -> None:
    """One training update of one group: an episode of each policy, the first perhaps with guidance."""
    config = resolve("smoke", {}, {"group_size": 2}, method="taspo", env=env, seed=0)
    cell = run / "cells" / "taspo" / env / "seed-0"
    (cell / "episodes").mkdir(parents=True)
    (cell / "config.json").write_text(json.dumps(config.model_dump()))
    task = registry.make_env(env).split.task_ids[0]
    start = Start(task, "train", 0, (0,))
    episodes = [rollout(lambda: registry.make_env(env), policy, [start])[0] for policy in policies]
    if has_guidance:
        episodes[0].guidance = Guidance([None, "Look first."])
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


def test_cells_that_are_not_finished_are_left_out_and_named(tmp_path, capsys):
    store(tmp_path, "searchqa", [ExpertPolicy(), RandomPolicy()])
    cells = tmp_path / "cells" / "taspo" / "searchqa"
    (cells / "seed-1").mkdir()
    (cells / "seed-2").mkdir()
    (cells / "seed-2" / "config.json").write_text((cells / "seed-0" / "config.json").read_text())
    [diagnosis] = diagnose_run(Console(width=200), tmp_path, "taspo", ["grpo"], 0)
    assert list(diagnosis.seeds) == [0]
    told = capsys.readouterr().out
    assert all(f"searchqa seed {seed}: no training episodes are stored; left out" in told for seed in (1, 2))


def test_nothing_stored_is_one_clear_line(tmp_path):
    (tmp_path / "cells" / "taspo" / "searchqa" / "seed-0").mkdir(parents=True)
    with pytest.raises(InputError, match="no training episodes of 'taspo' are stored"):
        diagnose_run(Console(), tmp_path, "taspo", ["taspo"], 0)


def test_without_guidance_schemes_that_read_it_are_left_out_and_refused_by_name(tmp_path, capsys):
    store(tmp_path, "searchqa", [ExpertPolicy(), RandomPolicy()], has_guidance=False)
    [diagnosis] = diagnose_run(Console(width=200), tmp_path, "taspo", [], 0)
    assert diagnosis.schemes == ["grpo", "gigpo", "oracle_credit"]
    assert "left out: taspo, token_taspo, random_weights" in capsys.readouterr().out
    with pytest.raises(InputError, match="--scheme taspo: it reads guidance, and the episodes of 'taspo' have none"):
        diagnose_run(Console(), tmp_path, "taspo", ["grpo", "taspo"], 0)
