"""A credit scheme of another installed package, or of a lone file, works without a change in this one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from taspo_bench.errors import InputError
from taspo_bench.registry import method_class, method_entry_points

SCHEME = """
from taspo_bench.credit import Credit

class Half:
    name = "half"
    uses_guidance = False

    def __init__(self, factor=0.5):
        self.factor = factor

    def credit(self, group, scorer):
        return [Credit.uniform(episode, self.factor * episode.ret) for episode in group.episodes]
"""
USE = """
from taspo_bench.episode import Episode, Group, Turn
from taspo_bench.registry import method_class, method_entry_points
assert {"half", "taspo", "grpo"} <= set(method_entry_points())
episode = Episode("x", "1", "f", [Turn("o", "r", "a")], score=1.0)
print(method_class("half")().credit(Group("1", [episode]), None)[0].turns)
"""


def installed(folder: Path, package: str, name: str = "half") -> None:
    """Lay out a package as an installer leaves it."""
    (folder / f"{package}.py").write_text(SCHEME)
    info = folder / f"{package}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[taspo_bench.methods]\n{name} = {package}:Half\n")


def wheel(folder: Path) -> Path:
    """The same package as a wheel, such as a build tool makes."""
    path = folder / "half_credit-1.0-py3-none-any.whl"
    info = "half_credit-1.0.dist-info"
    files = {
        "half_credit.py": SCHEME,
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: half_credit\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": "[taspo_bench.methods]\nhalf = half_credit:Half\n",
    }
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
        archive.writestr(f"{info}/RECORD", "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"]))
    return path


def run(code: str, path: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(path), "COLUMNS": "200"}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)


def test_a_scheme_of_another_package_is_listed_and_works(tmp_path: Path) -> None:
    installed(tmp_path, "half_credit")
    done = run(USE, tmp_path)
    assert done.stdout.strip() == "[0.5]", done.stderr


MAIN = "import sys; from taspo_bench.cli import main; sys.argv = {}; main()"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder that pip installed the package into."""
    pytest.importorskip("pip", reason="this environment has no pip to install with")
    folder = tmp_path / "site"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(folder)]
    subprocess.run([*pip, str(wheel(tmp_path))], check=True)
    return folder


def test_a_scheme_that_pip_installed_is_listed(site: Path) -> None:
    listed = run(MAIN.format(["taspo-bench", "methods", "list"]), site)
    assert any("half" in line and "half_credit" in line for line in listed.stdout.splitlines()), listed.stderr


@pytest.mark.slow
def test_a_scheme_that_pip_installed_trains(site: Path, tmp_path: Path) -> None:
    few = [
        f"--set={setting}" for setting in ("updates=1", "tasks_per_update=2", "eval_tasks=2", "scheme.factor=0.25")
    ]
    out = tmp_path / "out"
    order = ["taspo-bench", "run", "--method", "half", "--env", "searchqa", "--preset", "smoke", "--out", str(out)]
    done = run(MAIN.format([*order, *few]), site)
    assert done.returncode == 0, done.stderr
    assert json.loads((out / "cells/half/searchqa/seed-0/eval.json").read_text())["method"] == "half"


def test_two_schemes_of_one_name_are_refused_with_both_packages_named(tmp_path: Path) -> None:
    installed(tmp_path, "half_credit")
    installed(tmp_path, "other_credit")
    done = run("from taspo_bench.registry import method_entry_points; method_entry_points()", tmp_path)
    assert "two methods are named 'half'" in done.stderr
    assert "half_credit" in done.stderr and "other_credit" in done.stderr


def test_a_package_that_does_not_load_is_named_and_hides_no_other(tmp_path: Path) -> None:
    installed(tmp_path, "half_credit")
    installed(tmp_path, "ill_credit", name="ill")
    (tmp_path / "ill_credit.py").write_text("import nothing_of_that_name")
    listed = run(
        "import sys; from taspo_bench.cli import main; sys.argv = ['t', 'methods', 'list']; main()", tmp_path
    )
    assert listed.returncode == 0 and "half_credit" in listed.stdout and "does not load" in listed.stdout
    used = run("from taspo_bench.registry import method_class; method_class('ill')", tmp_path)
    assert "InputError" in used.stderr and "ill_credit" in used.stderr


def test_a_scheme_in_a_lone_file_works(tmp_path: Path) -> None:
    path = tmp_path / "half.py"
    path.write_text(SCHEME)
    scheme = method_class(f"{path}:Half")
    assert scheme.name == "half" and scheme(factor=0.25).factor == 0.25  # type: ignore[call-arg, attr-defined]


@pytest.mark.parametrize(
    ("text", "attribute", "message"),
    [(SCHEME, "Quarter", "defines no Quarter"), ("import nothing_of_that_name", "Half", "does not import")],
)
def test_a_file_without_the_scheme_is_refused(tmp_path: Path, text: str, attribute: str, message: str) -> None:
    path = tmp_path / "half.py"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        method_class(f"{path}:{attribute}")


@pytest.mark.parametrize(
    ("line", "instead", "told"),
    [
        ('    name = "half"\n', "", "no name"),
        ("uses_guidance = False", "is_guided = False", "no uses_guidance"),
        ("def credit(", "def credits(", "no method credit"),
        ("class Half", "Half = 1\nclass Other", "not a class"),
    ],
)
def test_a_class_that_lacks_a_part_of_a_scheme_is_refused_with_the_part(
    tmp_path: Path, line: str, instead: str, told: str
) -> None:
    path = tmp_path / "half.py"
    path.write_text(SCHEME.replace(line, instead))
    with pytest.raises(InputError, match=f"{path}:Half: .*{told}.*; see docs/add_a_scheme.md"):
        method_class(f"{path}:Half")


def test_every_scheme_of_the_project_is_found_under_its_own_name() -> None:
    for name in method_entry_points():
        assert method_class(name).name == name
        assert isinstance(method_class(name)().uses_guidance, bool)
