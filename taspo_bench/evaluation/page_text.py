"""Text of episodes as a page holds it: cut to a bearable length, and unable to end the script that it stands in."""

from __future__ import annotations

import json

from markupsafe import Markup

TEXT_LIMIT = 1600


def cut(text: str) -> str:
    """The beginning of a long text, and how much is missing."""
    over = len(text) - TEXT_LIMIT
    return text if over <= 0 else f"{text[:TEXT_LIMIT]}\n[... {over} more characters]"


def script_json(record: object) -> Markup:
    """JSON that can stand in a script element: no character of it can end the element or open a tag."""
    text = json.dumps(record, ensure_ascii=True, separators=(",", ":"))
    return Markup(text.replace("&", r"\u0026").replace("<", r"\u003c").replace(">", r"\u003e"))
