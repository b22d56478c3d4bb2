"""Pack the evaluation episodes of a run as a submission: what was done, and nothing that had to be believed."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from taspo_bench import registry
from taspo_bench.api import Split, TextEnv
from taspo_bench.episode import Episode, read_episodes
from taspo_bench.errors import DataError, InputError
from taspo_bench.leaderboard.archive import MANIFEST, write_archive
from taspo_bench.leaderboard.manifest import SCHEMA, Manifest
from taspo_bench.leaderboard.replay import Trace
from taspo_bench.leaderboard.sources import Source, find_sources

CEILING = "expert"
"""The policy that sees the solution; always packed as a reference outside the ranking."""


@dataclass(frozen=True)
class Description:
    """What the submitter says of the submission; None where the run folder is to say it."""

    name: str
    licence: str
    method: str | None = None
    base_model: str | None = None
    parameters: int | None = None
    contact: str | None = None
    code: str | None = None
    environment_steps: int | None = None
    response_tokens: int | None = None
    temperature: float | None = None
    ranked: bool = True


@dataclass(frozen=True)
class Packed:
    """What went into an archive. ``broken`` episodes ended with an error: left out, so they count 0."""

    path: Path
    manifest: Manifest
    broken: int


def pack(
    folders: Sequence[Path], description: Description, out: Path, data: str | None = None, responses: bool = False
) -> Packed:
    """Write a submission's archive.

    Args:
        folders: run folders, cells of runs, or folders of ``taspo-bench eval --out`` (one per benchmark and seed).
        data: where the benchmarks find the data that the episodes were played on; as the runs were told if None.
        responses: pack what the policy wrote beside the actions that were read from it.

    Raises:
        InputError: the folders or the description cannot make a submission.
        DataError: an episode file that is broken, or was played on other data than is found here.
    """
    sources = find_sources(folders, description.method)
    benchmarks: dict[str, Any] = {}
    members: list[tuple[str, bytes]] = []
    broken = 0
    seeds = sorted({source.seed for source in sources})
    for name in sorted({source.env for source in sources}):
        own = [source for source in sources if source.env == name]
        env = _environment(name, own, data)
        episodes = _Episodes(env, own)
        broken += episodes.broken
        benchmarks[name] = _benchmark(env, own, episodes, len(seeds), description)
        lines = (_line(episode, responses) for episode in episodes.in_order())
        members.append((f"episodes/{name}.jsonl", "".join(lines).encode()))
    manifest = _manifest(description, sources, seeds, benchmarks)
    text = json.dumps(manifest.model_dump(), indent=1, ensure_ascii=False) + "\n"
    out.parent.mkdir(parents=True, exist_ok=True)
    write_archive(out, [(MANIFEST, text.encode()), *members])
    return Packed(out, manifest, broken)


def _environment(name: str, sources: Sequence[Source], data: str | None) -> TextEnv:
    limits = {source.max_turns for source in sources if source.max_turns}
    places = {source.config.get("data") for source in sources if source.config}
    if len(limits) > 1 or len(places) > 1 or len(_temperatures(sources)) > 1:
        raise InputError(
            f"{name}: the runs were made with different data, step limits or temperatures; pack them one by one"
        )
    env = registry.make_env(name, data=data or next(iter(places), "embedded"), max_steps=next(iter(limits), None))
    stamp = asdict(env.data_stamp())
    for source in sources:
        if source.files and source.stamp.get("sha256") != stamp["sha256"]:
            raise DataError(
                f"{name} seed {source.seed}: played on data {source.stamp.get('source')!r} "
                f"{str(source.stamp.get('sha256'))[:12]}, not on {stamp['source']!r} {stamp['sha256'][:12]}; "
                "name the data with --data"
            )
    return env


def _temperatures(sources: Sequence[Source]) -> set[float]:
    return {source.temperature for source in sources if source.temperature is not None}


class _Episodes:
    """The episodes of one benchmark by split, seed and task."""

    def __init__(self, env: TextEnv, sources: Sequence[Source]) -> None:
        self.splits: dict[str, Split] = env.splits()
        self.found: dict[tuple[str, int, str], Episode] = {}
        self.broken = 0
        files = [(source, path) for source in sources for path in source.files]
        names = {_split_name(path) for _, path in files}
        self.names = [name for name in self.splits if name in names]
        for source, path in files:
            for episode in read_episodes(path):
                self._add(path, source, episode)

    def _add(self, path: Path, source: Source, episode: Episode) -> None:
        split = self.splits.get(_split_name(path))
        if split is None or split.kind == "train" or episode.task_id not in split.task_ids:
            raise DataError(f"{path}: task {episode.task_id!r} is no evaluation task of the data that is in use")
        if episode.error:
            self.broken += 1
        else:
            self.found[split.name, source.seed, episode.task_id] = episode

    def of(self, split: str) -> list[Episode]:
        return [episode for (name, _, _), episode in self.found.items() if name == split]

    def in_order(self) -> Iterator[tuple[tuple[str, int], Episode]]:
        """By split, seed and task, in the splits' own order."""
        place = {(name, task): i for name in self.names for i, task in enumerate(self.splits[name].task_ids)}
        order = sorted(self.found, key=lambda key: (self.names.index(key[0]), key[1], place[key[0], key[2]]))
        for key in order:
            yield key[:2], self.found[key]


