"""The embedded policy: a small decoder trained from scratch, with a vocabulary trained on the training split.

It is there so that the whole method runs on a laptop's processor in minutes. Its warm start ships with the package.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM

from taspo_bench.policies.formats import LineFormat
from taspo_bench.policies.language_model import LanguageModel

CONTEXT_TOKENS = 4096


def train_tokenizer(texts: Iterable[str], vocabulary: int = 1024, markers: Sequence[str] = ()) -> Tokenizer:
    """Byte-level BPE of lower-case text: nothing is out of vocabulary.

    A small policy lives on copying words from observations into actions, so a word should be the same tokens in both:
    digits stand alone, and a bracket is followed by a blank inside the tokens, as words on a page are. A marker of
    layout (``[SEP]``) is one token.
    """
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.Sequence([normalizers.Lowercase(), normalizers.Replace("[", "[ ")])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.Sequence([decoders.ByteLevel(), decoders.Replace("[ ", "[")])
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=list(LineFormat.SPECIAL),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.add_tokens([AddedToken(marker, lstrip=True, normalized=True) for marker in markers])
    return plain(tokenizer)


def plain(tokenizer: Tokenizer) -> Tokenizer:
    """Keep the format's markers out of ordinary text: an observation cannot forge an end of turn."""
    tokenizer.encode_special_tokens = True
    return tokenizer


def build(vocabulary: int, seed: int, hidden: int = 96, layers: int = 3, heads: int = 4) -> LlamaForCausalLM:
    """A fresh decoder of about half a million parameters; global random state is left as it was."""
    shape = {
        "vocab_size": vocabulary,
        "hidden_size": hidden,
        "intermediate_size": 3 * hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
    }
    return of_shape(shape, seed)


def of_shape(shape: Mapping[str, Any], seed: int = 0) -> LlamaForCausalLM:
    """A decoder with random weights, by the numbers of a policy's card (``vocab_size``, ``hidden_size``, ...)."""
    config = LlamaConfig(
        **shape,
        num_key_value_heads=shape["num_attention_heads"],
        max_position_embeddings=CONTEXT_TOKENS,
        tie_word_embeddings=True,
        pad_token_id=None,
        bos_token_id=None,
        eos_token_id=None,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = LlamaForCausalLM(config)
    return model.eval()


def tiny_policy(model: LlamaForCausalLM, tokenizer: Tokenizer) -> LanguageModel:
    return LanguageModel("tiny", model, LineFormat(tokenizer), context_tokens=CONTEXT_TOKENS)
