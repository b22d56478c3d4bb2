"""Speed of ALFWorld: the native engine and TextWorld on the same official games and commands, in one run.

    python benchmarks/bench_alfworld.py [--data PATH] [--games N] [--steps N]

Every step of either includes the observation and the list of admissible commands. Needs the official games
(``official`` by default, see `taspo-bench data fetch alfworld`); TextWorld's part needs the extra ``[textworld]`` and
is left out without it. Rates are medians of three repetitions, in seconds of processor time, so that other work on
the machine does not count.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import pickle
import random
import statistics
import time
import tracemalloc
from collections.abc import Callable, Sequence

from taspo_envs.alfworld.env import ALFWorldEnv
from taspo_envs.alfworld.game import read_game
from taspo_envs.alfworld.official import open_official

Walk = tuple[str, list[str]]
REPEATS = 3


def walks(env: ALFWorldEnv, count: int, steps: int) -> list[Walk]:
    """Random walks that do not win, on the first games of the split in a fixed shuffle."""
    draw = random.Random(0)
    tasks = draw.sample(env.split.task_ids, count)
    recorded = []
    for task_id in tasks:
        _, info = env.reset(options={"task_id": task_id})
        commands: list[str] = []
        while len(commands) < steps and not info["won"]:
            near = [command for command in info["admissible_actions"] if not command.startswith("go to")]
            commands.append(draw.choice(near if draw.random() < 0.5 else info["admissible_actions"]))
            info = env.step(commands[-1])[4]
        recorded.append((task_id, commands))
    return recorded


def rates(env: ALFWorldEnv, recorded: Sequence[Walk]) -> tuple[float, float]:
    """Steps and resets a second; the games are known to the environment before."""
    stepping = resetting = 0.0
    steps = 0
    for task_id, commands in recorded:
        begin = time.process_time()
        env.reset(options={"task_id": task_id})
        resetting += time.process_time() - begin
        begin = time.process_time()
        for command in commands:
            env.step(command)
        stepping += time.process_time() - begin
        steps += len(commands)
    return steps / stepping, len(recorded) / resetting


def median(measure: Callable[[], tuple[float, float]]) -> tuple[float, float]:
    first, second = zip(*(measure() for _ in range(REPEATS)), strict=True)
    return statistics.median(first), statistics.median(second)


def textworld_rates(data: str, recorded: Sequence[Walk]) -> tuple[float, float]:
    """The same for TextWorld as ALFWorld sets it up; a reset is that of a game already loaded."""
    from alfworld.agents.environment.alfred_tw_env import AlfredDemangler
    from textworld import EnvInfos
    from textworld.envs.pddl import PddlEnv

    source = open_official(None if data == "official" else data)
    stepping = resetting = 0.0
    steps = 0
    for task_id, commands in recorded:
        engine = AlfredDemangler(PddlEnv(EnvInfos(won=True, admissible_commands=True)), shuffle=False)
        engine.load(source.game(task_id))
        begin = time.process_time()
        engine.reset()
        resetting += time.process_time() - begin
        begin = time.process_time()
        for command in commands:
            engine.step(command)
        stepping += time.process_time() - begin
        steps += len(commands)
    return steps / stepping, len(recorded) / resetting


def first_resets(data: str, count: int) -> list[float]:
    """Seconds that the first reset of each of many never-seen games takes."""
    env = ALFWorldEnv("train", data=data)
    taken = []
    for task_id in random.Random(1).sample(env.split.task_ids, count):
        begin = time.process_time()
        env.reset(options={"task_id": task_id})
        taken.append(time.process_time() - begin)
    return taken


def memory_growth(data: str, resets: int = 1000, games: int = 50) -> int:
    """Bytes gained over many resets of games that have all been seen once."""
    env = ALFWorldEnv("valid_seen", data=data)
    tasks = env.split.task_ids[:games]
    for task_id in tasks:
        env.reset(options={"task_id": task_id})
    gc.collect()
    tracemalloc.start()
    for number in range(resets):
        env.reset(options={"task_id": tasks[number % games]})
        env.step("look")
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return grown


def game_sizes(data: str, count: int = 50) -> list[int]:
    """Bytes that a game takes in memory."""
    source = open_official(None if data == "official" else data)
    tasks = random.Random(2).sample(source.ids["train"], count)
    read_game(source.game(tasks[0]))
    sizes = []
    for task_id in tasks:
        raw = pickle.dumps(source.game(task_id))
        gc.collect()
        tracemalloc.start()
        game = read_game(pickle.loads(raw))
        gc.collect()
        sizes.append(tracemalloc.get_traced_memory()[0])
        tracemalloc.stop()
        del game
    return sizes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="official", help="official, or where the games lie")
    parser.add_argument("--games", type=int, default=5)
    parser.add_argument("--steps", type=int, default=30)
    given = parser.parse_args()

    env = ALFWorldEnv("valid_seen", data=given.data, max_steps=10**9)
    recorded = walks(env, given.games, given.steps)
    steps, resets = median(lambda: rates(env, recorded))
    print(f"native      {steps:12,.1f} steps/s  {resets:12,.1f} resets/s")
    taken = first_resets(given.data, 100)
    cold = 1 / statistics.median(taken)
    print(f"native, never-seen games          {cold:16,.1f} resets/s  (slowest of 100: {max(taken) * 1e3:.1f} ms)")
    if importlib.util.find_spec("textworld") and importlib.util.find_spec("alfworld"):
        slow_steps, slow_resets = median(lambda: textworld_rates(given.data, recorded))
        print(f"textworld   {slow_steps:12,.1f} steps/s  {slow_resets:12,.2f} resets/s")
        print(f"ratio       {steps / slow_steps:12,.0f}          {resets / slow_resets:12,.0f}", end="")
        print(f"  (never-seen games {cold / slow_resets:,.0f})")
    else:
        print("textworld is not installed: pip install 'taspo-bench[textworld]' to compare")
    print(f"memory      {memory_growth(given.data) / 1e6:.3f} MB gained over 1,000 resets")
    sizes = game_sizes(given.data)
    print(f"a game      {statistics.median(sizes) / 1e3:.0f} KB in memory (largest {max(sizes) / 1e3:.0f} KB)")


if __name__ == "__main__":
    main()
