"""A table written as Markdown, LaTeX (booktabs), CSV, or for the terminal."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from taspo_bench.evaluation.summary import Summary
from taspo_bench.evaluation.table import ERRORED, FAILED, TIED, Entry, Table
from taspo_bench.evaluation.tables import gain_table, paper_table, success_table

if TYPE_CHECKING:
    from rich.console import Group
    from rich.text import Text

LATEX_SPECIAL = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    TIED: r"\textsuperscript{\dag}",
    FAILED: r"\textsuperscript{\ddag}",
    ERRORED: r"\textsuperscript{\S}",
}


def to_markdown(table: Table) -> str:
    """A heading, the table, and its note."""
    lines = [
        f"### {table.title}",
        "",
        _pipe(map(_markdown_text, table.columns)),
        _pipe("---" if column < table.labels else "---:" for column in range(len(table.columns))),
        *(_pipe(map(_markdown_entry, row)) for row in table.rows),
        "",
        table.note,
        "",
    ]
    return "\n".join(lines)


def _pipe(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _markdown_entry(entry: Entry) -> str:
    text = _markdown_text(entry.text)
    return (f"**{text}**" if entry.best else text) + entry.marks


def _markdown_text(text: str) -> str:
    return re.sub(r"([\\|*_<>`])", r"\\\1", " ".join(text.split()))


def to_latex(table: Table) -> str:
    """A table environment for booktabs; the document needs ``\\usepackage{booktabs}`` and nothing else."""
    shape = "l" * table.labels + "r" * (len(table.columns) - table.labels)
    lines = [
        r"\begin{table*}[t]",
        r"\centering",
        r"\small",
        rf"\caption{{{_latex_text(table.title)}. {_latex_text(table.note)}}}",
        rf"\label{{tab:{re.sub('[^a-z0-9]+', '-', table.name.lower())}}}",
        rf"\begin{{tabular}}{{{shape}}}",
        r"\toprule",
        " & ".join(map(_latex_text, table.columns)) + r" \\",
        r"\midrule",
        *(" & ".join(map(_latex_entry, row)) + r" \\" for row in table.rows),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table*}",
        "",
    ]
    return "\n".join(lines)


def _latex_entry(entry: Entry) -> str:
    figure, bracket, interval = entry.text.partition(" [")
    text = _latex_text(figure)
    text = (rf"\textbf{{{text}}}" if entry.best else text) + _latex_text(entry.marks)
    # the interval stands below its figure, or a table of three benchmarks would not fit a page
    return rf"\shortstack[r]{{{text}\\{{\scriptsize {_latex_text(bracket[1:] + interval)}}}}}" if bracket else text


def _latex_text(text: str) -> str:
    return "".join(LATEX_SPECIAL.get(letter, letter) for letter in " ".join(text.split()))


def to_csv(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Plain CSV of numbers at full precision."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return out.getvalue()


def terminal_table(summary: Summary, paper: bool = False) -> Group:
    """What `run` and `compare` print: success, beside the paper's if asked for, and the gain over a baseline."""
    from rich.console import Group

    tables = [success_table(summary), *([paper_table(summary)] if paper else []), gain_table(summary)]
    return Group(*(to_rich(table) for table in tables if table.rows))


def to_rich(table: Table) -> Group:
    """The table and its note for a terminal: intervals dimmed and below their figures, the best in bold.

    A table with more columns of figures than rows is turned on its side, so that it stays narrow.
    """
    from rich import box
    from rich.console import Group
    from rich.table import Table as RichTable
    from rich.text import Text

    body = [[_rich_entry(entry, label=place < table.labels) for place, entry in enumerate(row)] for row in table.rows]
    lines = [[Text(column) for column in table.columns], *body]
    labels = table.labels
    if labels == 1 and len(table.rows) < len(table.columns) - 1:
        lines = [list(line) for line in zip(*lines, strict=True)]
    shown = RichTable(title=table.title, title_justify="left", box=box.SIMPLE_HEAD)
    for place, heading in enumerate(lines[0]):
        shown.add_column(heading, justify="left" if place < labels else "right", overflow="fold")
    for line in lines[1:]:
        shown.add_row(*line)
    return Group(shown, Text(f"{table.note}\n", style="dim"))


def _rich_entry(entry: Entry, label: bool) -> Text:
    from rich.text import Text

    figure, bracket, interval = (entry.text, "", "") if label else entry.text.partition(" [")
    # "16.7..50.0" does not wrap
    lower = "\n" + interval.replace(", ", "..").replace("]", "") if bracket else ""
    return Text.assemble((figure + entry.marks, "bold" if entry.best else ""), (lower, "dim"))
