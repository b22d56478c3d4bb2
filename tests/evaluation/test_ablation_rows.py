"""A run of an ablation table has the rows of the table, in its order, whatever became of them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from run_builder import build_run

from taspo_bench import registry
from taspo_bench.ablations import TABLES
from taspo_bench.credit import make_scheme
from taspo_bench.evaluation.publish import write_summary
from taspo_bench.evaluation.results import read_run
from taspo_bench.run import Plan


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


def test_the_table_of_all_rows_has_every_setting_of_the_others_once() -> None:
    def settings(table: str) -> list[str]:
        plan = Plan.make([], ["searchqa"], [0], "quick", "embedded", {}, table)
        configs = [cell.config for cell in plan.cells() if cell.name != "warm_start"]
        schemes = [make_scheme(registry.method_class(config.method), config.scheme) for config in configs]
        rules = [str(vars(scheme).get("rule", "")) for scheme in schemes]
        return [
            f"{config.model_copy(update={'scheme': {}})!r} {rule}"
            for config, rule in zip(configs, rules, strict=True)
        ]

    everything = settings("all")
    assert len(everything) == len(set(everything)) > 20
    for table in TABLES:
        assert set(settings(table)) <= set(everything), table
