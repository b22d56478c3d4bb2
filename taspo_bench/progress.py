"""Progress of a run in the terminal: one bar a cell at work, one for all, with the time that remains."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import TimeRemainingColumn as TimeLeftColumn

from taspo_bench.run import Cell


class RunProgress:
    """A context in which :meth:`notify` takes the news of the cells."""

    def __init__(self, console: Console, cells: Sequence[Cell]) -> None:
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeLeftColumn(),
            console=console,
        )
        self._all = self._progress.add_task("cells", total=len(cells))
        self._bars: dict[str, TaskID] = {}

    def __enter__(self) -> RunProgress:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def notify(self, cell: Cell, phase: str, done: int, total: int) -> None:
        """News of a cell: a phase with its progress, or its end (phase ``done`` or ``failed``)."""
        if phase in ("done", "failed"):
            if (bar := self._bars.pop(cell.label, None)) is not None:
                self._progress.remove_task(bar)
            self._progress.advance(self._all)
            self._progress.console.print(f"{phase}: {cell.label}", highlight=False)
            return
        description = f"{cell.label}: {phase}"
        if cell.label not in self._bars:
            self._bars[cell.label] = self._progress.add_task(description, total=total)
        bar = self._bars[cell.label]
        if self._progress.tasks[self._progress.task_ids.index(bar)].description != description:
            self._progress.reset(bar, description=description, total=total)
        self._progress.update(bar, completed=done)
