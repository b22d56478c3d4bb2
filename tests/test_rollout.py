"""Episodes of different lengths in one batch: each keeps its own turns and nothing behind its end."""

from __future__ import annotations

from functools import partial

import pytest

from corridor import Corridor
from taspo_bench.api import OVER, TextEnv
from taspo_bench.policies.policy import Response
from taspo_bench.rollout import Start, rollout

PLANS = {
    "key-1": ["open box 1", "take key", "unlock door"],
    "key-2": ["look", "open box 1", "open box 2", "take key", "drop key", "take key", "unlock door"],
    "key-3": ["look"] * 9,
    "key-4": ["open box 4", "take key", "unlock door"],
}
LIMIT = 9


class Planned:
    """Takes the planned actions of each task, and fails if it is asked beyond them."""

    name = "planned"

    def begin(self, envs, generators):
        self.left = [list(PLANS[env.task_id]) for env in envs]
        return self

    def respond(self, live, observations):
        assert OVER not in observations
        return [Response(action, action) for action in (self.left[index].pop(0) for index in live)]


@pytest.mark.parametrize("batch", [1, 3, 64])
def test_no_turn_is_stored_behind_an_episode_s_end(batch):
    tasks = ["key-2", "key-1", "key-3", "key-4", "key-1", "key-3"]
    pool: list[TextEnv] = []
    starts = [Start(task, "train", 0, (7, place)) for place, task in enumerate(tasks)]
    episodes = rollout(partial(Corridor, max_steps=LIMIT), Planned(), starts, batch, envs=pool)
    assert [episode.task_id for episode in episodes] == tasks
    for episode in episodes:
        assert episode.actions == PLANS[episode.task_id]
        is_won = episode.task_id != "key-3"
        assert (episode.won, episode.truncated, episode.score) == (is_won, not is_won, float(is_won))
        assert [turn.reward for turn in episode.turns[:-1]] == [0.0] * (len(episode.turns) - 1)
        assert episode.turns[-1].reward == episode.score
        assert episode.final_observation == ("The door opens." if is_won else "You see four boxes and a door.")
    last = episodes[-len(pool) :] if batch >= len(tasks) else []
    assert [env.steps for env in pool[: len(last)]] == [len(episode.turns) for episode in last]
