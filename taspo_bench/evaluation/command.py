"""The work behind ``taspo-bench eval``: any policy, every task of a split, one table."""

from __future__ import annotations

import time
from dataclasses import asdict
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from taspo_bench import registry
from taspo_bench.config import CellConfig
from taspo_bench.episode import write_episodes
from taspo_bench.errors import InputError
from taspo_bench.evaluation.evaluate import evaluate, evaluation_splits
from taspo_bench.evaluation.results import SCHEMA, SplitRecord, split_record
from taspo_bench.policies.policy import Policy
from taspo_bench.policies.scripted import ExpertPolicy, RandomPolicy


def policy_by_name(name: str, env: str, temperature: float) -> Policy:
    """``random``, ``expert``, ``warm-start`` (the one that the benchmark ships) or a policy's folder."""
    if name == "random":
        return RandomPolicy()
    if name == "expert":
        return ExpertPolicy()
    if name != "warm-start" and not Path(name).is_dir():
        raise InputError(f"--policy {name}: give random, expert, warm-start, or the folder of a policy")
    from taspo_bench.policies.shipped import warm_start_folder
    from taspo_bench.training.checkpoint import load_tiny

    folder = warm_start_folder(CellConfig(env=env)) if name == "warm-start" else Path(name)
    return load_tiny(folder).at_temperature(temperature)


def evaluate_policy(
    console: Console,
    env: str,
    policy_name: str,
    split_names: list[str],
    data: str,
    tasks: int | None,
    seed: int,
    temperature: float,
    out: Path | None,
) -> dict[str, SplitRecord]:
    """Evaluate, print a table, and keep episodes and ``eval.json`` in ``out`` if it is given."""
    make_env = partial(registry.make_env, env, data=data)
    first = make_env()
    splits = evaluation_splits(first.splits(), split_names, tasks)
    policy = policy_by_name(policy_name, env, temperature)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
    records: dict[str, SplitRecord] = {}
    seconds: dict[str, float] = {}
    for split in splits:
        begun = time.perf_counter()
        with Progress(console=console, transient=True) as progress:
            bar = progress.add_task(split.name, total=len(split))
            episodes = evaluate(make_env, policy, split, seed, progress=partial(progress.advance, bar))
        seconds[split.name] = time.perf_counter() - begun
        records[split.name] = split_record(episodes, split)
        if out is not None:
            write_episodes(out / f"eval-{split.name}.jsonl.gz", episodes)
    console.print(_table(env, policy_name, records))
    if out is not None:
        from taspo_bench.files import write_json

        record = {
            "schema": SCHEMA,
            "method": policy_name,
            "env": env,
            "seed": seed,
            "splits": records,
            "warm_start": None,
            "seconds": seconds,
            "data_stamp": asdict(first.data_stamp()),
        }
        write_json(out / "eval.json", record)
    return records


def _table(env: str, policy: str, records: dict[str, SplitRecord]) -> Table:
    table = Table("split", "family", "tasks", "success", "95 % interval", "score", title=f"{policy} on {env}")
    for name, record in records.items():
        low, high = record["wilson"]
        table.add_row(
            name,
            "all (micro)",
            str(record["n"]),
            f"{record['success']:.3f}",
            f"[{low:.3f}, {high:.3f}]".replace("[", "\\["),
            f"{record['score']:.3f}",
        )
        table.add_row("", "all (macro)", "", f"{record['macro']:.3f}", "", "")
        for family, result in sorted(record["families"].items()):
            table.add_row("", family, str(result["n"]), f"{result['success']:.3f}", "", f"{result['score']:.3f}")
    return table
