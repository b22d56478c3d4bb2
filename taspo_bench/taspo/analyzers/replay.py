"""The `replay` analyzer: guidance without a language model, verified by the environment itself.

A sibling's success is pruned by replay, the benchmark reads rules off what remains, and a rule is given to a target
where it fits the target's state and names nothing that the target could not know by then (docs/method.md, "The
trap").
"""

from __future__ import annotations

import zlib
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from taspo_bench.api import Rule, TextEnv
from taspo_bench.episode import Episode, Group, Guidance, Turn
from taspo_bench.errors import InputError, unknown_name
from taspo_bench.phrases import has_phrase
from taspo_bench.taspo.analyzers import Analyzer
from taspo_bench.taspo.analyzers.prune import prune
from taspo_bench.taspo.guidance import (
    MAX_ITEMS,
    MAX_TOKENS,
    Item,
    Scope,
    Source,
    abstain,
    compose,
    is_quoted,
    item_defect,
    observed_after,
    successes,
)

Choice = Literal["aligned", "nearest", "random", "generic"]
GENERIC = "work towards the task; do not repeat what changed nothing"
TURN_ITEMS = 2
"""Statements that one turn may hold: a decision needs the fitting one, not all of them."""
CACHED = 4096


@dataclass(frozen=True)
class Evidence:
    """A rule and the step of the original, unpruned success that it stands for.

    number: its place among the rules of that success. length: actions that remain of the pruned success.
    """

    trajectory: int
    number: int
    step: int
    rule: Rule
    length: int


class ReplayAnalyzer(Analyzer):
    """Guidance by replay pruning.

    Args:
        env: an environment of the benchmark, for the analyzer alone.
        scope: ``turn`` (each turn sees the rules that fit it) or ``trajectory`` (one text in front of the episode).
        reveal: also give rules that name what the target has not met yet (an ablation that trains worse).
        source: ``aligned`` rules of all other successes where they fit; all rules of the ``nearest`` or of a
            ``random`` other success whether they fit or not; ``generic`` advice that rests on no evidence.
        max_items: items per target. max_tokens: length of a text, in the policy's tokens.
        count_tokens: length of a text; its words by default.
        seed: for source ``random``.
        bank: verified successes of earlier groups of a task that are kept as further evidence (0: none). In the
            sources of an item, an index past the group's own episodes names one of them, newest first.
    """

    name = "replay"

    def __init__(
        self,
        env: TextEnv,
        scope: Scope = "turn",
        reveal: bool = False,
        source: Choice = "aligned",
        max_items: int = MAX_ITEMS,
        max_tokens: int = MAX_TOKENS,
        count_tokens: Callable[[str], int] = lambda text: len(text.split()),
        seed: int = 0,
        bank: int = 0,
    ) -> None:
        for kind, given, known in (("scope", scope, get_args(Scope)), ("guidance source", source, get_args(Choice))):
            if given not in known:
                raise unknown_name(kind, given, known)
        if max_items < 1 or max_tokens < 1 or bank < 0:
            raise InputError(
                f"max_items {max_items}, max_tokens {max_tokens}, bank {bank}: give at least 1, 1 and 0 of them"
            )
        self.env = env
        self.scope, self.reveal, self.source = scope, reveal, source
        self.max_items, self.max_tokens, self.count_tokens, self.seed = max_items, max_tokens, count_tokens, seed
        self.bank = bank
        self._past: dict[str, list[Episode]] = {}
        self._cache: OrderedDict[tuple[str, ...], list[tuple[int, Rule]]] = OrderedDict()

    def guide(self, group: Group) -> list[Guidance | None]:
        """Guidance of each episode from the other verified successes of the group, and from the bank."""
        known = replace(group, episodes=[*group.episodes, *self._past.get(group.task_id, [])])
        won = successes(known)
        evidence = {} if self.source == "generic" else {index: self._evidence(known, index) for index in won}
        guidance: list[Guidance | None] = [
            self._guide(known, target, evidence) for target in range(len(group.episodes))
        ]
        if self.bank:
            self._remember(known)
        return guidance

    def _remember(self, known: Group) -> None:
        """Keep the newest successes of a task, no action sequence twice, without their tokens."""
        distinct = {
            tuple(known.episodes[index].actions): known.episodes[index] for index in reversed(successes(known))
        }
        newest = list(reversed(distinct.values()))[: self.bank]
        if newest:
            self._past[known.task_id] = [
                replace(episode, turns=[_without_tokens(turn) for turn in episode.turns], guidance=None)
                for episode in newest
            ]

    def state(self) -> dict[str, list[str]]:
        """The bank: task id -> episodes, each as one line of JSON."""
        return {task: [episode.to_json() for episode in past] for task, past in self._past.items()}

    def load_state(self, state: dict[str, list[str]]) -> None:
        self._past = {task: [Episode.from_json(line) for line in lines] for task, lines in state.items()}

    def _guide(self, group: Group, target: int, evidence: dict[int, list[Evidence]]) -> Guidance:
        episode = group.episodes[target]
        if not episode.turns:
            return abstain(episode, self.scope, "no turns")
        if self.source == "generic":
            return self._generic(episode)
        others = [index for index in evidence if index != target]
        if not others:
            return abstain(episode, self.scope, "no other success")
        if self.source == "aligned":
            rules = [entry for index in others for entry in evidence[index]]
            turns = self._fitting(episode, rules)
        else:
            chosen = (
                self._nearest(group, target, others)
                if self.source == "nearest"
                else self._draw(group, target, others)
            )
            turns = self._unaligned(episode, evidence[chosen])
        return self._compose(group, target, turns)

    # --- evidence ----------------------------------------------------------------------------------

    def _evidence(self, group: Group, index: int) -> list[Evidence]:
        episode = group.episodes[index]
        rules = self._rules(episode)
        length = len({step for step, _ in rules})
        return [Evidence(index, number, step, rule, length) for number, (step, rule) in enumerate(rules)]

    def _rules(self, episode: Episode) -> list[tuple[int, Rule]]:
        """Rules of a success with the step of the original sequence each stands for."""
        key = (episode.task_id, *episode.actions)
        if key in self._cache:
            self._cache.move_to_end(key)
            return self._cache[key]
        kept = prune(self.env, episode.task_id, episode.actions) or []
        rules = self.env.rules([episode.actions[step] for step in kept]) if kept else []
        found = [(kept[rule.step], replace(rule, needs=()) if self.reveal else rule) for rule in rules]
        self._cache[key] = found
        if len(self._cache) > CACHED:
            self._cache.popitem(last=False)
        return found

    def _nearest(self, group: Group, target: int, others: list[int]) -> int:
        """The success that shares the most of its actions with the target (Jaccard index; the first of equals)."""
        own = set(group.episodes[target].actions)

        def likeness(index: int) -> float:
            actions = set(group.episodes[index].actions)
            return len(own & actions) / max(1, len(own | actions))

        return max(others, key=likeness)

    def _draw(self, group: Group, target: int, others: list[int]) -> int:
        key = (self.seed, zlib.crc32(group.task_id.encode()), group.update, target)
        return others[int(np.random.default_rng(key).integers(len(others)))]

    # --- which rules a turn sees -------------------------------------------------------------------

    def _fitting(self, episode: Episode, rules: list[Evidence]) -> dict[int, list[Evidence]]:
        """Turn -> the rules that fit its state; most specific first, then of the shortest success, then latest."""
        rules = _distinct(sorted(rules, key=lambda entry: (-len(entry.rule.when), entry.length, -entry.step)))
        met = _met(episode)
        found: dict[int, list[Evidence]] = {}
        for turn, known in enumerate(met):
            if self.scope == "trajectory":
                known = met[0]
            fitting = [entry for entry in rules if entry.rule.fits(episode.turns[turn].state_key, known)]
            if fitting:
                found[turn] = fitting[:TURN_ITEMS]
        return found

    def _unaligned(self, episode: Episode, rules: list[Evidence]) -> dict[int, list[Evidence]]:
        """Turn -> all rules of one success, in their order, that tell that turn nothing hidden."""
        met = _met(episode)
        if self.scope == "trajectory":
            met = met[:1]
        known = {turn: [entry for entry in rules if entry.rule.is_known(text)] for turn, text in enumerate(met)}
        return {turn: entries for turn, entries in known.items() if entries}

    # --- items and text ----------------------------------------------------------------------------

    def _compose(self, group: Group, target: int, turns: dict[int, list[Evidence]]) -> Guidance:
        episode = group.episodes[target]
        uses = Counter(entry for entries in turns.values() for entry in entries)
        items: dict[Evidence, Item] = {}
        for entry, _ in uses.most_common():
            first = next(turn for turn, entries in turns.items() if entry in entries)
            item = _item(entry, group.episodes[entry.trajectory], episode, first)
            if len(items) < self.max_items and not item_defect(item, group, target):
                items[entry] = item
        shown = {turn: [items[entry] for entry in entries if entry in items] for turn, entries in turns.items()}
        if self.scope == "trajectory":
            shown = {0: [item for _, item in sorted(items.items(), key=lambda pair: pair[0].step)]}
        return compose(episode, self.scope, shown, self.count_tokens, self.max_tokens)

    def _generic(self, episode: Episode) -> Guidance:
        item = Item("generic", "constraint", GENERIC, (), 0, "")
        return compose(
            episode,
            self.scope,
            {turn: [item] for turn in range(len(episode.turns))},
            self.count_tokens,
            self.max_tokens,
        )


