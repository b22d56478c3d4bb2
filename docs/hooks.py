"""Hooks of the site.

A line ``<!-- insert: results/FILE -->`` becomes the contents of a Markdown file below the repository, or the picture,
so that no figure is typed in twice; headings of the file go below the one that it stands under. While the file is not
there, a note says so. The roles of docstrings, such as ``:class:``, are left away.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

MARK = re.compile(r"^<!-- insert: (results/[\w./-]+) -->$", re.MULTILINE)
TITLE = re.compile(r"\A# .*\n+")
HEADING = re.compile(r"^(#+)(?= )", re.MULTILINE)
FENCED = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
PICTURES = (".png", ".svg")
ROLE = re.compile(r":(?:class|meth|func|mod):(?=<code>)")


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Any) -> str:
    """The page with every mark replaced."""
    root = Path(config["config_file_path"]).parent
    up = "../" * page.url.count("/")

    def inserted(match: re.Match[str]) -> str:
        path = root / match[1]
        if not path.is_file():
            return f'!!! note "Not published yet"\n    `{match[1]}` will stand here.\n'
        if path.suffix not in PICTURES:
            text = TITLE.sub("", path.read_text(encoding="utf-8"))  # the page has one of its own
            above = HEADING.findall(markdown[: match.start()])
            return lowered(text, len(above[-1]) if above else 0)
        target = Path(config["site_dir"]) / match[1]
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
        return f'<img src="{up}{match[1]}" alt="{path.stem}">'

    return MARK.sub(inserted, markdown)


def lowered(markdown: str, level: int) -> str:
    """The text with its highest heading one below a level, and the others as far below that as they were."""
    parts = FENCED.split(markdown)  # prose stands in the even places
    marks = [len(mark) for part in parts[::2] for mark in HEADING.findall(part)]
    more = "#" * max(0, level + 1 - min(marks, default=level + 1))
    parts[::2] = [HEADING.sub(rf"\1{more}", part) for part in parts[::2]]
    return "".join(parts)


def on_page_content(html: str, *, page: Any, config: Any, files: Any) -> str:
    """The page without the roles that docstrings put before names."""
    return ROLE.sub("", html)