def _split_name(path: Path) -> str:
    return path.name.removeprefix("eval-").partition(".jsonl")[0]


def _benchmark(
    env: TextEnv, sources: Sequence[Source], episodes: _Episodes, seeds: int, description: Description
) -> dict[str, Any]:
    if not episodes.names:
        raise InputError(f"{env.name}: none of its runs was evaluated; there is nothing to pack")
    splits = {}
    for name in episodes.names:
        split, own = episodes.splits[name], episodes.of(name)
        total = len(split) * seeds
        splits[name] = {
            "sha256": split.sha256,
            "tasks": len(split),
            "claimed": {
                "episodes": len(own),
                "success": sum(episode.won for episode in own) / total,
                "score": math.fsum(episode.score for episode in own) / total,
            },
        }
    temperature = description.temperature
    if temperature is None:
        temperature = next(iter(_temperatures(sources)), None)
    steps, tokens = description.environment_steps, description.response_tokens
    return {
        "data": asdict(env.data_stamp()),
        "max_turns": env.max_steps,
        "temperature": temperature,
        "splits": splits,
        "budget": {
            "environment_steps": _largest(source.environment_steps for source in sources) if steps is None else steps,
            "response_tokens": _largest(source.response_tokens for source in sources) if tokens is None else tokens,
        },
    }


def _largest(counts: Iterable[int | None]) -> int | None:
    return max((count for count in counts if count is not None), default=None)


def _line(entry: tuple[tuple[str, int], Episode], responses: bool) -> str:
    (split, seed), episode = entry
    texts = [*(turn.observation for turn in episode.turns), episode.final_observation]
    trace = Trace(texts[0])
    record: dict[str, Any] = {
        "split": split,
        "task_id": episode.task_id,
        "seed": seed,
        "steps": len(episode.turns),
        "won": episode.won,
        "score": float(episode.score),
        "actions": episode.actions,
        "trace": [trace.add(action, text) for action, text in zip(episode.actions, texts[1:], strict=True)],
    }
    if responses:
        record["responses"] = [turn.response for turn in episode.turns]
    return json.dumps(record, ensure_ascii=True, separators=(",", ":")) + "\n"


def _manifest(
    description: Description, sources: Sequence[Source], seeds: list[int], benchmarks: dict[str, Any]
) -> Manifest:
    method = description.method or sources[0].method
    if description.method is None and "/" in method:
        raise InputError(f"the evaluated policy is a folder ({method}); say with --method how it was made")
    config = next((source.config for source in sources if source.config), {})
    base_model = description.base_model or config.get("policy")
    if not base_model:
        raise InputError("--base-model: the folders do not say which model this is; name it (none if there is none)")
    card = config.get("warm_start_card") or {}
    try:
        return Manifest(
            schema_version=SCHEMA,
            name=description.name,
            method=method,
            base_model=base_model,
            parameters_trained=card.get("parameters") if description.parameters is None else description.parameters,
            ranked=description.ranked and sources[0].method != CEILING,
            seeds=seeds,
            licence=description.licence,
            contact=description.contact,
            code=description.code,
            made_with=f"taspo-bench {version('taspo-bench')}",
            benchmarks=benchmarks,
        )
    except ValidationError as error:
        first = error.errors()[0]
        what = first["msg"].removeprefix("Value error, ")
        raise InputError(f"{'.'.join(map(str, first['loc']))} {first['input']!r}: {what}") from error
