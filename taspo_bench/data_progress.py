"""Progress of building or fetching data: a bar for each thing that is worked on."""

from __future__ import annotations

from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn


class DataProgress:
    """A context in which :meth:`tell` takes the news."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[amount]}"),
            TimeElapsedColumn(),
            console=console,
        )
        self._bars: dict[str, TaskID] = {}

    def __enter__(self) -> DataProgress:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def tell(self, what: str, done: int, total: int | None) -> None:
        """So much of a thing is done. Where no bar can be drawn, a line says at once that it begins, and its size."""
        amount = f"{done:,}" if total is None else f"{done / max(total, 1):.0%} of {total:,}"
        if what not in self._bars:
            self._bars[what] = self._progress.add_task(what, total=total, amount=amount)
            if not self._console.is_terminal:
                line = what if total is None else f"{what}: {total:,}"
                self._console.print(line, highlight=False, markup=False, soft_wrap=True)
        self._progress.update(self._bars[what], completed=done, total=total, amount=amount)
