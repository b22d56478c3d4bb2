"""The work behind ``taspo-bench diagnose``: the stored training episodes of a run, judged scheme by scheme."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import cast

import numpy as np
from rich.console import Console

from taspo_bench import registry
from taspo_bench.api import TextEnv
from taspo_bench.config import CellConfig
from taspo_bench.credit import Array, CreditScheme, is_equal, make_scheme
from taspo_bench.episode import Episode, Group, Guidance, read_episodes
from taspo_bench.errors import InputError
from taspo_bench.evaluation.diagnostics import (
    Diagnosis,
    Figures,
    StoredCredit,
    chance_of_success,
    figures_of_seed,
    stored_groups,
)
from taspo_bench.evaluation.diagnostics_report import diagnosis_plot, diagnosis_table, ranking_line
from taspo_bench.evaluation.plot_style import save
from taspo_bench.evaluation.results import read_json
from taspo_bench.evaluation.table_formats import to_markdown, to_rich
from taspo_bench.files import write_json, write_text
from taspo_bench.policies.scripted import random_action
from taspo_bench.rollout import remaining_steps

SCHEMA = 1
DEFAULT_SCHEMES = ("grpo", "gigpo", "taspo", "token_taspo", "random_weights", "oracle_credit")


class StoredScorer:
    """The shifts that were stored with the episodes, and the simulator's distances."""

    def __init__(self, env: TextEnv) -> None:
        self._env = env

    def shift(self, episodes: Sequence[Episode], guidance: Sequence[Guidance]) -> list[list[Array]]:
        """See :meth:`taspo_bench.credit.Scorer.shift`; no policy is needed."""
        return [
            [np.array(turn.shift) if turn.shift else np.zeros(len(turn.response_ids)) for turn in episode.turns]
            for episode in episodes
        ]

    def remaining_steps(self, episode: Episode) -> Array:
        """See :meth:`taspo_bench.credit.Scorer.remaining_steps`."""
        return remaining_steps(self._env, episode)


def diagnose_run(
    console: Console, run_folder: Path, method: str, scheme_names: Sequence[str], monte_carlo: int
) -> list[Diagnosis]:
    """Judge schemes on a method's stored episodes; prints tables and keeps them in the run's ``diagnosis`` folder.

    Cells without anything to judge are named and left out. So are schemes that read guidance, where no group has any:
    they would be GRPO by another name.

    Raises:
        InputError: no cell has anything to judge, or a scheme was asked for that needs guidance where there is none.
    """
    cells = sorted((run_folder / "cells" / method).glob("*/seed-*"))
    if not cells:
        raise InputError(f"{run_folder}: has no cells of method {method!r}; name one that it has with --of")
    names = _fitting(console, cells, method, scheme_names)
    found: dict[str, dict[int, dict[str, Figures]]] = {}
    has_episodes = False
    for cell in cells:
        config, stored = _read(cell)
        has_episodes = has_episodes or bool(stored)
        groups = [group for group in stored if not is_equal(group.returns)]
        if config is None or not groups:
            reason = "every group had equal returns, so no credit" if stored else "no training episodes are stored"
            place = f"{cell.parent.name} {cell.name.replace('-', ' ')}"
            console.print(f"{place}: {reason}; left out", highlight=False, soft_wrap=True)
            continue
        env = registry.make_env(config.env, data=config.data, max_steps=config.max_turns)
        chances = _monte_carlo(env, monte_carlo) if monte_carlo else None
        schemes = _schemes(config, names)
        if not scheme_names and method not in DEFAULT_SCHEMES:
            schemes[method] = cast(CreditScheme, StoredCredit(method))
        found.setdefault(config.env, {})[config.seed] = figures_of_seed(groups, schemes, StoredScorer(env), chances)
    if not has_episodes:
        raise InputError(
            f"{run_folder}: no training episodes of {method!r} are stored; train for at least one update"
        )
    if not found:
        raise InputError(f"{run_folder}: no group of {method!r} had unequal returns; train for more updates")
    diagnoses = [Diagnosis(env_name, seeds) for env_name, seeds in found.items()]
    _publish(console, diagnoses, run_folder / "diagnosis")
    return diagnoses


def _publish(console: Console, diagnoses: Sequence[Diagnosis], folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for diagnosis in diagnoses:
        table = diagnosis_table(diagnosis)
        console.print(to_rich(table))
        console.print(ranking_line(diagnosis), highlight=False)
        write_json(folder / f"{diagnosis.env}.json", {"schema": SCHEMA, **diagnosis.to_json()})
        write_text(folder / f"{diagnosis.env}.md", f"{to_markdown(table)}\n{ranking_line(diagnosis)}\n")
        save(diagnosis_plot(diagnosis), folder, diagnosis.env)
    console.print(f"written to {folder}", highlight=False)


def _fitting(console: Console, cells: Sequence[Path], method: str, names: Sequence[str]) -> list[str]:
    """The schemes that the stored episodes can judge; says which of the usual ones they cannot."""
    wanted = list(names or DEFAULT_SCHEMES)
    flags = (any(group.guidance) for cell in cells for group in _read(cell)[1])
    if next(flags, True) or any(flags):
        return wanted
    blind = [name for name in wanted if registry.method_class(name).uses_guidance]
    if blind and names:
        raise InputError(
            f"--scheme {blind[0]}: it reads guidance, and the episodes of {method!r} have none; leave it away, or "
            "name a method with guidance with --of"
        )
    if blind:
        told = f"the episodes of {method} have no guidance, which these schemes read; left out: {', '.join(blind)}"
        console.print(told, highlight=False, soft_wrap=True)
    return [name for name in wanted if name not in blind]


def _schemes(config: CellConfig, names: Sequence[str]) -> dict[str, CreditScheme]:
    """The schemes to judge, the cell's own with its own settings."""
    return {
        name: make_scheme(registry.method_class(name), config.scheme if name == config.method else {})
        for name in names
    }


def _read(cell: Path) -> tuple[CellConfig | None, list[Group]]:
    """A cell's settings and its stored training groups; nothing of one that was never begun."""
    if not (cell / "config.json").is_file():
        return None, []
    record = read_json(cell / "config.json")
    config = CellConfig(**{key: value for key, value in record.items() if key in CellConfig.model_fields})
    groups = []
    for path in sorted((cell / "episodes").glob("train-*.jsonl.gz")):
        update = int(path.name.removeprefix("train-").split(".")[0]) - 1
        groups += stored_groups(list(read_episodes(path)), config.group_size, update)
    return config, groups


def _monte_carlo(env: TextEnv, tries: int) -> Callable[[Episode], Array]:
    """Chance of success of a player that mixes the reference solution with random actions."""
    return partial(chance_of_success, env, play_on=_play_on, tries=tries)


def _play_on(env: TextEnv, episode: Episode, step: int, number: int) -> bool:
    """Play from the present state to the end, every second action at random on average; whether it won."""
    generator = np.random.default_rng((step, number))
    observation = ""
    for _ in range(env.max_steps - env.steps):
        plan = env.solve()
        action = plan[0] if plan and generator.random() < 0.5 else random_action(env, observation, generator)
        observation, _, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            break
    return env.won
