"""What training leaves in a cell's folder besides checkpoints: a line of metrics per update, and episodes."""

from __future__ import annotations

import json
from pathlib import Path

from taspo_bench.config import CellConfig
from taspo_bench.episode import write_episodes
from taspo_bench.files import write_text
from taspo_bench.training.loop import Trained

SCHEMA = 1


def begin(folder: Path, updates: int) -> None:
    """Cut the metrics back to their first lines: those of the updates that the checkpoint knows of."""
    path = folder / "metrics.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)[:updates] if path.exists() else []
    write_text(path, "".join(lines))


def seconds(folder: Path) -> float:
    """What the phases of all updates took together, those before a break among them."""
    lines = (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return sum(sum(json.loads(line)["seconds"].values()) for line in lines)


def add(folder: Path, config: CellConfig, done: int, trained: Trained) -> bool:
    """Add what update number ``done`` (from 1) did; whether it is one whose episodes and weights are kept."""
    with (folder / "metrics.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps({"schema": SCHEMA, **trained.metrics}) + "\n")
    is_kept = done % config.save_every == 0 or done == config.updates
    if is_kept:
        write_episodes(folder / "episodes" / f"train-{done:05d}.jsonl.gz", trained.episodes)
    return is_kept
