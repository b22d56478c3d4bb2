"""Hooks of the site.

A line ``<!-- insert: results/FILE -->`` becomes the contents of a Markdown file below the repository, or the picture,
so that no figure is typed in twice; while the file is not there, a note says so. The roles of docstrings, such as
``:class:``, are left away.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

MARK = re.compile(r"^<!-- insert: (results/[\w./-]+) -->$", re.MULTILINE)
TITLE = re.compile(r"\A# .*\n+")
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
            return TITLE.sub("", path.read_text(encoding="utf-8"))  # the page has one of its own
        target = Path(config["site_dir"]) / match[1]
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
        return f'<img src="{up}{match[1]}" alt="{path.stem}">'

    return MARK.sub(inserted, markdown)


def on_page_content(html: str, *, page: Any, config: Any, files: Any) -> str:
    """The page without the roles that docstrings put before names."""
    return ROLE.sub("", html)
