"""Splits of goals: ours, by held-out product category, and WebShop's own by position.

Ours: ``valid_unseen`` holds goals of queries (product categories) that training never meets; ``valid_seen`` holds
goals of products that training never meets in queries that it does; both at most one tenth of the goals and 500.
Ours are cut by names of goals, ``B07FYPSNH8-h0``; a store then knows the goals by their rows.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from taspo_bench.api import Split
from taspo_envs.webshop.goals import official_order

EVALUATION_SHARE = 0.1
MOST_EVALUATION_GOALS = 500
PROTOCOLS = ("category", "official", "verl-agent")


def _rank(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


def _spread(ids: Sequence[str], count: int) -> list[str]:
    """``count`` ids of as many products as there are: every product's first, then its second, and so on."""
    by_product: dict[str, list[str]] = defaultdict(list)
    for goal_id in sorted(ids, key=_rank):
        by_product[product_of(goal_id)].append(goal_id)
    turns = [(turn, goal_id) for goals in by_product.values() for turn, goal_id in enumerate(goals)]
    return sorted(goal_id for _, goal_id in sorted(turns, key=lambda pair: pair[0])[:count])


def product_of(name: str) -> str:
    """ASIN of the product that a goal was made from."""
    return name.rpartition("-")[0]


def split_by_query(
    ids: Sequence[str],
    queries: Sequence[str],
    beyond_reach: Sequence[str] = (),
    most_evaluation_goals: int = MOST_EVALUATION_GOALS,
) -> dict[str, Any]:
    """Our three splits of goals, given the query of each, the names of the held-out queries, and what was left out.

    Goals that are beyond reach stand in no split. Queries (a tenth of them at least) and products are taken in the
    order of their sha256 until they hold enough goals, so the splits depend on the data alone.
    """
    away = set(beyond_reach)
    by_query: dict[str, list[str]] = defaultdict(list)
    for goal_id, query in zip(ids, queries, strict=True):
        if goal_id not in away:
            by_query[query].append(goal_id)
    wanted = min(most_evaluation_goals, round((len(ids) - len(away)) * EVALUATION_SHARE))
    held_out = _take(by_query, wanted, len(by_query) * EVALUATION_SHARE)
    unseen = [goal_id for query in held_out for goal_id in by_query[query]]
    away.update(unseen)
    by_product: dict[str, list[str]] = defaultdict(list)
    for goal_id in ids:
        if goal_id not in away:
            by_product[product_of(goal_id)].append(goal_id)
    seen = [goal_id for asin in _take(by_product, wanted, 0) for goal_id in by_product[asin]]
    away.update(seen)
    return {
        "held_out": sorted(held_out),
        "beyond_reach": list(beyond_reach),
        "train": [goal_id for goal_id in ids if goal_id not in away],
        "valid_seen": _spread(seen, wanted),
        "valid_unseen": _spread(unseen, wanted),
    }


def _take(groups: Mapping[str, Sequence[str]], goals: int, least: float) -> list[str]:
    """Names of ``least`` groups or more that hold a number of goals together; none of twice that size."""
    taken: list[str] = []
    held = 0
    for name in sorted(groups, key=_rank):
        if held >= goals and len(taken) >= least:
            break
        if len(groups[name]) <= 2 * goals:
            taken.append(name)
            held += len(groups[name])
    return taken


def category_splits(built: dict[str, Any]) -> list[Split]:
    """Our splits as a store keeps them."""
    return [
        Split("train", "train", tuple(built["train"])),
        Split("valid_seen", "seen", tuple(built["valid_seen"])),
        Split("valid_unseen", "unseen", tuple(built["valid_unseen"])),
    ]


def official_splits(ids: Sequence[str], protocol: str) -> list[Split]:
    """WebShop's splits by position in its shuffled order: test 0-499, dev 500-1499, train from 1500 on.

    Protocol ``verl-agent`` trains from 500 on and has no dev split.
    """
    ordered = [ids[place] for place in official_order(len(ids))]
    test = Split("test", "seen", tuple(ordered[:500]))
    if protocol == "verl-agent":
        return [Split("train", "train", tuple(ordered[500:])), test]
    return [
        Split("train", "train", tuple(ordered[1500:])),
        Split("dev", "seen", tuple(ordered[500:1500])),
        test,
    ]
