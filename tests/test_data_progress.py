"""Sizes are said before a download, on a terminal and in a log."""

from __future__ import annotations

import io

from rich.console import Console

from taspo_bench.data_progress import DataProgress


def test_a_log_says_at_once_what_begins_and_its_size() -> None:
    written = io.StringIO()
    with DataProgress(Console(file=written, width=100)) as progress:
        progress.tell("bytes to download", 0, 2_110_400_000)
        assert written.getvalue() == "bytes to download: 2,110,400,000\n"
        progress.tell("bytes to download", 1_055_200_000, 2_110_400_000)
        progress.tell("products", 10, None)
        assert written.getvalue().splitlines()[1:] == ["products"]
    assert "50% of 2,110,400,000" in written.getvalue()


def test_a_bar_shows_how_much_there_is() -> None:
    written = io.StringIO()
    with DataProgress(Console(file=written, width=100, force_terminal=True)) as progress:
        progress.tell("bytes to download", 0, 2_110_400_000)
        progress.tell("products", 1_234, None)
    assert "0% of 2,110,400,000" in written.getvalue() and "1,234" in written.getvalue()
