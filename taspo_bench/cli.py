"""The command line: parse, call, print. Everything heavy is imported by the command that needs it."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from taspo_bench import __version__, registry
from taspo_bench.cli_options import (
    Cluster,
    Data,
    Env,
    Envs,
    Jobs,
    Model,
    Overrides,
    Overwrite,
    Paper,
    Preset,
    Resume,
    RunFolder,
    Seeds,
    Target,
    above_zero,
    not_negative,
    parse_seeds,
)
from taspo_bench.data_progress import DataProgress
from taspo_bench.errors import InputError, TaspoBenchError, is_disk_error
from taspo_bench.leaderboard.commands import leaderboard_app, submit_app
from taspo_bench.runs_command import runs_app

app = typer.Typer(
    help="Credit assignment for language-model agents, measured.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
envs_app = typer.Typer(help="The benchmarks.", no_args_is_help=True)
methods_app = typer.Typer(help="The credit schemes.", no_args_is_help=True)
data_app = typer.Typer(help="Data of the benchmarks.", no_args_is_help=True)
app.add_typer(envs_app, name="envs")
app.add_typer(methods_app, name="methods")
app.add_typer(data_app, name="data")
app.add_typer(runs_app, name="runs")
app.add_typer(submit_app, name="submit")
app.add_typer(leaderboard_app, name="leaderboard")
console = Console()


def _print_version(is_asked: bool) -> None:
    if is_asked:
        console.print(f"taspo-bench {__version__}", highlight=False)
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version.")
    ] = False,
) -> None:
    """Options of the command line as a whole."""


@app.command()
def run(
    method: Annotated[list[str] | None, typer.Option("--method", help="Credit scheme; repeatable.")] = None,
    env: Envs = None,
    seeds: Seeds = "",
    preset: Preset = "",
    data: Data = "",
    out: RunFolder = None,
    overrides: Overrides = None,
    model: Model = "",
    engine: Annotated[str, typer.Option("--engine", help="own, or trl (with --set trl.X).")] = "",
    log: Annotated[list[str] | None, typer.Option("--log", help="tensorboard, wandb, trackio; repeatable.")] = None,
    jobs: Jobs = None,
    cluster: Cluster = "",
    paper: Paper = False,
    resume: Resume = False,
    overwrite: Overwrite = False,
) -> None:
    """Train methods on benchmarks, evaluate on seen and unseen splits, compare."""
    from taspo_bench.config import parse_overrides
    from taspo_bench.run import Plan, stored_plan
    from taspo_bench.run_command import run_plan

    named = preset or "quick"
    folder = out or Path("runs", "-".join([*(method or ["taspo"]), *(env or ["all"]), named]).replace("/", "_"))
    plan = None
    given = {"engine": engine, "policy": model}
    settings = [*(overrides or []), *(f"{key}={value}" for key, value in given.items() if value)]
    settings += [f"log={json.dumps(log)}"] if log else []
    if resume and not any([method, env, seeds, settings, preset, data]):
        plan = stored_plan(folder)
        if plan is None:
            raise InputError(f"--resume: there is no run in {folder}; leave --resume away to start one")
    if plan is None:
        chosen = parse_overrides(settings)
        source = data or "embedded"
        plan = Plan.make(method or ["taspo"], env or ["all"], parse_seeds(seeds), named, source, chosen)
    run_plan(console, plan, folder, jobs or 0, cluster, resume, overwrite, paper)


@app.command()
def ablate(
    table: Annotated[str, typer.Option("--table", help="granularity, source, scope, strength, margin, ..., all.")],
    env: Envs = None,
    seeds: Seeds = "",
    preset: Preset = "quick",
    data: Data = "embedded",
    out: RunFolder = None,
    overrides: Overrides = None,
    jobs: Jobs = None,
    cluster: Cluster = "",
    resume: Resume = False,
    overwrite: Overwrite = False,
) -> None:
    """Run a named table of ablations."""
    from taspo_bench.config import parse_overrides
    from taspo_bench.run import Plan
    from taspo_bench.run_command import run_plan

    chosen = parse_overrides(overrides or [])
    plan = Plan.make([], env or ["all"], parse_seeds(seeds), preset, data, chosen, table)
    folder = out or Path("runs", "-".join(["ablate", table, *(env or ["all"]), preset]))
    run_plan(console, plan, folder, jobs or 0, cluster, resume, overwrite)


@app.command("plan")
def plan_command(
    model_size: Annotated[str, typer.Option("--model-size", help="1.7b, 3b or 7b.")],
    preset: Annotated[str, typer.Option("--preset", help="smoke, quick, standard, paper.")] = "paper",
    env: Env = "alfworld",
    method: Annotated[str, typer.Option("--method", help="Credit scheme.")] = "taspo",
    device: Annotated[str, typer.Option("--device", help="a100, h100, h200 or l40s.")] = "h100",
    devices: Annotated[int, typer.Option("--devices", help="How many of them.")] = 1,
    utilisation: Annotated[float, typer.Option("--utilisation", help="Share of the peak that is reached.")] = 0.35,
    price: Annotated[
        float, typer.Option("--price", help="Dollars an hour and device; an assumed one if 0.", show_default=False)
    ] = 0.0,
) -> None:
    """Count what a training run would take: tokens, memory, hours, cost."""
    from taspo_bench.plan_command import plan_training

    plan_training(console, model_size, preset, env, method, device, devices, utilisation, price)


@app.command()
def diagnose(
    run_folder: Annotated[Path, typer.Argument(help="Run folder with guided training episodes.")],
    method: Annotated[str, typer.Option("--of", help="The method whose stored episodes are looked at.")] = "taspo",
    scheme: Annotated[list[str] | None, typer.Option("--scheme", help="Schemes to judge; repeatable.")] = None,
    monte_carlo: Annotated[
        int, typer.Option("--monte-carlo", callback=not_negative, help="Tries from each state; 0 leaves it away.")
    ] = 0,
) -> None:
    """Compare schemes' credit with the true effect of each action."""
    from taspo_bench.evaluation.diagnose_command import diagnose_run

    diagnose_run(console, run_folder, method, scheme or [], monte_carlo)


