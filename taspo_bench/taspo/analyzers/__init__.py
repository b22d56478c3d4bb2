"""Analyzers turn verified successes into guidance: by replay, by the policy itself, or by a hosted model."""

from __future__ import annotations

from typing import Any, Protocol

from taspo_bench.episode import Group, Guidance


class Analyzer(Protocol):
    """Builds the guidance of a group; leave-one-out, so that no episode is its own evidence."""

    @property
    def name(self) -> str: ...

    def guide(self, group: Group) -> list[Guidance | None]:
        """Guidance of each episode, in the group's order; falsy with a ``reason`` where nothing holds."""

    def figures(self) -> dict[str, float]:
        """What the analyzer has used since the run began, for the log of an update."""
        return {}

    def state(self) -> dict[str, Any]:
        """What a run that goes on later must know, as a JSON object."""
        return {}

    def load_state(self, state: dict[str, Any]) -> None:
        """Take up what :meth:`state` gave."""
        return
