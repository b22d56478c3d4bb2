"""The policies that training leaves in a cell's folder, as folders that ``eval`` and ``warm_start`` take.

``policy-last`` is the one that the cell evaluates. ``policy-best`` is for further use: chosen by training success
alone, never by an evaluation split.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch

from taspo_bench.api import TextEnv
from taspo_bench.config import CellConfig
from taspo_bench.policies.formats import LineFormat
from taspo_bench.policies.language_model import LanguageModel
from taspo_bench.training.checkpoint import save_tiny
from taspo_bench.training.model_folder import save_model_folder

LAST = "policy-last"
BEST = "policy-best"


def keep_last(folder: Path, config: CellConfig, policy: LanguageModel, env: TextEnv) -> None:
    """Write the policy as training left it."""
    _keep(folder / LAST, config, policy, env, config.updates)


def keep_best(folder: Path, config: CellConfig, policy: LanguageModel, env: TextEnv, done: int) -> None:
    """Write the policy after update number ``done`` (from 1) if the updates since the checkpoint before had more
    success, on the mean, than those before any earlier checkpoint. Of equals the first stays.

    Call it before the checkpoint of that update: a kill between the two repeats both.
    """
    windows = _window_means(folder / "metrics.jsonl", config.save_every, done)
    if windows[-1] > max(windows[:-1], default=-1.0):
        _keep(folder / BEST, config, policy, env, done)


def _window_means(metrics: Path, size: int, done: int) -> list[float]:
    lines = metrics.read_text(encoding="utf-8").splitlines()[:done]
    success = [float(json.loads(line)["success"]) for line in lines]
    return [float(np.mean(success[first : first + size])) for first in range(0, done, size)]


def _keep(place: Path, config: CellConfig, policy: LanguageModel, env: TextEnv, done: int) -> None:
    card = {
        "env": config.env,
        "method": config.method,
        "seed": config.seed,
        "updates": done,
        "command": "taspo-bench run --resume --out RUN",
        "data_stamp": asdict(env.data_stamp()),
        "parameters": sum(weight.numel() for weight in policy.model.parameters()),
        "torch": torch.__version__,
    }
    if isinstance(policy.format, LineFormat):
        save_tiny(place, policy, policy.format.tokenizer, card, torch.float32)
    else:
        save_model_folder(place, config, policy, card)
