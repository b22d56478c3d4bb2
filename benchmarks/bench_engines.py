"""Speed of training: the own loop against the TRL engine on the same updates of a tiny policy, in one run.

    python benchmarks/bench_engines.py [--updates N] [--env NAME]

Both play the same tasks from the same seeds with GRPO's credit and take one optimizer step an update. Times are of
the processor, in one thread, so that other work on the machine does not count; the first update of each is left out,
and so is what comes before it. Needs the extra ``[trl]`` and is left out without it.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import tempfile
import time
from pathlib import Path

import torch

from taspo_baselines.grpo import GRPO
from taspo_bench import registry
from taspo_bench.config import CellConfig, resolve
from taspo_bench.training.cell import environment_maker
from taspo_bench.training.loop import Trained, Trainer
from taspo_bench.training.starting_policy import load_policy

EXPECTED = 1.5


class Lap:
    """Processor time and work of every update but the first."""

    def __init__(self) -> None:
        self.seconds = self.tokens = 0.0
        self.phases: dict[str, float] = {}
        self._since: float | None = None

    def end(self, trained: Trained) -> None:
        now = time.process_time()
        if self._since is not None:
            self.seconds += now - self._since
            self.tokens += float(str(trained.metrics["response_tokens"]))
            seconds = trained.metrics["seconds"]
            assert isinstance(seconds, dict)
            for phase, spent in seconds.items():
                self.phases[phase] = self.phases.get(phase, 0.0) + spent
        self._since = time.process_time()


def own(config: CellConfig, tasks: list[str]) -> Lap:
    trainer = Trainer(config, load_policy(config), GRPO(), None, environment_maker(config), tasks)
    lap = Lap()
    for number in range(config.updates):
        lap.end(trainer.update(number))
    return lap


def through_trl(config: CellConfig, tasks: list[str]) -> Lap:
    from taspo_bench.engines.trl_settings import make_config
    from taspo_bench.engines.trl_trainer import AgentGRPOTrainer

    lap = Lap()
    with tempfile.TemporaryDirectory() as folder:
        args = make_config(config, Path(folder), 1)
        args.save_strategy = "no"
        make_env = environment_maker(config)
        AgentGRPOTrainer(config, load_policy(config), GRPO(), None, make_env, tasks, args, lap.end).train()
    return lap


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--updates", type=int, default=4)
    parser.add_argument("--env", default="alfworld")
    given = parser.parse_args()
    if importlib.util.find_spec("trl") is None:
        print("engines: trl is not installed; pip install 'taspo-bench[trl]'")
        return
    torch.set_num_threads(1)
    presets = registry.env_class(given.env).presets
    cell = {"method": "grpo", "env": given.env, "seed": 0, "data": "embedded"}
    config = resolve("smoke", presets, {"updates": given.updates, "engine": "trl"}, **cell)
    tasks = list(environment_maker(config)().splits()["train"].task_ids)
    laps = {"own": own(config, tasks), "trl": through_trl(config, tasks)}
    for name, lap in laps.items():
        phases = ", ".join(f"{phase} {seconds:.2f} s" for phase, seconds in lap.phases.items())
        print(
            f"engine {name}: {lap.tokens / lap.seconds:,.0f} response tokens/s, "
            f"{lap.seconds / (given.updates - 1):.2f} s an update ({given.env}, tiny, one thread; clock: {phases})"
        )
    ratio = laps["own"].tokens / laps["own"].seconds / (laps["trl"].tokens / laps["trl"].seconds)
    print(f"engines: the own loop is {ratio:.2f} times as fast as engine trl; expected: {EXPECTED} or more")
    if ratio < EXPECTED:
        print("engines: less than expected; the clocks above say in which phase")


if __name__ == "__main__":
    sys.exit(main())
