"""What a training run takes, by arithmetic: episodes, tokens, floating-point operations, memory, hours.

Counts are upper bounds: every episode plays all its turns, every turn fills its prompt and its response, and no group
is skipped. Each turn has a prompt of its own, as in the paper (``--set context=window``). How long it gets, and how
many turns make a mini-batch, is the benchmark's own entry ``plan`` of ``TextEnv.presets``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from taspo_bench.api import TextEnv
from taspo_bench.config import CellConfig
from taspo_bench.policies.window import RESPONSE_TOKENS

Training = Literal["full", "lora"]
TRAININGS: tuple[Training, ...] = ("full", "lora")

GUIDANCE_TOKENS = 256
"""Longest guidance in front of a prompt, arXiv 2608.31077."""

MINIBATCH_TURNS = 256
"""Turns a mini-batch, arXiv 2608.31077, for a benchmark that does not say."""

UTILISATION = 0.35
"""Assumed share of the peak that prompts, scoring and updates reach."""

DECODING_UTILISATION = 0.1
"""Assumed share of the peak while responses are sampled, which waits for memory."""

SEQUENCES_AT_ONCE = 64
"""Assumed sequences a device samples at once."""


@dataclass(frozen=True)
class ModelSize:
    """Shape of a decoder of the Qwen family, as its published ``config.json`` says."""

    name: str
    layers: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    vocabulary: int
    is_tied: bool
    has_bias: bool
    """Biases of queries, keys and values (Qwen2.5); without them those of Qwen3, with norms of queries and keys."""
    head_size: int = 128

    @property
    def linears(self) -> tuple[tuple[int, int], ...]:
        """Inputs and outputs of a layer's seven linear maps."""
        queries, keys = self.heads * self.head_size, self.kv_heads * self.head_size
        attention = ((self.hidden, queries), (self.hidden, keys), (self.hidden, keys), (queries, self.hidden))
        up, down = (self.hidden, self.intermediate), (self.intermediate, self.hidden)
        return (*attention, up, up, down)

    @property
    def parameters(self) -> int:
        """All parameters."""
        biases = (self.heads + 2 * self.kv_heads) * self.head_size
        extra = biases if self.has_bias else 2 * self.head_size
        layer = sum(inputs * outputs for inputs, outputs in self.linears) + extra + 2 * self.hidden
        embeddings = self.vocabulary * self.hidden * (1 if self.is_tied else 2)
        return self.layers * layer + embeddings + self.hidden

    def adapter_parameters(self, rank: int) -> int:
        """Parameters of a LoRA adapter on all linear maps of the layers."""
        return self.layers * sum(rank * (inputs + outputs) for inputs, outputs in self.linears)


MODEL_SIZES = {
    "1.7b": ModelSize("Qwen3-1.7B", 28, 2048, 6144, 16, 8, 151_936, True, False),
    "3b": ModelSize("Qwen2.5-3B-Instruct", 36, 2048, 11_008, 16, 2, 151_936, True, True),
    "7b": ModelSize("Qwen2.5-7B-Instruct", 28, 3584, 18_944, 28, 4, 152_064, False, True),
}


@dataclass(frozen=True)
class Device:
    """An accelerator: published dense bfloat16 peak and memory, and an assumed price."""

    name: str
    teraflops: float
    gigabytes: int
    dollars_per_hour: float


DEVICES = {
    "a100": Device("NVIDIA A100 80 GB", 312, 80, 1.8),
    "h100": Device("NVIDIA H100 SXM", 989, 80, 3.0),
    "h200": Device("NVIDIA H200", 989, 141, 3.8),
    "l40s": Device("NVIDIA L40S", 362, 48, 1.2),
}


@dataclass(frozen=True)
class Workload:
    """How much a training run plays and reads, at most."""

    updates: int
    episodes_per_update: int
    turns_per_episode: int
    prompt_tokens_per_turn: int
    response_tokens_per_turn: int
    steps_per_update: int
    is_guided: bool = True
    has_reference: bool = True

    @property
    def episodes(self) -> int:
        return self.updates * self.episodes_per_update

    @property
    def turns(self) -> int:
        return self.episodes * self.turns_per_episode

    @property
    def prompt_tokens(self) -> int:
        return self.turns * self.prompt_tokens_per_turn

    @property
    def response_tokens(self) -> int:
        return self.turns * self.response_tokens_per_turn

    @property
    def tokens_per_turn(self) -> int:
        return self.prompt_tokens_per_turn + self.response_tokens_per_turn

    @property
    def pass_tokens(self) -> int:
        """Tokens of one pass over all turns."""
        return self.prompt_tokens + self.response_tokens

    @property
    def guidance_tokens(self) -> int:
        """Tokens that guidance adds to the guided pass."""
        return self.turns * GUIDANCE_TOKENS if self.is_guided else 0

    @property
    def optimizer_steps(self) -> int:
        return self.updates * self.steps_per_update


