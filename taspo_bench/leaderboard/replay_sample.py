"""A few episodes of a submission, with the observations that its archive leaves out, to be stepped through."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from taspo_bench.api import TextEnv
from taspo_bench.evaluation.page_text import cut
from taspo_bench.leaderboard.manifest import EpisodeRecord
from taspo_bench.leaderboard.replay import Replayed, steps

PER_SUBMISSION = 60


@dataclass(frozen=True)
class ShownEpisode:
    """One episode as the site shows it. ``steps`` are JSON objects: observation, action, response, valid."""

    env: str
    split: str
    family: str
    task_id: str
    seed: int
    won: bool
    score: float
    final: str
    steps: tuple[dict[str, Any], ...]


@dataclass
class ReplaySample:
    """Keeps the first won and the first lost episode of each family of each split."""

    episodes: list[ShownEpisode] = field(default_factory=list)
    _seen: set[tuple[str, str, str, bool]] = field(default_factory=set)

    def __call__(self, env: TextEnv, record: EpisodeRecord, replayed: Replayed) -> None:
        family = env.task(record.task_id).family
        key = (env.name, record.split, family, replayed.won)
        if key in self._seen or len(self.episodes) == PER_SUBMISSION or not record.actions:
            return
        self._seen.add(key)
        played = list(steps(env, record))
        self.episodes.append(
            ShownEpisode(
                env=env.name,
                split=record.split,
                family=family,
                task_id=record.task_id,
                seed=record.seed,
                won=replayed.won,
                score=replayed.score,
                final=cut(played[-1].next_observation),
                steps=tuple(
                    {
                        "observation": cut(step.observation),
                        "action": cut(step.action),
                        "response": cut(record.responses[place]) if record.responses else "",
                        "valid": step.is_action_valid,
                    }
                    for place, step in enumerate(played)
                ),
            )
        )
