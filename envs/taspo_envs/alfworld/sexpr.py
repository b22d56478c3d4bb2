"""Reading PDDL text as nested lists of lower-case words."""

from __future__ import annotations

import re

from taspo_bench.errors import DataError

Expr = str | list["Expr"]
_TOKEN = re.compile(r"[()]|[^\s();]+|;[^\n]*")


def parse(text: str) -> list[Expr]:
    """All top-level expressions of ``text``; comments are dropped, words are lower-cased (PDDL ignores case)."""
    top: list[Expr] = []
    open_lists = [top]
    for token in _TOKEN.findall(text.lower()):
        if token == "(":
            inner: list[Expr] = []
            open_lists[-1].append(inner)
            open_lists.append(inner)
        elif token == ")":
            open_lists.pop()
            if not open_lists:
                raise DataError("PDDL text closes more brackets than it opens: the file is broken")
        elif token[0] != ";":
            open_lists[-1].append(token)
    if len(open_lists) != 1:
        raise DataError(f"PDDL text leaves {len(open_lists) - 1} brackets open: the file is cut short")
    return top


def typed_names(words: list[Expr]) -> list[tuple[str, str]]:
    """``a b - t c - u`` as [(a, t), (b, t), (c, u)]; names without a type get ``object``."""
    typed: list[tuple[str, str]] = []
    waiting: list[str] = []
    stream = iter(words)
    for word in stream:
        if not isinstance(word, str):
            raise DataError(f"PDDL names expected, found {word!r}: the file is broken")
        if word == "-":
            kind = next(stream, "object")
            typed += [(name, str(kind)) for name in waiting]
            waiting = []
        else:
            waiting.append(word)
    return typed + [(name, "object") for name in waiting]
