"""TRL's GRPOTrainer with our environments, credit schemes and aggregation (docs/method.md, steps 1 to 9).

TRL keeps the loop, the loss and the distribution over processes. Three things are ours: the rollouts, the credit, and
how much each token weighs. Groups may span processes: episodes are gathered, each group is credited once, by one
process, and every process takes its rows of the result.
"""

from __future__ import annotations

import os
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
import torch
from datasets import Dataset
from transformers import PreTrainedTokenizerFast, PrinterCallback, TrainerCallback

os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")  # rollout_func: the tested versions are pinned

from trl import GRPOConfig, GRPOTrainer
from trl.models import unwrap_model_for_generation

from taspo_bench.api import TextEnv
from taspo_bench.config import CellConfig
from taspo_bench.credit import Credit, CreditScheme, reaches, teaches
from taspo_bench.engines import processes
from taspo_bench.engines.episode_rows import rows, stacked
from taspo_bench.engines.trl_settings import steps_per_update
from taspo_bench.episode import Episode, Group
from taspo_bench.policies.chat_format import ChatFormat
from taspo_bench.policies.formats import LineFormat
from taspo_bench.policies.language_model import LanguageModel
from taspo_bench.rollout import rollout
from taspo_bench.taspo.analyzers import Analyzer
from taspo_bench.taspo.credit_metrics import credit_metrics
from taspo_bench.training.loop import Stopwatch, Trained, equal_share, grouped, keep_credit, outcomes, update_starts
from taspo_bench.training.loss import token_credit, token_weights
from taspo_bench.training.scoring import PolicyScorer


def processing_class(policy: LanguageModel) -> PreTrainedTokenizerFast:
    """The policy's tokenizer as TRL wants one. It decodes for TRL's logs; nothing is ever encoded again."""
    fmt = policy.format
    if isinstance(fmt, LineFormat):
        end = fmt.tokenizer.id_to_token(fmt.stop_id)
        return PreTrainedTokenizerFast(tokenizer_object=fmt.tokenizer, eos_token=end, pad_token=end)
    assert isinstance(fmt, ChatFormat)
    return fmt.tokenizer


def task_rows(config: CellConfig, task_ids: Sequence[str]) -> Dataset:
    """One row per task of every update, in the order that the own loop plays them."""
    starts = [update_starts(config, task_ids, number)[:: config.group_size] for number in range(config.updates)]
    return Dataset.from_dict(
        {
            "prompt": [start.task_id for of_update in starts for start in of_update],
            "update": [number for number, of_update in enumerate(starts) for _ in of_update],
        }
    )


def verified_return(verified_return: list[float], **_: object) -> list[float | None]:
    """TRL's reward function: the score that the benchmark verified."""
    return list(verified_return)


