"""The work behind ``taspo-bench warm-start``: train, measure, keep with a card that says how it was made."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from pathlib import Path

import torch
from rich.console import Console

from taspo_bench import registry
from taspo_bench.config import CellConfig
from taspo_bench.policies.shipped import warm_start_folder
from taspo_bench.training.checkpoint import save_tiny
from taspo_bench.training.warm_start import WarmStartSettings, reading, warm_start


def build(console: Console, env: str, data: str, out: Path | None, seed: int, target: float, minutes: float) -> None:
    """Train a warm start and write its folder; ``target`` 0 stands for the benchmark's own."""
    own = registry.env_class(env).presets.get("warm_start", {})
    settings = WarmStartSettings(
        **{**own, "seed": seed, "minutes": minutes, **({"target": target} if target else {})}
    )
    make_env = partial(registry.make_env, env, data=data)
    folder = out or warm_start_folder(CellConfig(env=env))
    command = f"taspo-bench warm-start --env {env} --data {data} --seed {seed} --target {settings.target}"

    def report(entry: dict[str, float]) -> None:
        console.print(
            f"step {entry['steps']:.0f}, {entry['minutes']:.1f} min: loss {entry['loss']:.3f}, "
            f"success on training tasks {entry['success']:.3f}",
            highlight=False,
        )

    made = warm_start(make_env, settings, report)
    first = make_env()
    read = reading(make_env, made.policy, first.splits()["train"].task_ids[::20], seed)
    card = {
        "env": env,
        "command": command,
        "settings": asdict(settings),
        "data_stamp": asdict(first.data_stamp()),
        "parameters": sum(weight.numel() for weight in made.policy.model.parameters()),
        "torch": torch.__version__,
        "reading": read,
        "curve": [{key: round(value, 4) for key, value in entry.items()} for entry in made.curve],
    }
    save_tiny(folder, made.policy, made.tokenizer, card)
    console.print(
        f"wrote {folder}: success {made.curve[-1]['success']:.3f} without guidance; mean token log-probability of "
        f"reference actions {read['clean']:.2f} without guidance, {read['guided']:.2f} with it "
        f"({read['turns']:.0f} turns)",
        highlight=False,
        soft_wrap=True,
    )
