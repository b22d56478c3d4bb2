"""What happens to a run when the terminal, the disk or its parent goes: one clear line, and it can be resumed."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

SMALL = [
    "--method", "taspo", "--env", "searchqa", "--preset", "smoke", "--set", "updates=2", "--set", "eval_tasks=3",
    "--set", "save_every=1", "--jobs", "1",
]  # fmt: skip


def command(*args: object) -> list[str]:
    return [sys.executable, "-c", "from taspo_bench.cli import main; main()", *map(str, args)]


def taspo_bench(*args: object, before: Callable[[], None] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*args), capture_output=True, text=True, preexec_fn=before, env={**os.environ, "COLUMNS": "200"}
    )


def numbers(folder: Path) -> dict[str, object]:
    """All results of a run, times apart."""
    found: dict[str, object] = {path.name: path.read_bytes() for path in folder.glob("summary.*")}
    for path in folder.glob("cells/*/*/seed-*/metrics.jsonl"):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        found[str(path.relative_to(folder))] = [{**line, "seconds": None} for line in lines]
    return found


def checked(folder: Path) -> dict[Path, bytes]:
    """Every file below a folder that is not half written; JSON files must be readable."""
    files = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.suffix != ".tmp"}
    for path, content in files.items():
        if path.suffix == ".json":
            json.loads(content)
    return files


def began(process: subprocess.Popen[str], text: str) -> None:
    """Read a process's output until it says so."""
    assert process.stdout is not None
    for line in process.stdout:
        if text in line:
            return
    raise AssertionError(f"it ended without saying {text!r}")


def group_members(group: int) -> list[int]:
    """The living processes of a process group."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group and fields[0] != "Z":
            found.append(int(entry.parent.name))
    return found


@pytest.fixture(scope="module")
def whole_run(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("unbroken") / "run"
    result = taspo_bench("run", *SMALL, "--out", folder)
    assert result.returncode == 0, result.stderr
    return folder


@pytest.fixture
def unbroken(whole_run) -> dict[str, object]:
    return numbers(whole_run)


@pytest.fixture
def small_disk(tmp_path) -> Iterator[Path]:
    """A file system of its own with 4 MB."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(place)], capture_output=True)
    if mounted.returncode:
        pytest.skip("mounting a file system is not allowed here")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def remount(place: Path, options: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{options}", str(place)], check=True)


@pytest.mark.slow
def test_a_full_disk_is_one_line_earlier_files_stay_whole_and_with_room_the_run_ends_as_unbroken(
    small_disk, unbroken
):
    folder = small_disk / "run"
    result = taspo_bench("run", *SMALL, "--out", folder)
    assert result.returncode == 1
    [line] = result.stderr.strip().splitlines()
    assert "No space left on device" in line and f"--resume --out {folder}" in line
    before = checked(folder)
    assert (folder / "cells/warm_start/searchqa/seed-0/eval.json") in before
    assert not list(folder.rglob("*.tmp"))
    remount(small_disk, "size=64m")
    result = taspo_bench("run", "--resume", "--out", folder)
    assert result.returncode == 0, result.stderr
    assert (folder / "cells/warm_start/searchqa/seed-0/eval.json").read_bytes() == before[
        folder / "cells/warm_start/searchqa/seed-0/eval.json"
    ], "a finished cell is not run again"
    assert numbers(folder) == unbroken


def test_a_read_only_folder_is_one_line_and_stays_as_it_is(small_disk):
    folder = small_disk / "run"
    (folder / "cells").mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    remount(small_disk, "ro")
    for args in (["--out", folder, "--overwrite"], ["--out", small_disk / "new"]):
        result = taspo_bench("run", *SMALL, *args)
        assert result.returncode == 2
        [line] = result.stderr.strip().splitlines()
        assert "Read-only file system" in line
    assert (folder / "config.json").read_text() == "{}"


def test_a_limit_on_the_size_of_files_ends_like_a_full_disk(tmp_path, unbroken):
    """The same without a file system of its own: the policy's weights are larger than the limit."""
    folder = tmp_path / "run"

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))

    result = taspo_bench("run", *SMALL, "--out", folder, before=limit)
    assert result.returncode == 1
    [line] = result.stderr.strip().splitlines()
    assert "File too large" in line and f"--resume --out {folder}" in line
    assert checked(folder) and not list(folder.rglob("*.tmp"))
    result = taspo_bench("run", "--resume", "--out", folder)
    assert result.returncode == 0, result.stderr
    assert numbers(folder) == unbroken


@pytest.mark.parametrize(
    ("stop", "code"),
    [(signal.SIGINT, 130), pytest.param(signal.SIGHUP, -signal.SIGHUP, marks=pytest.mark.slow)],
)
def test_ctrl_c_or_a_lost_terminal_leaves_no_worker_and_the_run_goes_on_from_there(stop, code, tmp_path, unbroken):
    """SIGHUP goes to the parent alone, which is the harder case: nobody tells the workers."""
    folder = tmp_path / "run"
    process = subprocess.Popen(
        command("run", *SMALL, "--out", folder),
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(stop, signal.SIG_DFL),  # a shell's background jobs ignore Ctrl-C
    )
    began(process, "done: warm_start")
    (os.killpg if stop == signal.SIGINT else os.kill)(process.pid, stop)
    assert process.stdout is not None
    output = process.stdout.read()  # to the end: until the last process that holds it is gone
    assert process.wait() == code
    deadline = time.monotonic() + 10  # what has closed its output may take a moment to be gone
    while group_members(process.pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert group_members(process.pid) == []
    if stop == signal.SIGINT:
        assert f"go on with: taspo-bench run --resume --out {folder}" in output
    assert taspo_bench("run", "--resume", "--out", folder).returncode == 0
    assert numbers(folder) == unbroken


def test_a_worker_that_is_killed_ends_the_run_with_one_line(tmp_path, unbroken):
    folder = tmp_path / "run"
    process = subprocess.Popen(
        command("run", *SMALL, "--out", folder), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    began(process, "done: warm_start")
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    workers = [child for child in children if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()]
    os.kill(int(workers[0]), signal.SIGKILL)
    _, told = process.communicate()
    assert process.returncode == 1
    assert "a worker was killed" in told and "--resume" in told and "Traceback" not in told
    assert taspo_bench("run", "--resume", "--out", folder).returncode == 0
    assert numbers(folder) == unbroken


@pytest.mark.slow
def test_failed_cells_run_again_and_finished_ones_do_not(whole_run, tmp_path):
    folder = shutil.copytree(whole_run, tmp_path / "run")
    cell = folder / "cells/taspo/searchqa/seed-0"
    (cell / "eval.json").unlink()
    (cell / "failed.json").write_text('{"schema": 1, "error": "ValueError: not today"}')
    other = folder / "cells/warm_start/searchqa/seed-0"
    before = {path: path.stat().st_mtime_ns for path in other.rglob("*")}
    assert taspo_bench("run", "--resume", "--out", folder).returncode == 0
    assert not (cell / "failed.json").exists() and (cell / "eval.json").is_file()
    assert {path: path.stat().st_mtime_ns for path in other.rglob("*")} == before
    assert numbers(folder) == numbers(whole_run)