@app.command("eval")
def evaluate_command(
    env: Env,
    policy: Annotated[
        str, typer.Option("--policy", help="random, expert, warm-start, a folder, a model, or endpoint:URL#MODEL.")
    ],
    adapter: Annotated[str, typer.Option("--adapter", help="Folder of a language model's adapter.")] = "",
    split: Annotated[list[str] | None, typer.Option("--split", help="Split; repeatable.")] = None,
    data: Data = "embedded",
    tasks: Annotated[int, typer.Option("--tasks", callback=not_negative, help="Tasks a split; all if 0.")] = 0,
    seed: Annotated[int, typer.Option("--seed", callback=not_negative, help="Seed of the evaluation.")] = 0,
    temperature: Annotated[float, typer.Option("--temperature", callback=not_negative, help="0 is greedy.")] = 0.4,
    out: Annotated[Path | None, typer.Option("--out", help="Folder for episodes and eval.json.")] = None,
    overrides: Annotated[
        list[str] | None, typer.Option("--set", help="max_turns=N, or a setting of the model; repeatable.")
    ] = None,
    cluster: Cluster = "",
) -> None:
    """Play every task of a split once with any policy."""
    from taspo_bench.config import parse_overrides
    from taspo_bench.evaluation.command import evaluate_policy

    settings = parse_overrides(overrides or [])
    if adapter:
        settings["warm_start"] = adapter
    evaluate_policy(console, env, policy, split or [], data, tasks or None, seed, temperature, out, settings, cluster)


@app.command()
def compare(
    runs: Annotated[list[Path], typer.Argument(help="Run folders.")],
    baseline: Annotated[str, typer.Option("--baseline", help="Compare with this method; grpo if unset.")] = "",
    out: Annotated[Path | None, typer.Option("--out", help="Folder for all tables and the plots.")] = None,
    paper: Paper = False,
) -> None:
    """Compare the methods of several runs in one table."""
    from taspo_bench.evaluation.publish import compare as compare_runs
    from taspo_bench.evaluation.table_formats import terminal_table

    console.print(terminal_table(compare_runs(runs, baseline or None, out, paper), paper))


@app.command()
def play(
    env: Annotated[str, typer.Argument(help="Benchmark.")],
    task: Annotated[str, typer.Option("--task", help="Task id; one of the split at random if unset.")] = "",
    split: Annotated[str, typer.Option("--split", help="Split to draw the task from.")] = "train",
    data: Data = "embedded",
    seed: Annotated[int, typer.Option("--seed", callback=not_negative, help="Seed of the draw.")] = 0,
) -> None:
    """Play a task yourself in the terminal."""
    from taspo_bench.play import play as play_task

    play_task(console, registry.make_env(env, split=split, data=data), task or None, seed)


@app.command("warm-start")
def warm_start_command(
    env: Env,
    data: Data = "embedded",
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder; where the package keeps its own if unset.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", callback=not_negative, help="Seed of weights and data.")] = 0,
    target: Target = 0.0,
    minutes: Annotated[float, typer.Option("--minutes", callback=above_zero, help="The latest stop.")] = 14.0,
    model: Model = "",
    overrides: Overrides = None,
) -> None:
    """Train a policy's warm start from reference episodes of the training split."""
    from taspo_bench.training.warm_start_command import build, build_adapter

    if model and target:
        raise InputError("--target: an adapter's training stops by --minutes; leave --target away")
    if overrides and not model:
        raise InputError(f"--set {overrides[0]}: only a language model (--model) has settings here")
    if model:
        build_adapter(console, env, data, model, out, seed, minutes, overrides or [])
    else:
        build(console, env, data, out, seed, target, minutes)


