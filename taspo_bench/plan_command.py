"""The work behind ``taspo-bench plan``: what a training run would take, before anyone pays for it."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from taspo_bench import registry
from taspo_bench.budget import (
    DECODING_UTILISATION,
    DEVICES,
    MODEL_SIZES,
    SEQUENCES_AT_ONCE,
    TRAININGS,
    Device,
    ModelSize,
    Training,
    Workload,
    device_hours,
    memory,
    passes,
    workload,
)
from taspo_bench.config import CellConfig, resolve
from taspo_bench.errors import InputError, unknown_name

PAPER_SETTINGS = {"context": "window", "response": "think"}
"""How the paper asks its models; ``--preset paper`` of ``run`` leaves it to ``--set``."""


def plan_training(
    console: Console,
    model_size: str,
    preset: str,
    env: str,
    method: str,
    device: str,
    devices: int,
    utilisation: float,
    price: float,
) -> None:
    """Print counts, passes, memory, hours and cost of one cell.

    Raises:
        InputError: a name that is not known, or a number that makes no sense.
    """
    for kind, given, known in (("model size", model_size, MODEL_SIZES), ("device", device, DEVICES)):
        if given not in known:
            raise unknown_name(kind, given, known)
    if devices < 1:
        raise InputError(f"--devices {devices}: at least one is needed")
    if not 0 < utilisation <= 1:
        raise InputError(f"--utilisation {utilisation:g}: give a share of the peak above 0 and up to 1, such as 0.35")
    if price < 0:
        raise InputError(f"--price {price:g}: give dollars an hour and device")
    benchmark = registry.env_class(env)
    settings = PAPER_SETTINGS if preset == "paper" else {}
    config = resolve(preset, benchmark.presets, settings, env=env, method=method)
    is_guided = registry.method_class(method).uses_guidance
    work = workload(config, benchmark, preset == "paper", is_guided)
    size, chosen = MODEL_SIZES[model_size], DEVICES[device]
    given = "".join(f" --set {key}={value}" for key, value in settings.items())
    console.print(_counts(work, f"{method} on {env}, preset {preset}: at most"))
    console.print(
        f"As of run --preset {preset}{given}, a prompt of its own for each turn: {work.prompt_tokens_per_turn:,} "
        f"tokens a prompt and {work.response_tokens_per_turn:,} a response at most.",
        highlight=False,
    )
    for training in TRAININGS:
        console.print(_passes(size, work, training, utilisation, chosen, devices, price or chosen.dollars_per_hour))
    console.print(_memory(size, work, config))
    console.print(
        f"Assumed: {utilisation:.0%} of {chosen.name}'s published bfloat16 peak ({chosen.teraflops:g} TFLOP/s), "
        f"{DECODING_UTILISATION:.0%} while sampling; {price or chosen.dollars_per_hour:.2f} dollars an hour and "
        "device; several devices share the work without loss. Bounds, not measurements: "
        "episodes that end early and groups with equal rewards take less.",
        highlight=False,
    )


def _counts(work: Workload, title: str) -> Table:
    table = Table("what", "an update", "in all", title=title, box=None)
    for name, total in (
        ("episodes", work.episodes),
        ("turns", work.turns),
        ("response tokens", work.response_tokens),
        ("prompt tokens", work.prompt_tokens),
        ("tokens of one full pass", work.pass_tokens),
        ("more in the guided pass", work.guidance_tokens),
        ("optimizer steps", work.optimizer_steps),
    ):
        table.add_row(name, f"{total // work.updates:,}" if work.updates else "0", f"{total:,}")
    for column in table.columns[1:]:
        column.justify = "right"
    return table


def _passes(
    size: ModelSize,
    work: Workload,
    training: Training,
    utilisation: float,
    device: Device,
    devices: int,
    price: float,
) -> Table:
    done = passes(size, work, training, utilisation)
    trained = "all weights" if training == "full" else "a LoRA adapter"
    table = Table("pass", "tokens", "FLOPs", "device hours", title=f"{size.name}, {trained} trained", box=None)
    for part in done:
        table.add_row(part.name, f"{part.tokens:,}", f"{part.flops:.2e}", f"{device_hours([part], device):.1f}")
    hours = device_hours(done, device)
    table.add_row("in all", "", f"{sum(part.flops for part in done):.2e}", f"{hours:.1f}")
    rate = work.response_tokens / (hours / devices * 3600) if hours else 0.0
    table.caption = (
        f"{hours / devices:.1f} hours on {devices} x {device.name}, {rate:,.0f} response tokens a second, "
        f"{hours * price:,.0f} dollars"
    )
    for column in table.columns[1:]:
        column.justify = "right"
    return table


def _memory(size: ModelSize, work: Workload, config: CellConfig) -> Table:
    rank = config.lora_rank or 16
    both = [memory(size, work, training, rank, config.micro_batch_tokens) for training in TRAININGS]
    title = (
        f"Memory in GB, {size.parameters:,} parameters, micro-batches of {config.micro_batch_tokens:,} tokens, "
        f"gradient checkpointing, {SEQUENCES_AT_ONCE} sequences at once"
    )
    table = Table("held by", "all weights", f"LoRA, rank {rank}", title=title, box=None)
    for name in both[0]:
        table.add_row(name, *(f"{part[name] / 1e9:.1f}" for part in both))
    table.add_row("in all", *(f"{sum(part.values()) / 1e9:.1f}" for part in both))
    for column in table.columns[1:]:
        column.justify = "right"
    return table
