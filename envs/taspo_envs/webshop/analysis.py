"""Text to search terms as Lucene's English analysis makes them.

StandardTokenizer (word boundaries of Unicode's UAX #29), lower case, possessive 's removed, 33 stop words, Porter
stemming in the form that Lucene has.
"""

from __future__ import annotations

import re
from functools import lru_cache

import regex

from taspo_envs.webshop.porter import stem

STOP_WORDS = frozenset(
    """a an and are as at be but by for if in into is it no not of on or such that the their then there these they
    this to was will with""".split()  # noqa: SIM905
)
MAX_TOKEN_LENGTH = 255
POSSESSIVE = ("'s", "’s", "＇s")


_PICTOGRAPHS = (
    "\u00a9\u00ae\u203c\u2049\u2122\u2139\u2194-\u2199\u21a9\u21aa\u231a\u231b\u2328\u2388\u23cf\u23e9-\u23f3\u23f8-\u23fa\u24c2"
    "\u25aa\u25ab\u25b6\u25c0\u25fb-\u25fe\u2600-\u2605\u2607-\u2612\u2614-\u2685\u2690-\u2705\u2708-\u2712\u2714\u2716\u271d"
    "\u2721\u2728\u2733\u2734\u2744\u2747\u274c\u274e\u2753-\u2755\u2757\u2763-\u2767\u2795-\u2797\u27a1\u27b0\u27bf\u2934\u2935"
    "\u2b05-\u2b07\u2b1b\u2b1c\u2b50\u2b55\u3030\u303d\u3297\u3299\U0001f000-\U0001f0ff\U0001f10d-\U0001f10f\U0001f12f"
    "\U0001f16c-\U0001f171\U0001f17e\U0001f17f\U0001f18e\U0001f191-\U0001f19a\U0001f201-\U0001f20f\U0001f21a\U0001f22f"
    "\U0001f232-\U0001f23a\U0001f23c-\U0001f23f\U0001f249-\U0001f3fa\U0001f400-\U0001f53d\U0001f546-\U0001f64f"
    "\U0001f680-\U0001f6ff\U0001f774-\U0001f77f\U0001f7d5-\U0001f7ff\U0001f80c-\U0001f80f\U0001f900-\U0001f945"
    "\U0001f947-\U0001fffd"
)
"""Characters that Unicode 12.1 calls pictographs (Lucene 9's version); later versions took ★ and others out."""


def _words() -> regex.Pattern[str]:
    """StandardTokenizer's grammar: a run of letters, digits or katakana with what may join them, or an ideograph."""
    ext = r"[\p{WB=Extend}\p{WB=Format}\p{WB=ZWJ}]*+"
    letter = r"[\p{WB=ALetter}\p{WB=Hebrew_Letter}]" + ext
    hebrew = r"\p{WB=Hebrew_Letter}" + ext
    digit = r"\p{WB=Numeric}" + ext
    katakana = r"\p{WB=Katakana}" + ext
    joiner = r"\p{WB=ExtendNumLet}" + ext
    in_word = r"[:\p{WB=MidLetter}\p{WB=MidNumLet}\p{WB=Single_Quote}]" + ext
    in_number = r"[\p{WB=MidNum}\p{WB=MidNumLet}\p{WB=Single_Quote}]" + ext
    letters = rf"{letter}(?:(?:(?:{joiner})*|{in_word}){letter})*"
    digits = rf"{digit}(?:(?:(?:{joiner})*|{in_number}){digit})*"
    quoted = rf"{hebrew}(?:\p{{WB=Single_Quote}}{ext}|\p{{WB=Double_Quote}}{ext}{hebrew})"
    katakanas = rf"{katakana}(?:(?:{joiner})*{katakana})*"
    run = rf"(?:{katakanas}|(?:{quoted}|{digits}|{letters})+)"
    word = rf"(?:{joiner})*{run}(?:(?:{joiner})+{run})*(?:{joiner})*"
    pictograph = rf"[{_PICTOGRAPHS}]\uFE0F?[\U0001F3FB-\U0001F3FF]?"
    emoji = rf"{pictograph}(?:\u200D{pictograph})*"
    flag = r"\p{Regional_Indicator}{2}"
    return regex.compile(
        rf"{word}|\p{{LB=Complex_Context}}(?:\p{{LB=Complex_Context}}|{ext[:-2]})*|[\p{{Script=Han}}\p{{Script=Hiragana}}]{ext}"
        rf"|{flag}|{emoji}"
    )


_SIMPLE_LOWER = {ord("İ"): "i", ord("Σ"): "σ"}
"""Letters whose lower case is one letter in Java and depends on more in Python."""
_WORDS = _words()
_ASCII_RUN = r"(?:[a-z]+(?:(?:_*|[:.'])[a-z]+)*|[0-9]+(?:(?:_*|[,;.'])[0-9]+)*)+"
_ASCII_WORDS = re.compile(rf"_*{_ASCII_RUN}(?:_+{_ASCII_RUN})*_*")


def tokenize(text: str) -> list[str]:
    """Lower-cased tokens before stop words and stemming."""
    lowered = text.translate(_SIMPLE_LOWER).lower()
    pattern = _ASCII_WORDS if lowered.isascii() else _WORDS
    tokens = [match.group() for match in pattern.finditer(lowered)]
    if any(len(token) > MAX_TOKEN_LENGTH for token in tokens):
        cuts = range(0, max(map(len, tokens)), MAX_TOKEN_LENGTH)
        tokens = [token[cut : cut + MAX_TOKEN_LENGTH] for token in tokens for cut in cuts if token[cut:]]
    return tokens


@lru_cache(maxsize=1 << 17)
def term(token: str) -> str:
    """The search term of a token, or "" for a stop word."""
    if token.endswith(POSSESSIVE):
        token = token[:-2]
    return "" if token in STOP_WORDS else stem(token)


def analyze(text: str) -> list[str]:
    """Search terms of a text, in order, repeats kept."""
    return [found for token in tokenize(text) if (found := term(token))]
