"""The cells of a run at work: side by side in processes of this machine, or wherever else workers are.

Every cell computes with its own number of threads, so its numbers do not depend on how many run beside it.
"""

from __future__ import annotations

import fcntl
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from taspo_bench.config import CellConfig
from taspo_bench.engines import processes
from taspo_bench.errors import RunError, TaspoBenchError, is_disk_error
from taspo_bench.run import Cell

if TYPE_CHECKING:
    from multiprocessing.queues import SimpleQueue

News = tuple[str, str, int, int]
"""A cell's label, its phase, how much of that is done, and how much there is."""

Notify = Callable[[Cell, str, int, int], None]
"""Takes the news of a cell."""

_news: SimpleQueue[News]
"""In a worker of this machine: where its news go."""


@dataclass(frozen=True)
class Outcome:
    """How a cell ended: ``failure`` is empty if it did not fail; a failing disk would fail the other cells too."""

    failure: str = ""
    is_of_disk: bool = False


class Workers(Protocol):
    """Whoever runs cells: the processes of this machine, or a cluster."""

    at_once: int | None
    """How many cells are handed over before one has ended; None for all."""

    def submit(self, cell: Cell, folder: Path) -> Future[Outcome]:
        """Begin a cell, or have it wait for its turn. ``folder`` is the cell's own."""

    def news(self) -> Iterator[News]:
        """What has been heard since the last call."""

    def close(self, is_broken_off: bool) -> None:
        """Let go of the workers; stop those at work if the run is broken off."""


def execute(
    cells: Sequence[Cell], folder: Path, jobs: int, notify: Notify, cluster: str = ""
) -> list[tuple[Cell, str]]:
    """Run all cells that have no result yet; gives those that failed with the reason.

    Args:
        jobs: cells at once; 0 for one a core, or as many as the cluster takes.
        notify: hears of phases, and of the ends as phase ``done`` or ``failed``.
        cluster: ``ray`` or ``ray:ADDRESS``; this machine's processes if empty.
    """
    waiting = []
    for cell in cells:
        if (folder / cell.place / "eval.json").is_file():
            notify(cell, "done", 1, 1)
        else:
            waiting.append(cell)
    if processes.count() > 1:
        execute_together(waiting, folder, notify)
        return []
    if not waiting:
        return []
    workers: Workers
    if cluster:
        from taspo_bench.engines.ray_cluster import RayWorkers

        workers = RayWorkers(cluster, jobs)
    else:
        workers = LocalWorkers(min(jobs or os.cpu_count() or 1, len(waiting)))
    is_broken_off = True
    try:
        failures = _run_all(workers, waiting, folder, notify)
        is_broken_off = False
    finally:
        workers.close(is_broken_off)
    return failures


def _run_all(workers: Workers, waiting: Sequence[Cell], folder: Path, notify: Notify) -> list[tuple[Cell, str]]:
    failures: list[tuple[Cell, str]] = []
    by_label = {cell.label: cell for cell in waiting}
    ahead = list(waiting)
    running: dict[Future[Outcome], Cell] = {}
    while ahead or running:
        while ahead and (workers.at_once is None or len(running) < workers.at_once):
            cell = ahead.pop(0)
            running[workers.submit(cell, folder / cell.place)] = cell
        ended, _ = wait(running, timeout=0.2, return_when=FIRST_COMPLETED)
        for label, phase, done, total in workers.news():
            notify(by_label[label], phase, done, total)
        for future in ended:
            cell = running.pop(future)
            error = future.exception()
            if isinstance(error, BrokenExecutor):
                raise RunError(
                    f"{folder}: a worker was killed, perhaps for want of memory; what was finished is safe: go on "
                    f"with `taspo-bench run --resume --out {folder}`, and fewer --jobs if it was memory"
                ) from error
            outcome = Outcome(f"{type(error).__name__}: {error}") if error else future.result()
            if outcome.is_of_disk:
                raise RunError(
                    f"{folder}: {cell.label} could not be written ({outcome.failure}); what was finished is safe: "
                    f"make room, then go on with `taspo-bench run --resume --out {folder}`"
                )
            notify(cell, "failed" if outcome.failure else "done", 1, 1)
            if outcome.failure:
                failures.append((cell, outcome.failure))
    return failures


class LocalWorkers:
    """Processes of this machine. They end with the process that started them, however that ends."""

    at_once: int | None = None

    def __init__(self, count: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._news: SimpleQueue[News] = context.SimpleQueue()
        self._pool = ProcessPoolExecutor(
            count, mp_context=context, initializer=_begin_worker, initargs=(os.getpid(), self._news)
        )

    def submit(self, cell: Cell, folder: Path) -> Future[Outcome]:
        return self._pool.submit(_work, cell.config.model_dump(), str(folder), cell.label)

    def news(self) -> Iterator[News]:
        while not self._news.empty():
            yield self._news.get()

    def close(self, is_broken_off: bool) -> None:
        if is_broken_off:
            for process in list((self._pool._processes or {}).values()):
                process.terminate()
        self._pool.shutdown(wait=False, cancel_futures=True)


def execute_together(
    cells: Sequence[Cell], folder: Path, notify: Notify = lambda cell, phase, done, total: None
) -> None:
    """Run cells one after the other with all the processes that ``accelerate launch`` started at each.

    The first process says which cells; the others call this with none. A process that fails ends the run.
    """
    from taspo_bench.files import write_json
    from taspo_bench.training.cell import describe_failure, run_cell

    for cell in processes.agree(list(cells)):
        try:
            run_cell(cell.config, folder / cell.place, partial(notify, cell))
        except Exception as error:
            if processes.is_first():
                with suppress(OSError):
                    write_json(folder / cell.place / "failed.json", describe_failure(error))
            raise
        notify(cell, "done", 1, 1)


def _begin_worker(parent: int, news: SimpleQueue[News]) -> None:
    from tqdm import tqdm

    global _news
    _news = news
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    tqdm.set_lock(threading.RLock())  # its own is a semaphore that outlives a worker which is stopped
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    os.environ["TOKENIZERS_PARALLELISM"] = "false"


def _end_with(parent: int) -> None:
    """End this worker when its parent is gone, however that was killed: it must not write beside a resumed run."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def _work(config: dict[str, Any], folder: str, label: str) -> Outcome:
    return work(config, folder, label, _news.put)


def work(config: dict[str, Any], folder: str, label: str, tell: Callable[[News], object]) -> Outcome:
    """Run one cell in a worker, whose news go to ``tell``; never raises an error of the cell."""
    from taspo_bench.files import write_json
    from taspo_bench.training.cell import describe_failure, run_cell

    last = [0.0]

    def notify(phase: str, done: int, total: int) -> None:
        if done == total or time.monotonic() - last[0] > 0.5:
            last[0] = time.monotonic()
            tell((label, phase, done, total))

    try:
        with _alone(Path(folder)):
            run_cell(CellConfig(**config), Path(folder), notify)
    except Exception as error:
        if is_disk_error(error):
            return Outcome(str(error), is_of_disk=True)
        failure = describe_failure(error)
        with suppress(OSError):
            write_json(Path(folder) / "failed.json", failure)
        if not isinstance(error, TaspoBenchError):
            import traceback

            traceback.print_exc()
        return Outcome(str(failure["error"]))
    return Outcome()


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Wait until no worker of a run that was killed just now is in the cell any more."""
    folder.mkdir(parents=True, exist_ok=True)
    place = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(place, fcntl.LOCK_EX)
        yield
    finally:
        os.close(place)
