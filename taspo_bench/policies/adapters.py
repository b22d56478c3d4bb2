"""Low-rank adapters through peft (extra ``peft``): added for training, merged where they are only a start."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformers import PreTrainedModel

from taspo_bench.errors import DataError, InputError

if TYPE_CHECKING:
    from peft import PeftModel


START = "start"
"""Folder inside an adapter's that holds the adapter that it was trained on top of."""


def add_lora(model: PreTrainedModel, rank: int, targets: str) -> PeftModel:
    """The model with a fresh adapter, which changes nothing yet; only the adapter is trained.

    Args:
        rank: of each pair of matrices; their product is scaled by 2, whatever the rank.
        targets: ``all-linear``, or names of layers with commas between them.
    """
    peft = _peft()
    wanted: Any = targets if targets == "all-linear" else targets.split(",")
    lora = peft.LoraConfig(
        r=rank, lora_alpha=2 * rank, lora_dropout=0.0, target_modules=wanted, task_type="CAUSAL_LM"
    )
    try:
        adapted: PeftModel = peft.get_peft_model(model, lora)
    except ValueError as error:
        raise InputError(f"--set lora_targets={targets}: the model has no such layers ({error})") from error
    return adapted


def merge_adapter(model: PreTrainedModel, folder: Path) -> PreTrainedModel:
    """The model with the changes of an adapter, and of those that it was trained on top of, in its own weights."""
    if not (folder / "adapter_config.json").is_file():
        raise DataError(
            f"{folder}: not an adapter (it has no adapter_config.json); "
            "make one with `taspo-bench warm-start --model NAME`"
        )
    if (folder / START).is_dir():
        model = merge_adapter(model, folder / START)
    adapted = _peft().PeftModel.from_pretrained(model, str(folder))
    merged: PreTrainedModel = adapted.merge_and_unload()
    return merged


def _peft() -> Any:
    try:
        import peft
    except ImportError as error:
        raise InputError("adapters need the package peft: pip install 'taspo-bench[peft]'") from error
    return peft
