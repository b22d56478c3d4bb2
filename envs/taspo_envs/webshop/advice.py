"""Rules read off a successful visit: when each action fits, and what must have been seen before it hides nothing."""

from __future__ import annotations

from collections.abc import Sequence

from taspo_bench.api import Rule
from taspo_envs.webshop.analysis import analyze
from taspo_envs.webshop.pages import BUY_NOW, Kind
from taspo_envs.webshop.session import Session, parse_action


def shopping_rules(visit: Session, observation_mode: str, actions: Sequence[str]) -> list[Rule]:
    """One rule per action that moved the purchase on: searches, products opened, options chosen, the purchase.

    Replays the actions in a visit of its own. Turning pages and reading sub-pages give no rule.
    """
    replay = Session(visit.store, visit.goal, visit.session_id, strict=visit.strict)
    rules = []
    for step, action in enumerate(actions):
        shown = replay.text() if observation_mode == "text" else replay.rich_text()
        rule = _rule(replay, step, action, shown[:200])
        if rule is not None:
            rules.append(rule)
        replay.act(action)
    return rules


def _rule(here: Session, step: int, action: str, quote: str) -> Rule | None:
    name, argument = parse_action(action)
    if argument is None:
        return None
    if name == "search":
        known = set(analyze(here.goal.instruction))
        hidden = tuple(word for word in argument.split() if not known.issuperset(analyze(word)))
        return Rule(step, f"on the search page: {action}", action, quote, when=("page search",), needs=hidden)
    clicked = argument.lower()
    piece = here.clickables.get(clicked)
    if piece is not None and piece.kind is Kind.LINK:
        when: tuple[str, ...] = ("page results", f"lists {clicked}")
        statement = f"where the results list {piece.text}: {action}"
        return Rule(step, statement, action, quote, when=when, needs=(piece.text,))
    on_item = ("page item", f"item {here.asin}")
    met = (str(here.asin),)
    if piece is not None and piece.kind is Kind.OPTION:
        when = (*on_item, f"unchosen {piece.name}")
        return Rule(step, f"choose {piece.name} {piece.text}: {action}", action, quote, when=when, needs=met)
    if piece is not None and clicked == BUY_NOW.lower():
        chosen = tuple(f"chosen {option}: {value}" for option, value in sorted(here.options.items()))
        return Rule(step, f"when all is chosen: {action}", action, quote, when=(*on_item, *chosen), needs=met)
    return None
