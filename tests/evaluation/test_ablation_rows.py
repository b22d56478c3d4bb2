"""A run of an ablation table has the rows of the table, in its order, whatever became of them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from run_builder import build_run

from taspo_bench.ablations import TABLES
from taspo_bench.evaluation.publish import write_summary
from taspo_bench.evaluation.results import read_run


@pytest.mark.parametrize("name", TABLES)
def test_every_row_is_there_in_the_tables_order_and_a_missing_one_counts_as_unfinished(
    tmp_path: Path, name: str
) -> None:
    labels = [variant.label for variant in TABLES[name]]
    run = build_run(tmp_path / "run", methods=tuple(labels), envs=("searchqa",), seeds=(0,), n=4)
    config = json.loads((run / "config.json").read_text())
    (run / "config.json").write_text(json.dumps({**config, "methods": [], "table": name}))
    shutil.rmtree(run / "cells" / labels[-1])
    cells = read_run(run).cells
    assert [cell.method for cell in cells if cell.method in labels] == labels
    assert cells[len(labels) - 1].error == "not finished" and not cells[0].error


def test_the_published_table_names_the_missing_row(tmp_path: Path) -> None:
    run = build_run(tmp_path / "run", methods=("grpo", "token"), envs=("searchqa",), seeds=(0,), n=4)
    config = json.loads((run / "config.json").read_text())
    (run / "config.json").write_text(json.dumps({**config, "methods": [], "table": "granularity"}))
    write_summary(run)
    assert "action" in (run / "summary.csv").read_text()
