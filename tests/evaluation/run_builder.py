"""Run folders for tests, written with the package's own episodes and split records."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from taspo_bench.api import Split
from taspo_bench.episode import Episode, Guidance, Turn, write_episodes
from taspo_bench.evaluation.results import split_record

Json = dict[str, Any]
Skill = Callable[[str, str, str, int], float]
"""Chance of success by method, environment, kind of split and seed."""

FAMILIES = {
    "alfworld": ("clean", "cool", "examine", "heat", "place", "place two"),
    "searchqa": ("1-hop", "2-hop", "3-hop"),
    "webshop": ("one option", "two options"),
}
LIFT = {"grpo": 0.18, "taspo": 0.30, "random_weights": 0.20, "token_taspo": 0.24}


def default_skill(method: str, env: str, kind: str, seed: int) -> float:
    base = {"alfworld": 0.35, "searchqa": 0.30, "webshop": 0.40}[env]
    wobble = 0.03 * np.sin(7 * seed + len(method) + len(env))
    return float(base + LIFT.get(method, 0.0) + wobble - (0.08 if kind == "unseen" else 0.0))


def task_split(env: str, name: str, kind: str, n: int) -> Split:
    return Split(name, kind, tuple(f"{env}-{name}-{number:05d}" for number in range(n)))  # type: ignore[arg-type]


def episode(env: str, task_id: str, number: int, won: bool, rng: np.random.Generator, **extra: Any) -> Episode:
    """A plausible episode: a few turns, the last one decides."""
    family = FAMILIES[env][number % len(FAMILIES[env])]
    length = int(rng.integers(3, 9))
    turns = [
        Turn(
            observation=f"Task: {family} <b>number {number}</b> & more.\nYou are at shelf {step}. You see a mug.",
            response=f"I look around.\n<action>go to shelf {step + 1}</action>",
            action=f"go to shelf {step + 1}",
            state_key=f"at shelf {step}",
            is_action_valid=step != 1,
            reward=float(won and step == length - 1),
            response_ids=[1, 2, 3],
            logprobs=[-0.1, -0.2, -0.3],
            action_span=(1, 3),
            sampled=3,
        )
        for step in range(length)
    ]
    score = 1.0 if won else (0.4 if env == "webshop" else 0.0)
    return Episode(
        env=env,
        task_id=task_id,
        family=family,
        turns=turns,
        won=won,
        score=score,
        truncated=not won,
        final_observation="You won." if won else "Nothing happens.",
        **extra,
    )


def with_credit(done: Episode, rng: np.random.Generator) -> Episode:
    """The episode as a credit scheme leaves it: advantage, weights of mean 1, guidance."""
    length = len(done.turns)
    spread = np.tanh(rng.normal(size=length))
    done.weights = [float(weight) for weight in 1 + 0.2 * (spread - spread.mean())]
    done.advantage = 1.0 if done.won else -0.6
    done.credit = [done.advantage * weight for weight in done.weights]
    done.guidance = Guidance(
        texts=["The mug must be cleaned before it is placed." if step % 2 else None for step in range(length)],
        scope="turn",
        items=[{"kind": "progress", "statement": "clean the mug first", "quote": "You see a mug"}],
    )
    return done


def build_run(
    path: Path,
    methods: Sequence[str] = ("grpo", "taspo"),
    envs: Sequence[str] = ("alfworld", "searchqa", "webshop"),
    seeds: Sequence[int] = (0, 1, 2),
    n: int = 60,
    updates: int = 30,
    skill: Skill = default_skill,
    failed: Sequence[tuple[str, str, int]] = (),
) -> Path:
    """Write a whole run folder; cells named in ``failed`` hold ``failed.json`` alone."""
    path.mkdir(parents=True)
    config = {
        "schema": 1,
        "methods": list(methods),
        "envs": list(envs),
        "seeds": list(seeds),
        "preset": "quick",
        "versions": {"taspo-bench": "0.1.0", "python": "3.11", "torch": "2.13"},
        "git": "0123abc",
        "training": {"learning_rate": 2e-4, "group_size": 8},
    }
    dump(path / "config.json", config)
    for method in ("warm_start", *methods):
        for env in envs:
            for seed in seeds:
                cell = path / "cells" / method / env / f"seed-{seed}"
                (cell / "episodes").mkdir(parents=True)
                if (method, env, seed) in failed:
                    dump(cell / "failed.json", {"error": "RunError: loss is <not> finite at update 7"})
                else:
                    _build_cell(cell, method, env, seed, n, updates, skill)
    return path


def _build_cell(cell: Path, method: str, env: str, seed: int, n: int, updates: int, skill: Skill) -> None:
    rng = np.random.default_rng([seed, len(method), len(env)])
    stamp = {"source": "embedded", "version": "1", "sha256": "ab" * 32}
    splits = [task_split(env, "valid_seen", "seen", n), task_split(env, "valid_unseen", "unseen", n)]
    shas = {split.name: {"kind": split.kind, "n": len(split), "sha256": split.sha256} for split in splits}
    dump(
        cell / "config.json",
        {"method": method, "env": env, "seed": seed, "data_stamp": stamp, "splits": shas, "updates": updates},
    )
    evaluation = {
        "schema": 1,
        "method": method,
        "env": env,
        "seed": seed,
        "splits": {split.name: _evaluate(cell, method, env, split, seed, skill, rng) for split in splits},
        "warm_start": None,
        "seconds": {"train": 50.0, "evaluate": 10.0},
        "data_stamp": stamp,
    }
    dump(cell / "eval.json", evaluation)
    if method == "warm_start":
        return
    goal, start = skill(method, env, "seen", seed), skill("warm_start", env, "seen", seed)
    with (cell / "metrics.jsonl").open("w") as file:
        for update in range(1, updates + 1):
            success = start + (goal - start) * update / updates + rng.normal(scale=0.03)
            file.write(json.dumps(_metrics(method, update, float(np.clip(success, 0, 1)))) + "\n")
    training = [episode(env, f"{env}-train-{i:05d}", i, i % 2 == 0, rng, split="train", seed=seed) for i in range(8)]
    if method != "grpo":
        training = [with_credit(done, rng) for done in training]
    write_episodes(cell / "episodes" / f"train-{updates:05d}.jsonl.gz", training)


def _evaluate(
    cell: Path, method: str, env: str, split: Split, seed: int, skill: Skill, rng: np.random.Generator
) -> Any:
    chance = skill(method, env, split.kind, seed)
    episodes = [
        episode(env, task_id, number, bool(rng.random() < chance), rng, split=split.name, seed=seed)
        for number, task_id in enumerate(split.task_ids)
    ]
    write_episodes(cell / "episodes" / f"eval-{split.name}.jsonl.gz", episodes)
    return split_record(episodes, split)


def _metrics(method: str, update: int, success: float) -> Json:
    return {
        "update": update,
        "env_steps": 400 * update,
        "success": success,
        "score": success,
        "loss": 0.1,
        "kl": 0.001,
        "grad_norm": 0.5,
        "groups_skipped": 0.2,
        "seconds": {
            "rollout": 1.2,
            "guidance": 0.4 if method != "grpo" else 0.0,
            "scoring": 0.3 if method != "grpo" else 0.0,
            "update": 0.8,
        },
    }


def set_in_cells(run: Path, **settings: Any) -> Path:
    """Settings into the configuration of every cell."""
    for path in run.glob("cells/*/*/*/config.json"):
        dump(path, {**json.loads(path.read_text()), **settings})
    return run


def break_episodes(cell: Path, split: str, count: int) -> None:
    """The first episodes of a split end with an error, and so are lost."""
    record = json.loads((cell / "eval.json").read_text())
    for task in list(record["splits"][split]["tasks"].values())[:count]:
        task.update(won=False, score=0.0, error="ValueError: no answer")
    record["splits"][split]["errors"] = count
    dump(cell / "eval.json", record)


def dump(path: Path, record: Json) -> None:
    path.write_text(json.dumps(record), encoding="utf-8")
