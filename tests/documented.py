"""The code blocks of the README and the documentation, and what the command line says of their commands.

A block is run by the tests. One that cannot be run everywhere has ``<!-- only parsed: REASON -->`` on the line before
it: its commands are then held against the command line's own options, as all others are too.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
FENCE = re.compile(
    r"(?:^<!-- only parsed: (?P<reason>[^\n]+?) -->\n)?^```(?P<language>\w+)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
SHELL = ("sh", "bash", "console")
END_OF_COMMAND = re.compile(r"\s(?:;|\||&&|#)(?:\s|$)|;(?:\s|$)")


@dataclass(frozen=True)
class Block:
    """One fenced block. ``reason`` says why it is only parsed; "" if it is run."""

    document: str
    line: int
    language: str
    text: str
    reason: str

    @property
    def place(self) -> str:
        return f"{self.document}:{self.line}"

    @property
    def script(self) -> str:
        """What a shell is to be given: without prompts and their output."""
        if self.language != "console":
            return self.text
        lines = self.text.replace("\\\n", "\\\0").splitlines()
        return "\n".join(line[2:].replace("\\\0", "\\\n") for line in lines if line.startswith("$ "))

    @property
    def commands(self) -> list[list[str]]:
        """Each ``taspo-bench``, ``make`` and ``pip`` command as words; variables of the shell stand for 0."""
        joined = re.sub(r"\$(?:\{[^}]*\}|\w+)", "0", self.script.replace("\\\n", " "))
        found = []
        for line in joined.splitlines():
            for start in re.finditer(r"(?:^|[\s/])((?:taspo-bench|make|pip) )", line):
                rest = line[start.start(1) :]
                end = END_OF_COMMAND.search(rest)
                found.append(shlex.split(rest[: end.start()] if end else rest))
        return found


def documents() -> list[Path]:
    """README, CONTRIBUTING and every page of the documentation."""
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks() -> list[Block]:
    """All fenced blocks with a language, in the order in which a reader meets them."""
    found = []
    for path in documents():
        text = path.read_text(encoding="utf-8")
        for match in FENCE.finditer(text):
            line = text.count("\n", 0, match.start("language")) + 1
            name = str(path.relative_to(ROOT))
            found.append(Block(name, line, match["language"], match["text"], match["reason"] or ""))
    return found