@app.command("export")
def export_model(
    model: Annotated[str, typer.Option("--model", help="smollm2-135m, or a model's name or path.")],
    adapter: Annotated[str, typer.Option("--adapter", help="Folder of the adapter.")],
    out: Annotated[Path, typer.Option("--out", help="New folder, as transformers lays models out.")],
) -> None:
    """Merge a language model with its adapter, for other programs to load."""
    from taspo_bench.training.model_folder import export_merged

    export_merged(model, adapter, out)
    console.print(f"wrote {out}", highlight=False)


@envs_app.command("list")
def list_envs() -> None:
    """The installed benchmarks."""
    table = Table("name", "id", "step limit", "package")
    for name, point in registry.env_entry_points().items():
        package = point.dist.name if point.dist else ""
        try:
            limit = str(registry.env_class(name).default_max_steps)
        except InputError as error:
            limit, package = "", f"{package}: {escape(str(error))}"
        table.add_row(name, f"{registry.NAMESPACE}/{point.name}", limit, package)
    console.print(table)


@envs_app.command("check")
def check_envs(
    env: Envs = None,
    data: Data = "embedded",
) -> None:
    """Prove what the benchmarks promise of their splits."""
    names = registry.suite_names() if env in (None, [], ["all"]) else env
    for name in names or []:
        made = registry.make_env(name, data=data)
        stamp = made.data_stamp()
        console.print(
            f"[bold]{name}[/bold] {stamp.source} {stamp.version} sha256 {stamp.sha256[:12]}", highlight=False
        )
        for line in made.check():
            console.print(f"  {line}", highlight=False, soft_wrap=True)


@methods_app.command("list")
def list_methods() -> None:
    """The installed credit schemes."""
    table = Table("name", "guidance", "package", "rule")
    for name, point in registry.method_entry_points().items():
        package = point.dist.name if point.dist else ""
        try:
            scheme = registry.method_class(name)
        except InputError as error:
            table.add_row(name, "", package, escape(str(error)))
            continue
        rule = next(iter((scheme.__doc__ or "").strip().splitlines()), "")
        table.add_row(name, "yes" if scheme.uses_guidance else "no", package, escape(rule))
    console.print(table)


To = Annotated[Path | None, typer.Option("--to", help="Folder to build or keep the data in.")]


@data_app.command("import")
def import_data(
    env: Annotated[str, typer.Argument(help="Benchmark.")],
    files: Annotated[list[Path], typer.Argument(help="Raw files.")],
    to: To = None,
) -> None:
    """Check raw files and build what the benchmark reads."""
    with DataProgress(console) as progress:
        lines = registry.env_class(env).import_data(files, to, progress.tell)
    for line in lines:
        console.print(line, highlight=False, soft_wrap=True)


@data_app.command("fetch")
def fetch_data(
    env: Annotated[str, typer.Argument(help="Benchmark.")],
    to: To = None,
    url: Annotated[str | None, typer.Option("--url", help="Another address, or a set the benchmark names.")] = None,
) -> None:
    """Download the official data."""
    with DataProgress(console) as progress:
        lines = registry.env_class(env).fetch_data(to, url, progress.tell)
    for line in lines:
        console.print(line, highlight=False, soft_wrap=True)


@app.command()
def serve(
    name: Annotated[str, typer.Argument(help="Service, such as retriever.")],
    data: Data = "embedded",
    host: Annotated[str, typer.Option("--host", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", help="Port to listen on.")] = 8000,
) -> None:
    """Serve a part of a benchmark to other machines."""
    registry.service(name)(data, host, port)


UNUSABLE = (PermissionError, FileExistsError, NotADirectoryError, IsADirectoryError)
"""What the system says of a path that was not well chosen."""


def main() -> None:
    """Entry point: every error of the package's own family is one line and an exit code."""
    # small models gain nothing from threads that wait for each other; cells run side by side instead
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    try:
        app()
    except TaspoBenchError as error:
        _tell(str(error))
        sys.exit(error.exit_code)
    except OSError as error:
        if is_disk_error(error):
            _tell(f"cannot write ({error}); make room there, or name another folder, and try again")
            sys.exit(1)
        if error.filename is None:
            raise
        _tell(f"{error.filename}: {error.strerror}; mend it, or name another path, and try again")
        sys.exit(2 if isinstance(error, UNUSABLE) else 1)


def _tell(message: str) -> None:
    Console(stderr=True).print(f"[red]error:[/red] {escape(message)}", highlight=False, soft_wrap=True)
