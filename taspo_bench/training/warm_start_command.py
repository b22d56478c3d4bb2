"""The work behind ``taspo-bench warm-start``: train, measure, keep with a card that says how it was made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

import torch
from rich.console import Console

from taspo_bench import registry
from taspo_bench.config import CellConfig, parse_overrides, resolve
from taspo_bench.errors import InputError
from taspo_bench.files import refuse_replacing, refuse_unwritable
from taspo_bench.policies.shipped import warm_start_folder
from taspo_bench.training.checkpoint import save_tiny
from taspo_bench.training.model_folder import save_model_folder
from taspo_bench.training.model_warm_start import LEARNING_RATE, AdapterSettings, train_adapter
from taspo_bench.training.starting_policy import load_policy
from taspo_bench.training.warm_start import WarmStartSettings, reading, warm_start


def build(console: Console, env: str, data: str, out: Path | None, seed: int, target: float, minutes: float) -> None:
    """Train a warm start and write its folder; ``target`` 0 stands for the benchmark's own."""
    own = registry.env_class(env).presets.get("warm_start", {})
    settings = WarmStartSettings(
        **{**own, "seed": seed, "minutes": minutes, **({"target": target} if target else {})}
    )
    make_env = partial(registry.make_env, env, data=data)
    if out is None and data != "embedded":
        raise InputError(f"--data {data}: name a folder with --out; the package keeps the embedded data's own")
    folder = out or warm_start_folder(CellConfig(env=env))
    _check_out(folder)
    command = f"taspo-bench warm-start --env {env} --data {data} --seed {seed} --target {settings.target}"
    command += "" if minutes == WarmStartSettings.minutes else f" --minutes {minutes:g}"
    command += f" --out {out}" if out else ""

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
    success = max(entry["success"] for entry in made.curve)
    console.print(
        f"wrote {folder}: success {success:.3f} without guidance; mean token log-probability of "
        f"reference actions {read['clean']:.2f} without guidance, {read['guided']:.2f} with it "
        f"({read['turns']:.0f} turns)",
        highlight=False,
        soft_wrap=True,
    )


def build_adapter(
    console: Console,
    env: str,
    data: str,
    model: str,
    out: Path | None,
    seed: int,
    minutes: float,
    overrides: Sequence[str],
) -> None:
    """Train an adapter of a language model on reference episodes, measure it on training tasks, keep it."""
    if out is None:
        raise InputError("--out: name the folder for the adapter of a language model")
    _check_out(out)
    own = registry.env_class(env).presets.get("warm_start", {})
    settings = AdapterSettings(minutes, noise=float(own.get("noise", AdapterSettings.noise)))
    rate = {"learning_rate": LEARNING_RATE}
    config = resolve(
        "paper", {}, {**rate, **parse_overrides(overrides), "policy": model}, env=env, data=data, seed=seed
    )
    torch.set_num_threads(config.threads)
    make_env = partial(registry.make_env, env, data=data, max_steps=config.max_turns)
    policy = load_policy(config)

    def report(entry: dict[str, float]) -> None:
        console.print(
            f"step {entry['steps']:.0f}, {entry['minutes']:.1f} min: loss {entry['loss']:.3f}", highlight=False
        )

    curve = train_adapter(make_env, policy, config, settings, report)
    told = {"env": env, "data": data, "model": model, "seed": seed, "minutes": minutes, "out": out}
    words = [f"--{name} {value}" for name, value in told.items()] + [f"--set {pair}" for pair in overrides]
    card = {
        "env": env,
        "command": " ".join(["taspo-bench warm-start", *words]),
        "settings": {**asdict(settings), **config.model_dump(exclude_defaults=True)},
        "data_stamp": asdict(make_env().data_stamp()),
        "parameters": sum(weight.numel() for weight in policy.model.parameters() if weight.requires_grad),
        "torch": torch.__version__,
        "curve": [{key: round(value, 4) for key, value in entry.items()} for entry in curve],
    }
    save_model_folder(out, config, policy, card)
    console.print(f"wrote {out}: loss {curve[-1]['loss']:.3f} a token", highlight=False, soft_wrap=True)


def _check_out(folder: Path) -> None:
    """Find out before training whether the folder can be written, and holds nothing but an earlier warm start."""
    refuse_replacing(folder, "card.json")
    place = folder.resolve()
    refuse_unwritable(place.parent)
    if place.is_dir():
        refuse_unwritable(place)
