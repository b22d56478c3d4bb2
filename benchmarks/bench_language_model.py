"""Language models in processor time: rollouts beside ``generate()``, log-probabilities, memory, and overhead.

Run as ``python benchmarks/bench_language_model.py [--episodes 4] [--turns 4] [--model smollm2-135m]``; the figures of
the documentation are of ``--episodes 16 --turns 10``. Without the model's package, that part is left out.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import LogitsProcessor, LogitsProcessorList

from taspo_bench import registry
from taspo_bench.config import SMOLLM2, CellConfig
from taspo_bench.credit import Credit
from taspo_bench.episode import Episode, Guidance
from taspo_bench.errors import InputError
from taspo_bench.policies.language_model import LanguageModel
from taspo_bench.policies.models import chat_policy
from taspo_bench.policies.shipped import warm_start_folder
from taspo_bench.rollout import Start, rollout
from taspo_bench.taspo.scheme import TASPO
from taspo_bench.training.checkpoint import load_tiny
from taspo_bench.training.loop import Trainer
from taspo_bench.training.scoring import score
from taspo_bench.transcript import Span, TokenSequence, sequences


def main() -> None:
    """Print one line per measurement."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=4)
    parser.add_argument("--turns", type=int, default=4)
    parser.add_argument("--model", default=SMOLLM2)
    given = parser.parse_args()
    torch.set_num_threads(1)
    overhead_of_tiny()
    try:
        policy = chat_policy(CellConfig(env="alfworld", policy=given.model), is_trained=False)
    except InputError as error:
        print(f"language model: not measured ({error})")
        return
    episodes = beside_generate(policy, given.episodes, given.turns)
    agreement(policy, episodes)
    memory(given.model)


def beside_generate(policy: LanguageModel, count: int, turns: int) -> list[Episode]:
    """Time rollouts, then the same tokens by ``generate()`` on the whole context of every turn."""
    make_env = partial(registry.make_env, "alfworld", max_steps=turns)
    tasks = make_env().splits()["train"].task_ids[:count]
    starts = [Start(task, "train", 0, (0, place)) for place, task in enumerate(tasks)]
    rollout(make_env, policy, starts[:1])  # warm up
    begun = time.process_time()
    episodes = rollout(make_env, policy, starts)
    ours = time.process_time() - begun
    begun = time.process_time()
    for turn in range(turns):
        _generate(policy, [episode for episode in episodes if len(episode.turns) > turn], turn)
    theirs = time.process_time() - begun
    sampled = sum(turn.sampled for episode in episodes for turn in episode.turns)
    print(
        f"{policy.name}: {count} episodes, {turns} turns, {sampled} sampled tokens: {ours:.1f} s; generate() a turn "
        f"on the whole context, the same tokens forced: {theirs:.1f} s, {theirs / ours:.1f} times as long"
    )
    return episodes


class _Forced(LogitsProcessor):
    """Leaves each row of a batch its next token of a given list."""

    def __init__(self, tokens: list[list[int]], start: int) -> None:
        self.tokens, self.start = tokens, start

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        step = input_ids.shape[1] - self.start
        forced = torch.full_like(scores, -torch.inf)
        for row, tokens in enumerate(self.tokens):
            forced[row, tokens[min(step, len(tokens) - 1)]] = 0.0
        return forced


@torch.inference_mode()
def _generate(policy: LanguageModel, episodes: list[Episode], turn: int) -> None:
    contexts = []
    for episode in episodes:
        before = [token for past in episode.turns[:turn] for token in past.prompt_ids + past.response_ids]
        contexts.append(before + episode.turns[turn].prompt_ids)
    wanted = [episode.turns[turn].response_ids[: episode.turns[turn].sampled] for episode in episodes]
    width = max(map(len, contexts))
    ids = torch.tensor([[policy.format.stop_id] * (width - len(context)) + context for context in contexts])
    mask = torch.tensor([[0] * (width - len(context)) + [1] * len(context) for context in contexts])
    policy.model.generate(  # type: ignore[operator]
        ids, attention_mask=mask, max_new_tokens=max(map(len, wanted)), do_sample=False,
        logits_processor=LogitsProcessorList([_Forced(wanted, width)]),
        eos_token_id=None, pad_token_id=policy.format.stop_id,
    )  # fmt: skip


