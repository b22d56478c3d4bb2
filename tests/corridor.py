"""A small world for tests: one of four boxes hides a key, and the key opens a door."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from taspo_bench.api import DataStamp, Outcome, Rule, Split, Task, TextEnv
from taspo_bench.episode import Episode, Turn

BOXES = 4
NOTHING = "Nothing happens."


class Corridor(TextEnv):
    """Task ``key-2``: the key lies in box 2. Opening a box shows what it holds; a dropped key goes back into it."""

    name: ClassVar[str] = "corridor"
    default_max_steps: ClassVar[int] = 12

    def splits(self) -> dict[str, Split]:
        return {
            "train": Split("train", "train", ("key-1", "key-2", "key-3")),
            "valid_unseen": Split("valid_unseen", "unseen", ("key-4",)),
        }

    def task(self, task_id: str) -> Task:
        return Task(task_id, "key")

    def data_stamp(self) -> DataStamp:
        return DataStamp("embedded", "1", "0" * 64)

    def start(self, task_id: str) -> str:
        self.box = int(task_id.removeprefix("key-"))
        self.opened: list[int] = []
        self.is_holding = self.is_open = False
        return "Your task is to unlock the door. You see box 1, box 2, box 3, box 4, and a door."

    def act(self, action: str) -> Outcome:
        if action == "look":
            return Outcome("You see four boxes and a door.")
        if action.startswith("open box ") and action[9:].isdecimal():
            return self._open(int(action[9:]))
        if action == "take key" and self.box in self.opened and not self.is_holding:
            self.is_holding = True
            return Outcome("You take the key.")
        if action == "drop key" and self.is_holding:
            self.is_holding = False
            return Outcome("You put the key back.")
        if action == "unlock door" and self.is_holding:
            self.is_open = True
            return Outcome("The door opens.")
        return Outcome(NOTHING, is_action_valid=False)

    def _open(self, box: int) -> Outcome:
        if not 1 <= box <= BOXES or box in self.opened:
            return Outcome(NOTHING, is_action_valid=False)
        self.opened.append(box)
        return Outcome(f"You open box {box}. {'A key lies in it.' if box == self.box else 'It is empty.'}")

    @property
    def instruction(self) -> str:
        return "unlock the door"

    @property
    def won(self) -> bool:
        return self.is_open

    @property
    def finished(self) -> bool:
        return self.is_open

    @property
    def score(self) -> float:
        return float(self.is_open)

    @property
    def admissible_actions(self) -> list[str]:
        boxes = [f"open box {box}" for box in range(1, BOXES + 1) if box not in self.opened]
        return [*boxes, "look"]

    @property
    def state_key(self) -> str:
        lines = [f"open: box {box}" for box in sorted(self.opened)]
        if self.is_holding:
            lines.append("key: held")
        elif self.box in self.opened:
            lines.append("key: in view")
        return "\n".join(lines)

    def save(self) -> dict[str, Any]:
        return {"opened": list(self.opened), "held": self.is_holding, "open": self.is_open}

    def load(self, state: dict[str, Any]) -> None:
        self.opened, self.is_holding, self.is_open = list(state["opened"]), state["held"], state["open"]

    def solve(self) -> list[str]:
        if self.is_open:
            return []
        if self.is_holding:
            return ["unlock door"]
        first = [] if self.box in self.opened else [f"open box {self.box}"]
        return [*first, "take key", "unlock door"]

    def rules(self, actions: Sequence[str]) -> list[Rule]:
        rules = []
        for step, action in enumerate(actions):
            if action.startswith("open"):
                key = f"open {action[5:]}. A key lies in it."
                rules.append(
                    Rule(step, action, action, "You see box 1", needs=(key,), unless=(f"open: {action[5:]}",))
                )
            elif action == "take key":
                rules.append(Rule(step, action, action, "A key lies in it", when=("key: in view",)))
            elif action == "unlock door":
                rules.append(Rule(step, action, action, "You take the key", when=("key: held",)))
        return rules


def play(actions: Sequence[str], task_id: str = "key-2") -> Episode:
    """The episode that these actions make, each one token long."""
    env = Corridor()
    observation, info = env.reset(options={"task_id": task_id})
    episode = Episode(env.name, task_id, "key", split="train")
    for action in actions:
        turn = Turn(observation, action, action, info["state_key"], response_ids=[1], logprobs=[0.0])
        turn.action_span, turn.sampled = (0, 1), 1
        episode.turns.append(turn)
        observation, turn.reward, terminated, truncated, info = env.step(action)
        turn.is_action_valid = info["is_action_valid"]
        episode.won, episode.score, episode.truncated = info["won"], info["score"], truncated
        episode.final_observation, episode.final_state_key = observation, info["state_key"]
        if terminated or truncated:
            break
    return episode
