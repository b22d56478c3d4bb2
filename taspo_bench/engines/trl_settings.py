"""TRL's configuration of a cell: what the cell settles, what the user may still choose, and the versions tested."""

from __future__ import annotations

import dataclasses
import importlib.util
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from packaging.specifiers import SpecifierSet

from taspo_bench.config import CellConfig
from taspo_bench.engines.processes import check_launch
from taspo_bench.errors import InputError, unknown_name

if TYPE_CHECKING:
    from trl import GRPOConfig

TESTED = {"trl": ">=1.16,<1.17", "accelerate": ">=1.10,<2"}
ROWS_AT_ONCE = 16

SETTLED = {
    "beta": "kl_coef",
    "delta": "dual_clip",
    "entropy_coef": "entropy_coef",
    "epsilon": "clip",
    "gradient_checkpointing": "gradient_checkpointing",
    "generation_batch_size": "tasks_per_update and group_size",
    "gradient_accumulation_steps": "trl.per_device_train_batch_size",
    "learning_rate": "learning_rate",
    "max_grad_norm": "grad_clip",
    "max_steps": "updates",
    "num_generations": "group_size",
    "num_train_epochs": "updates",
    "save_steps": "save_every",
    "scale_rewards": "the method",
    "seed": "the seed",
    "steps_per_generation": "minibatches",
    "warmup_steps": "warmup_updates",
    "weight_decay": "weight_decay",
}
"""Options of TRL that follow from a setting of the cell, and which."""

FIXED = {
    "logging_steps": "every step is a line of metrics",
    "multi_objective_aggregation": "the benchmark's score is the only reward",
    "output_dir": "it lies in the run's folder",
    "remove_unused_columns": "the columns say what is played",
    "reward_weights": "the benchmark's score is the only reward",
    "shuffle_dataset": "the tasks of an update follow from the seed",
    "temperature": "training samples at temperature 1",
    "use_vllm": "the episodes are played by the policy itself",
}
"""Options of TRL that the engine needs as they are, and why."""

WEIGHED: dict[str, tuple[object, ...]] = {
    "importance_sampling_level": ("token",),
    "loss_type": ("dapo", "cispo"),
    "mask_truncated_completions": (False,),
    "off_policy_mask_threshold": (None,),
    "top_entropy_quantile": (1.0,),
    "use_adaptive_entropy": (False,),
}
"""Options of TRL with the values that are right where tokens weigh unequally. With any other TRL counts or compares
by its mask of zeros and ones, in whose place the weights of docs/method.md's step 9 stand here."""


def check_installed() -> None:
    """One line that names the fix if TRL is missing or of a version that the engine was not tested with."""
    for package, tested in TESTED.items():
        if importlib.util.find_spec(package) is None:
            raise InputError(f"--engine trl: {package} is not installed; pip install 'taspo-bench[trl]'")
        found = version(package)
        if not SpecifierSet(tested).contains(found, prereleases=True):
            raise InputError(
                f"--engine trl: {package} {found} is installed, tested is {package}{tested}; "
                "pip install 'taspo-bench[trl]'"
            )


def check(config: CellConfig, processes: int) -> None:
    """Refuse what the TRL engine cannot do, before a run begins."""
    check_launch()
    check_installed()
    from trl import GRPOConfig

    names = {field.name for field in dataclasses.fields(GRPOConfig)}
    for key, value in config.trl.items():
        if key in SETTLED:
            raise InputError(f"--set trl.{key}={value}: this follows from {SETTLED[key]}")
        if key in FIXED:
            raise InputError(f"--set trl.{key}={value}: the engine settles this: {FIXED[key]}")
        if key not in names:
            raise unknown_name("option of TRL", key, names - SETTLED.keys() - FIXED.keys())
        if key in WEIGHED and value not in WEIGHED[key]:
            right = " or ".join(str(value) for value in WEIGHED[key])
            raise InputError(f"--set trl.{key}={value}: wrong where tokens weigh unequally, as here; use {right}")
    if config.dual_clip <= 1 + config.clip:
        raise InputError(
            f"--set dual_clip={config.dual_clip}: with engine trl it must be above 1 + clip = {1 + config.clip:g}; "
            "TRL's bound would cut positive credit too"
        )
    if config.context != "full":
        raise InputError(f"--set context={config.context}: engine trl takes an episode as one sequence; "
                         "leave context at full, or use --engine own")  # fmt: skip
    if (config.tasks_per_update * config.group_size) % (processes * config.minibatches):
        raise InputError(
            f"{config.tasks_per_update} tasks x {config.group_size} rollouts in {config.minibatches} minibatches on "
            f"{processes} processes: the episodes of an update must divide evenly among them"
        )
    rows_per_step(config, processes)


def rows_per_step(config: CellConfig, processes: int) -> int:
    """Episodes in one forward pass of one process: the user's, else at most ``ROWS_AT_ONCE``."""
    share = config.tasks_per_update * config.group_size // (processes * config.minibatches)
    given = config.trl.get("per_device_train_batch_size")
    if given is None:
        return max(size for size in range(1, ROWS_AT_ONCE + 1) if share % size == 0)
    if not isinstance(given, int) or given < 1 or share % given:
        raise InputError(
            f"--set trl.per_device_train_batch_size={given}: it must divide the {share} episodes that each process "
            "has for one optimizer step"
        )
    return given


def steps_per_update(config: CellConfig) -> int:
    """Optimizer steps that one update of the cell takes."""
    return config.minibatches * int(config.trl.get("num_iterations", 1))


def make_config(config: CellConfig, output: Path, processes: int) -> GRPOConfig:
    """TRL's configuration: the cell's settings, then the user's options.

    The loss is TRL's ``dapo`` sum over tokens, which the weights of docs/method.md's step 9 turn into the mean over
    trajectories of the mean over turns of the mean over tokens; ``delta`` is the dual clip.
    """
    import torch
    from trl import GRPOConfig

    rows = rows_per_step(config, processes)
    share = config.tasks_per_update * config.group_size // processes
    steps = steps_per_update(config)
    settled: dict[str, Any] = {
        "output_dir": str(output),
        "seed": config.seed,
        "max_steps": max(1, config.updates * steps),
        "num_generations": config.group_size,
        "per_device_train_batch_size": rows,
        "steps_per_generation": share // rows,
        "gradient_accumulation_steps": share // rows // config.minibatches,
        "learning_rate": config.learning_rate,
        "lr_scheduler_type": "constant_with_warmup",
        "warmup_steps": config.warmup_updates * steps,
        "weight_decay": config.weight_decay,
        "max_grad_norm": config.grad_clip,
        "epsilon": config.clip,
        "delta": config.dual_clip,
        "beta": config.kl_coef,
        "entropy_coef": config.entropy_coef,
        "loss_type": "dapo",
        "shuffle_dataset": False,
        "logging_steps": 1,
        "save_strategy": "steps",
        "save_steps": config.save_every * steps,
        "save_total_limit": 2,  # the older one goes before ours of the newer is complete
        "report_to": "none",
        "disable_tqdm": True,
        "dataloader_pin_memory": torch.cuda.is_available(),
        "ddp_find_unused_parameters": False,  # every weight takes part in every pass
        "bf16": False,
        "gradient_checkpointing": config.gradient_checkpointing,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        try:
            return GRPOConfig(**{**settled, **config.trl})
        except (TypeError, ValueError) as error:
            options = ", ".join(f"{key}={value}" for key, value in config.trl.items())
            raise InputError(f"--set trl: TRL refuses {options or 'the settings of this cell'}: {error}") from error
