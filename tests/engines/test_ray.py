"""Cells and evaluations on a local Ray: a lost worker changes nothing in the numbers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("ray", reason="ray is not installed: pip install 'taspo-bench[ray]'")

SETTINGS = ["--preset", "smoke", "--set", "updates=8", "--set", "save_every=2", "--set", "eval_tasks=8"]
SEED = "41"  # in the name of the worker's process, so that no other run's is killed


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "taspo_bench", *words]


def call(*words: str, **changes: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, **changes}
    return subprocess.run(command(*words), env=env, capture_output=True, text=True, check=False, timeout=300)


def processes_named(title: str) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes().decode(errors="replace").strip("\0 ").startswith(title):
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def metrics(cell: Path) -> list[dict[str, object]]:
    lines = [json.loads(line) for line in (cell / "metrics.jsonl").read_text().splitlines()]
    return [{key: value for key, value in line.items() if key != "seconds"} for line in lines]


def test_a_worker_that_is_killed_is_begun_again_and_changes_nothing(tmp_path):
    run = ["run", "--method", "grpo", "--env", "searchqa", "--seeds", f"{SEED},", *SETTINGS]
    local = call(*run, "--out", str(tmp_path / "local"))
    assert local.returncode == 0, local.stderr

    folder = tmp_path / "cluster"
    cell = Path("cells", "grpo", "searchqa", f"seed-{SEED}")
    begun = subprocess.Popen(
        command(*run, "--cluster", "ray", "--out", str(folder)), stdout=subprocess.PIPE, text=True
    )
    limit = time.monotonic() + 120
    while not list((folder / cell).glob("checkpoint/*")):
        assert begun.poll() is None and time.monotonic() < limit
        time.sleep(0.05)
    [worker] = processes_named(f"ray::grpo searchqa seed {SEED}")
    os.kill(worker, signal.SIGKILL)
    assert not (folder / cell / "eval.json").exists()
    told, _ = begun.communicate(timeout=240)
    assert begun.returncode == 0, told
    assert f"done: grpo searchqa seed {SEED}" in told

    assert metrics(folder / cell) == metrics(tmp_path / "local" / cell)
    assert (folder / "summary.csv").read_bytes() == (tmp_path / "local" / "summary.csv").read_bytes()


def test_an_evaluation_in_shares_gives_the_same_episodes(tmp_path):
    evaluate = ["eval", "--env", "searchqa", "--policy", "warm-start", "--split", "valid_seen"]
    for name, more in {"alone": [], "shares": ["--cluster", "ray"]}.items():
        done = call(*evaluate, *more, "--out", str(tmp_path / name))
        assert done.returncode == 0, done.stderr
    alone, shares = (json.loads((tmp_path / name / "eval.json").read_text()) for name in ("alone", "shares"))
    assert shares["splits"] == alone["splits"]
    assert shares["splits"]["valid_seen"]["n"] > 64  # more than one share


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--cluster", "ray:127.0.0.1:9"], "no Ray cluster answers there"),
        (["--cluster", "slurm"], "give ray, or ray:ADDRESS"),
        (["--cluster", "ray", "--set", "cell_gpus=64"], "asks for 64 of GPU"),
    ],
)
def test_what_no_cluster_has_is_one_line(tmp_path, words, told):
    run = ["run", "--method", "grpo", "--env", "searchqa", "--preset", "smoke", "--out", str(tmp_path / "run")]
    done = call(*run, *words)
    assert done.returncode == 2
    assert told in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
