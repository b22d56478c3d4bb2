"""A teacher who has to look for what it has not seen, as the agent that learns from it has to."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

KNOWS = 0.35
"""How often the teacher goes straight to a hidden thing, so that likely places are learned to come first."""


def demonstrate(plan: list[str], admissible: Sequence[str], met: str, generator: np.random.Generator) -> list[str]:
    """The next actions: the plan where it hides nothing, else one step of a search.

    Args:
        plan: a solution from here that knows everything.
        met: the text of all observations so far.
    """
    sought = _sought(plan)
    if not plan or sought is None or f"a {sought}" in met or f"the {sought}" in met:
        return plan
    if opening := [action for action in admissible if action.startswith("open ")]:
        return opening[:1]
    unvisited = [
        action
        for action in admissible
        if action.startswith("go to ") and f"arrive at {action.removeprefix('go to ')}." not in met
    ]
    if plan[0] in unvisited and generator.random() < KNOWS:
        return plan[:1]
    return [unvisited[int(generator.integers(len(unvisited)))]] if unvisited else plan[:1]


def _sought(plan: Sequence[str]) -> str | None:
    """The thing that the plan takes or turns on first."""
    for action in plan:
        if action.startswith("take "):
            return action.removeprefix("take ").partition(" from ")[0]
        if action.startswith("use "):
            return action.removeprefix("use ")
    return None
