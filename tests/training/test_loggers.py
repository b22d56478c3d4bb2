"""Further logs of a cell, offline: what arrives, and that a logger that breaks down never takes the run with it."""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from taspo_bench.config import resolve
from taspo_bench.errors import InputError
from taspo_bench.training import loggers
from taspo_bench.training.cell import run_cell
from taspo_bench.training.loggers import CellLog, check_loggers

BLOCK = 32768
SMALL = {"updates": 2, "tasks_per_update": 2, "group_size": 2, "eval_tasks": 2, "max_turns": 2}


def settings(*log: str):
    return resolve("smoke", {}, {**SMALL, "log": list(log)}, method="grpo", env="searchqa", seed=0)


def cell_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "first/cells/grpo/searchqa/seed-0"
    folder.mkdir(parents=True)
    return folder


def figures(folder: Path) -> tuple[list[dict], dict]:
    metrics = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert all(line.pop("schema") == 1 for line in metrics)
    return metrics, json.loads((folder / "eval.json").read_text())["splits"]


def leveldb_records(log: bytes) -> Iterator[bytes]:
    """Records of a LevelDB log: blocks of 32 KiB (the first is short of its file header), a 7-byte header a part."""
    begun, place = b"", 0
    while place + 7 <= len(log):
        room = BLOCK - (place + 7) % BLOCK
        if room < 7:
            place += room
            continue
        _, length, kind = struct.unpack("<IHB", log[place : place + 7])
        begun += log[place + 7 : place + 7 + length]
        place += 7 + length
        if kind in (1, 4):  # whole, or the last part
            yield begun
            begun = b""


def test_tensorboard_holds_what_metrics_and_evaluation_hold(tmp_path):
    pytest.importorskip("tensorboard", reason="the extra tensorboard is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    folder = cell_folder(tmp_path)
    run_cell(settings("tensorboard"), folder)
    metrics, splits = figures(folder)
    read = EventAccumulator(str(folder / "tensorboard"))
    read.Reload()
    loss = [(event.step, event.value) for event in read.Scalars("train/loss")]
    assert loss == [(line["update"] + 1, pytest.approx(line["loss"])) for line in metrics] and len(loss) == 2
    assert [event.step for event in read.Scalars("train/seconds/rollout")] == [1, 2]
    for split, record in splits.items():
        [event] = read.Scalars(f"eval/{split}/success")
        assert (event.step, event.value) == (2, pytest.approx(record["success"]))


def test_tensorboard_shows_a_resumed_cell_once(tmp_path):
    pytest.importorskip("tensorboard", reason="the extra tensorboard is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    for values in ([1.0, 2.0, 3.0], [20.0, 30.0]):
        with CellLog(settings("tensorboard"), tmp_path) as log:
            for done, value in zip(range(4 - len(values), 4), values, strict=True):
                log.update(done, {"loss": value})
    read = EventAccumulator(str(tmp_path / "tensorboard"))
    read.Reload()
    assert [(event.step, event.value) for event in read.Scalars("train/loss")] == [(1, 1.0), (2, 20.0), (3, 30.0)]


def test_wandb_offline_keeps_the_figures_on_this_machine(tmp_path, monkeypatch):
    pytest.importorskip("wandb", reason="the extra wandb is not installed")
    from wandb.proto.wandb_internal_pb2 import Record

    monkeypatch.setenv("WANDB_MODE", "offline")
    folder = cell_folder(tmp_path)
    with CellLog(settings("wandb"), folder) as log:
        log.update(1, {"loss": 0.25, "seconds": {"rollout": 2.0}})
    [file] = folder.glob("wandb/offline-run-*/run-*.wandb")
    logged = {}
    for data in leveldb_records(file.read_bytes()[7:]):
        record = Record.FromString(data)
        logged |= {"/".join(item.nested_key) or item.key: item.value_json for item in record.history.item}
        if record.WhichOneof("record_type") == "run":
            assert record.run.display_name == "first/grpo/searchqa/seed-0"
    assert logged["train/loss"] == "0.25" and logged["train/seconds/rollout"] in ("2", "2.0")
    assert logged["_step"] == "1"


def test_a_cell_keeps_its_id_when_resumed_and_gets_another_when_begun_anew(tmp_path):
    folder = cell_folder(tmp_path)
    first = loggers._kept_id(folder)
    assert loggers._kept_id(folder) == first
    shutil.rmtree(folder)
    folder.mkdir()
    assert loggers._kept_id(folder) != first


def test_trackio_keeps_the_figures_in_its_own_folder(tmp_path):
    pytest.importorskip("trackio", reason="the extra trackio is not installed")
    # its folder is read from the environment when it is imported
    script = f"""
import json, os
from pathlib import Path
os.environ["TRACKIO_DIR"] = {str(tmp_path / "trackio")!r}
from taspo_bench.config import resolve
from taspo_bench.training.loggers import CellLog
config = resolve("smoke", {{}}, {{"log": ["trackio"]}}, method="grpo", env="searchqa", seed=0)
folder = Path({str(cell_folder(tmp_path))!r})
from trackio.sqlite_storage import SQLiteStorage
for tries in ([[1, 2], [3]], [[1, 2]]):  # broken off and resumed, then begun anew
    for steps in tries:
        with CellLog(config, folder) as log:
            for step in steps:
                log.update(step, {{"loss": step / 4}})
    run = SQLiteStorage.get_latest_run_record_by_name("taspo-bench", "first/grpo/searchqa/seed-0")
    rows = SQLiteStorage.get_logs("taspo-bench", run["name"], run_id=run["id"])
    print(json.dumps([[row["step"], row["train/loss"]] for row in rows]))
"""
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    resumed, anew = map(json.loads, result.stdout.splitlines())
    assert resumed == [[1, 0.25], [2, 0.5], [3, 0.75]]
    assert anew == [[1, 0.25], [2, 0.5]]


def test_an_unknown_logger_and_one_that_is_not_installed_are_refused(monkeypatch):
    with pytest.raises(InputError, match="did you mean 'wandb'"):
        check_loggers(["wandbb"])
    monkeypatch.setitem(loggers.LOGGERS, "nowhere_to_be_found", loggers.TensorBoard)
    with pytest.raises(InputError, match=r"pip install 'taspo-bench\[nowhere_to_be_found\]'"):
        check_loggers(["nowhere_to_be_found"])


class Broken:
    """A logger that fails where it is told to."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.written: list[int] = []
        self._fail("open")

    def _fail(self, place: str) -> None:
        if place == self.where:
            raise RuntimeError(f"cannot {place}\nfor a long reason")

    def write(self, step, figures) -> None:
        self.written.append(step)
        if len(self.written) == 2:
            self._fail("write")

    def close(self) -> None:
        self._fail("close")


@pytest.mark.parametrize("where", ["open", "write", "close"])
def test_a_logger_that_breaks_down_costs_one_warning_and_the_cell_ends_as_without(
    where, tmp_path, monkeypatch, capfd
):
    monkeypatch.setitem(loggers.LOGGERS, "broken", lambda config, folder, first: Broken(where))
    run_cell(settings("broken"), tmp_path / "with")
    warnings = [line for line in capfd.readouterr().err.splitlines() if "--log broken" in line]
    assert len(warnings) == 1 and f"cannot {where} for a long reason" in warnings[0]
    run_cell(settings(), tmp_path / "without")
    assert figures(tmp_path / "with")[1] == figures(tmp_path / "without")[1]
