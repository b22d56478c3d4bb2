"""Verify a submission: believe nothing of it, play every episode again, recompute every score.

What cannot be read raises :class:`MalformedSubmission`. What can be read and is not true (an outcome, a hash, a task
that there is not) becomes a problem of the verdict, with its place named.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Protocol

from taspo_bench import registry
from taspo_bench.api import Split, TextEnv
from taspo_bench.episode import Episode
from taspo_bench.errors import TaspoBenchError
from taspo_bench.evaluation.results import SplitRecord, TaskResult, split_record
from taspo_bench.leaderboard.archive import MANIFEST, MalformedSubmission, Member, read_members, shown
from taspo_bench.leaderboard.manifest import Benchmark, EpisodeRecord, Manifest, parse
from taspo_bench.leaderboard.replay import TOLERANCE, Replayed, replay

EMBEDDED = "embedded"
MISSING = "missing"
PROBLEMS_KEPT = 50
VERIFIED, DIFFERS, MALFORMED = "verified", "differs", "malformed"


class Witness(Protocol):
    """Hears of every episode that was replayed, with the environment it was replayed in."""

    def __call__(self, env: TextEnv, record: EpisodeRecord, replayed: Replayed) -> None: ...


@dataclass
class VerifiedSplit:
    """One split as replayed: a record per seed, over all tasks of the split; tasks not handed in count 0."""

    kind: str
    sha256: str
    tasks: int
    episodes: int
    seeds: dict[int, SplitRecord]

    @property
    def success(self) -> float:
        return sum(record["success"] for record in self.seeds.values()) / len(self.seeds)

    @property
    def score(self) -> float:
        return sum(record["score"] for record in self.seeds.values()) / len(self.seeds)

    @property
    def missing(self) -> int:
        return self.tasks * len(self.seeds) - self.episodes


@dataclass
class VerifiedBenchmark:
    """One benchmark as replayed. ``main_splits`` are those that the benchmark is ranked on."""

    data: dict[str, str]
    max_turns: int
    own_max_turns: int
    main_splits: dict[str, str]
    splits: dict[str, VerifiedSplit]


@dataclass
class Verdict:
    """The result of a verification."""

    archive: str
    archive_sha256: str
    archive_bytes: int
    manifest: Manifest | None = None
    members: dict[str, str] = field(default_factory=dict)
    benchmarks: dict[str, VerifiedBenchmark] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    problem_count: int = 0
    malformed: str = ""

    @property
    def verdict(self) -> str:
        return MALFORMED if self.malformed else DIFFERS if self.problem_count else VERIFIED

    @property
    def exit_code(self) -> int:
        return {VERIFIED: 0, DIFFERS: 1, MALFORMED: 2}[self.verdict]

    def add_problem(self, place: str, what: str) -> None:
        self.problem_count += 1
        if self.problem_count <= PROBLEMS_KEPT:
            self.problems.append(f"{place}: {what}")


def verify(path: Path, data: str = "official", witness: Witness | None = None) -> Verdict:
    """Verify an archive.

    Args:
        data: where benchmarks find their data for episodes that were not played on the embedded data: ``official``
            or a folder. What the manifest says of its data is compared with what is found there.
        witness: called after each replay.

    Raises:
        DataError: the data that the submission names is not on this machine; that is not the submission's fault.
    """
    verdict = Verdict(path.name, *_fingerprint(path))
    try:
        _verify_members(verdict, read_members(path), data, witness)
    except MalformedSubmission as error:
        verdict.malformed = str(error)
        verdict.benchmarks.clear()
    return verdict


def _fingerprint(path: Path) -> tuple[str, int]:
    if not path.is_file():
        return "", 0
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest(), path.stat().st_size


def _verify_members(verdict: Verdict, members: Iterator[Member], data: str, witness: Witness | None) -> None:
    first = next(members, None)
    if first is None or first.name != MANIFEST:
        raise MalformedSubmission(f"member 1 must be {MANIFEST}, not {first.name if first else 'missing'}")
    manifest = parse(Manifest, first.read(), MANIFEST)
    verdict.manifest = manifest
    verdict.members[first.name] = first.skip_rest()
    replays = {
        name: _open_benchmark(verdict, manifest, name, benchmark, data)
        for name, benchmark in manifest.benchmarks.items()
    }
    for member in members:
        name = member.name.removeprefix("episodes/").removesuffix(".jsonl")
        if name not in replays:
            raise MalformedSubmission(f"{member.name}: {MANIFEST} names no benchmark {name!r}")
        replayer = replays[name]
        for number, line in enumerate(member.lines(), 1):
            record = parse(EpisodeRecord, line, f"{member.name}, line {number}")
            if replayer is not None:
                replayer.take(f"{member.name}, line {number}", record, witness)
        verdict.members[member.name] = member.skip_rest()
    for name, replayer in replays.items():
        if f"episodes/{name}.jsonl" not in verdict.members:
            raise MalformedSubmission(f"episodes/{name}.jsonl: missing, though {MANIFEST} names {name!r}")
        if replayer is not None:
            verdict.benchmarks[name] = replayer.finish()


def _open_benchmark(
    verdict: Verdict, manifest: Manifest, name: str, benchmark: Benchmark, data: str
) -> _Replayer | None:
    """Compare what the manifest says of a benchmark with the one here; None if its episodes cannot be replayed."""
    place = f"{MANIFEST}, benchmarks.{name}"
    if name not in registry.env_entry_points():
        known = ", ".join(registry.env_entry_points())
        raise MalformedSubmission(f"{place}: no such benchmark is installed here; known: {known}")
    embedded = benchmark.data.source == EMBEDDED
    own_limit = registry.env_class(name).default_max_steps
    before = verdict.problem_count
    if benchmark.max_turns > own_limit:
        verdict.add_problem(f"{place}.max_turns", f"{benchmark.max_turns}; the benchmark allows {own_limit}")
        return None
    env = registry.make_env(name, data=EMBEDDED if embedded else data, max_steps=benchmark.max_turns)
    stamp = env.data_stamp()
    for key in ("version", "sha256"):
        claimed, here = getattr(benchmark.data, key), getattr(stamp, key)
        if claimed != here:
            verdict.add_problem(f"{place}.data.{key}", f"{shown(claimed)}, but the data here has {shown(here)}")
    splits = env.splits()
    for split, claim in benchmark.splits.items():
        if split not in splits or splits[split].kind == "train":
            known = ", ".join(own.name for own in splits.values() if own.kind != "train")
            verdict.add_problem(f"{place}.splits.{split}", f"no evaluation split of this data; known: {known}")
        elif (claim.sha256, claim.tasks) != (splits[split].sha256, len(splits[split])):
            verdict.add_problem(
                f"{place}.splits.{split}",
                f"{claim.tasks} tasks with sha256 {claim.sha256[:12]}, but the split here has {len(splits[split])} "
                f"with {splits[split].sha256[:12]}",
            )
    return _Replayer(verdict, env, manifest, name, own_limit) if verdict.problem_count == before else None


class _Replayer:
    """Takes the episodes of one benchmark and sums them up."""

    def __init__(self, verdict: Verdict, env: TextEnv, manifest: Manifest, name: str, own_limit: int) -> None:
        self.verdict = verdict
        self.env = env
        self.name = name
        self.claims = manifest.benchmarks[name].splits
        self.own_limit = own_limit
        self.tasks = {split: frozenset(env.splits()[split].task_ids) for split in self.claims}
        self.outcomes: dict[str, dict[int, dict[str, TaskResult]]] = {
            split: {seed: {} for seed in manifest.seeds} for split in self.claims
        }

    def take(self, place: str, record: EpisodeRecord, witness: Witness | None) -> None:
        """Replay one episode, if it is one that is asked for and the first of its task and seed."""
        place = f"{place} ({record.split} {shown(record.task_id)} seed {record.seed})"
        if record.split not in self.claims:
            return self.verdict.add_problem(place, f"{MANIFEST} names no such split")
        if record.task_id not in self.tasks[record.split]:
            return self.verdict.add_problem(place, "no such task in this split")
        if record.seed not in self.outcomes[record.split]:
            return self.verdict.add_problem(place, f"{MANIFEST} names no such seed")
        outcomes = self.outcomes[record.split][record.seed]
        if record.task_id in outcomes:
            return self.verdict.add_problem(place, "a second episode of the same task and seed")
        try:
            replayed = replay(self.env, record)
        except TaspoBenchError:
            raise
        except Exception as error:
            return self.verdict.add_problem(place, f"the replay broke: {type(error).__name__}: {shown(str(error))}")
        if replayed.fault:
            self.verdict.add_problem(place, replayed.fault)
        outcomes[record.task_id] = TaskResult(
            family=self.env.task(record.task_id).family,
            won=replayed.won,
            score=replayed.score,
            steps=replayed.steps,
            error="",
        )
        if witness is not None:
            witness(self.env, record, replayed)
        return None

    def finish(self) -> VerifiedBenchmark:
        """Sum up, and compare the sums with the claims."""
        splits = self.env.splits()
        verified = {split: self._split(splits[split]) for split in self.claims}
        for split, result in verified.items():
            claimed = self.claims[split].claimed
            place = f"{MANIFEST}, benchmarks.{self.name}.splits.{split}.claimed"
            if claimed.episodes != result.episodes:
                self.verdict.add_problem(
                    f"{place}.episodes", f"{claimed.episodes}, but {result.episodes} are in the archive"
                )
            for key in ("success", "score"):
                said, found = getattr(claimed, key), getattr(result, key)
                if abs(said - found) > TOLERANCE:
                    self.verdict.add_problem(f"{place}.{key}", f"{said:.6f}, but the replays give {found:.6f}")
        return VerifiedBenchmark(
            data=asdict(self.env.data_stamp()),
            max_turns=self.env.max_steps,
            own_max_turns=self.own_limit,
            main_splits=_main_splits(splits),
            splits=verified,
        )

    def _split(self, split: Split) -> VerifiedSplit:
        seeds = self.outcomes[split.name]
        return VerifiedSplit(
            kind=split.kind,
            sha256=split.sha256,
            tasks=len(split),
            episodes=sum(len(outcomes) for outcomes in seeds.values()),
            seeds={seed: self._record(split, outcomes) for seed, outcomes in seeds.items()},
        )

    def _record(self, split: Split, outcomes: dict[str, TaskResult]) -> SplitRecord:
        episodes = [
            Episode(
                env=self.name,
                task_id=task_id,
                family=self.env.task(task_id).family,
                won=outcomes[task_id]["won"] if task_id in outcomes else False,
                score=outcomes[task_id]["score"] if task_id in outcomes else 0.0,
                error="" if task_id in outcomes else MISSING,
            )
            for task_id in split.task_ids
        ]
        record = split_record(episodes, split)
        for task_id, outcome in outcomes.items():
            record["tasks"][task_id]["steps"] = outcome["steps"]
        return record


def _main_splits(splits: dict[str, Split]) -> dict[str, str]:
    from taspo_bench.evaluation.evaluate import evaluation_splits

    return {split.name: split.kind for split in evaluation_splits(splits, [])}
