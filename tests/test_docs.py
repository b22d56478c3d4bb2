"""What the README and the documentation show works: each command, each program, each count, each link."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import typer

from documented import ROOT, SHELL, Block, blocks, documents
from taspo_bench import registry
from taspo_bench.cli import app
from taspo_bench.config import PRESETS, resolve

BLOCKS = blocks()
SHELL_BLOCKS = [block for block in BLOCKS if block.language in SHELL]
RUN = [block for block in BLOCKS if not block.reason]
QUICK = ("envs", "methods", "play", "eval", "plan", "--help")
"""Commands that take seconds; the others train, or look at what was trained."""
SHORTER = {
    "run": ["--preset", "smoke", "--seeds", "1", "--set", "updates=1", "--set", "tasks_per_update=2"],
    "ablate": ["--preset", "smoke", "--seeds", "1", "--set", "updates=1", "--set", "tasks_per_update=2"],
    "eval": ["--tasks", "2", "--split", "valid_unseen"],
}
CLI = "from taspo_bench.cli import main; main()"


def place(block: Block) -> str:
    return block.place


def in_folder(folder: Path, *words: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "COLUMNS": "120", "PYTHONPATH": path}
    return subprocess.run(
        [sys.executable, *words], cwd=folder, env=environment, input=text or "quit\n", capture_output=True, text=True
    )


def run_command(folder: Path, words: list[str]) -> subprocess.CompletedProcess[str]:
    """A documented command, with less to do."""
    shorter = [] if "--resume" in words else SHORTER.get(words[1], [])
    shorter = [*shorter, "--set", "eval_tasks=2"] if "updates=1" in shorter else shorter
    return in_folder(folder, "-c", CLI, *words[1:], *shorter)


def write_if_named(block: Block, folder: Path) -> Path | None:
    """Keep a program whose first line names its file."""
    named = re.match(r"# (\w+\.py)\n", block.text)
    if named is None:
        return None
    (folder / named[1]).write_text(block.text)
    return folder / named[1]


def accepted_by_the_command_line(words: list[str]) -> None:
    command = typer.main.get_command(app)
    path, rest = [words[0]], words[1:]
    while rest and not rest[0].startswith("-") and hasattr(command, "commands"):
        command = command.commands[rest[0]]
        path, rest = [*path, rest[0]], rest[1:]
    if "--help" not in rest:
        command.make_context(" ".join(path), list(rest))


@pytest.mark.parametrize("block", SHELL_BLOCKS, ids=place)
def test_every_command_is_one_that_exists(block):
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for words in block.commands:
        if words[0] == "taspo-bench":
            accepted_by_the_command_line(words)
        elif words[0] == "make":
            assert words[1] in targets, words
        else:
            for extra in re.findall(r"taspo-bench\[([\w,-]+)\]", " ".join(words)):
                assert set(extra.split(",")) <= set(extras), words


@pytest.mark.parametrize("document", documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_extras_are_quoted(document):
    text = document.read_text(encoding="utf-8")
    assert not re.findall(r"(?<!['\"])taspo-bench\[\w", text)


def test_blocks_without_a_command_are_none_of_ours():
    for block in SHELL_BLOCKS:
        assert block.commands, f"{block.place}: no command that is checked"


@pytest.mark.parametrize("block", [block for block in BLOCKS if block.language == "toml"], ids=place)
def test_every_piece_of_toml_can_be_read(block):
    assert tomllib.loads(block.text)


@pytest.mark.parametrize("document", sorted({b.document for b in RUN if b.language == "python"}))
def test_every_program_runs(document, tmp_path):
    for block in RUN:
        if block.document == document and block.language == "python":
            file = write_if_named(block, tmp_path)
            done = in_folder(tmp_path, str(file)) if file else in_folder(tmp_path, "-c", block.text)
            assert done.returncode == 0, f"{block.place}: {done.stderr}"


def quick_commands() -> list[str]:
    words = [words for block in RUN if block.language in SHELL for words in block.commands]
    ours = [some for some in words if some[0] == "taspo-bench" and some[1] in QUICK]
    return sorted({shlex.join(some) for some in ours if "warm-start" not in some})


@pytest.mark.parametrize("command", quick_commands())
def test_every_quick_command_runs(command, tmp_path):
    done = run_command(tmp_path, shlex.split(command))
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_the_scheme_of_the_readme_stands_in_the_table(tmp_path):
    shown = [block for block in BLOCKS if block.document == "README.md"]
    assert any([write_if_named(block, tmp_path) for block in shown if block.language == "python"])
    (command,) = (words for block in shown for words in block.commands if "halves.py:Halves" in words)
    done = run_command(tmp_path, command)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^ *halves ", done.stdout, re.MULTILINE) and re.search(r"^ *grpo ", done.stdout, re.MULTILINE)


@pytest.mark.slow
@pytest.mark.parametrize("document", sorted({b.document for b in RUN if b.language in SHELL}))
def test_every_command_of_a_document_runs_in_its_order(document, tmp_path):
    for block in RUN:
        if block.document == document:
            write_if_named(block, tmp_path)
            for words in block.commands if block.language in SHELL else ():
                if words[0] == "taspo-bench":
                    done = run_command(tmp_path, words)
                    assert done.returncode == 0, f"{block.place}: {shlex.join(words)}\n{done.stderr}"


@pytest.mark.parametrize("env", ["alfworld", "webshop", "searchqa"])
def test_a_card_has_the_embedded_counts(env):
    card = (ROOT / "docs" / "cards" / f"{env}.md").read_text(encoding="utf-8")
    counts = {
        name: int(n.replace(",", "")) for name, n in re.findall(r"^\| `(\w+)` \| ([\d,]+) \|", card, re.MULTILINE)
    }
    assert counts == {name: len(split) for name, split in registry.make_env(env).splits().items()}


def test_the_presets_are_as_the_readme_says():
    rows = re.findall(r"^\| `(\w+)` \|[^|]*\| (\d+) x (\d+) x (\d+)", (ROOT / "README.md").read_text(), re.MULTILINE)
    for name, *numbers in rows:
        config = resolve(name, {}, {})
        assert [config.updates, config.tasks_per_update, config.group_size] == list(map(int, numbers)), name
    assert [name for name, *_ in rows] == list(PRESETS)


def test_the_presets_of_the_benchmarks_are_as_the_readme_says():
    settings = r"(\d+) x (\d+) x (\d+), (\d+) turns"
    rows = re.findall(
        rf"^\| ([\w-]+) \| {settings} \| {settings} \| {settings} \|", (ROOT / "README.md").read_text(), re.M
    )
    assert [name.lower().replace("-", "") for name, *_ in rows] == ["alfworld", "webshop", "searchqa"]
    for name, *numbers in rows:
        env = registry.env_class(name.lower().replace("-", ""))
        for place, preset in enumerate(("quick", "standard", "paper")):
            config = resolve(preset, env.presets, {})
            shown = [config.updates, config.tasks_per_update, config.group_size]
            shown.append(config.max_turns or env.default_max_steps)
            assert shown == [int(number) for number in numbers[4 * place : 4 * place + 4]], (name, preset)


def test_the_table_of_the_readme_is_that_of_the_results():
    table = (ROOT / "results/reference/summary.md").read_text().split("### ")[1].split("\n\n")[1]
    assert table.startswith("| method |") and table in (ROOT / "README.md").read_text()


def test_the_demonstration_is_the_command_that_the_tutorial_shows():
    makefile = (ROOT / "Makefile").read_text()
    (shown,) = re.findall(
        r"^taspo-bench run .*--out runs/demo.*$", (ROOT / "docs/tutorial.md").read_text(), re.MULTILINE
    )
    assert f"$(BIN)/{shown}" in makefile


@pytest.mark.parametrize("document", documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_leads_to_a_file(document):
    for target in re.findall(r"\]\((?!https?://|#)([^)#\s]+)", document.read_text(encoding="utf-8")):
        assert (document.parent / target).exists(), target


def test_the_pictures_are_drawn_again_from_what_is_kept(tmp_path):
    done = in_folder(tmp_path, str(ROOT / "docs" / "draw.py"), "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    kept = {path.name for path in (ROOT / "docs" / "pictures").glob("*.svg")}
    assert {path.name for path in tmp_path.glob("*.svg")} == kept


def test_the_site_is_built_without_a_warning(tmp_path):
    pytest.importorskip("mkdocs", reason="needs the extra [docs]")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)],
        cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "reference" / "contracts" / "index.html").read_text(encoding="utf-8")
    assert "Put the world at the beginning of a task" in page and ":class:" not in page


def test_headings_of_an_inserted_file_stand_below_the_one_above_them() -> None:
    spec = importlib.util.spec_from_file_location("hooks", ROOT / "docs" / "hooks.py")
    assert spec is not None and spec.loader is not None
    hooks = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hooks)
    text = "## A\n\n```sh\n# no heading\n```\n\n### B\n"
    assert hooks.lowered(text, 3) == "#### A\n\n```sh\n# no heading\n```\n\n##### B\n"
    assert hooks.lowered("#### A\n", 1) == "#### A\n"
