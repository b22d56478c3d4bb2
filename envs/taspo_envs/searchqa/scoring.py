"""Scores of an answer: exact match as the field's scorer has it, with token F1 and containment beside it.

Source of the rules: SQuAD's normalisation as Search-R1 and AgentGym apply it (qa_em.py). Punctuation is deleted, not
replaced by a blank, and only ASCII punctuation counts; articles go after punctuation. One deviation: a prediction
that is empty after normalising never scores.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterable, Sequence

_ARTICLE = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ANSWER = re.compile(r"<answer>(.*?)</answer>", re.DOTALL)


def normalise(text: str) -> str:
    """Lower case, ASCII punctuation deleted, articles deleted, blanks collapsed."""
    bare = text.lower().translate(_NO_PUNCTUATION)
    return " ".join(_ARTICLE.sub(" ", bare).split())


def _forms(golds: str | Iterable[str]) -> list[str]:
    return [normalise(gold) for gold in ([golds] if isinstance(golds, str) else golds)]


def exact_match(prediction: str, golds: str | Iterable[str]) -> bool:
    """Whether the prediction equals one of the gold answers (a string, or several) after normalising."""
    form = normalise(prediction)
    return form != "" and form in _forms(golds)


def contains_gold(prediction: str, golds: str | Iterable[str]) -> bool:
    """Whether a gold answer stands in the prediction after normalising (the field's ``subem``)."""
    form = normalise(prediction)
    return form != "" and any(gold in form for gold in _forms(golds))


def token_f1(prediction: str, golds: str | Iterable[str]) -> float:
    """Best F1 of normalised words over the gold answers, in [0, 1]."""
    words = normalise(prediction).split()
    return max((_f1(words, form.split()) for form in _forms(golds)), default=0.0) if words else 0.0


def _f1(words: Sequence[str], gold: Sequence[str]) -> float:
    common = sum((Counter(words) & Counter(gold)).values())
    return 2 * common / (len(words) + len(gold)) if common else 0.0


def extract_answer(completion: str) -> str | None:
    """The last complete ``<answer>..</answer>`` of a completion, stripped; None if there is none."""
    found = _ANSWER.findall(completion)
    return found[-1].strip() if found else None


def answers_stand_in(text: str, golds: Iterable[str]) -> bool:
    """Whether a gold answer stands in a text as whole words, both normalised: what a reader could find there."""
    padded = f" {normalise(text)} "
    return any(form and f" {form} " in padded for form in _forms(golds))
