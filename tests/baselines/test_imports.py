"""The direction of imports: a baseline knows the contracts, and nothing else of the harness."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import taspo_baselines

FILES = sorted(Path(taspo_baselines.__file__).parent.glob("*.py"))
ALLOWED = {"taspo_bench.api", "taspo_bench.credit", "taspo_bench.episode"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_baseline_imports_only_contracts(path: Path) -> None:
    tree = ast.parse(path.read_text())
    modules = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    modules |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert {module for module in modules if module.startswith("taspo_bench")} <= ALLOWED
    assert not {module for module in modules if module.startswith(("taspo_envs", "torch"))}
