"""The reference study can be made again: one of its cells, at smoke size, gives the figures that are kept of it."""

from __future__ import annotations

import json
import re
import shlex

import pytest
import torch

from documented import ROOT
from test_cli import taspo_bench

STUDY = ROOT / "results/reference"
CELL = "taspo/searchqa/seed-10"
SMALLER = ["--preset", "smoke", "--set", "eval_tasks=10"]


def test_a_cell_of_the_study_gives_the_kept_figures_again(tmp_path):
    plan = (STUDY / "plan.md").read_text(encoding="utf-8").replace("\\\n", " ")
    (command,) = re.findall(r"^taspo-bench (run .*) --out runs/reference$", plan, re.MULTILINE)
    words = shlex.split(command)
    method, env, seed = CELL.replace("seed-", "").split("/")
    given = [(words[place], words[place + 1]) for place in range(1, len(words), 2)]
    assert ("--method", method) in given and ("--env", "all") in given
    assert seed in dict(given)["--seeds"].split(",")

    out = tmp_path / "out"
    result = taspo_bench("run", "--method", method, "--env", env, "--seeds", f"{seed},", *SMALLER, "--out", out)
    assert result.returncode == 0, result.stderr
    kept = json.loads((STUDY / "smoke_cell.json").read_text())
    found = [json.loads(line) for line in (out / "cells" / CELL / "metrics.jsonl").read_text().splitlines()]
    assert [line.keys() for line in found] == [line.keys() for line in kept["metrics"]]
    if torch.__version__.partition("+")[0] != kept["torch"].partition("+")[0]:
        pytest.skip(f"the kept figures are of torch {kept['torch']}; this is {torch.__version__}")
    for line, expected in zip(found, kept["metrics"], strict=True):
        del line["seconds"], expected["seconds"]
        assert line == pytest.approx(expected, rel=1e-3, abs=1e-5)
    evaluation = json.loads((out / "cells" / CELL / "eval.json").read_text())
    assert {name: split["success"] for name, split in evaluation["splits"].items()} == kept["success"]
