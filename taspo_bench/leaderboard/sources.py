"""Where a submission's episodes come from: run folders, single cells, and folders of ``taspo-bench eval --out``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from taspo_bench.config import WARM_START
from taspo_bench.errors import DataError, InputError
from taspo_bench.evaluation.results import Cell, episode_files, read_json, read_run


@dataclass(frozen=True)
class Source:
    """The evaluation of one (method, benchmark, seed). ``files`` is empty where a run's cell failed; ``max_turns``
    and ``temperature`` are None where a record does not keep them."""

    method: str
    env: str
    seed: int
    files: tuple[Path, ...]
    stamp: dict[str, Any]
    config: dict[str, Any] = field(default_factory=dict)
    max_turns: int | None = None
    temperature: float | None = None
    environment_steps: int | None = None
    response_tokens: int | None = None


def find_sources(folders: Sequence[Path], method: str | None) -> list[Source]:
    """All evaluations of one method in these folders.

    Args:
        method: which one, where the folders hold several.

    Raises:
        InputError: a folder without an evaluation, several methods and none chosen, one (benchmark, seed) twice.
    """
    found = [source for folder in folders for source in _in_folder(folder)]
    methods = list(dict.fromkeys(source.method for source in found))
    if len(methods) > 1 and method not in methods:
        raise InputError(
            f"the folders hold {len(methods)} methods: choose one with --method; there are: {', '.join(methods)}"
        )
    chosen = [source for source in found if len(methods) == 1 or source.method == method]
    seen: set[tuple[str, int]] = set()
    for source in chosen:
        if (source.env, source.seed) in seen:
            raise InputError(f"{source.env} seed {source.seed} is in these folders twice; name one of them")
        seen.add((source.env, source.seed))
    return chosen


def _in_folder(folder: Path) -> list[Source]:
    if (folder / "eval.json").is_file():
        return [_evaluation(folder)]
    if (folder / "cells").is_dir():
        return [_cell(cell) for cell in read_run(folder).cells]
    raise InputError(
        f"{folder}: neither a run (cells/) nor an evaluation (eval.json); name what `taspo-bench run --out` or "
        "`taspo-bench eval --out` wrote"
    )


def _cell(cell: Cell) -> Source:
    files = () if cell.error else tuple(cell.episode_files("eval"))
    if not cell.error and not files:
        raise DataError(f"{cell.path}: it has results and no episodes/eval-*.jsonl.gz; evaluate it again")
    metrics = cell.metrics()
    untrained = cell.method == WARM_START
    return Source(
        method=cell.method,
        env=cell.env,
        seed=cell.seed,
        files=files,
        stamp=cell.data_stamp,
        config=cell.config,
        max_turns=cell.config.get("max_turns"),
        temperature=cell.config.get("eval_temperature"),
        environment_steps=0 if untrained else int(metrics[-1]["env_steps"]) if metrics else None,
        response_tokens=0 if untrained else _tokens(metrics),
    )


def _tokens(metrics: list[dict[str, Any]]) -> int | None:
    counts = [record.get("response_tokens") for record in metrics]
    known = [int(count) for count in counts if count is not None]
    return sum(known) if known and len(known) == len(counts) else None


def _evaluation(folder: Path) -> Source:
    record = read_json(folder / "eval.json")
    splits = record.get("splits") or {}
    found = [*episode_files(folder, "eval"), *episode_files(folder / "episodes", "eval")]
    files = tuple(path for path in found if path.name.removeprefix("eval-").partition(".")[0] in splits)
    if not files:
        raise DataError(f"{folder}: no eval-SPLIT.jsonl.gz beside its eval.json; evaluate again with --out")
    config = read_json(folder / "config.json") if (folder / "config.json").is_file() else {}
    try:
        method, env, seed, stamp = str(record["method"]), record["env"], int(record["seed"]), record["data_stamp"]
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"{folder / 'eval.json'}: not an evaluation record ({error!r}); evaluate again") from error
    if config:  # one cell of a run: its training log stands beside
        return _cell(Cell(method, env, seed, folder, config, data_stamp=stamp))
    limit, temperature = record.get("max_turns"), record.get("temperature")
    return Source(method, env, seed, files, stamp, max_turns=limit, temperature=temperature)
