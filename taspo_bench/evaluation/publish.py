"""From finished cells to published files: tables, plots and the report of a run, made from what is on disk."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from taspo_bench.config import WARM_START
from taspo_bench.episode import Episode
from taspo_bench.errors import InputError, RunError, unknown_name
from taspo_bench.evaluation.breakdowns import credit_table, result_records, wall_clock_table
from taspo_bench.evaluation.episode_sample import sample_episodes
from taspo_bench.evaluation.merged_runs import merged_cells
from taspo_bench.evaluation.outcomes import gather
from taspo_bench.evaluation.plot_style import save
from taspo_bench.evaluation.plots import gain, generalization, profiles
from taspo_bench.evaluation.report import render_report
from taspo_bench.evaluation.results import Cell, Run, read_run
from taspo_bench.evaluation.run_settings import settings_line
from taspo_bench.evaluation.summary import BASELINE, Summary, summarize
from taspo_bench.evaluation.table import Table
from taspo_bench.evaluation.table_formats import to_csv, to_latex, to_markdown
from taspo_bench.evaluation.tables import all_tables
from taspo_bench.evaluation.training_plots import Log, credit, learning_curves, phase_seconds, wall_clock
from taspo_bench.files import write_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LONGEST_SHOWN = 20


def write_summary(run_dir: Path, paper: bool = False) -> Summary:
    """Write summary.{json,csv,md,tex}, plots/ and report.html of a run folder, from what is on disk.

    Failed and unfinished cells are shown as such and count as 0. The summary files hold no times and no paths:
    equal results give equal bytes.

    Args:
        run_dir: folder as `taspo-bench run` writes it.
        paper: add the paper's figures as reference rows.

    Raises:
        DataError: no run folder, or a file in it that is not what its name says.
        RunError: a file could not be written; those written before are whole, the others as they were.
    """
    run = read_run(run_dir)
    summary = summarize(run.cells)
    try:
        _publish(run, summary, paper)
    except OSError as error:
        raise RunError(
            f"{run_dir}: the summary could not be written ({error.strerror or error}); the results of the cells are "
            "safe: make room or make the folder writable, and run again with --resume"
        ) from error
    return summary


def _publish(run: Run, summary: Summary, paper: bool) -> None:
    logs = _logs(run.cells)
    tables = _write_tables(run.path, summary, logs, paper)
    sample = sample_episodes(run.cells)
    trained = [episode for episode in sample.episodes if episode[1].split == "train"]
    names = _draw(run.path, run.cells, summary, logs, trained)
    if seconds := phase_seconds(logs):
        tables.append(wall_clock_table(seconds))
    write_text(run.path / "report.html", render_report(run, summary, tables, names, sample))


def _write_tables(folder: Path, summary: Summary, logs: dict[tuple[str, str, int], Log], paper: bool) -> list[Table]:
    tables = [table for table in (*all_tables(summary, paper), credit_table(logs)) if table.rows]
    write_text(folder / "summary.json", json.dumps(summary.to_json(), indent=1) + "\n")
    write_text(folder / "summary.csv", to_csv(*result_records([*summary.warm_start, *summary.results])))
    told = "".join(f"- {settings_line(env, own)}\n" for env, own in summary.settings.items())
    write_text(folder / "summary.md", f"# Results\n\n{told}\n" + "\n".join(map(to_markdown, tables)))
    write_text(folder / "summary.tex", "\n".join(map(to_latex, tables)))
    return tables


def _logs(cells: Sequence[Cell]) -> dict[tuple[str, str, int], Log]:
    return {cell.key: cell.metrics() for cell in cells if cell.method != WARM_START}


def _draw(
    folder: Path,
    cells: Sequence[Cell],
    summary: Summary,
    logs: dict[tuple[str, str, int], Log],
    trained: list[tuple[str, Episode]],
) -> list[str]:
    """Draw every plot that has data; the names of those drawn."""
    drawings: dict[str, Figure | None] = {
        "generalization": generalization(summary),
        "gain": gain(summary),
        "profiles": profiles(gather(cells), summary),
        "learning_curves": learning_curves(logs, summary),
        "wall_clock": wall_clock(phase_seconds(logs), summary),
        "credit": credit(_telling(trained)),
    }
    drawn = {name: figure for name, figure in drawings.items() if figure is not None}
    (folder / "plots").mkdir(exist_ok=True)
    for name, figure in drawn.items():
        save(figure, folder / "plots", name)
    return list(drawn)


def _telling(episodes: list[tuple[str, Episode]]) -> list[tuple[str, Episode]]:
    """A won and a lost trajectory of one method and environment whose weights say something."""
    weighted = [
        (method, episode)
        for method, episode in episodes
        if len(set(episode.weights)) > 1 and len(episode.turns) <= LONGEST_SHOWN
    ]
    pairs: dict[tuple[str, str], dict[bool, tuple[str, Episode]]] = {}
    for method, episode in weighted:
        pairs.setdefault((method, episode.env), {}).setdefault(episode.won, (method, episode))
    best = max(pairs.values(), key=len, default={})
    return [best[won] for won in (True, False) if won in best]


def compare(
    run_dirs: Sequence[Path], baseline: str | None = None, out: Path | None = None, paper: bool = False
) -> Summary:
    """The summary of several runs side by side. A method that stands in several is named with its run, and so are
    different warm starts of one benchmark.

    Args:
        baseline: the method that the others are compared with; GRPO, where there is one, if None.
        out: folder for summary.{json,csv,md,tex} and plots/; nothing is written if None.
        paper: add the paper's figures as reference rows to what is written.

    Raises:
        InputError: no run has the baseline that was asked for, or ``out`` holds a run or its published results.
        DataError: no run folder, or runs of other data, tasks, step limits or evaluation temperatures.
        RunError: a file could not be written.
    """
    if out is not None and any((out / name).exists() for name in ("cells", "config.json")):
        raise InputError(f"--out {out}: holds a run, or results of one; choose another folder")
    cells = merged_cells([read_run(run_dir) for run_dir in run_dirs])
    methods = {cell.method for cell in cells} - {WARM_START}
    if baseline is not None and baseline not in methods:
        raise unknown_name("baseline", baseline, methods)
    summary = summarize(cells, baseline or BASELINE)
    if out is not None:
        _write_comparison(out, cells, summary, paper)
    return summary


def _write_comparison(out: Path, cells: Sequence[Cell], summary: Summary, paper: bool) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
        logs = _logs(cells)
        _write_tables(out, summary, logs, paper)
        _draw(out, cells, summary, logs, [])
    except OSError as error:
        raise RunError(f"{out}: cannot be written to ({error.strerror or error}); choose another --out") from error
