"""The boards as files: Markdown, CSV, RSS 2.0 and JSON Feed 1.1."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Sequence
from xml.sax.saxutils import escape

from taspo_bench.evaluation.statistics import Estimate
from taspo_bench.leaderboard.board import Board, Entry, Row

TITLE = "taspo-bench leaderboard"
NONE = "-"


def percent(estimate: Estimate | None) -> str:
    """``61.3 [58.0, 64.5]``, or a dash."""
    if estimate is None:
        return NONE
    return f"{100 * estimate.value:.1f} [{100 * estimate.low:.1f}, {100 * estimate.high:.1f}]"


def rank(row: Row) -> str:
    """``=2`` for a shared rank; a dash outside the ranking."""
    return NONE if row.rank is None else f"={row.rank}" if row.tied else str(row.rank)


def count(number: int | None) -> str:
    """With thin grouping, or a dash where it is not declared."""
    return NONE if number is None else f"{number:,}"


def markdown(boards: Sequence[Board]) -> str:
    """leaderboard.md. Text of submissions is escaped, so that it stays text in any renderer."""
    parts = [f"# {TITLE}", "Success in percent with 95 % intervals. `=`: the difference is not told apart from 0."]
    for board in boards:
        rows = [
            (
                rank(row),
                _escape_markdown(row.entry.manifest.name) + ("" if row.entry.manifest.ranked else " (reference)"),
                _escape_markdown(row.entry.manifest.method),
                _escape_markdown(row.entry.manifest.base_model),
                percent(row.unseen),
                percent(row.seen),
                count(row.environment_steps),
                "; ".join(row.notes),
            )
            for row in board.rows
        ]
        head = ("rank", "submission", "method", "base model", "unseen", "seen", "environment steps", "notes")
        lines = [head, ("---",) * len(head), *rows]
        parts.append(f"## {_escape_markdown(board.name)}")
        parts.append("\n".join(f"| {' | '.join(line)} |" for line in lines))
    return "\n\n".join(parts) + "\n"


def _escape_markdown(text: str) -> str:
    return re.sub(r"([\\`*_{}\[\]()#+!|<>&~:@-])", lambda match: f"&#{ord(match[0])};", text)


def table_csv(boards: Sequence[Board]) -> str:
    """leaderboard.csv: one line per board and submission, shares in [0, 1]."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    figures = [f"{kind}{part}" for kind in ("unseen", "seen") for part in ("", "_low", "_high")]
    names = ["submission", "method", "base_model", "parameters_trained", "seeds"]
    budget = ["environment_steps", "response_tokens", "notes", "archive_sha256"]
    writer.writerow(["board", "rank", "tied", "ranked", *names, *figures, *budget])
    for board in boards:
        for row in board.rows:
            manifest = row.entry.manifest
            writer.writerow(
                [_text_cell(board.name), row.rank, row.tied, manifest.ranked]
                + [_text_cell(text) for text in (manifest.name, manifest.method, manifest.base_model)]
                + [manifest.parameters_trained, len(manifest.seeds)]
                + [*_figures(row.unseen), *_figures(row.seen), row.environment_steps, row.response_tokens]
                + ["; ".join(row.notes), row.entry.verdict.archive_sha256]
            )
    return file.getvalue()


def _figures(estimate: Estimate | None) -> list[float | None]:
    if estimate is None:
        return [None] * 3
    return [round(value, 6) for value in (estimate.value, estimate.low, estimate.high)]


def _text_cell(text: str) -> str:
    # a spreadsheet would run a cell that begins like a formula
    return f"'{text}" if text.lstrip().startswith(("=", "+", "-", "@")) else text


def _summary(entry: Entry) -> str:
    splits = [
        f"{env} {name} {100 * split.success:.1f} %"
        for env, benchmark in entry.verdict.benchmarks.items()
        for name, split in benchmark.splits.items()
    ]
    return f"{entry.manifest.method}, {entry.manifest.base_model}: {', '.join(splits)}"


def rss(entries: Sequence[Entry], url: str) -> str:
    """feed.xml. It has no dates: a site built again from the same submissions is the same, byte by byte."""
    items = "".join(
        f"<item><title>{escape(entry.manifest.name)}</title>"
        f"<link>{escape(url)}submissions/{entry.key}.html</link>"
        f'<guid isPermaLink="false">sha256:{entry.verdict.archive_sha256}</guid>'
        f"<description>{escape(escape(_summary(entry)))}</description></item>\n"
        for entry in entries
    )
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n<rss version="2.0"><channel>\n'
        f"<title>{TITLE}</title><link>{escape(url)}index.html</link>"
        f"<description>Submissions verified by replay.</description>\n{items}</channel></rss>\n"
    )


def json_feed(entries: Sequence[Entry], url: str) -> str:
    """feed.json (JSON Feed 1.1)."""
    feed = {
        "version": "https://jsonfeed.org/version/1.1",
        "title": TITLE,
        "home_page_url": f"{url}index.html",
        "items": [
            {
                "id": f"sha256:{entry.verdict.archive_sha256}",
                "url": f"{url}submissions/{entry.key}.html",
                "title": entry.manifest.name,
                "content_text": _summary(entry),
            }
            for entry in entries
        ],
    }
    return json.dumps(feed, indent=1, ensure_ascii=True) + "\n"
