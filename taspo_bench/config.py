"""One run's settings: what the command line takes, what is written beside the results, and the presets.

A value comes from, in rising order: the field's default, the preset, the benchmark's own entry for that preset
(``TextEnv.presets``), and ``--set``.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from taspo_bench.errors import InputError, unknown_name

WARM_START = "warm_start"
"""The method name of a cell that is evaluated as it starts, without training."""

SMOLLM2 = "smollm2-135m"
MODEL_SETTINGS = {
    "warm_start",
    "context",
    "window",
    "response",
    "response_tokens",
    "context_tokens",
    "keep_reasoning",
    "trust_remote_code",
}
"""Settings of :class:`CellConfig` that say how a language model is asked, trained or not."""
TRAINED_SETTINGS = {"gradient_checkpointing", "lora_rank", "lora_targets"}
"""Further ones of a language model that is trained."""


def refuse_model_settings(config: CellConfig) -> None:
    """A setting that only language models have, given for ``tiny``, is an error: it would change nothing."""
    for key in sorted(MODEL_SETTINGS | TRAINED_SETTINGS):
        is_given = getattr(config, key) != CellConfig.model_fields[key].default
        if config.policy == "tiny" and key != "warm_start" and is_given:
            raise InputError(
                f"--set {key}={getattr(config, key)}: policy 'tiny' has no such setting; add --model NAME"
            )


def names_model(policy: str) -> bool:
    """Whether a policy is a causal model of transformers: ``smollm2-135m``, OWNER/NAME on the hub, or a folder."""
    is_on_hub = re.fullmatch(r"[\w-][\w.-]*/[\w.-]+", policy) is not None and not Path(policy).exists()
    return policy == SMOLLM2 or is_on_hub or (Path(policy) / "config.json").is_file()


class CellConfig(BaseModel):
    """Settings of one cell: one method on one benchmark with one seed.

    Names and defaults follow the paper where it has them (docs/method.md). Budgets count optimizer updates; an update
    plays ``tasks_per_update`` tasks ``group_size`` times each.
    """

    model_config = ConfigDict(extra="forbid", validate_assignment=True)

    method: str = ""
    env: str = ""
    seed: int = Field(0, ge=0)
    data: str = "embedded"
    policy: str = Field(
        "tiny", description="tiny, smollm2-135m, or a causal model of transformers: OWNER/NAME or a folder"
    )
    warm_start: str = Field("", description="folder to start from: a tiny policy's (the shipped one if empty), or an "
                            "adapter of a language model (none if empty)")  # fmt: skip
    context: Literal["full", "window"] = Field("full", description="of language models: one growing conversation, or "
                                               "a prompt of its own for each turn, as in the paper")  # fmt: skip
    window: int = Field(2, ge=0, description="past turns in the prompt of a context with a window")
    response: Literal["bare", "think"] = Field("bare", description="the action alone, or reasoning and then tags")
    response_tokens: int | None = Field(None, ge=1, description="longest response; 32 if bare, 512 with reasoning")
    context_tokens: int = Field(
        4096, ge=64, description="an episode of a language model ends where it would need more"
    )
    keep_reasoning: bool = Field(False, description="where a chat template would rewrite earlier turns, do not")
    trust_remote_code: bool = Field(False, description="run code that comes with a model")

    updates: int = Field(150, ge=0)
    tasks_per_update: int = Field(16, ge=1)
    group_size: int = Field(8, ge=2)
    max_turns: int | None = Field(None, ge=1, description="step limit; the benchmark's own if unset")
    train_tasks: int | None = Field(None, ge=1, description="train on the first N tasks of the split only")

    lora_rank: int = Field(16, ge=0, description="of the adapter that is trained; 0 trains all of a language model")
    lora_targets: str = Field("all-linear", description="layers with an adapter, commas between")
    gradient_checkpointing: bool = Field(False, description="less memory for a third more work")
    micro_batch_tokens: int = Field(16384, ge=1, description="padded tokens in one pass of scoring and of the update")
    threads: int = Field(1, ge=1, description="processor threads of the cell; other numbers change results slightly")
    cell_gpus: float = Field(0.0, ge=0, description="graphics processors that a cell gets from --cluster ray")
    cell_memory: float = Field(0.0, ge=0, description="gigabytes of memory that a cell gets from --cluster ray")
    learning_rate: float = Field(1e-6, gt=0)
    warmup_updates: int = Field(0, ge=0)
    weight_decay: float = Field(0.01, ge=0)
    grad_clip: float = Field(1.0, gt=0)
    minibatches: int = Field(1, ge=1, description="optimizer steps per update, each on its share of the episodes")
    clip: float = Field(0.2, gt=0)
    dual_clip: float = Field(3.0, gt=1)
    kl_coef: float = Field(0.01, ge=0)
    entropy_coef: float = Field(0.001, ge=0)

    analyzer: Literal["replay", "self", "endpoint"] = "replay"
    analyzer_endpoint: str = Field("", description="URL#MODEL that analyzer endpoint asks")
    analyzer_prices: tuple[float, float] = Field((0.0, 0.0), description="per million prompt and completion tokens")
    guidance_source: Literal["aligned", "nearest", "random", "generic"] = "aligned"
    guidance_scope: Literal["turn", "trajectory"] = "turn"
    guidance_reveal: bool = False
    guidance_bank: int = Field(0, ge=0, description="past successes of a task that are kept as further evidence")
    scheme: dict[str, Any] = Field(default_factory=dict, description="keyword arguments of the credit scheme")

    engine: Literal["own", "trl"] = "own"
    trl: dict[str, Any] = Field(default_factory=dict, description="options of TRL's GRPOConfig, for engine trl")

    eval_temperature: float = Field(0.4, ge=0)
    eval_tasks: int | None = Field(None, ge=1, description="evaluate the first N tasks of each split only")
    eval_splits: list[str] = Field(default_factory=list, description="all seen and unseen splits if empty")
    save_every: int = Field(
        10,
        ge=1,
        description="updates between checkpoints and stored episodes; a checkpoint before which training success was "
        "higher, on the mean over these updates, than before any earlier one is kept as policy-best",
    )
    log: list[str] = Field(default_factory=list, description="tensorboard, wandb, trackio: further logs of training")
    batch: int = Field(64, ge=1, description="episodes played at once")


# The tiny policy is judged as it was trained, at temperature 1: a lower one would do for the warm start what much of
# a short training does, and hide that.
PRESETS: dict[str, dict[str, Any]] = {
    "smoke": {
        "updates": 2,
        "tasks_per_update": 2,
        "group_size": 4,
        "learning_rate": 2e-4,
        "kl_coef": 0.0,
        "entropy_coef": 0.0,
        "eval_temperature": 1.0,
        "eval_tasks": 20,
    },
    "quick": {
        "updates": 30,
        "tasks_per_update": 8,
        "group_size": 8,
        "learning_rate": 2e-4,
        "kl_coef": 0.0,
        "entropy_coef": 0.0,
        "eval_temperature": 1.0,
    },
    "standard": {
        "updates": 150,
        "tasks_per_update": 16,
        "group_size": 8,
        "learning_rate": 2e-4,
        "kl_coef": 0.0,
        "entropy_coef": 0.0,
        "eval_temperature": 1.0,
    },
    "paper": {},
}
SEEDS = {"smoke": 1, "quick": 1, "standard": 5, "paper": 3}


def resolve(
    preset: str, own: Mapping[str, Mapping[str, Any]], overrides: Mapping[str, Any], **cell: Any
) -> CellConfig:
    """The settings of one cell.

    Args:
        own: the benchmark's entries by preset (``TextEnv.presets``).
        overrides: what ``--set`` gave, already parsed; ``scheme.X`` stands for a setting of the credit scheme,
            ``trl.X`` for one of TRL's.
        cell: method, env, seed and data.

    Raises:
        InputError: an unknown preset or key, or a value of the wrong kind.
    """
    if preset not in PRESETS:
        raise unknown_name("preset", preset, PRESETS)
    values = {**PRESETS[preset], **own.get(preset, {}), **cell}
    nested: dict[str, dict[str, Any]] = {"scheme": {}, "trl": {}}
    own_keys = set(CellConfig.model_fields) - {"method", "env", "seed", *nested}
    for key, value in overrides.items():
        outer, dot, inner = key.partition(".")
        if dot and outer in nested:
            nested[outer][inner] = value
        elif key in own_keys:
            values[key] = value
        else:
            settable = [*sorted(own_keys), *(f"{name}.NAME" for name in nested)]
            close = difflib.get_close_matches(key, settable, n=1)
            hint = f"did you mean {close[0]}? " if close else ""
            raise InputError(f"--set {key}={value}: there is no such key; {hint}keys: {', '.join(settable)}")
    try:
        config = CellConfig(**values, **nested)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InputError(f"--set {where}={first['input']}: {first['msg'].lower()}") from error
    if config.trl and config.engine != "trl":
        raise InputError(f"--set trl.{next(iter(config.trl))}: TRL's options need --engine trl")
    return config


def parse_overrides(pairs: Sequence[str]) -> dict[str, Any]:
    """``key=value`` strings as a mapping; values are read as JSON where they are JSON, else as text."""
    values: dict[str, Any] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals or not key.strip():
            raise InputError(f"--set {pair}: write it as key=value")
        try:
            values[key.strip()] = json.loads(text)
        except ValueError:
            values[key.strip()] = text
    return values