@torch.inference_mode()
def agreement(policy: LanguageModel, episodes: list[Episode]) -> None:
    """The largest difference between log-probabilities at play and those of one plain forward pass."""
    worst = 0.0
    for episode in episodes:
        (sequence,) = sequences(episode)
        logprobs = torch.log_softmax(policy.model(input_ids=torch.tensor([sequence.ids])).logits[0].float(), -1)
        for span in sequence.spans:
            turn = episode.turns[span.turn]
            for place in range(turn.sampled):
                where = span.start + place
                worst = max(worst, abs(float(logprobs[where - 1, sequence.ids[where]]) - turn.logprobs[place]))
    print(f"{policy.name}: log-probabilities of rollouts within {worst:.1e} of one full forward pass (float32)")


def memory(model: str) -> None:
    """Peak memory of a training step at two prompt lengths, each in a process of its own."""
    steps = [(512, 64), (2048, 64), (512, 1600)]
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        grown = [pool.apply(_step_memory, (model, prompt, response)) for prompt, response in steps]
    shown = ", ".join(
        f"{grew:.0f} MiB for {prompt} + {response}" for grew, (prompt, response) in zip(grown, steps, strict=True)
    )
    print(f"{model}: memory of a training step by prompt + response tokens: {shown}")


def _step_memory(model: str, length: int, responses: int) -> float:
    torch.set_num_threads(1)
    settings: dict[str, Any] = {"lora_targets": "q_proj,v_proj", "gradient_checkpointing": True}
    policy = chat_policy(CellConfig(env="alfworld", policy=model, **settings))
    policy.model.train()
    Path("/proc/self/clear_refs").write_text("5")  # the peak so far was that of loading
    before = _peak()
    sequence = TokenSequence()
    sequence.extend(np.random.default_rng(0).integers(0, 40000, length + responses).tolist())
    spans = [Span(0, length, length + responses)]
    (-score(policy, [sequence], [spans]).logprobs.sum()).backward()
    return _peak() - before


def _peak() -> float:
    """Most memory that the process has held, in MiB (Linux)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


class _EveryTurnAdvised:
    """Guidance for every turn, so that scoring has its full work."""

    name = "advised"

    def guide(self, group: Any) -> list[Guidance | None]:
        return [Guidance(["look around"] * len(episode.turns), "turn") for episode in group.episodes]


def overhead_of_tiny() -> None:
    """Which share of each phase of an update of the tiny policy is passes of the model itself."""
    config = CellConfig(env="alfworld", tasks_per_update=4, group_size=8, max_turns=15, kl_coef=0.0, entropy_coef=0.0)
    policy = load_tiny(warm_start_folder(config))
    make_env = partial(registry.make_env, "alfworld", max_steps=15)
    trainer = Trainer(config, policy, TASPO(), _EveryTurnAdvised(), make_env, make_env().splits()["train"].task_ids)
    groups = trainer.play(0)
    work: dict[str, Callable[[], object]] = {
        "rollout": lambda: groups.__setitem__(slice(None), trainer.play(0)),
        "scoring": lambda: [
            trainer.scorer.shift(group.episodes, [text for text in _EveryTurnAdvised().guide(group) if text])
            for group in groups
        ],
        "update": lambda: trainer.learn(
            0, groups, [[Credit.uniform(episode, 1.0) for episode in group.episodes] for group in groups]
        ),
    }
    for name, job in work.items():
        with _model_time(policy) as spent:
            begun = time.process_time()
            job()
            whole = time.process_time() - begun
        print(f"tiny: {name} {whole:.2f} s, of which passes of the model {spent[0]:.2f} s: {spent[0] / whole:.0%}")


@contextmanager
def _model_time(policy: LanguageModel) -> Iterator[list[float]]:
    """Seconds in forward passes of decoder and head, and in backward passes."""
    spent, begun = [0.0], [0.0]

    def before(*_: object) -> None:
        begun[0] = time.process_time()

    def after(*_: object) -> None:
        spent[0] += time.process_time() - begun[0]

    hooks = [hook for part in (policy.decoder, policy.head)
             for hook in (part.register_forward_pre_hook(before), part.register_forward_hook(after))]  # fmt: skip
    backward = torch.Tensor.backward

    def timed(*given: Any, **named: Any) -> None:
        before()
        backward(*given, **named)
        after()

    torch.Tensor.backward = timed  # type: ignore[method-assign]
    try:
        yield spent
    finally:
        torch.Tensor.backward = backward  # type: ignore[method-assign]
        for hook in hooks:
            hook.remove()


if __name__ == "__main__":
    main()
