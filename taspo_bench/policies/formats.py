"""How text becomes tokens: observations, guidance and the executable action of a response."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from tokenizers import Tokenizer


class Format(Protocol):
    """Turns text of the environment into token ids, and sampled ids into an action.

    Ids once made are never made again: the context of a turn is the previous ids, the response's ids, and the ids of
    the new observation.
    """

    stop_id: int
    max_response_tokens: int
    cue_tokens: int
    """How many of a prompt's last ids ask for the response; turn guidance stands before them."""
    head_tokens: int
    """How many of the first prompt's first ids open the conversation; trajectory guidance stands behind them."""
    window: int | None
    """None where the context grows over an episode; else each turn is a prompt of its own with so many past turns."""
    instruction: str
    """How to answer, said at the end of a prompt with a window."""

    def observe(self, observation: str, is_first: bool) -> list[int]:
        """Ids appended for a new observation, up to and including the cue for a response."""

    def guide(self, text: str) -> list[int]:
        """Ids of privileged text."""

    def ends(self, ids: list[int]) -> bool:
        """Whether a response that has been sampled up to here is over; ``stop_id`` always ends it."""

    def parse(self, ids: list[int], sampled: int) -> tuple[str, str, tuple[int, int] | None]:
        """Response text, executable action, and the action's span in ``ids`` (None if there is no action)."""


@runtime_checkable
class Converses(Format, Protocol):
    """A format of models that also answer questions, apart from any episode."""

    def ask(self, question: str) -> list[int]:
        """Ids of a conversation that begins with this question, up to and including the cue for its answer."""


class LineFormat:
    """The format of the tiny policy: ``<obs> observation <act> action <end>``, guidance as ``<hint> text``.

    A response is the bare action, so the action span is the whole of it, with the sampled end token and without a
    forced one (``sampled``).
    """

    SPECIAL = ("<obs>", "<act>", "<end>", "<hint>")
    cue_tokens = 1
    head_tokens = 0
    window: int | None = None
    instruction = ""

    def __init__(self, tokenizer: Tokenizer, max_response_tokens: int = 32) -> None:
        self.tokenizer = tokenizer
        self.max_response_tokens = max_response_tokens
        self._obs, self._act, self.stop_id, self._hint = (self._special(token) for token in self.SPECIAL)

    def _special(self, token: str) -> int:
        token_id = self.tokenizer.token_to_id(token)
        assert token_id is not None, f"the tokenizer lacks {token}"
        return int(token_id)

    def encode(self, text: str) -> list[int]:
        """Ids of plain text; markers of the format inside it stay plain text."""
        return list(self.tokenizer.encode(text, add_special_tokens=False).ids)

    def observe(self, observation: str, is_first: bool) -> list[int]:
        return [self._obs, *self.encode(observation), self._act]

    def guide(self, text: str) -> list[int]:
        return [self._hint, *self.encode(text)]

    def respond(self, action: str) -> list[int]:
        """Ids of a response that takes this action (for supervised learning)."""
        return [*self.encode(action), self.stop_id]

    def ends(self, ids: list[int]) -> bool:
        return ids[-1] == self.stop_id

    def parse(self, ids: list[int], sampled: int) -> tuple[str, str, tuple[int, int] | None]:
        text = self.tokenizer.decode(ids, skip_special_tokens=True)
        return text, text.strip(), (0, sampled) if sampled and text.strip() else None
