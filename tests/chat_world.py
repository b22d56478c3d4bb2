"""Small untrained chat models over the corridor world, with the chat templates of well-known families."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    AutoModelForCausalLM,
    Gemma3TextConfig,
    LlamaConfig,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen3Config,
)

from taspo_bench.policies.chat_format import ChatFormat
from taspo_bench.policies.language_model import LanguageModel
from tiny_world import TEXTS

TEMPLATES = Path(__file__).parent / "policies" / "templates"
FAMILIES = ("smollm2", "qwen2.5", "qwen3", "llama-3", "gemma")
MARKS = {
    "chatml": ["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
    "llama-3": ["<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"],
    "gemma": ["<bos>", "<eos>", "<start_of_turn>", "<end_of_turn>"],
}


def chat_tokenizer(family: str) -> PreTrainedTokenizerFast:
    """A byte-level vocabulary of the corridor's words with a family's special tokens and template."""
    marks = MARKS.get(family, MARKS["chatml"])
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(
        vocab_size=400, special_tokens=marks, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator([*TEXTS, "<action>open box</action> <think>"], trainer)
    wrapped = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token=marks[0], eos_token=marks[-1], name_or_path=family
    )
    wrapped.chat_template = (TEMPLATES / f"{family}.jinja").read_text(encoding="utf-8")
    return wrapped


def chat_config(family: str, vocabulary: int) -> Any:
    """Two layers, with fewer heads for keys than for queries; gemma's look back over different distances."""
    shape: dict[str, Any] = {
        "vocab_size": vocabulary,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 4096,
        "tie_word_embeddings": True,
        "pad_token_id": None,
        "bos_token_id": None,
        "eos_token_id": None,
    }
    if family == "qwen2.5":
        return Qwen2Config(**shape)
    if family == "qwen3":
        return Qwen3Config(**shape, head_dim=16)
    if family == "gemma":
        layers = ["sliding_attention", "full_attention"]
        return Gemma3TextConfig(**shape, head_dim=16, sliding_window=24, layer_types=layers)
    return LlamaConfig(**shape)


def chat_policy(family: str = "smollm2", seed: int = 0, spread: float = 3.0, **settings: Any) -> LanguageModel:
    """A random policy; ``spread`` makes its distributions uneven, so that a wrong context would show."""
    tokenizer = chat_tokenizer(family)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = AutoModelForCausalLM.from_config(chat_config(family, len(tokenizer)))
    with torch.no_grad():
        model.get_input_embeddings().weight.mul_(spread)
    fmt = ChatFormat(tokenizer, "Open the door.", **{"keep_reasoning": True, "max_response_tokens": 24, **settings})
    return LanguageModel(family, model.eval(), fmt)
