"""The reference study can be made again.

One of its cells, at smoke size, gives the figures that are kept of it; its later tables come from the raw
results beside them.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import tarfile

import pytest
import torch

from documented import ROOT
from test_cli import taspo_bench

STUDY = ROOT / "results/reference"
CELL = "taspo/searchqa/seed-10"
TABLES = {"ablations": "ablations", "fifth_seed": "fifth_seed", "smollm2": "language_model"}
"""Runs whose raw results are kept, and the folder of their tables."""
NUMBER = re.compile(r"[-+]?\b\d+(?:\.\d+)?(?:e-?\d+)?\b")
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


def alike(made: str, published: str, tolerance: float) -> None:
    """The same words, and figures that differ by no more than rounding on another processor may make of them."""
    assert NUMBER.sub("", made) == NUMBER.sub("", published)
    figures = [[float(number) for number in NUMBER.findall(text)] for text in (made, published)]
    assert figures[0] == pytest.approx(figures[1], abs=tolerance)


@pytest.mark.parametrize("run", sorted(path.name.removesuffix(".tar.xz") for path in (STUDY / "raw").glob("*")))
def test_a_table_comes_from_its_raw_results(run, tmp_path):
    with tarfile.open(STUDY / "raw" / f"{run}.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    result = taspo_bench("compare", tmp_path / run, "--out", tmp_path / "out")
    assert result.returncode == 0, result.stderr
    made, published = (folder / "summary.csv" for folder in (tmp_path / "out", STUDY / TABLES[run]))
    alike(made.read_text(), published.read_text(), 0.01)


def test_the_differences_of_five_seeds_come_from_the_published_summaries():
    printed = subprocess.run([sys.executable, STUDY / "five_seeds.py"], capture_output=True, text=True, check=True)
    alike(printed.stdout, (STUDY / "five_seeds.md").read_text(), 0.11)
