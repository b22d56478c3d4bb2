"""One cell of a run: a method on a benchmark with a seed, from its settings to its evaluation, in its own folder."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import torch

from taspo_bench import registry
from taspo_bench.api import Split, TextEnv
from taspo_bench.config import WARM_START, CellConfig
from taspo_bench.credit import make_scheme
from taspo_bench.engines import processes
from taspo_bench.episode import Episode, write_episodes
from taspo_bench.evaluation.evaluate import evaluate, evaluation_splits
from taspo_bench.evaluation.results import evaluation_record, split_record
from taspo_bench.files import write_json
from taspo_bench.policies.language_model import LanguageModel
from taspo_bench.provenance import processor, provenance
from taspo_bench.training import record
from taspo_bench.training.analyzer import make_analyzer
from taspo_bench.training.checkpoint import load_trainer, save_trainer
from taspo_bench.training.kept_policies import keep_best, keep_last
from taspo_bench.training.loggers import CellLog
from taspo_bench.training.loop import Trainer
from taspo_bench.training.starting_policy import load_policy, warm_start_card

SCHEMA = 1

Notify = Callable[[str, int, int], None]
"""Called with a phase, how much of it is done, and how much there is."""


def silent(phase: str, done: int, total: int) -> None:
    """Notify nobody."""


def environment_maker(config: CellConfig) -> Callable[[], TextEnv]:
    """Makes the cell's environments, without the command line's knowledge of any of them."""
    return partial(registry.make_env, config.env, data=config.data, max_steps=config.max_turns)


def warm_start_note(config: CellConfig, env: TextEnv) -> str:
    """One line if the warm start was made for other data than is in use; else empty."""
    card = warm_start_card(config)
    if not card:
        return ""
    made_with, used = card.get("data_stamp", {}), asdict(env.data_stamp())
    if made_with.get("sha256") == used["sha256"]:
        return ""
    return (
        f"{config.env}: the warm start was trained on {made_with.get('source', 'unknown')} data, not on "
        f"{used['source']}; `taspo-bench warm-start --env {config.env} --data {config.data} --out FOLDER` makes one "
        "that fits, for --set warm_start=FOLDER"
    )


def bank_note(config: CellConfig, tasks: int) -> str:
    """One line if a bank of past successes stays empty since no training task comes twice; else empty."""
    drawn = config.updates * config.tasks_per_update
    if not config.guidance_bank or drawn > tasks:
        return ""
    return (
        f"{config.env}: guidance_bank {config.guidance_bank} has no effect: {drawn} groups of {tasks} train tasks"
        " play none twice; more updates or tasks_per_update do"
    )


def run_cell(config: CellConfig, folder: Path, notify: Notify = silent) -> None:
    """Train and evaluate. Goes on where an earlier try was broken off; ``eval.json`` is written last.

    Of several processes at one cell (engine ``trl`` under ``accelerate launch``) the first writes the files.
    """
    torch.set_num_threads(config.threads)
    make_env = environment_maker(config)
    env = make_env()
    policy = load_policy(config, is_trained=config.method != WARM_START)
    splits = env.splits()
    if processes.is_first():
        (folder / "episodes").mkdir(parents=True, exist_ok=True)
        (folder / "failed.json").unlink(missing_ok=True)
        write_json(
            folder / "config.json",
            {
                "schema": SCHEMA,
                **config.model_dump(),
                "max_turns": env.max_steps,
                "data_stamp": asdict(env.data_stamp()),
                "splits": {name: {"n": len(split), "sha256": split.sha256} for name, split in splits.items()},
                "warm_start_card": warm_start_card(config),
                "note": " ".join(
                    filter(None, (warm_start_note(config, env), bank_note(config, len(splits["train"]))))
                ),
                "processor": processor(policy.device),
                **provenance(),
            },
        )
    records = {}
    with CellLog(config, folder) as log:
        if config.method != WARM_START:
            _train(config, folder, policy, make_env, list(splits["train"].task_ids), notify, log)
            if processes.is_first():
                keep_last(folder, config, policy, env)
        begun = time.perf_counter()
        for split in evaluation_splits(splits, config.eval_splits, config.eval_tasks):
            episodes = processes.shared(split, partial(_evaluate, config, policy, make_env, notify))
            records[split.name] = split_record(episodes, split)
            if processes.is_first():
                write_episodes(folder / "episodes" / f"eval-{split.name}.jsonl.gz", episodes)
        if processes.is_first():
            log.evaluation(records)
    evaluated = time.perf_counter()
    if processes.is_first():
        trained = record.seconds(folder) if config.method != WARM_START else 0.0
        seconds = {"train": trained, "evaluate": evaluated - begun}
        stamp = asdict(env.data_stamp())
        result = evaluation_record(config.method, config.env, config.seed, records, seconds, stamp)
        write_json(folder / "eval.json", result)


def _evaluate(
    config: CellConfig, policy: LanguageModel, make_env: Callable[[], TextEnv], notify: Notify, split: Split
) -> list[Episode]:
    done = 0

    def advance(ended: int) -> None:
        nonlocal done
        done += ended
        notify(f"evaluate {split.name}", done, len(split))

    judged = policy.at_temperature(config.eval_temperature)
    return evaluate(make_env, judged, split, config.seed, config.batch, progress=advance)


def _train(
    config: CellConfig,
    folder: Path,
    policy: LanguageModel,
    make_env: Callable[[], TextEnv],
    task_ids: list[str],
    notify: Notify,
    log: CellLog,
) -> None:
    scheme = make_scheme(registry.method_class(config.method), config.scheme)
    env = make_env()
    analyzer = make_analyzer(config, env, policy, folder / "analyzer") if scheme.uses_guidance else None
    tasks = task_ids[: config.train_tasks]
    if config.engine == "trl":
        from taspo_bench.engines.trl_training import train

        train(config, folder, policy, scheme, analyzer, make_env, tasks, notify, log)
        return
    trainer = Trainer(config, policy, scheme, analyzer, make_env, tasks)
    state = load_trainer(folder / "checkpoint", policy, trainer.optimizer)
    first = 0
    if state is not None:
        first, trainer.env_steps = state["update"], state["env_steps"]
        if analyzer is not None:
            analyzer.load_state(state["analyzer"])
    record.begin(folder, first)
    for number in range(first, config.updates):
        notify("train", number, config.updates)
        trained = trainer.update(number)
        trained.metrics |= analyzer.figures() if analyzer else {}
        if record.add(folder, config, number + 1, trained):
            keep_best(folder, config, policy, env, number + 1)
            known = analyzer.state() if analyzer is not None else {}
            kept = {"update": number + 1, "env_steps": trainer.env_steps, "analyzer": known}
            save_trainer(folder / "checkpoint", policy, trainer.optimizer, kept)
        log.update(number + 1, trained.metrics)
    notify("train", config.updates, config.updates)


def describe_failure(error: BaseException) -> dict[str, Any]:
    """What ``failed.json`` says of a cell that did not finish."""
    return {"schema": SCHEMA, "error": f"{type(error).__name__}: {error}"}
