"""Two processes of ``accelerate launch`` train one policy: groups are whole, and credit is that of the group."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

pytest.importorskip("trl", reason="trl is not installed: pip install 'taspo-bench[trl]'")

from graded_world import CONFIG, TASKS, GradedCorridor, make_graded
from taspo_bench.config import CellConfig
from taspo_bench.taspo.analyzers.replay import ReplayAnalyzer
from taspo_bench.taspo.scheme import TASPO
from taspo_bench.training.loop import Trainer
from tiny_world import corridor_policy

TESTS = Path(__file__).parents[1]
ON_PROCESSORS = {"ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}


def launch(*command: str, options: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    """``accelerate launch`` of this Python, at a free port."""
    own = [sys.executable, "-m", "accelerate.commands.launch", *options, "--num_processes", "2"]
    own += ["--num_machines", "1", "--mixed_precision", "no", "--dynamo_backend", "no", "--main_process_port", "0"]
    paths = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])
    env = {**os.environ, **ON_PROCESSORS, "PYTHONPATH": paths}
    return subprocess.run([*own, *command], env=env, capture_output=True, text=True, check=False)


def test_two_processes_share_the_rollouts_and_learn_as_one(tmp_path):
    script = Path(__file__).with_name("one_process_of_two.py")
    done = launch(str(script), str(tmp_path), options=("--multi_gpu",))
    assert done.returncode == 0, done.stderr
    first, second = (json.loads((tmp_path / f"rank-{rank}.json").read_text()) for rank in (0, 1))

    assert len(first["played"]) == len(second["played"]) == 6
    assert first["groups"] == second["groups"]
    assert [episode for group in first["groups"] for episode in group] == first["played"] + second["played"]
    assert [len({task for task, _ in group}) for group in first["groups"]] == [1, 1, 1]
    assert (first["reports"], second["reports"]) == (1, 0)

    config = CellConfig(**CONFIG | {"updates": 1, "kl_coef": 0.0})
    analyzer = ReplayAnalyzer(GradedCorridor(), scope="trajectory", reveal=True, source="generic")
    own = Trainer(config, corridor_policy(), TASPO(), analyzer, make_graded, TASKS)
    credit = [episode.credit for episode in own.update(0).episodes]
    assert any(credit[4:8])  # the group that both played
    for seen in (first, second):
        assert seen["credit"] == [pytest.approx(given, abs=1e-5) for given in credit]

    weights, others = (load_file(tmp_path / f"rank-{rank}.st") for rank in (0, 1))
    before, after = corridor_policy().model.state_dict(), own.policy.model.state_dict()
    for name, weight in weights.items():
        assert torch.equal(weight, others[name]), name
    travelled = torch.cat([(after[name] - before[name]).flatten() for name in weights])
    apart = torch.cat([(weights[name] - after[name]).flatten() for name in weights])
    assert float(travelled.norm()) > 0 and float(apart.norm()) < 0.02 * float(travelled.norm())


def test_the_lone_process_of_accelerate_launch_cpu_is_refused_in_one_line(tmp_path):
    command = ("-m", "taspo_bench", "run", "--engine", "trl", "--method", "taspo", "--env", "alfworld")
    out = str(tmp_path / "run")
    done = launch(*command, "--preset", "smoke", "--out", out, options=("--cpu",))
    assert done.returncode != 0
    assert "ACCELERATE_USE_CPU=true accelerate launch --multi_gpu --num_processes N" in done.stderr.replace("\n", " ")
