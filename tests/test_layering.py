"""Imports go one way: benchmarks and baselines know the contracts, the harness knows neither by name."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def imported(path: Path) -> set[str]:
    """Modules that a file imports anywhere in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return names


def files(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


@pytest.mark.parametrize("path", files("envs/taspo_envs"), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_benchmark_knows_the_contract_and_no_torch(path):
    foreign = {name for name in imported(path) if name.partition(".")[0] in ("taspo_bench", "torch", "transformers")}
    assert foreign <= {"taspo_bench.api", "taspo_bench.errors"}


@pytest.mark.parametrize("path", files("taspo_bench"), ids=lambda path: str(path.relative_to(ROOT)))
def test_the_harness_imports_no_benchmark_and_no_baseline(path):
    assert not {name for name in imported(path) if name.partition(".")[0] in ("taspo_envs", "taspo_baselines")}


def test_help_needs_no_torch():
    heavy = ("torch", "transformers", "matplotlib")
    code = f"import sys, taspo_bench.cli; sys.exit(any(name in sys.modules for name in {heavy}))"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
