"""The work behind ``taspo-bench run`` and ``taspo-bench ablate``: a plan carried out in one folder."""

from __future__ import annotations

from pathlib import Path

import typer
from rich.console import Console
from rich.markup import escape

from taspo_bench import run as runs
from taspo_bench.engines import processes, ray_cluster
from taspo_bench.errors import InputError
from taspo_bench.execution import execute, execute_together
from taspo_bench.files import write_json
from taspo_bench.progress import RunProgress
from taspo_bench.provenance import provenance
from taspo_bench.run import Plan


def run_plan(
    console: Console,
    plan: Plan,
    folder: Path,
    jobs: int,
    cluster: str,
    resume: bool,
    overwrite: bool,
    paper: bool = False,
) -> None:
    """Run what is left of a plan in its folder, and print its table.

    Raises:
        InputError: something of the plan, of the folder or of the cluster is not as it must be; nothing was begun.
        typer.Exit: a cell failed (1), or the run was broken off by hand (130).
    """
    cells = plan.cells()
    plan.check()
    ray_cluster.check(cluster)
    if not processes.is_first():
        execute_together([], folder)
        return
    runs.prepare_folder(folder, resume, overwrite)
    with runs.locked(folder):
        if overwrite:
            runs.clear(folder)
        before = runs.stored_plan(folder)
        if before is not None and not plan.extends(before):
            raise InputError(
                f"--resume: {folder} was started with other settings (see {folder / 'config.json'}); "
                "leave them away, or give them all and add methods, benchmarks or seeds, or name another --out"
            )
        write_json(folder / "config.json", {**plan.as_json(), **provenance()})
        try:
            with RunProgress(console, cells) as progress:
                failures = execute(cells, folder, jobs, progress.notify, cluster)
            for cell, reason in failures:
                console.print(f"[red]failed[/red] {cell.label}: {escape(reason)}", soft_wrap=True, highlight=False)
            _summarize(console, folder, paper)
        except KeyboardInterrupt:
            console.print(
                f"\nstopped; go on with: taspo-bench run --resume --out {folder}", soft_wrap=True, highlight=False
            )
            raise typer.Exit(130) from None
    if failures:
        raise typer.Exit(1)


def _summarize(console: Console, folder: Path, paper: bool) -> None:
    from taspo_bench.evaluation.publish import write_summary
    from taspo_bench.evaluation.table_formats import terminal_table

    with console.status("writing tables, plots and report"):
        summary = write_summary(folder, paper)
    console.print(terminal_table(summary, paper))
    console.print(f"tables, plots and report: {folder}", highlight=False)
