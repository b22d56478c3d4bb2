"""Analyzers turn verified successes into guidance: by replay, by the policy itself, or by a hosted model."""

from __future__ import annotations

from typing import Protocol

from taspo_bench.episode import Group, Guidance


class Analyzer(Protocol):
    """Builds the guidance of a group; leave-one-out, so that no episode is its own evidence."""

    @property
    def name(self) -> str: ...

    def guide(self, group: Group) -> list[Guidance | None]:
        """Guidance of each episode, in the group's order; falsy with a ``reason`` where nothing holds."""
