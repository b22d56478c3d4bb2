"""Whether a text says a phrase, as advice asks of what an agent has met."""

from __future__ import annotations


def has_phrase(text: str, phrase: str) -> bool:
    """Whether a phrase stands in a text as whole words: ``box 1`` is not in ``tissuebox 1``, nor in ``box 12``."""
    start = text.find(phrase)
    while start >= 0:
        stop = start + len(phrase)
        before, after = text[start - 1 : start] + phrase[:1], phrase[-1:] + text[stop : stop + 1]
        if not any(len(pair) == 2 and pair.isalnum() for pair in (before, after)):
            return True
        start = text.find(phrase, start + 1)
    return False
