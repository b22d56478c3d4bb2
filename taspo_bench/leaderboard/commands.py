"""The commands ``taspo-bench submit`` and ``taspo-bench leaderboard``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

submit_app = typer.Typer(help="Submissions to a leaderboard, proved by replay.", no_args_is_help=True)
leaderboard_app = typer.Typer(no_args_is_help=True)

Data = Annotated[
    str, typer.Option("--data", help="For episodes not played on the embedded data: official, or a folder.")
]


@submit_app.command("pack")
def pack_command(
    runs: Annotated[list[Path], typer.Argument(help="Run folders, cells, or folders of `taspo-bench eval --out`.")],
    name: Annotated[str, typer.Option("--name", help="Name of the submission.")],
    licence: Annotated[str, typer.Option("--licence", help="Licence of the episodes, such as CC-BY-4.0.")],
    method: Annotated[
        str | None, typer.Option("--method", help="Which method of the runs, or how the policy was made.")
    ] = None,
    base_model: Annotated[str | None, typer.Option("--base-model", help="Model that was trained.")] = None,
    parameters: Annotated[int | None, typer.Option("--parameters", help="Number of trained parameters.")] = None,
    env_steps: Annotated[
        int | None, typer.Option("--env-steps", help="Environment steps of training, per seed.")
    ] = None,
    tokens: Annotated[int | None, typer.Option("--tokens", help="Sampled tokens of training, per seed.")] = None,
    temperature: Annotated[
        float | None, typer.Option("--temperature", help="Of the evaluation, where the folders do not say it.")
    ] = None,
    contact: Annotated[str | None, typer.Option("--contact", help="Shown on the site.")] = None,
    code: Annotated[str | None, typer.Option("--code", help="https:// address of the code.")] = None,
    unranked: Annotated[bool, typer.Option("--unranked", help="A reference, outside the ranking.")] = False,
    responses: Annotated[bool, typer.Option("--responses", help="Pack the policy's own words too.")] = False,
    data: Annotated[
        str | None, typer.Option("--data", help="embedded, official, or a folder; as in the runs if unset.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="The archive; NAME.tar.gz if unset.")] = None,
) -> None:
    """Make one archive of evaluation episodes."""
    from taspo_bench.leaderboard.slug import slug
    from taspo_bench.leaderboard.submission import Description, pack

    description = Description(
        name, licence, method, base_model, parameters, contact, code, env_steps, tokens, temperature, not unranked
    )
    packed = pack(runs, description, out or Path(f"{slug(name)}.tar.gz"), data, responses)
    for env, benchmark in packed.manifest.benchmarks.items():
        for split, claim in benchmark.splits.items():
            wanted = claim.tasks * len(packed.manifest.seeds)
            typer.echo(
                f"{env} {split}: {claim.claimed.episodes} of {wanted} episodes, success {claim.claimed.success:.3f}"
            )
    if packed.broken:
        typer.echo(f"{packed.broken} episodes had ended with an error: left out, they count 0")
    typer.echo(f"wrote {packed.path} ({packed.path.stat().st_size} bytes)")
    typer.echo(f"check it with: taspo-bench submit verify {packed.path}")


@submit_app.command("verify")
def verify_command(
    archive: Annotated[Path, typer.Argument(help="Archive of `taspo-bench submit pack`.")],
    data: Data = "official",
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for the result as STEM.json and STEM.txt.")
    ] = None,
) -> None:
    """Replay every episode. Exit code 0: verified, 1: something differs, 2: malformed."""
    from taspo_bench.leaderboard.verdict import page, write_verdict
    from taspo_bench.leaderboard.verify import verify

    verdict = verify(archive, data)
    typer.echo(page(verdict), nl=False)
    if out is not None:
        write_verdict(out, verdict)
    raise typer.Exit(verdict.exit_code)


@leaderboard_app.callback()
def leaderboard() -> None:
    """A leaderboard of verified submissions."""


@leaderboard_app.command("build")
def build_command(
    folder: Annotated[Path, typer.Argument(help="Folder of submissions (*.tar.gz).")],
    out: Annotated[Path | None, typer.Option("--out", help="Folder of the site; FOLDER/site if unset.")] = None,
    data: Data = "official",
    url: Annotated[str, typer.Option("--url", help="https:// address of the site, for its feeds.")] = "",
) -> None:
    """Verify all submissions of a folder and write the site. Exit code 1 if one was left out."""
    from taspo_bench.leaderboard.site import build_site

    built = build_site(folder, out or folder / "site", data, url)
    for archive, reason in built.left_out.items():
        typer.echo(f"left out: {archive}: {reason}", err=True)
    typer.echo(f"{built.submissions} submissions: {built.out / 'index.html'}")
    raise typer.Exit(1 if built.left_out else 0)
