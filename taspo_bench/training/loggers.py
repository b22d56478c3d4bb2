"""One door to other loggers: TensorBoard, Weights & Biases, trackio (extras of this package).

They get copies of what ``metrics.jsonl`` and ``eval.json`` hold, one run a cell, and are never read. A logger that
breaks down is given up with one warning; training goes on.
"""

from __future__ import annotations

import importlib.util
import io
import secrets
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from taspo_bench.config import CellConfig
from taspo_bench.errors import InputError, unknown_name
from taspo_bench.evaluation.results import SplitRecord
from taspo_bench.files import write_text


class Logger(Protocol):
    """Where figures go."""

    def write(self, step: int, figures: Mapping[str, float]) -> None:
        """Add figures, by names with slashes. ``step``: how many updates the policy has had."""

    def close(self) -> None:
        """Write out what is still held back."""


def check_loggers(names: Sequence[str]) -> None:
    """Refuse loggers that are not known or not installed, before a run begins."""
    for name in names:
        if name not in LOGGERS:
            raise unknown_name("logger (--log)", name, LOGGERS)
        if importlib.util.find_spec(name) is None:
            raise InputError(f"--log {name}: {name} is not installed; pip install 'taspo-bench[{name}]'")


class TensorBoard:
    """Event files in the folder ``tensorboard`` of the cell: ``tensorboard --logdir RUN`` shows all cells."""

    def __init__(self, config: CellConfig, folder: Path, first: int) -> None:
        from torch.utils.tensorboard import SummaryWriter

        # what an earlier try wrote from this step on is no longer shown
        self._writer = SummaryWriter(str(folder / "tensorboard"), purge_step=first)

    def write(self, step: int, figures: Mapping[str, float]) -> None:
        for name, value in figures.items():
            self._writer.add_scalar(name, value, step)
        self._writer.flush()

    def close(self) -> None:
        self._writer.close()


class WeightsAndBiases:
    """A run of the project taspo-bench, grouped by run folder; ``WANDB_MODE=offline`` keeps it on this machine."""

    def __init__(self, config: CellConfig, folder: Path, first: int) -> None:
        import wandb

        run, name = _names(folder)
        self._run = wandb.init(
            project="taspo-bench",
            group=run,
            name=name,
            id=_kept_id(folder),
            resume="allow",
            config=config.model_dump(),
            dir=folder,
            settings=wandb.Settings(silent=True, console="off"),
        )

    def write(self, step: int, figures: Mapping[str, float]) -> None:
        self._run.log(dict(figures), step=step)

    def close(self) -> None:
        self._run.finish()


class Trackio:
    """A run of the project taspo-bench in trackio's own folder (``TRACKIO_DIR``)."""

    def __init__(self, config: CellConfig, folder: Path, first: int) -> None:
        import trackio

        run, name = _names(folder)
        with redirect_stdout(io.StringIO()):  # its greeting would stand in the middle of the progress bars
            self._run = trackio.init(
                project="taspo-bench",
                group=run,
                name=name,
                resume="never" if first <= 1 else "allow",  # by name: a cell begun anew is another run
                config=config.model_dump(),
                embed=False,
                auto_log_gpu=False,
                auto_log_cpu=False,
            )

    def write(self, step: int, figures: Mapping[str, float]) -> None:
        self._run.log(dict(figures), step=step)

    def close(self) -> None:
        import trackio

        with redirect_stdout(io.StringIO()):
            trackio.finish()


LOGGERS: dict[str, Callable[[CellConfig, Path, int], Logger]] = {
    "tensorboard": TensorBoard,
    "wandb": WeightsAndBiases,
    "trackio": Trackio,
}


class CellLog:
    """The loggers of one cell, opened at the first figure; closed with the context."""

    def __init__(self, config: CellConfig, folder: Path) -> None:
        self._config = config
        self._folder = folder
        self._waiting = {name: LOGGERS[name] for name in config.log}
        self._open: dict[str, Logger] = {}

    def __enter__(self) -> CellLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for name, logger in list(self._open.items()):
            self._guard(name, logger.close)

    def update(self, done: int, metrics: Mapping[str, object]) -> None:
        """The line of metrics of update number ``done`` (from 1)."""
        self._write(done, _flat(metrics, "train"))

    def evaluation(self, records: Mapping[str, SplitRecord]) -> None:
        """The results of the trained policy by split."""
        figures = {
            f"eval/{split}/{name}": value
            for split, record in records.items()
            for name, value in (("success", record["success"]), ("score", record["score"]))
        }
        self._write(self._config.updates, figures)

    def _write(self, step: int, figures: Mapping[str, float]) -> None:
        for name, make in list(self._waiting.items()):
            del self._waiting[name]
            self._guard(name, lambda name=name, make=make: self._begin(name, make, step))  # type: ignore[misc]
        for name, logger in list(self._open.items()):
            self._guard(name, lambda logger=logger: logger.write(step, figures))  # type: ignore[misc]

    def _begin(self, name: str, make: Callable[[CellConfig, Path, int], Logger], step: int) -> None:
        self._open[name] = make(self._config, self._folder, step)

    def _guard(self, name: str, act: Callable[[], None]) -> None:
        try:
            act()
        except Exception as error:
            self._open.pop(name, None)
            reason = " ".join(str(error).split()) or type(error).__name__
            print(f"warning: --log {name} stops, the run goes on: {self._folder}: {reason}", file=sys.stderr)


def _names(folder: Path) -> tuple[str, str]:
    """The run's name and, with it in front, the cell's, of a cell's folder RUN/cells/METHOD/ENV/seed-N."""
    place = folder.resolve().parts
    run = place[-5] if len(place) > 4 else "run"
    return run, "/".join([run, *place[-3:]])


def _kept_id(folder: Path) -> str:
    """The name of a cell's run for a service, kept in its folder: the same after --resume, new after --overwrite."""
    path = folder / "wandb-id.txt"
    if not path.is_file():
        write_text(path, secrets.token_hex(8))
    return path.read_text(encoding="utf-8").strip()


def _flat(figures: Mapping[str, Any], prefix: str) -> dict[str, float]:
    flat: dict[str, float] = {}
    for name, value in figures.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}/{name}")
        elif isinstance(value, (int, float)):
            flat[f"{prefix}/{name}"] = float(value)
    return flat
