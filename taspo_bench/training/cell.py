"""One cell of a run: a method on a benchmark with a seed, from its settings to its evaluation, in its own folder."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from taspo_bench import registry
from taspo_bench.api import TextEnv
from taspo_bench.config import WARM_START, CellConfig
from taspo_bench.credit import make_scheme
from taspo_bench.episode import Episode, write_episodes
from taspo_bench.errors import InputError
from taspo_bench.evaluation.evaluate import evaluate, evaluation_splits
from taspo_bench.evaluation.results import split_record
from taspo_bench.files import write_json
from taspo_bench.policies.language_model import LanguageModel
from taspo_bench.policies.shipped import warm_start_folder
from taspo_bench.training.analyzer import make_analyzer
from taspo_bench.training.checkpoint import load_tiny, load_trainer, read_card, save_trainer
from taspo_bench.training.loop import Trainer

SCHEMA = 1

Notify = Callable[[str, int, int], None]
"""Called with a phase, how much of it is done, and how much there is."""


def silent(phase: str, done: int, total: int) -> None:
    """Notify nobody."""


def environment_maker(config: CellConfig) -> Callable[[], TextEnv]:
    """Makes the cell's environments, without the command line's knowledge of any of them."""
    return partial(registry.make_env, config.env, data=config.data, max_steps=config.max_turns)


def load_policy(config: CellConfig) -> LanguageModel:
    """The policy that the cell trains."""
    if config.policy != "tiny":
        raise InputError(f"policy {config.policy!r}: training knows 'tiny'")
    return load_tiny(warm_start_folder(config))


def warm_start_note(config: CellConfig, env: TextEnv) -> str:
    """One line if the warm start was made for other data than is in use; else empty."""
    card = read_card(warm_start_folder(config))
    made_with, used = card.get("data_stamp", {}), asdict(env.data_stamp())
    if made_with.get("sha256") == used["sha256"]:
        return ""
    return (
        f"{config.env}: the warm start was trained on {made_with.get('source', 'unknown')} data, not on "
        f"{used['source']}; `taspo-bench warm-start --env {config.env} --data {config.data}` makes one that fits"
    )


def run_cell(config: CellConfig, folder: Path, notify: Notify = silent) -> None:
    """Train and evaluate. Goes on where an earlier try was broken off; ``eval.json`` is written last."""
    begun = time.perf_counter()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "episodes").mkdir(exist_ok=True)
    (folder / "failed.json").unlink(missing_ok=True)
    make_env = environment_maker(config)
    env = make_env()
    policy = load_policy(config)
    splits = env.splits()
    write_json(
        folder / "config.json",
        {
            "schema": SCHEMA,
            **config.model_dump(),
            "max_turns": env.max_steps,
            "data_stamp": asdict(env.data_stamp()),
            "splits": {name: {"n": len(split), "sha256": split.sha256} for name, split in splits.items()},
            "warm_start_card": read_card(warm_start_folder(config)),
            "note": warm_start_note(config, env),
        },
    )
    if config.method != WARM_START:
        _train(config, folder, policy, make_env, list(splits["train"].task_ids), notify)
    trained = time.perf_counter()
    records = {}
    for split in evaluation_splits(splits, config.eval_splits, config.eval_tasks):
        done = 0

        def advance(ended: int, split_name: str = split.name, total: int = len(split)) -> None:
            nonlocal done
            done += ended
            notify(f"evaluate {split_name}", done, total)

        judged = policy.at_temperature(config.eval_temperature)
        episodes = evaluate(make_env, judged, split, config.seed, config.batch, progress=advance)
        write_episodes(folder / "episodes" / f"eval-{split.name}.jsonl.gz", episodes)
        records[split.name] = split_record(episodes, split)
    seconds = {"train": trained - begun, "evaluate": time.perf_counter() - trained}
    write_json(
        folder / "eval.json",
        {
            "schema": SCHEMA,
            "method": config.method,
            "env": config.env,
            "seed": config.seed,
            "splits": records,
            "warm_start": None,
            "seconds": seconds,
            "data_stamp": asdict(env.data_stamp()),
        },
    )


def _train(
    config: CellConfig,
    folder: Path,
    policy: LanguageModel,
    make_env: Callable[[], TextEnv],
    task_ids: list[str],
    notify: Notify,
) -> None:
    scheme = make_scheme(registry.method_class(config.method), config.scheme)
    analyzer = make_analyzer(config, make_env(), policy, folder / "analyzer") if scheme.uses_guidance else None
    trainer = Trainer(config, policy, scheme, analyzer, make_env, task_ids[: config.train_tasks])
    state = load_trainer(folder / "checkpoint", policy, trainer.optimizer)
    first = 0
    if state is not None:
        first, trainer.env_steps = state["update"], state["env_steps"]
        if analyzer is not None:
            analyzer.load_state(state["analyzer"])
    metrics = folder / "metrics.jsonl"
    _keep_lines(metrics, first)
    for number in range(first, config.updates):
        notify("train", number, config.updates)
        trained = trainer.update(number)
        with metrics.open("a", encoding="utf-8") as file:
            file.write(json.dumps({**trained.metrics, **(analyzer.figures() if analyzer else {})}) + "\n")
        done = number + 1
        if done % config.save_every == 0 or done == config.updates:
            _store(folder, done, trained.episodes)
            known = analyzer.state() if analyzer is not None else {}
            kept = {"update": done, "env_steps": trainer.env_steps, "analyzer": known}
            save_trainer(folder / "checkpoint", policy, trainer.optimizer, kept)
    notify("train", config.updates, config.updates)


def _store(folder: Path, done: int, episodes: list[Episode]) -> None:
    write_episodes(folder / "episodes" / f"train-{done:05d}.jsonl.gz", episodes)


def _keep_lines(path: Path, count: int) -> None:
    """Cut a metrics file back to its first lines: those that the checkpoint knows of."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)[:count] if path.exists() else []
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_text("".join(lines), encoding="utf-8")
    os.replace(temporary, path)


def describe_failure(error: BaseException) -> dict[str, Any]:
    """What ``failed.json`` says of a cell that did not finish."""
    return {"schema": SCHEMA, "error": f"{type(error).__name__}: {error}"}
