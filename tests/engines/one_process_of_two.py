"""What each process of the test of two processes does: one update, then a file with what it saw."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from safetensors.torch import save_file

from graded_world import CONFIG, TASKS, GradedCorridor, make_graded
from taspo_bench.config import CellConfig
from taspo_bench.engines import processes
from taspo_bench.engines.trl_settings import check, make_config
from taspo_bench.engines.trl_trainer import AgentGRPOTrainer
from taspo_bench.taspo.analyzers.replay import ReplayAnalyzer
from taspo_bench.taspo.scheme import TASPO
from taspo_bench.training.loop import Trained
from tiny_world import corridor_policy


def main(folder: Path) -> None:
    config = CellConfig(**CONFIG | {"updates": 1, "kl_coef": 0.0}, engine="trl")
    check(config, processes.count())
    args = make_config(config, folder, processes.count())
    args.save_strategy = "no"
    policy = corridor_policy()
    reports: list[Trained] = []
    analyzer = ReplayAnalyzer(GradedCorridor(), scope="trajectory", reveal=True, source="generic")
    trainer = AgentGRPOTrainer(config, policy, TASPO(), analyzer, make_graded, TASKS, args, reports.append)
    trainer.train()
    saw = {
        "played": [[episode.task_id, episode.actions] for episode in trainer.episodes],
        "groups": [[[e.task_id, e.actions] for e in group.episodes] for group in trainer.groups],
        "credit": [episode.credit for group in trainer.groups for episode in group.episodes],
        "reports": len(reports),
    }
    name = f"rank-{processes.rank()}"
    (folder / f"{name}.json").write_text(json.dumps(saw))
    save_file({key: value.clone() for key, value in policy.model.state_dict().items()}, folder / f"{name}.st")


main(Path(sys.argv[1]))
