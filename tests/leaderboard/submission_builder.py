"""Evaluation folders and archives for tests, played on the real embedded benchmarks."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from taspo_bench import registry
from taspo_bench.api import Split, TextEnv
from taspo_bench.episode import Episode, write_episodes
from taspo_bench.evaluation.evaluate import evaluate, evaluation_splits
from taspo_bench.evaluation.results import evaluation_record, split_record
from taspo_bench.leaderboard.submission import Description, pack
from taspo_bench.policies.policy import Policy, Response
from taspo_bench.policies.scripted import ExpertPolicy, RandomPolicy

Json = dict[str, Any]
Members = dict[str, bytes]


class MixedPolicy:
    """Plays like the expert on a share of the tasks, and at random on the others."""

    name = "mixed"

    def __init__(self, skill: float) -> None:
        self.skill = skill

    def begin(self, envs: Sequence[TextEnv], generators: Sequence[np.random.Generator]) -> MixedConversation:
        return MixedConversation(self.skill, envs, generators)


class MixedConversation:
    def __init__(self, skill: float, envs: Sequence[TextEnv], generators: Sequence[np.random.Generator]) -> None:
        self.able = [generator.random() < skill for generator in generators]
        self.expert = ExpertPolicy().begin(envs, generators)
        self.random = RandomPolicy().begin(envs, generators)

    def respond(self, live: Sequence[int], observations: Sequence[str]) -> list[Response]:
        return [
            (self.expert if self.able[index] else self.random).respond([index], [observation])[0]
            for index, observation in zip(live, observations, strict=True)
        ]


class SayingPolicy:
    """Says one thing for ever."""

    name = "saying"

    def __init__(self, text: str) -> None:
        self.text = text

    def begin(self, envs: Sequence[TextEnv], generators: Sequence[np.random.Generator]) -> SayingPolicy:
        return self

    def respond(self, live: Sequence[int], observations: Sequence[str]) -> list[Response]:
        return [Response(f"I say: {self.text}", self.text) for _ in live]


def play(
    env: str,
    policy: float | Policy,
    seed: int = 0,
    tasks: int | None = None,
    max_steps: int | None = None,
    data: str = "embedded",
) -> list[tuple[Split, list[Episode]]]:
    make = partial(registry.make_env, env, max_steps=max_steps, data=data)
    splits = evaluation_splits(make().splits(), [], tasks)
    player = MixedPolicy(policy) if isinstance(policy, float) else policy
    return [(split, evaluate(make, player, split, seed)) for split in splits]


def evaluation(
    folder: Path,
    env: str,
    policy: float | Policy,
    seed: int = 0,
    tasks: int | None = None,
    method: str = "mixed",
    data: str = "embedded",
) -> Path:
    """A folder as `taspo-bench eval --out` writes it."""
    folder.mkdir(parents=True)
    splits = {}
    for split, episodes in play(env, policy, seed, tasks, data=data):
        write_episodes(folder / f"eval-{split.name}.jsonl.gz", episodes)
        splits[split.name] = split_record(episodes, split)
    record = evaluation_record(method, env, seed, splits, {}, stamp(env, data))
    (folder / "eval.json").write_text(json.dumps(record))
    return folder


def run_folder(folder: Path, methods: Sequence[str], env: str, tasks: int) -> Path:
    """A run of two seeds, as `taspo-bench run` leaves it, as far as submissions read it."""
    folder.mkdir(parents=True)
    plan = {"methods": [method for method in methods if method != "warm_start"], "envs": [env], "seeds": [0, 1]}
    (folder / "config.json").write_text(json.dumps(plan))
    for method in methods:
        for seed in (0, 1):
            cell = evaluation(folder / "cells" / method / env / f"seed-{seed}", env, 0.6, seed, tasks, method)
            (cell / "episodes").mkdir()
            for path in cell.glob("eval-*.jsonl.gz"):
                path.rename(cell / "episodes" / path.name)
            config = {"method": method, "env": env, "seed": seed, "data": "embedded", "policy": "tiny"}
            more = {"max_turns": registry.env_class(env).default_max_steps, "warm_start_card": {"parameters": 1234}}
            (cell / "config.json").write_text(json.dumps({**config, **more}))
            if method != "warm_start":
                metrics = [{"env_steps": 300 * (update + 1), "response_tokens": 1000.0} for update in range(3)]
                (cell / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in metrics))
    return folder


@cache
def stamp(env: str, data: str = "embedded") -> Json:
    return asdict(registry.make_env(env, data=data).data_stamp())


def describe(name: str = "Mixed", **more: Any) -> Description:
    values: Json = {"licence": "CC0-1.0", "base_model": "none", "environment_steps": 1000, "response_tokens": 20_000}
    return Description(name, **{**values, **more})


def submission(archive: Path, folders: Sequence[Path], name: str = "Mixed", **more: Any) -> Path:
    return pack(folders, describe(name, **more), archive).path


def unpacked(archive: Path) -> Members:
    with tarfile.open(archive) as tar:
        return {member.name: tar.extractfile(member).read() for member in tar}  # type: ignore[union-attr]


def packed(archive: Path, members: Members) -> Path:
    """Write members without any of the packer's care."""
    entries = []
    for name, content in members.items():
        entry = tarfile.TarInfo(name)
        entry.size = len(content)
        entries.append((entry, content))
    return raw_archive(archive, entries)


def raw_archive(
    archive: Path, entries: Sequence[tuple[tarfile.TarInfo, bytes]], form: int = tarfile.USTAR_FORMAT
) -> Path:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=form) as tar:
        for entry, content in entries:
            tar.addfile(entry, io.BytesIO(content))
    archive.write_bytes(gzip.compress(file.getvalue(), mtime=0))
    return archive


def edit_manifest(members: Members, change: Callable[[Json], None]) -> Members:
    manifest = json.loads(members["manifest.json"])
    change(manifest)
    return {**members, "manifest.json": json.dumps(manifest).encode()}


def edit_episodes(members: Members, change: Callable[[list[Json]], None], env: str = "alfworld") -> Members:
    name = f"episodes/{env}.jsonl"
    records = [json.loads(line) for line in members[name].splitlines()]
    change(records)
    return {**members, name: "".join(json.dumps(record) + "\n" for record in records).encode()}
