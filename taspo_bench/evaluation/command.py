"""The work behind ``taspo-bench eval``: any policy, every task of a split, one table."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from taspo_bench import registry
from taspo_bench.api import Split, TextEnv
from taspo_bench.config import MODEL_SETTINGS, SMOLLM2, CellConfig, names_model, resolve
from taspo_bench.endpoint import PREFIX
from taspo_bench.engines import ray_cluster
from taspo_bench.episode import Episode, write_episodes
from taspo_bench.errors import InputError, RunError
from taspo_bench.evaluation.evaluate import evaluate, evaluation_splits
from taspo_bench.evaluation.results import SplitRecord, evaluation_record, split_record
from taspo_bench.files import refuse_unwritable, write_json
from taspo_bench.policies.endpoint import EndpointPolicy, count_outcomes, outcome
from taspo_bench.policies.policy import Policy
from taspo_bench.policies.scripted import ExpertPolicy, RandomPolicy

if TYPE_CHECKING:
    from taspo_bench.policies.language_model import LanguageModel

BATCH = 64
"""Episodes that a policy plays side by side."""
UNSAMPLED = ("random", "expert")
"""Policies that no temperature changes."""


def policy_by_name(
    name: str, env: str, temperature: float, out: Path | None = None, settings: Mapping[str, Any] | None = None
) -> Policy:
    """``random``, ``expert``, ``warm-start`` (the benchmark's own), a policy's folder, a language model by name or
    folder, or ``endpoint:URL#MODEL``.

    Args:
        out: a hosted model keeps its answers and its audit file in the folder ``endpoint`` there.
        settings: of a hosted model (:class:`taspo_bench.policies.endpoint.EndpointSettings`), or of a language model
            (those of :class:`taspo_bench.config.CellConfig` in ``MODEL_SETTINGS``).
    """
    if name.startswith(PREFIX):
        return EndpointPolicy(name, temperature, out / "endpoint" if out is not None else None, settings)
    if names_model(name):
        return _language_model(name, env, settings or {}).at_temperature(temperature)
    if settings:
        raise InputError(f"--set {next(iter(settings))}: only models have settings, not --policy {name}")
    if name == "random":
        return RandomPolicy()
    if name == "expert":
        return ExpertPolicy()
    if name != "warm-start" and not Path(name).is_dir():
        raise InputError(
            f"--policy {name}: give random, expert, warm-start, a policy's folder, {SMOLLM2}, OWNER/MODEL, "
            f"or {PREFIX}URL#MODEL"
        )
    from taspo_bench.policies.shipped import warm_start_folder
    from taspo_bench.training.checkpoint import load_tiny

    folder = warm_start_folder(CellConfig(env=env)) if name == "warm-start" else Path(name)
    if (folder / "adapter_config.json").is_file():
        raise InputError(f"--policy {name}: this is an adapter; give --policy MODEL --adapter {name}")
    return load_tiny(folder).at_temperature(temperature)


def _language_model(name: str, env: str, settings: Mapping[str, Any]) -> LanguageModel:
    if unknown := sorted(set(settings) - MODEL_SETTINGS):
        raise InputError(
            f"--set {unknown[0]}: an evaluated model has no such setting; it has {', '.join(sorted(MODEL_SETTINGS))}"
        )
    from taspo_bench.policies.models import chat_policy

    return chat_policy(resolve("paper", {}, {**settings, "policy": name}, env=env), is_trained=False)


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
    settings: Mapping[str, Any] | None = None,
    cluster: str = "",
) -> dict[str, SplitRecord]:
    """Evaluate, print a table, and keep episodes and ``eval.json`` in ``out`` if it is given.

    Args:
        settings: those of :func:`policy_by_name`, and ``max_turns``, a step limit shorter than the benchmark's.
        cluster: ``ray`` or ``ray:ADDRESS``: its workers play the tasks, ``BATCH`` at a time, and each may ask for
            ``cell_gpus`` and ``cell_memory`` among the settings. This process plays them if empty.

    Raises:
        InputError: what was given does not go together, or ``out`` belongs to a run or cannot be written.
        RunError: a hosted model failed in some episodes; they count as lost in what was printed and kept.
    """
    ray_cluster.check(cluster)
    if out is not None:
        _refuse_run(out)
    settings = dict(settings or {})
    own = [key for key in settings if key == "max_turns" or (cluster and key in ("cell_gpus", "cell_memory"))]
    asked: dict[str, Any] = {key: settings.pop(key) for key in own}
    max_turns = asked.pop("max_turns", None)
    if not (max_turns is None or isinstance(max_turns, int)):
        raise InputError(f"--set max_turns={max_turns}: give a whole number of turns")
    make_env = partial(registry.make_env, env, data=data, max_steps=max_turns)
    first = make_env()
    splits = evaluation_splits(first.splits(), split_names, tasks)
    if out is not None:
        refuse_unwritable(out)
    policy = policy_by_name(policy_name, env, temperature, out, settings)
    if cluster and isinstance(policy, EndpointPolicy):
        raise InputError(f"--cluster {cluster}: a hosted model is asked from here; leave --cluster away")
    if out is not None:
        (out / "eval.json").unlink(missing_ok=True)  # it must never stand beside episodes of another evaluation
    records: dict[str, SplitRecord] = {}
    played: dict[str, list[Episode]] = {}
    seconds: dict[str, float] = {}
    for split in splits:
        begun = time.perf_counter()
        with Progress(console=console, transient=True) as progress:
            advance = partial(progress.advance, progress.add_task(split.name, total=len(split)))
            if cluster:
                play = partial(_play, make_env, env, policy_name, temperature, settings, seed)
                episodes = _shared(cluster, play, split, asked, advance)
            else:
                episodes = evaluate(make_env, policy, split, seed, BATCH, progress=advance)
        seconds[split.name] = time.perf_counter() - begun
        records[split.name], played[split.name] = split_record(episodes, split), episodes
        if out is not None:
            write_episodes(out / f"eval-{split.name}.jsonl.gz", episodes)
    console.print(_table(env, policy.name, records))
    _tell_errors(console, played)
    hosted = _account(console, policy, played) if isinstance(policy, EndpointPolicy) else None
    if out is not None:
        stamp = asdict(first.data_stamp())
        record = evaluation_record(policy.name if hosted else policy_name, env, seed, records, seconds, stamp)
        record["max_turns"] = first.max_steps
        if policy_name not in UNSAMPLED:
            record["temperature"] = temperature
        if hosted:
            record["endpoint"] = hosted
        write_json(out / "eval.json", record)
    _refuse_failures(played, out)
    return records


def _refuse_run(out: Path) -> None:
    """Refuse the folder of a run or of its cell, whose results would be replaced."""
    if any((out / name).exists() for name in ("cells", "config.json")):
        raise InputError(f"--out {out}: holds a run, or one cell of it; name another folder")


def _play(
    make_env: Callable[[], TextEnv],
    env: str,
    policy_name: str,
    temperature: float,
    settings: Mapping[str, Any],
    seed: int,
    split: Split,
) -> list[Episode]:
    """In a worker of a cluster: play a share of a split."""
    policy = policy_by_name(policy_name, env, temperature, settings=settings)
    return evaluate(make_env, policy, split, seed, BATCH)


def _shared(
    cluster: str,
    play: Callable[[Split], list[Episode]],
    split: Split,
    asked: Mapping[str, Any],
    advance: Callable[[int], None],
) -> list[Episode]:
    resources = {
        "num_cpus": 1,
        "num_gpus": float(asked.get("cell_gpus", 0)),
        "memory": float(asked.get("cell_memory", 0)) * 10**9,
    }
    return ray_cluster.evaluate_shares(cluster, play, split, BATCH, resources, advance)


def _account(console: Console, policy: EndpointPolicy, played: Mapping[str, Sequence[Episode]]) -> dict[str, Any]:
    """Print how every episode of a hosted model ended and what it took; gives the same for ``eval.json``."""
    outcomes = {split: count_outcomes(episodes) for split, episodes in played.items()}
    usage = asdict(policy.endpoint.usage)
    for split, counts in outcomes.items():
        told = ", ".join(f"{count} {name}" for name, count in counts.items())
        console.print(f"{split}: {sum(counts.values())} episodes: {told}", highlight=False)
    used = (f"{name.replace('_', ' ')} {value:{'.4f' if name == 'cost' else ''}}" for name, value in usage.items())
    console.print(", ".join(used), highlight=False)
    return {"outcomes": outcomes, "usage": usage, "settings": policy.settings.model_dump()}


def _refuse_failures(played: Mapping[str, Sequence[Episode]], out: Path | None) -> None:
    everyone = [episode for episodes in played.values() for episode in episodes]
    reasons = Counter(episode.error for episode in everyone if outcome(episode) == "endpoint failure")
    if reasons:
        [(reason, _)] = reasons.most_common(1)
        advice = (
            "repeat with the same --out" if out is not None else "give --out, so that answers are kept, and repeat"
        )
        raise RunError(
            f"{reasons.total()} of {len(everyone)} episodes could not be played to their end and count as lost; "
            f"{advice} to ask again for what is missing. {reason}"
        )


def _tell_errors(console: Console, played: Mapping[str, Sequence[Episode]]) -> None:
    everyone = [episode for episodes in played.values() for episode in episodes]
    broken = [episode for episode in everyone if episode.error]
    if broken:
        first = f"the first, {broken[0].task_id}: {broken[0].error}"
        told = f"{len(broken)} of {len(everyone)} episodes ended with an error and count as lost; {first}"
        console.print(" ".join(told.split()), markup=False, highlight=False, soft_wrap=True)


def _table(env: str, policy: str, records: dict[str, SplitRecord]) -> Table:
    columns = ["split", "family", "tasks", "success", "95 % interval", "score"]
    has_errors = any(record["errors"] for record in records.values())
    table = Table(*columns, *(["errors"] if has_errors else []), title=f"{policy} on {env}")
    for name, record in records.items():
        low, high = record["wilson"]
        table.add_row(
            name,
            "all (micro)",
            str(record["n"]),
            f"{record['success']:.3f}",
            f"[{low:.3f}, {high:.3f}]".replace("[", "\\["),
            f"{record['score']:.3f}",
            *([str(record["errors"])] if has_errors else []),
        )
        table.add_row("", "all (macro)", "", f"{record['macro']:.3f}", "", "")
        for family, result in sorted(record["families"].items()):
            table.add_row("", family, str(result["n"]), f"{result['success']:.3f}", "", f"{result['score']:.3f}")
    return table
