"""The corridor with partial scores, so that an untrained policy's returns differ within a group."""

from __future__ import annotations

from functools import partial

from corridor import Corridor
from taspo_bench.api import Outcome


class GradedCorridor(Corridor):
    """Scores 0, 0.5 or 1 by the length of the actions so far."""

    def start(self, task_id: str) -> str:
        self.written = 0
        return super().start(task_id)

    def act(self, action: str) -> Outcome:
        self.written += len(action)
        return super().act(action)

    @property
    def score(self) -> float:
        return self.written % 3 / 2


make_graded = partial(GradedCorridor, max_steps=3)
TASKS = ["key-1", "key-2", "key-3"]
CONFIG = {
    "updates": 2, "tasks_per_update": 3, "group_size": 4, "learning_rate": 1e-3, "env": "corridor", "seed": 5,
    "warmup_updates": 2, "kl_coef": 0.1, "entropy_coef": 0.01, "save_every": 1,
}  # fmt: skip