def workload(config: CellConfig, benchmark: type[TextEnv], is_paper: bool, is_guided: bool) -> Workload:
    """What a cell plays at most.

    Args:
        is_paper: optimizer steps on mini-batches of so many turns as in the paper, not ``config.minibatches``.
    """
    own = benchmark.presets.get("plan", {})
    episodes = config.tasks_per_update * config.group_size
    turns = config.max_turns or benchmark.default_max_steps
    steps = -(-episodes * turns // own.get("minibatch_turns", MINIBATCH_TURNS)) if is_paper else config.minibatches
    prompt = own.get("prompt_tokens", config.context_tokens)
    response = config.response_tokens or RESPONSE_TOKENS[config.response]
    return Workload(config.updates, episodes, turns, prompt, response, steps, is_guided, config.kl_coef > 0)


@dataclass(frozen=True)
class Pass:
    """One kind of work on all turns: its tokens, and what they cost."""

    name: str
    tokens: int
    flops: float
    utilisation: float


def forward_flops(size: ModelSize, length: int) -> float:
    """Floating-point operations a token, on average over a sequence: two a weight, and attention to half of it.

    The embedding is looked up, not multiplied; the head that spreads out the vocabulary is counted at every token.
    """
    head = size.vocabulary * size.hidden
    weights = size.layers * sum(inputs * outputs for inputs, outputs in size.linears) + head
    attention = 2 * size.layers * size.heads * size.head_size * length
    return 2.0 * weights + attention


def passes(size: ModelSize, work: Workload, training: Training, utilisation: float = UTILISATION) -> list[Pass]:
    """Everything the model reads and writes in a run. A backward pass costs two forward ones, half of that if the
    weights are frozen and only gradients of activations are needed."""
    one = forward_flops(size, work.tokens_per_turn)
    guided = forward_flops(size, work.tokens_per_turn + GUIDANCE_TOKENS)
    backward = 3.0 if training == "full" else 2.0
    guided_tokens = work.pass_tokens + work.guidance_tokens
    plain = [
        Pass("prompts of the rollouts", work.prompt_tokens, one * work.prompt_tokens, utilisation),
        Pass("sampled responses", work.response_tokens, one * work.response_tokens, DECODING_UTILISATION),
        Pass("update, forward and backward", work.pass_tokens, backward * one * work.pass_tokens, utilisation),
    ]
    if work.has_reference:
        plain.insert(2, Pass("reference of the KL term", work.pass_tokens, one * work.pass_tokens, utilisation))
    if work.is_guided:
        plain.insert(2, Pass("guided scoring", guided_tokens, guided * guided_tokens, utilisation))
    return plain


def device_hours(done: list[Pass], device: Device) -> float:
    """Hours of one device, all passes one after the other."""
    return sum(part.flops / (part.utilisation * device.teraflops * 1e12) for part in done) / 3600


def memory(
    size: ModelSize, work: Workload, training: Training, rank: int, micro_batch_tokens: int
) -> dict[str, float]:
    """Bytes by what holds them, of one replica that is not split over devices.

    Trained parameters: float32 weight, gradient and two moments of AdamW, 16 bytes. Frozen ones are bfloat16. The
    update keeps each layer's input (gradient checkpointing) and one layer's activations, 34 bytes a token and unit
    (arXiv 2205.05198, without the attention matrix), and the vocabulary at response tokens in float32 three times:
    logits, log-probabilities, gradient.
    """
    trained = size.parameters if training == "full" else size.adapter_parameters(rank)
    frozen = size.parameters if training == "lora" or work.has_reference else 0
    responses = micro_batch_tokens * work.response_tokens_per_turn / work.tokens_per_turn
    cached = SEQUENCES_AT_ONCE * work.tokens_per_turn
    return {
        "trained: weights, gradients, moments": 16.0 * trained,
        "frozen: reference, or base model": 2.0 * frozen,
        "activations": micro_batch_tokens * size.hidden * (2.0 * size.layers + 34.0),
        "vocabulary at responses": 3 * 4.0 * responses * size.vocabulary,
        "keys and values of rollouts": 2 * 2.0 * cached * size.layers * size.kv_heads * size.head_size,
    }
