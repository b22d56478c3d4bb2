"""What ``gpu_smoke.sh`` runs: rollout, scoring and update of a model with random weights, in tokens a second."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast, Qwen2Config

from taspo_bench import registry
from taspo_bench.config import CellConfig
from taspo_bench.episode import Group, Guidance
from taspo_bench.policies.chat_format import ChatFormat
from taspo_bench.policies.language_model import LanguageModel
from taspo_bench.policies.models import checkpoint_activations
from taspo_bench.taspo.scheme import TASPO
from taspo_bench.training.loop import Trainer

UPDATES = 2
TEMPLATE = (
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
FULL = {"hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 24, "num_attention_heads": 14,
        "num_key_value_heads": 2, "vocab_size": 151936}  # fmt: skip
TOY = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
       "num_key_value_heads": 2, "vocab_size": 1024}  # fmt: skip


class EveryTurnAdvised:
    """The same words at every turn, so that scoring has its full work."""

    name = "advised"

    def guide(self, group: Group) -> list[Guidance | None]:
        return [Guidance(["look around first"] * len(episode.turns), "turn") for episode in group.episodes]

    def figures(self) -> dict[str, Any]:
        return {}

    def state(self) -> dict[str, Any]:
        return {}

    def load_state(self, state: dict[str, Any]) -> None: ...


def main() -> None:
    """Print one line per update."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--toy", action="store_true", help="a size for processors")
    is_toy = parser.parse_args().toy
    device = "cuda" if torch.cuda.is_available() else "cpu"
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    turns, tasks, group = (3, 2, 2) if is_toy else (10, 8, 8)
    make_env = partial(registry.make_env, "alfworld", max_steps=turns)
    config = CellConfig(
        env="alfworld", tasks_per_update=tasks, group_size=group, max_turns=turns, learning_rate=1e-6,
        kl_coef=0.0, entropy_coef=0.0, gradient_checkpointing=True, micro_batch_tokens=32768,
    )  # fmt: skip
    torch.manual_seed(0)
    shape = Qwen2Config(**(TOY if is_toy else FULL), tie_word_embeddings=True, max_position_embeddings=8192)
    model = AutoModelForCausalLM.from_config(shape, dtype=dtype, attn_implementation="sdpa").to(device).eval()
    checkpoint_activations(model)
    tasks_of_split = make_env().splits()["train"].task_ids
    tokenizer = _tokenizer([make_env().reset(options={"task_id": task})[0] for task in tasks_of_split[:50]])
    policy = LanguageModel("random-0.5b", model, ChatFormat(tokenizer, make_env().briefing))
    trainer = Trainer(config, policy, TASPO(), EveryTurnAdvised(), make_env, tasks_of_split)
    trainer.play = _with_unequal_returns(trainer.play)  # type: ignore[method-assign]
    parameters = sum(weight.numel() for weight in model.parameters())
    print(f"{parameters / 1e6:.1f} M parameters, {str(dtype).removeprefix('torch.')}, {_device_name(device)}")
    for number in range(UPDATES):
        trained = trainer.update(number)
        seconds: Any = trained.metrics["seconds"]
        everything = sum(len(t.prompt_ids) + len(t.response_ids) for e in trained.episodes for t in e.turns)
        rates = ", ".join(f"{name} {everything / seconds[name]:.0f}" for name in ("rollout", "scoring", "update"))
        loss, norm = trained.metrics["loss"], trained.metrics["grad_norm"]
        print(f"update {number}: {everything} tokens; tokens/s: {rates}; loss {loss:.4f}, gradient norm {norm:.3f}")
    if device == "cuda":
        print(f"peak memory {torch.cuda.max_memory_allocated() / 2**30:.1f} GiB")


def _with_unequal_returns(play: Callable[..., list[Group]]) -> Callable[..., list[Group]]:
    """A random model never wins: half of each group is said to have."""

    def unequal(*given: Any, **named: Any) -> list[Group]:
        groups = play(*given, **named)
        for group in groups:
            for place, episode in enumerate(group.episodes):
                episode.won, episode.score = bool(place % 2), float(place % 2)
        return groups

    return unequal


def _tokenizer(texts: list[str]) -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=1024,
        special_tokens=["<|im_start|>", "<|im_end|>"],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    made = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|im_end|>")
    made.chat_template = TEMPLATE
    return made


def _device_name(device: str) -> str:
    return torch.cuda.get_device_name() if device == "cuda" else "processor"


if __name__ == "__main__":
    main()
