"""A table written as Markdown, LaTeX (booktabs), CSV, or for the terminal."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from taspo_bench.evaluation.table import FAILED, TIED, Entry, Table

if TYPE_CHECKING:
    from rich.table import Table as RichTable

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


def to_rich(table: Table) -> RichTable:
    """The table for a terminal: intervals dimmed and below their figures, the best in bold."""
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    shown = RichTable(title=table.title, caption=table.note, box=box.SIMPLE_HEAD, caption_justify="left")
    for column, heading in enumerate(table.columns):
        label = column < table.labels
        longest = max((len(word) for row in table.rows for word in row[column].text.split()), default=0)
        shown.add_column(Text(heading), justify="left" if label else "right", min_width=min(longest, 24))
    for row in table.rows:
        cells = []
        for column, entry in enumerate(row):
            label, style = column < table.labels, "bold" if entry.best else ""
            figure, bracket, interval = (entry.text, "", "") if label else entry.text.partition(" [")
            # "16.7..50.0" does not wrap: three benchmarks fit a terminal of 110 columns
            lower = "\n" + interval.replace(", ", "..").replace("]", "") if bracket else ""
            cells.append(Text.assemble((figure + entry.marks, style), (lower, "dim")))
        shown.add_row(*cells)
    return shown