class AgentGRPOTrainer(GRPOTrainer):
    """GRPOTrainer over whole episodes, credited by a :class:`~taspo_bench.credit.CreditScheme`.

    Args:
        report: called in the first process with what each update did, before TRL's checkpoint of it.
    """

    def __init__(
        self,
        config: CellConfig,
        policy: LanguageModel,
        scheme: CreditScheme,
        analyzer: Analyzer | None,
        make_env: Callable[[], TextEnv],
        task_ids: Sequence[str],
        args: GRPOConfig,
        report: Callable[[Trained], None],
    ) -> None:
        self.cell = config
        self.policy = policy
        self.scheme = scheme
        self.analyzer = analyzer
        self.make_env = make_env
        self.task_ids = task_ids
        self.report = report
        self.env_steps = 0
        self.updates_done = 0
        self.has_signal = False
        """Whether any group of the update at hand had unequal returns."""
        self.scorer = PolicyScorer(policy, make_env, config.micro_batch_tokens)
        self.episodes: list[Episode] = []
        """Those that this process played for the update at hand."""
        self.groups: list[Group] = []
        """The update's groups, from all processes."""
        self._number = 0
        self._envs: list[TextEnv] = []
        self._metrics_of_update: dict[str, object] = {}
        self._steps: list[dict[str, float]] = []
        self._watch = Stopwatch()
        super().__init__(
            model=policy.model,
            reward_funcs=verified_return,
            args=args,
            train_dataset=task_rows(config, task_ids),
            processing_class=processing_class(policy),
            rollout_func=self._rollout,
            callbacks=[_SkipEmptyUpdates(self)],
        )
        self.remove_callback(PrinterCallback)

    def play(self, number: int) -> list[Episode]:
        """This process's share of the episodes of an update."""
        starts = update_starts(self.cell, self.task_ids, number)
        share = len(starts) // self.accelerator.num_processes
        first = self.accelerator.process_index * share
        return rollout(self.make_env, self.policy, starts[first : first + share], self.cell.batch, self._envs)

    def _rollout(self, prompts: list[str], trainer: GRPOTrainer) -> dict[str, Any]:
        with self._watch.phase("rollout"), self._frozen():
            self.episodes = self.play(self._number)
        assert [episode.task_id for episode in self.episodes] == prompts
        return rows(self.episodes, filler=self.policy.format.stop_id)

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        """TRL's batch with per-token credit for advantages, and the weights of step 9 for its 0/1 loss mask."""
        self._watch = Stopwatch()
        self._number = int(inputs[0]["update"])
        output: dict[str, Any] = super()._generate_and_score_completions(inputs)
        self.groups = grouped(processes.gathered(self.episodes), self.cell, self._number)
        informative, credits = self._credit()
        trained = [episode for group in informative for episode in group.episodes]
        weights = dict(zip(map(id, trained), token_weights(trained), strict=True))
        flat = [credit for of_group in credits for credit in of_group]
        credit = {id(e): token_credit(e, given) for e, given in zip(trained, flat, strict=True)}
        first = self.accelerator.process_index * len(inputs)
        mine = [episode for group in self.groups for episode in group.episodes][first : first + len(inputs)]
        # TRL divides the masked sum by this count: weights that add up to it make the sum our mean
        tokens = float(sum(turn.sampled for episode in trained for turn in episode.turns))
        like = output["completion_ids"]
        output["advantages"] = stacked(mine, [credit.get(id(episode)) for episode in mine], like)
        output["tool_mask"] = tokens * stacked(mine, [weights.get(id(episode)) for episode in mine], like)
        output["num_items_in_batch"] = torch.tensor(tokens, device=like.device)
        output["old_per_token_logps"] = output["sampling_per_token_logps"]
        self._note(informative, credits)
        return output

    def _credit(self) -> tuple[list[Group], list[list[Credit]]]:
        """Guidance and credit of the groups that teach something: each from one process, then known to all.

        Which process follows from the task, so that an analyzer's bank of a task's past successes stays in one place.
        """
        informative = [index for index, group in enumerate(self.groups) if reaches(group, self.scheme)]
        world, rank = self.accelerator.num_processes, self.accelerator.process_index
        done: list[tuple[int, Group, list[Credit]]] = []
        with self._frozen():
            for index in informative:
                group = self.groups[index]
                if zlib.crc32(group.task_id.encode()) % world != rank:
                    continue
                if self.analyzer is not None and self.scheme.uses_guidance:
                    with self._watch.phase("guidance"):
                        group.guidance = self.analyzer.guide(group)
                with self._watch.phase("scoring"):
                    done.append((index, group, self.scheme.credit(group, self.scorer)))
        taught = [item for item in done if teaches(*item[1:])]
        credited = sorted(processes.gathered(taught), key=lambda item: item[0])
        for index, group, _ in credited:
            self.groups[index] = group
        return [group for _, group, _ in credited], [credits for _, _, credits in credited]

    @contextmanager
    def _frozen(self) -> Iterator[None]:
        """The policy whole in every process and without dropout, for rollouts and shifts."""
        model: Any = self.model
        args: Any = self.args
        training = model.training
        with ExitStack() as stack:
            stack.enter_context(
                unwrap_model_for_generation(
                    self.model_wrapped,
                    self.accelerator,
                    gather_deepspeed3_params=args.ds3_gather_for_generation,
                    gradient_checkpointing_kwargs=args.gradient_checkpointing_kwargs,
                )
            )
            stack.enter_context(self._dist.summon_full_params(self.model_wrapped, writeback=False))
            model.eval()
            yield
        model.train(training)

    def _compute_loss(self, model: torch.nn.Module, inputs: dict[str, Any]) -> torch.Tensor:
        """TRL's loss; its entropy bonus weighs tokens as the loss does, instead of every micro-batch the same."""
        if self.cell.entropy_coef > 0:
            weight = float((inputs["completion_mask"] * inputs["tool_mask"]).sum().clamp(min=1.0))
            in_step = float(inputs["num_items_in_batch"].clamp(min=1.0)) / self.accelerator.num_processes
            in_step /= self.cell.minibatches
            self.entropy_coef = self.cell.entropy_coef * weight * self.current_gradient_accumulation_steps / in_step
        loss: torch.Tensor = super()._compute_loss(model, inputs)
        return loss

    def create_scheduler(self, num_training_steps: int, optimizer: Any = None) -> Any:
        """The own loop's warm-up, whose first update already has a share of the rate, if the user chose no other."""
        if {"lr_scheduler_type", "warmup_steps"} & set(self.cell.trl):
            return super().create_scheduler(num_training_steps, optimizer)
        chosen = optimizer or self.optimizer
        assert chosen is not None
        steps, warmup = steps_per_update(self.cell), max(1, self.cell.warmup_updates)
        self.lr_scheduler = torch.optim.lr_scheduler.LambdaLR(
            chosen, lambda step: min(1.0, (step // steps + 1) / warmup)
        )
        return self.lr_scheduler

    def get_decay_parameter_names(self, model: torch.nn.Module) -> list[str]:
        """Weight decay on every parameter, as in the own loop."""
        return [name for name, _ in model.named_parameters()]

    def _note(self, informative: Sequence[Group], credits: Sequence[Sequence[Credit]]) -> None:
        """The part of the update's line of metrics that is known before its optimizer steps."""
        keep_credit(informative, credits)
        episodes = [episode for group in self.groups for episode in group.episodes]
        self.env_steps += sum(len(episode.turns) for episode in episodes)
        self._metrics_of_update = {
            "update": self._number,
            "env_steps": self.env_steps,
            **outcomes(episodes),
            "groups_skipped": equal_share(self.groups),
            **credit_metrics(informative, credits),
            **(self.analyzer.figures() if self.analyzer is not None else {}),
            "processes": self.accelerator.num_processes,
        }
        self.has_signal = bool(informative)
        self._stepping_since = time.perf_counter()

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Also collect the figures of the update's optimizer steps; after the last, report the update."""
        super().log(logs, start_time)
        if "loss" not in logs:
            return
        self._steps.append(logs)
        if len(self._steps) < steps_per_update(self.cell):
            return
        names = {"loss": "loss", "kl": "kl", "entropy": "entropy", "clip_fraction": "clip_ratio/region_mean",
                 "grad_norm": "grad_norm"}  # fmt: skip
        learned = {
            name: float(np.mean([step.get(key) or 0.0 for step in self._steps])) for name, key in names.items()
        }
        self._watch.seconds["update"] = time.perf_counter() - self._stepping_since
        self._steps = []
        self.updates_done = self._number + 1
        if self.accelerator.is_main_process:
            episodes = [episode for group in self.groups for episode in group.episodes]
            self.report(Trained({**self._metrics_of_update, **learned, "seconds": self._watch.seconds}, episodes))


class _SkipEmptyUpdates(TrainerCallback):
    """No step for an update whose groups taught nothing: not even momentum and weight decay move."""

    def __init__(self, trainer: AgentGRPOTrainer) -> None:
        self.trainer = trainer

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if not self.trainer.has_signal:
            model: Any = self.trainer.model
            model.zero_grad(set_to_none=True)
