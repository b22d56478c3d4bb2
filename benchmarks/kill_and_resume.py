"""Kills a small run with SIGKILL at random moments, resumes it each time, and compares the end with an unbroken run.

    python benchmarks/kill_and_resume.py --kills 20 --seed 0

Compared byte by byte, times apart: the summary in its four formats, and of every cell metrics, evaluation, stored
episodes and policies. Exit code 1 if anything differs.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

COMMAND = [str(Path(sys.executable).with_name("taspo-bench")), "run"]
SETTINGS = ["--preset", "smoke", "--set", "updates=4", "--set", "save_every=2", "--jobs", "2"]


def run(settings: list[str], folder: Path, kill_after: float | None = None) -> tuple[bool, float]:
    """One try of the run, with all its processes killed after so many seconds.

    Gives whether that happened before its end, and the seconds that it took.
    """
    exists = folder.is_dir() and any(folder.iterdir())
    command = [*COMMAND, *settings, "--out", str(folder), *(["--resume"] if exists else [])]
    begun = time.monotonic()
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    try:
        output, _ = process.communicate(timeout=kill_after)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return True, time.monotonic() - begun
    if process.returncode:
        sys.exit(f"{' '.join(command)}: exit code {process.returncode}\n{output}")
    return False, time.monotonic() - begun


def without_times(record: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name != "seconds"}


def results(folder: Path) -> dict[str, bytes]:
    """What must be the same, by the path of its file."""
    found = {path.name: path.read_bytes() for path in folder.glob("summary.*")}
    for cell in folder.glob("cells/*/*/seed-*"):
        files = [*cell.glob("episodes/*"), *cell.glob("policy-*/*")]
        found |= {str(path.relative_to(folder)): path.read_bytes() for path in files}
        lines = (cell / "metrics.jsonl").read_text().splitlines() if (cell / "metrics.jsonl").exists() else []
        for path, texts in (
            (cell / "metrics.jsonl", lines),
            (cell / "eval.json", [(cell / "eval.json").read_text()]),
        ):
            kept = [json.dumps(without_times(json.loads(text))) for text in texts]
            found[str(path.relative_to(folder))] = "\n".join(kept).encode()
    return found


def reached(folder: Path) -> str:
    """How far a killed run had come, in words."""
    done = len(list(folder.glob("cells/*/*/seed-*/eval.json")))
    updates = sum(len(path.read_text().splitlines()) for path in folder.glob("cells/*/*/seed-*/metrics.jsonl"))
    saved = len(list(folder.glob("cells/*/*/seed-*/checkpoint/update-*")))
    if not (folder / "config.json").exists():
        return "nothing written yet"
    summary = ", summary begun" if any(folder.glob("summary.*")) else ""
    return f"{done} cells finished, {updates} updates, {saved} checkpoints{summary}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    parser.add_argument("--env", default="searchqa")
    parser.add_argument("--method", nargs="+", default=["taspo"])
    args = parser.parse_args()
    methods = [word for method in args.method for word in ("--method", method)]
    settings = [*methods, "--env", args.env, *SETTINGS]
    moments = random.Random(args.seed)
    differing = 0
    with tempfile.TemporaryDirectory() as place:
        _, seconds = run(settings, Path(place, "unbroken"))
        expected = results(Path(place, "unbroken"))
        print(f"unbroken run: {seconds:.1f} s, {len(expected)} files compared", flush=True)
        for number in range(args.kills):
            folder = Path(place, f"killed-{number}")
            is_killed = False
            while not is_killed:  # a machine less busy than before may end a run before its moment
                shutil.rmtree(folder, ignore_errors=True)
                moment = moments.uniform(0.0, seconds)
                is_killed, took = run(settings, folder, kill_after=moment)
                seconds = seconds if is_killed else took
            state = reached(folder)
            run(settings, folder)
            ended = results(folder)
            wrong = sorted(name for name in expected | ended if expected.get(name) != ended.get(name))
            wrong += [str(path.relative_to(folder)) for path in folder.rglob("*.tmp")]
            differing += bool(wrong)
            verdict = f"DIFFERS: {', '.join(wrong)}" if wrong else "equal"
            print(f"kill {number + 1} after {moment:.1f} s ({state}): {verdict}", flush=True)
    print(f"{args.kills - differing} of {args.kills} resumed runs ended like the unbroken one")
    sys.exit(bool(differing))


if __name__ == "__main__":
    main()