def _without_tokens(turn: Turn) -> Turn:
    return replace(turn, prompt_ids=[], response_ids=[], logprobs=[])


def _met(episode: Episode) -> list[str]:
    """All observations up to and including each turn's own."""
    met, texts = "", []
    for turn in episode.turns:
        met = f"{met}\n{turn.observation}"
        texts.append(met)
    return texts


def _distinct(rules: Sequence[Evidence]) -> list[Evidence]:
    """Without rules that say the same of the same states."""
    seen = {(entry.rule.statement, entry.rule.when, entry.rule.unless): entry for entry in reversed(rules)}
    kept = set(seen.values())
    return [entry for entry in rules if entry in kept]


def _item(entry: Evidence, success: Episode, target: Episode, first: int) -> Item:
    rule, turn = entry.rule, success.turns[entry.step]
    seen = (turn.observation, observed_after(success, entry.step))
    # The pruned replay may have met other words than the original did at that step: then cite what it led to.
    quote = rule.quote if any(is_quoted(rule.quote, text) for text in seen) else _first_line(seen[1])
    here = target.turns[first].observation
    return Item(
        id=f"{entry.trajectory}.{entry.number}",
        kind="progress" if rule.when else "requirement",
        statement=rule.statement,
        sources=(Source(entry.trajectory, entry.step, turn.action, quote),),
        step=first,
        quote=next((phrase for phrase in rule.needs if phrase and has_phrase(here, phrase)), _first_line(here)),
    )


def _first_line(text: str) -> str:
    return next((line.strip()[:200] for line in text.splitlines() if line.strip()), "")
