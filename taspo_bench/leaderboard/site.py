"""The static site of a leaderboard, made from archives that are verified while it is made.

Nothing of a submission is shown that was not replayed or is not marked as declared. All text goes through
jinja2's autoescape, data for scripts through JSON without markup, and a content security policy by hash lets no
script run but the site's own.
"""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from taspo_bench.errors import DataError, InputError
from taspo_bench.evaluation.page_text import script_json
from taspo_bench.leaderboard.board import OVERALL, Board, Entry, as_said, boards
from taspo_bench.leaderboard.budget_plot import budget_plot
from taspo_bench.leaderboard.listings import TITLE, count, json_feed, markdown, percent, rank, rss, table_csv
from taspo_bench.leaderboard.replay_sample import ReplaySample
from taspo_bench.leaderboard.slug import slug
from taspo_bench.leaderboard.verdict import as_json, board_name
from taspo_bench.leaderboard.verify import MALFORMED, VERIFIED, Verdict, verify

MARK = "leaderboard.csv"
"""A folder that holds this file was written by :func:`build_site`, and may be replaced by it."""


@dataclass(frozen=True)
class Built:
    """What was built; ``left_out`` says of each archive that is not on the site why."""

    out: Path
    submissions: int
    left_out: dict[str, str]


def build_site(folder: Path, out: Path, data: str = "official", url: str = "") -> Built:
    """Verify every ``*.tar.gz`` of a folder and write the site of those that are true; whole, or not at all.

    Args:
        out: the site's folder; one that this function wrote before is replaced.
        data: as for :func:`taspo_bench.leaderboard.verify.verify`.
        url: address that the feeds put in front of their links.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; name the one that holds the submissions")
    if url and not url.startswith("https://"):
        raise InputError(f"--url {url}: give an https:// address")
    if out.exists() and not (out.is_dir() and ((out / MARK).is_file() or not any(out.iterdir()))):
        raise InputError(f"--out {out}: holds something that is no leaderboard's; name another folder")
    entries, left_out = _entries(folder, data)
    files = render(entries, f"{url.rstrip('/')}/" if url else "")
    _write(out, files)
    return Built(out, len(entries), left_out)


def _entries(folder: Path, data: str) -> tuple[list[Entry], dict[str, str]]:
    entries: dict[str, Entry] = {}
    left_out: dict[str, str] = {}
    for archive in sorted(folder.glob("*.tar.gz")):
        sample = ReplaySample()
        try:
            verdict = verify(archive, data, sample)
        except DataError as error:
            left_out[archive.name] = f"cannot be verified here: {error}"
            continue
        if verdict.verdict != VERIFIED or verdict.manifest is None:
            left_out[archive.name] = _reason(verdict)
            continue
        key = f"{slug(verdict.manifest.name)}-{verdict.archive_sha256[:8]}"
        if key in entries:
            left_out[archive.name] = f"the same submission as {entries[key].verdict.archive}"
            continue
        entries[key] = Entry(key, verdict.manifest, verdict, tuple(sample.episodes))
    return list(entries.values()), left_out


def _reason(verdict: Verdict) -> str:
    if verdict.verdict == MALFORMED:
        return f"malformed: {verdict.malformed}"
    more = f" (and {verdict.problem_count - 1} more)" if verdict.problem_count > 1 else ""
    return f"{verdict.problems[0]}{more}"


def _write(out: Path, files: dict[str, str]) -> None:
    temporary = out.with_name(out.name + ".tmp")
    try:
        shutil.rmtree(temporary, ignore_errors=True)
        (temporary / "submissions").mkdir(parents=True)
        for name, text in files.items():
            (temporary / name).write_text(text, encoding="utf-8")
        if out.exists():
            shutil.rmtree(out)
        os.replace(temporary, out)
    except OSError as error:
        raise InputError(f"--out {out}: cannot write there ({error.strerror}); name another folder") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def render(entries: Sequence[Entry], url: str = "") -> dict[str, str]:
    """All files of the site by their names."""
    made = boards(entries)
    page = _Pages()
    files = {
        "index.html": page("index.html.jinja", "", boards=[_board(board) for board in made], entries=entries),
        "rules.html": page("rules.html.jinja", ""),
        "leaderboard.md": markdown(made),
        "leaderboard.csv": table_csv(made),
        "feed.xml": rss(entries, url),
        "feed.json": json_feed(entries, url),
    }
    for entry in entries:
        places = {board.name: row for board in made for row in board.rows if row.entry.key == entry.key}
        files[f"submissions/{entry.key}.html"] = page(
            "submission.html.jinja",
            "../",
            entry=entry,
            manifest=entry.manifest,
            verdict=entry.verdict,
            signature=as_json(entry.verdict)["sha256"],
            places=places,
            benchmarks=[_benchmark(entry, env) for env in entry.verdict.benchmarks],
            episodes=script_json([asdict(episode) for episode in entry.episodes]),
        )
    return files


class _Pages:
    """Renders templates, each with the site's style and scripts set in and allowed by their hashes."""

    def __init__(self) -> None:
        self.environment = Environment(
            loader=PackageLoader("taspo_bench.leaderboard", "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self.environment.filters.update(percent=percent, rank=rank, count=count, as_said=as_said)
        folder = resources.files("taspo_bench.leaderboard") / "templates"
        self.sources = {
            name: (folder / name).read_text(encoding="utf-8") for name in ("site.css", "boards.js", "replay.js")
        }

    def __call__(self, template: str, root: str, **values: Any) -> str:
        return self.environment.get_template(template).render(
            title=TITLE,
            root=root,
            source={name: Markup(text) for name, text in self.sources.items()},
            hashes={name: _csp_hash(text) for name, text in self.sources.items()},
            **values,
        )


def _csp_hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _board(board: Board) -> dict[str, Any]:
    return {
        "id": slug(board.name),
        "name": board.name,
        "overall": board.name.startswith(OVERALL),
        "ranked_by": board.ranked_by,
        "rows": board.rows,
        "parts": list(dict.fromkeys(part for row in board.rows for part in row.parts)),
        "plot": budget_plot(board),
    }


def _benchmark(entry: Entry, env: str) -> dict[str, Any]:
    """One benchmark of a submission for its page: splits, and success by family over all seeds."""
    benchmark = entry.verdict.benchmarks[env]
    families: dict[str, dict[str, float]] = {}
    sizes: dict[str, int] = {}
    for name, split in benchmark.splits.items():
        for record in split.seeds.values():
            for family, result in record["families"].items():
                by_split = families.setdefault(family, {})
                by_split[name] = by_split.get(name, 0.0) + result["success"] / len(split.seeds)
                sizes[family] = max(sizes.get(family, 0), result["n"])
    return {
        "env": env,
        "board": board_name(env, benchmark.data),
        "verified": benchmark,
        "declared": entry.manifest.benchmarks[env],
        "families": dict(sorted(families.items())),
        "sizes": sizes,
    }
