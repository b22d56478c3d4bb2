"""Guidance by a language model in two steps: evidence from the verified successes, then what fits each target.

The model proposes; nothing that it says is believed. Evidence must quote the right step of a verified success, an
alignment must quote the right step of the target, and what fails is dropped. The target's reward, success flag and
final observation are not shown.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from taspo_bench.episode import Episode, Group, Guidance
from taspo_bench.errors import RunError, unknown_name
from taspo_bench.taspo.analyzers import Analyzer
from taspo_bench.taspo.guidance import (
    KINDS,
    MAX_ITEMS,
    MAX_STATEMENT,
    MAX_TOKENS,
    Item,
    Kind,
    Scope,
    Source,
    abstain,
    compose,
    item_defect,
    source_defect,
    successes,
)

SHOWN_SUCCESSES = 4
SHOWN_OBSERVATION = 800
NUDGE = "\n\nYour last answer was not one JSON object. Answer with the JSON object alone."

EXTRACT = """\
Below are attempts at one task that were verified to succeed. Write down what they show about solving it.
Answer with one JSON object: {{"items": [{{"kind": one of {kinds}, "statement": advice in at most {limit} characters,
"sources": [{{"trajectory": number, "step": number, "action": exact quote of that step's action,
"observation": exact quote of the observation before or after it}}]}}]}}. At most {count} items. Quotes that are not
exact are thrown away.

