"""Conversations by a tokenizer's own chat template, in token ids that are made once and then carried.

The template is read once, through conversations of placeholders: what stands before the first message, between two
turns, and before a reply. An observation is encoded by itself and set between these pieces, so that earlier ids are
never made again, and text of an observation cannot forge the end of a turn.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable

from transformers import PreTrainedTokenizerFast

from taspo_bench.errors import InputError
from taspo_bench.policies.window import INSTRUCTIONS, MAX_ACTION, Style, find_action, is_complete

_CLOSING = re.compile(r"</(action|search|answer)>")
_CLOSING_TOKENS = 12  # a closing tag never takes more, whatever the vocabulary
_DATE = "26 Jul 2024"  # for templates that would write today's into the prompt


class ChatFormat:
    """A :class:`~taspo_bench.policies.formats.Format` of chat models.

    Args:
        tokenizer: with a chat template.
        briefing: the benchmark's rules, said once before the first observation.
        style: ``bare`` responses are the action alone, on one line; ``think`` ones reason and then put the action
            between tags. Templates that can switch a model's own reasoning on or off are told which.
        window: None for one conversation an episode; else each turn is a prompt of its own with the last so many
            turns in it.
        keep_reasoning: let earlier turns stay as they were sampled where the template would write them otherwise.
        stop_ids: further tokens that end a response, such as the model's own end of text.

    Raises:
        InputError: no chat template; one whose replies end with no special token; one that writes earlier turns
            otherwise than they were sampled, unless ``keep_reasoning`` or ``window`` is given.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerFast,
        briefing: str = "",
        style: Style = "bare",
        window: int | None = None,
        max_response_tokens: int = 32,
        keep_reasoning: bool = False,
        stop_ids: Iterable[int] = (),
    ) -> None:
        self.tokenizer = tokenizer
        self.briefing = briefing
        self.style = style
        self.window = window
        self.max_response_tokens = max_response_tokens
        self.instruction = INSTRUCTIONS[style]
        self._name = f"chat template of {tokenizer.name_or_path or type(tokenizer).__name__}"
        self._backend = tokenizer.backend_tokenizer
        self._backend.encode_special_tokens = True
        self._specials = {
            str(token): place for place, token in tokenizer.added_tokens_decoder.items() if token.special
        }
        head, cue, between = self._glue()
        if window is None and not keep_reasoning:
            self._check_history(head, cue, between)
        after_reply = self._pieces(between)
        first = next(iter(after_reply), None)
        if not isinstance(first, int):
            raise InputError(f"{self._name}: a reply ends with no special token; use another model")
        self.stop_id = first
        self._stops = {first, *stop_ids}
        self._head, self._cue = self._ids(self._pieces(head)), self._ids(self._pieces(cue))
        self._between = self._ids(after_reply[1:])
        self.head_tokens, self.cue_tokens = len(self._head), len(self._cue)
        self._reasoning = "<think>" if cue.rstrip().endswith("<think>") else ""

    def _render(self, *contents: str) -> str:
        """The conversation of these messages, the user's first, up to the cue for a reply."""
        roles = ("user", "assistant")
        messages = [{"role": roles[place % 2], "content": text} for place, text in enumerate(contents)]
        return str(
            self.tokenizer.apply_chat_template(
                messages,
                tokenize=False,
                add_generation_prompt=True,
                enable_thinking=self.style == "think",
                date_string=_DATE,
            )
        )

    def _glue(self) -> tuple[str, str, str]:
        """What stands before the first message, before a reply, and from a reply's end to the next message."""
        if not self.tokenizer.chat_template:
            raise InputError(f"{self._name}: there is none; use an instruction-tuned model")
        alone = self._render("QUERY0").split("QUERY0")
        parts = re.split("QUERY0|REPLY0|QUERY1", self._render("QUERY0", "REPLY0", "QUERY1"))
        if len(alone) != 2 or len(parts) != 4:
            raise InputError(f"{self._name}: does not show each message once; use another model")
        return alone[0], alone[1], parts[2]

    def _check_history(self, head: str, cue: str, between: str) -> None:
        """Whether the template itself would write three turns as they are carried here."""
        replies = [self.respond_text(f"REPLY{turn}", f"REASON{turn}") for turn in range(2)]
        carried = f"{head}QUERY0{cue}{replies[0]}{between}QUERY1{cue}{replies[1]}{between}QUERY2{cue}"
        if self._render("QUERY0", replies[0], "QUERY1", replies[1], "QUERY2") != carried:
            raise InputError(
                f"{self._name}: it writes earlier turns otherwise than they were sampled (it drops reasoning); "
                "use --set context=window, or --set keep_reasoning=true to carry them as sampled"
            )

    def _pieces(self, text: str) -> list[int | str]:
        """Text as ids of special tokens and the plain text between them."""
        if not self._specials:
            return [text] if text else []
        longest_first = sorted(self._specials, key=len, reverse=True)
        parts = re.split(f"({'|'.join(map(re.escape, longest_first))})", text)
        return [self._specials.get(part, part) for part in parts if part]

    def _ids(self, pieces: list[int | str]) -> list[int]:
        return [token for piece in pieces for token in ([piece] if isinstance(piece, int) else self.encode(piece))]

    def encode(self, text: str) -> list[int]:
        """Ids of plain text; special tokens inside it stay plain text."""
        return list(self._backend.encode(text, add_special_tokens=False).ids)

    def decode(self, ids: list[int]) -> str:
        """Text of ids without special tokens."""
        return str(self._backend.decode(ids, skip_special_tokens=True))

    def observe(self, observation: str, is_first: bool) -> list[int]:
        if not is_first:
            return [*self._between, *self.encode(observation.strip()), *self._cue]
        parts = [observation] if self.window is not None else [self.briefing, observation.strip(), self.instruction]
        return self.ask("\n\n".join(part for part in parts if part))

    def ask(self, question: str) -> list[int]:
        return [*self._head, *self.encode(question.strip()), *self._cue]

    def guide(self, text: str) -> list[int]:
        return self.encode(f"\n\nAdvice:\n{text}\n\n")

    def respond_text(self, action: str, reasoning: str = "") -> str:
        """A response that takes this action."""
        if self.style == "bare":
            return action
        return f"<think>\n{reasoning}\n</think>\n\n<action>{action}</action>"

    def respond(self, action: str) -> list[int]:
        """Ids of a response that takes this action (for supervised learning)."""
        return [*self.encode(self.respond_text(action)), self.stop_id]

    def ends(self, ids: list[int]) -> bool:
        if ids[-1] in self._stops:
            return True
        if self.style == "bare":
            return "\n" in self.decode(ids).lstrip()
        if _CLOSING.search(self.decode(ids[-_CLOSING_TOKENS:])) is None:
            return False
        return is_complete(self._reasoning + self.decode(ids))

    def parse(self, ids: list[int], sampled: int) -> tuple[str, str, tuple[int, int] | None]:
        text = self.decode(ids)
        if self.style == "bare":
            action = " ".join(text.split())[:MAX_ACTION]
            return text, action, (0, sampled) if sampled and action else None
        found = find_action(text)
        if found is None:
            return text, "", None
        action, start, end = found
        span = self._tokens_of(ids, start, end)
        return text, action, span if span[1] <= sampled else None

    def _tokens_of(self, ids: list[int], start: int, end: int) -> tuple[int, int]:
        """The tokens that hold characters [start, end) of the decoded text."""

        def length(count: int) -> int:
            return len(self.decode(ids[:count]).rstrip("\ufffd"))  # half a character counts once it is whole

        counts = range(len(ids) + 1)
        return bisect_right(counts, start, key=length) - 1, bisect_left(counts, end, key=length)
