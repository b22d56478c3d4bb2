"""A credit scheme of another installed package, or of a lone file, works without a change in this one."""

from __future__ import annotations

import os
import subprocess
import sys
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


def run(code: str, path: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(path)}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)


def test_a_scheme_of_another_package_is_listed_and_works(tmp_path: Path) -> None:
    installed(tmp_path, "half_credit")
    done = run(USE, tmp_path)
    assert done.stdout.strip() == "[0.5]", done.stderr


def test_two_schemes_of_one_name_are_refused_with_both_packages_named(tmp_path: Path) -> None:
    installed(tmp_path, "half_credit")
    installed(tmp_path, "other_credit")
    done = run("from taspo_bench.registry import method_entry_points; method_entry_points()", tmp_path)
    assert "two methods are named 'half'" in done.stderr
    assert "half_credit" in done.stderr and "other_credit" in done.stderr


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


def test_every_scheme_of_the_project_is_found_under_its_own_name() -> None:
    for name in method_entry_points():
        assert method_class(name).name == name
        assert isinstance(method_class(name)().uses_guidance, bool)