{successes}"""

ALIGN = """\
Below are numbered pieces of advice, taken from other attempts at a task, and one more attempt at it. Choose the
pieces that fit a decision of this attempt. A piece fits a step only if nothing in it was still unknown at that step.
Answer with one JSON object: {{"items": [{{"id": id of the piece, "step": step of the attempt that it fits,
"quote": exact quote of that step's observation}}]}}, at most {count} items, or if none fits
{{"items": [], "reason": why}}.

Advice:
{items}

The attempt:
{attempt}"""


Model = TypeVar("Model", bound=BaseModel)


class _Cited(BaseModel):
    trajectory: int
    step: int
    action: str
    observation: str


class _Extracted(BaseModel):
    kind: Kind
    statement: str
    sources: list[_Cited]


class _Aligned(BaseModel):
    id: str
    step: int
    quote: str


class LanguageModelAnalyzer(Analyzer):
    """The two steps over any function from prompts to answers.

    Args:
        ask: gives the model's answers in the order of the prompts, an error in place of each that could not be had;
            then the group has fewer items.
        scope: ``turn`` shows an item at the step that its quote is of; ``trajectory`` shows all items in front of
            the episode, and without ``reveal`` only those that quote the first observation.
        count_tokens: length of a text in the policy's tokens; its words by default.
    """

    name = "language_model"

    def __init__(
        self,
        ask: Callable[[Sequence[str]], Sequence[str | RunError]],
        scope: Scope = "turn",
        reveal: bool = False,
        max_items: int = MAX_ITEMS,
        max_tokens: int = MAX_TOKENS,
        count_tokens: Callable[[str], int] = lambda text: len(text.split()),
    ) -> None:
        if scope not in get_args(Scope):
            raise unknown_name("scope", scope, get_args(Scope))
        self.ask = ask
        self.scope, self.reveal = scope, reveal
        self.max_items, self.max_tokens, self.count_tokens = max_items, max_tokens, count_tokens

    def guide(self, group: Group) -> list[Guidance | None]:
        """Guidance of each episode; falsy with a reason where the model failed, abstained or misquoted."""
        evidence = self._extract(group)
        if isinstance(evidence, RunError):
            return [abstain(episode, self.scope, str(evidence)) for episode in group.episodes]
        guidance: list[Guidance | None] = []
        prompts: dict[int, str] = {}
        others: dict[int, dict[str, tuple[Source, ...]]] = {}
        for target, episode in enumerate(group.episodes):
            cited = {name: sources for name, found in evidence.items() if (sources := _sources(found, group, target))}
            if cited:
                others[target] = cited
                prompts[target] = _align_prompt(episode, {name: evidence[name] for name in cited}, self.max_items)
            is_alone = not [index for index in successes(group) if index != target]
            guidance.append(abstain(episode, self.scope, "no other success" if is_alone else "no verified evidence"))
        for target, answer in zip(prompts, self._answers(list(prompts.values())), strict=True):
            guidance[target] = self._guide(group, target, evidence, others[target], answer)
        return guidance

    def _guide(
        self,
        group: Group,
        target: int,
        evidence: dict[str, _Extracted],
        others: dict[str, tuple[Source, ...]],
        answer: dict[str, Any] | RunError,
    ) -> Guidance:
        episode = group.episodes[target]
        if isinstance(answer, RunError):
            return abstain(episode, self.scope, str(answer))
        items = []
        for aligned in _valid(_Aligned, answer.get("items")):
            if aligned.id in others:
                item = _item(aligned, evidence[aligned.id], others[aligned.id])
                if not item_defect(item, group, target):
                    items.append(item)
        if not items:
            return abstain(episode, self.scope, f"abstained: {answer.get('reason') or 'no item'}"[:200])
        return self._compose(episode, items[: self.max_items])

    def _compose(self, episode: Episode, items: Sequence[Item]) -> Guidance:
        shown: dict[int, list[Item]] = defaultdict(list)
        for item in items:
            if self.scope == "turn":
                shown[item.step].append(item)
            elif self.reveal or item.step == 0:
                shown[0].append(item)
        return compose(episode, self.scope, shown, self.count_tokens, self.max_tokens)

    def _extract(self, group: Group) -> dict[str, _Extracted] | RunError:
        """Evidence with at least one exact citation, by an id of ours."""
        won = sorted(successes(group), key=lambda index: len(group.episodes[index].turns))[:SHOWN_SUCCESSES]
        if not won:
            return {}
        shown = "\n\n".join(f"Trajectory {index}:\n{_transcript(group.episodes[index])}" for index in sorted(won))
        count = 2 * self.max_items
        prompt = EXTRACT.format(kinds=", ".join(KINDS), limit=MAX_STATEMENT, count=count, successes=shown)
        [answer] = self._answers([prompt])
        if isinstance(answer, RunError):
            return answer
        kept = [entry for entry in _valid(_Extracted, answer.get("items")) if _sources(entry, group, target=-1)]
        return {f"e{number}": entry for number, entry in enumerate(kept[:count])}

    def _answers(self, prompts: Sequence[str]) -> list[dict[str, Any] | RunError]:
        """The JSON objects of the model's answers, each asked for at most twice."""
        found: list[dict[str, Any] | RunError | None] = [_read(answer) for answer in self.ask(prompts)]
        again = [index for index, answer in enumerate(found) if answer is None]
        for index, answer in zip(again, self.ask([prompts[index] + NUDGE for index in again]), strict=True):
            found[index] = _read(answer)
        failed = RunError(f"the {self.name} analyzer did not answer with a JSON object")
        return [failed if answer is None else answer for answer in found]


def _read(answer: str | RunError) -> dict[str, Any] | RunError | None:
    return answer if isinstance(answer, RunError) else parse_object(answer)


def parse_object(text: str) -> dict[str, Any] | None:
    """The JSON object that a text is or holds, fenced or not; None if there is none."""
    start, end = text.find("{"), text.rfind("}")
    try:
        found = json.loads(text[start : end + 1]) if 0 <= start < end else None
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _valid(model: type[Model], entries: object) -> list[Model]:
    found = []
    for entry in entries if isinstance(entries, list) else []:
        try:
            found.append(model.model_validate(entry, strict=True))
        except ValidationError:
            continue
    return found


def _sources(found: _Extracted, group: Group, target: int) -> tuple[Source, ...]:
    """The exact citations of successes other than the target."""
    cited = [Source(**source.model_dump()) for source in found.sources]
    return tuple(source for source in cited if source.trajectory != target and not source_defect(source, group))


def _item(aligned: _Aligned, found: _Extracted, sources: tuple[Source, ...]) -> Item:
    return Item(aligned.id, found.kind, found.statement, sources, aligned.step, aligned.quote)


def _align_prompt(episode: Episode, evidence: dict[str, _Extracted], count: int) -> str:
    items = "\n".join(
        f"{name} ({entry.kind}): {' '.join(entry.statement.split())}" for name, entry in evidence.items()
    )
    return ALIGN.format(count=count, items=items, attempt=_transcript(episode))


def _transcript(episode: Episode) -> str:
    """What an attempt saw and did; neither its reward nor how it ended."""
    return "\n".join(
        f"Step {step}\nobservation: {turn.observation[:SHOWN_OBSERVATION]}\naction: {turn.action}"
        for step, turn in enumerate(episode.turns)
    )


class SelfAnalyzer(LanguageModelAnalyzer):
    """Guidance by the frozen policy itself.

    Args:
        generate: (prompt, at most so many new tokens) -> text, by the policy that made the rollouts.
    """

    name = "self"

    def __init__(self, generate: Callable[[str, int], str], answer_tokens: int = 1024, **settings: Any) -> None:
        super().__init__(lambda prompts: [generate(prompt, answer_tokens) for prompt in prompts], **settings)
