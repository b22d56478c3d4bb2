"""The result of a verification, for machines (JSON with hashes) and for people (one page of text)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from taspo_bench.errors import InputError
from taspo_bench.evaluation.results import Cell
from taspo_bench.files import write_text
from taspo_bench.leaderboard.archive import shown
from taspo_bench.leaderboard.verify import EMBEDDED, Verdict, VerifiedBenchmark, VerifiedSplit

SCHEMA = 1
PROBLEMS_SHOWN = 20


def board_name(env: str, data: Mapping[str, str]) -> str:
    """What may be compared: one benchmark on one version of its data."""
    return env if data["source"] == EMBEDDED else f"{env} ({data['version']})"


def cells(verdict: Verdict, method: str) -> list[Cell]:
    """The verified results as cells of a run, for the statistics of :mod:`taspo_bench.evaluation`."""
    if verdict.manifest is None:
        return []
    return [
        Cell(
            method,
            board_name(env, benchmark.data),
            seed,
            Path(verdict.archive),
            splits={name: split.seeds[seed] for name, split in benchmark.splits.items()},
        )
        for env, benchmark in verdict.benchmarks.items()
        for seed in verdict.manifest.seeds
    ]


def as_json(verdict: Verdict) -> dict[str, Any]:
    """The result as JSON. ``sha256`` signs it off: it covers the rest, written with sorted keys and no spaces."""
    record: dict[str, Any] = {
        "schema": SCHEMA,
        "verdict": verdict.verdict,
        "verified_with": f"taspo-bench {version('taspo-bench')}",
        "archive": {"file": verdict.archive, "sha256": verdict.archive_sha256, "bytes": verdict.archive_bytes},
        "members": verdict.members,
        "manifest": verdict.manifest.model_dump() if verdict.manifest else None,
        "malformed": verdict.malformed,
        "problem_count": verdict.problem_count,
        "problems": verdict.problems,
        "benchmarks": {name: _benchmark_json(benchmark) for name, benchmark in verdict.benchmarks.items()},
    }
    signed = json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return {**record, "sha256": hashlib.sha256(signed.encode()).hexdigest()}


def _benchmark_json(benchmark: VerifiedBenchmark) -> dict[str, Any]:
    return {
        "data": benchmark.data,
        "max_turns": benchmark.max_turns,
        "own_max_turns": benchmark.own_max_turns,
        "splits": {name: _split_json(split) for name, split in benchmark.splits.items()},
    }


def _split_json(split: VerifiedSplit) -> dict[str, Any]:
    return {
        "kind": split.kind,
        "sha256": split.sha256,
        "tasks": split.tasks,
        "episodes": split.episodes,
        "missing": split.missing,
        "success": split.success,
        "score": split.score,
        "seeds": {
            str(seed): {
                "success": record["success"],
                "macro": record["macro"],
                "score": record["score"],
                "wilson": record["wilson"],
                "families": record["families"],
                "won": [task_id for task_id, task in record["tasks"].items() if task["won"]],
            }
            for seed, record in split.seeds.items()
        },
    }


def page(verdict: Verdict) -> str:
    """One page of text. Whatever the submission itself says is quoted, so that it cannot steer a terminal."""
    lines = [
        f"verdict: {verdict.verdict.upper()}",
        f"archive: {shown(verdict.archive)}, {verdict.archive_bytes} bytes, sha256 {verdict.archive_sha256}",
    ]
    if verdict.manifest:
        manifest = verdict.manifest
        lines += [
            f"submission: {shown(manifest.name)}, {'ranked' if manifest.ranked else 'a reference, not ranked'}",
            f"method: {shown(manifest.method)}, model {shown(manifest.base_model)}",
            f"seeds: {', '.join(map(str, manifest.seeds))}; licence {shown(manifest.licence)}",
        ]
    if verdict.benchmarks:
        lines += ["", *_table(verdict)]
    if verdict.malformed:
        lines += ["", f"malformed: {verdict.malformed}"]
    if verdict.problem_count:
        lines += ["", f"{verdict.problem_count} problems:"]
        lines += [f"  {problem}" for problem in verdict.problems[:PROBLEMS_SHOWN]]
        if verdict.problem_count > PROBLEMS_SHOWN:
            lines.append(f"  and {verdict.problem_count - PROBLEMS_SHOWN} more")
    signature = as_json(verdict)["sha256"]
    return "\n".join([*lines, "", f"taspo-bench {version('taspo-bench')}, result sha256 {signature}", ""])


def _table(verdict: Verdict) -> list[str]:
    from taspo_bench.evaluation.summary import summarize

    lines = [f"{'benchmark':<28}{'split':<16}{'episodes':>12}  {'success % [95 %]':<24}{'score %':>8}"]
    results = {(result.env, result.split): result for result in summarize(cells(verdict, "this")).results}
    for env, benchmark in verdict.benchmarks.items():
        board = board_name(env, benchmark.data)
        for name, split in benchmark.splits.items():
            estimate = results[board, name].success
            success = f"{100 * estimate.value:5.1f} [{100 * estimate.low:.1f}, {100 * estimate.high:.1f}]"
            count = f"{split.episodes}/{split.tasks * len(split.seeds)}"
            lines.append(f"{board:<28}{name:<16}{count:>12}  {success:<24}{100 * split.score:8.1f}")
        if benchmark.max_turns != benchmark.own_max_turns:
            lines.append(f"  played with {benchmark.max_turns} steps instead of {benchmark.own_max_turns}")
    missing = sum(split.missing for benchmark in verdict.benchmarks.values() for split in benchmark.splits.values())
    if missing:
        lines.append(f"{missing} episodes are missing and count 0")
    return lines


def write_verdict(folder: Path, verdict: Verdict) -> None:
    """Write STEM.json and STEM.txt into a folder, each whole or not at all."""
    stem = verdict.archive.removesuffix(".tar.gz")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_text(folder / f"{stem}.json", json.dumps(as_json(verdict), indent=1, ensure_ascii=True) + "\n")
        write_text(folder / f"{stem}.txt", page(verdict))
    except OSError as error:
        raise InputError(f"--out {folder}: cannot write there ({error.strerror}); name another folder") from error
