"""What is shipped: versions that agree, and distributions that hold and run what they promise."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import taspo_bench

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WHEEL = (
    "taspo_bench/py.typed",
    "taspo_envs/py.typed",
    "taspo_baselines/py.typed",
    "taspo_bench/evaluation/templates/report.html.jinja",
    "taspo_bench/leaderboard/templates/base.html.jinja",
    *(
        f"taspo_envs/{env}/warm_start/{name}"
        for env in ("alfworld", "webshop", "searchqa")
        for name in ("card.json", "model.safetensors", "tokenizer.json")
    ),
)


def test_versions_agree():
    citation = re.search(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert citation is not None
    assert PROJECT["version"] == taspo_bench.__version__ == citation[1]


@pytest.mark.parametrize("package", ["taspo_bench", "envs/taspo_envs", "baselines/taspo_baselines"])
def test_every_package_ships_its_types(package):
    assert (ROOT / package / "py.typed").is_file()


def test_the_pythons_that_are_named_are_those_that_are_allowed():
    named = re.findall(r"Python :: (3\.\d+)$", "\n".join(PROJECT["classifiers"]), re.MULTILINE)
    assert PROJECT["requires-python"] == f">={named[0]}"
    (lowest, above) = re.findall(r"\((3, \d+)\)", (ROOT / "Makefile").read_text())
    assert lowest == named[0].replace(".", ", ") and int(above[3:]) == int(named[-1][2:]) + 1


def test_no_default_dependency_is_an_address():
    everything = [
        *PROJECT["dependencies"],
        *(name for extra in PROJECT["optional-dependencies"].values() for name in extra),
    ]
    assert not [requirement for requirement in everything if "@" in requirement or "://" in requirement]


@pytest.fixture(scope="module")
def distributions(tmp_path_factory) -> tuple[Path, Path]:
    """Wheel and source distribution; building installs the build system, so the network is needed."""
    pytest.importorskip("build", reason="needs the package build")
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-m", "build", "--outdir", folder, ROOT], check=True, capture_output=True)
    (wheel,), (source,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, source


@pytest.mark.slow
def test_the_distributions_hold_what_is_needed(distributions):
    wheel, source = distributions
    names = set(zipfile.ZipFile(wheel).namelist())
    assert set(WHEEL) <= names
    assert not [name for name in names if name.startswith("tests/") or name.endswith(".pyc")]
    with tarfile.open(source) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    assert {
        "Makefile",
        "constraints.txt",
        "pyproject.toml",
        "mkdocs.yml",
        "docs/index.md",
        "tests/conftest.py",
    } <= inside


@pytest.mark.slow
def test_twine_finds_nothing(distributions):
    pytest.importorskip("twine", reason="needs the package twine")
    subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *distributions], check=True)


@pytest.mark.slow
@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
def test_the_wheel_runs_in_a_clean_environment(version, distributions, tmp_path):
    python = shutil.which(f"python{version}")
    if python is None or subprocess.run([python, "--version"], capture_output=True).returncode:
        pytest.skip(f"no python{version} on the path")
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    subprocess.run([python, "-m", "venv", tmp_path / "venv"], check=True)
    bin_folder = tmp_path / "venv" / "bin"
    wheels_only = ["--only-binary=:all:", "--constraint", ROOT / "constraints.txt"]
    subprocess.run([bin_folder / "pip", "install", "--quiet", *wheels_only, distributions[0]], check=True)
    for words in (
        ["--help"],
        ["envs", "list"],
        ["methods", "list"],
        *(
            ["eval", "--env", env, "--policy", "expert", "--tasks", "2"]
            for env in ("alfworld", "webshop", "searchqa")
        ),
        ["eval", "--env", "searchqa", "--policy", "warm-start", "--tasks", "2"],
    ):
        done = subprocess.run(
            [bin_folder / "taspo-bench", *words], cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, f"{words}: {done.stderr}"
