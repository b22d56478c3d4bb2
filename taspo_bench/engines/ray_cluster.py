"""Cells and shares of an evaluation as tasks of Ray: on this machine, or on a cluster that is there already.

Every machine needs the package and sees the run's folder at the same path. A task whose worker is lost is begun
again, and goes on from the cell's last checkpoint.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, as_completed
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from taspo_bench.api import Split
from taspo_bench.episode import Episode
from taspo_bench.errors import InputError
from taspo_bench.execution import News, Outcome, work
from taspo_bench.run import Cell

NAME = "ray"
TRIES_AGAIN = 3
"""How often a task whose worker was lost is begun again."""


def check(cluster: str) -> str:
    """The address in ``ray`` or ``ray:ADDRESS``; empty for an instance of our own, and where there is no cluster.

    Raises:
        InputError: another kind of cluster, nothing at the address, or Ray is not installed.
    """
    if not cluster:
        return ""
    name, _, address = cluster.partition(":")
    if name != NAME:
        raise InputError(f"--cluster {cluster}: give ray, or ray:ADDRESS (ray:auto finds the one on this machine)")
    try:
        import ray  # noqa: F401
    except ImportError as error:
        raise InputError(f"--cluster {cluster}: Ray is not installed: pip install 'taspo-bench[ray]'") from error
    address = address or os.environ.get("RAY_ADDRESS", "")
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdigit():  # Ray itself would try for two minutes
        try:
            socket.create_connection((host, int(port)), timeout=10).close()
        except OSError as error:
            raise _nobody_at(cluster, str(error)) from error
    return address


def connect(cluster: str, cpus: int) -> None:
    """Join the cluster, or start an instance on this machine that offers so many processors.

    Raises:
        InputError: nothing answers at the address.
    """
    address = check(cluster)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    import ray

    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "error"}
    if not address:
        ray.init("local", num_cpus=cpus, include_dashboard=False, _node_ip_address="127.0.0.1", **quiet)
        return
    try:
        ray.init(address, **quiet)
    except (ConnectionError, ValueError) as error:
        raise _nobody_at(cluster, str(error).strip().partition("\n")[0]) from error


def _nobody_at(cluster: str, reason: str) -> InputError:
    return InputError(
        f"--cluster {cluster}: no Ray cluster answers there ({reason}); start one with `ray start --head`, or leave "
        "the address away to use this machine"
    )


class RayWorkers:
    """Cells as tasks of Ray; see :class:`taspo_bench.execution.Workers`."""

    def __init__(self, cluster: str, jobs: int) -> None:
        connect(cluster, max(jobs, os.cpu_count() or 1))
        from ray.util.queue import Queue

        self.at_once = jobs or None
        self._heard = Queue(actor_options={"num_cpus": 0})
        self._references: dict[Future[Outcome], Any] = {}

    def submit(self, cell: Cell, folder: Path) -> Future[Outcome]:
        config = cell.config
        resources = {"num_cpus": config.threads, "num_gpus": config.cell_gpus, "memory": config.cell_memory * 10**9}
        _refuse_impossible(cell.label, resources)
        task = _task(_run_cell, cell.label, resources)
        reference = task.remote(config.model_dump(), str(folder.resolve()), cell.label, os.getcwd(), self._heard)
        future: Future[Outcome] = reference.future()
        self._references[future] = reference
        return future

    def news(self) -> Iterator[News]:
        from ray.exceptions import RayError

        with suppress(RayError):  # where the news are lost, the results still come
            if waiting := self._heard.qsize():
                yield from self._heard.get_nowait_batch(waiting)

    def close(self, is_broken_off: bool) -> None:
        import ray

        if is_broken_off:
            for future, reference in self._references.items():
                if not future.done():
                    ray.cancel(reference, force=True)
        ray.shutdown()


def evaluate_shares(
    cluster: str,
    play: Callable[[Split], list[Episode]],
    split: Split,
    batch: int,
    resources: Mapping[str, float],
    progress: Callable[[int], None],
) -> list[Episode]:
    """Play a split as tasks of Ray that each take a batch of it.

    Args:
        play: plays the tasks of a split; it is sent to the workers.
        batch: tasks that a policy plays side by side anyway, so that the shares change nothing in the numbers.

    Returns:
        The episodes in the split's order.
    """
    import ray

    if not ray.is_initialized():
        connect(cluster, os.cpu_count() or 1)
    _refuse_impossible(split.name, resources)
    shares = [split.task_ids[first : first + batch] for first in range(0, len(split), batch)]
    futures: list[Future[list[Episode]]] = []
    for place, share in enumerate(shares):
        task = _task(_play_share, f"{split.name} share {place + 1} of {len(shares)}", resources)
        futures.append(task.remote(play, Split(split.name, split.kind, share), os.getcwd()).future())
    for ended in as_completed(futures):
        progress(len(ended.result()))
    return [episode for future in futures for episode in future.result()]


def _task(function: Callable[..., object], name: str, resources: Mapping[str, float]) -> Any:
    import ray

    return ray.remote(function).options(name=name, max_retries=TRIES_AGAIN, **resources)


def _refuse_impossible(name: str, resources: Mapping[str, float]) -> None:
    """Ray would wait for ever for what no machine has."""
    import ray

    offered = ray.cluster_resources()
    for key, known in {"num_cpus": "CPU", "num_gpus": "GPU", "memory": "memory"}.items():
        if resources.get(key, 0) > offered.get(known, 0):
            raise InputError(
                f"{name}: asks for {resources[key]:g} of {known}, the cluster has {offered.get(known, 0):g} in all; "
                "ask for less with --set threads, cell_gpus or cell_memory"
            )


def _enter(folder: str) -> None:
    """Be where the command was given, so that relative paths mean the same."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    with suppress(OSError):
        os.chdir(folder)


def _run_cell(config: dict[str, Any], folder: str, label: str, begun_in: str, heard: Any) -> Outcome:
    _enter(begun_in)
    return work(config, folder, label, partial(_tell, heard))


def _tell(heard: Any, news: News) -> None:
    from ray.exceptions import RayError

    with suppress(RayError):
        heard.put(news)


def _play_share(play: Callable[[Split], list[Episode]], share: Split, begun_in: str) -> Sequence[Episode]:
    _enter(begun_in)
    return play(share)
