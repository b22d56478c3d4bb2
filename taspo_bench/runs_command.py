"""The commands ``taspo-bench runs``: what lies on disk, and what of it can go."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.filesize import decimal
from rich.markup import escape
from rich.table import Table

from taspo_bench.errors import DataError

runs_app = typer.Typer(help="Runs on disk.", no_args_is_help=True)
console = Console()


@runs_app.command("list")
def list_runs(folder: Annotated[Path, typer.Argument(help="Where to look.")] = Path("runs")) -> None:
    """The runs below a folder and how far they have come."""
    from taspo_bench.run_folders import find_runs, read_status

    found = find_runs(folder)
    if not found:
        console.print(f"no runs in {folder}", highlight=False)
        return
    right = ("finished", "failed", "running", "left", "size", "age")
    table = Table("run", "methods x envs x seeds")
    for name in right:
        table.add_column(name, justify="right")
    for path in found:
        try:
            status = read_status(path)
        except DataError as error:
            table.add_row(escape(str(path)), escape(str(error)))
            continue
        count = status.count()
        cells = [str(count["finished"]), str(count["failed"]), str(count["running"]), str(count["left"])]
        age = _duration(time.time() - status.changed)
        table.add_row(escape(str(path)), status.shape, *cells, decimal(status.size), age)
    console.print(table)


@runs_app.command("show")
def show_run(run: Annotated[Path, typer.Argument(help="Run folder.")]) -> None:
    """The cells of a run: state, time, and why one failed."""
    from taspo_bench.run_folders import read_status

    status = read_status(run)
    table = Table("method", "benchmark", "seed", "state", "updates", "time", "reason", box=None)
    for entry in status.cells:
        method, env, seed = entry.cell.key
        wanted = entry.cell.config.get("updates", "?") if entry.updates else ""
        table.add_row(
            escape(method),
            env,
            str(seed),
            entry.state,
            f"{entry.updates}/{wanted}" if entry.updates else "",
            "" if entry.seconds is None else _duration(entry.seconds),
            escape(entry.cell.error) if entry.state == "failed" else "",
        )
    console.print(table)
    console.print(
        f"{run}: {', '.join(f'{count} {state}' for state, count in status.count().items())}; "
        f"{decimal(status.size)}, last written {_duration(time.time() - status.changed)} ago"
        f"{'; a process is working in it' if status.is_held else ''}",
        highlight=False,
        soft_wrap=True,
    )


@runs_app.command("gc")
def collect_garbage(
    runs: Annotated[list[Path], typer.Argument(help="Run folders.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be removed.")] = False,
) -> None:
    """Remove trainer checkpoints of finished cells, and what kills left behind."""
    from taspo_bench.run_folders import collect

    for folder, garbage in collect(runs, dry_run).items():
        console.print(
            f"{folder}: {'would remove' if dry_run else 'removed'} checkpoints of {len(garbage.checkpoints)} "
            f"finished cells and {len(garbage.leftovers)} unfinished files, {decimal(garbage.size)}",
            highlight=False,
            soft_wrap=True,
        )
        for path in (*garbage.checkpoints, *garbage.leftovers):
            console.print(f"  {path.relative_to(folder)}", highlight=False, soft_wrap=True)


def _duration(seconds: float) -> str:
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{max(0.0, seconds):.0f} s"
