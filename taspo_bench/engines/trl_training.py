"""Training of one cell through TRL: the same files as the own loop, with TRL's own checkpoints."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from taspo_bench.api import TextEnv
from taspo_bench.config import CellConfig
from taspo_bench.credit import CreditScheme
from taspo_bench.engines import processes
from taspo_bench.engines.trl_settings import check, make_config
from taspo_bench.engines.trl_trainer import AgentGRPOTrainer
from taspo_bench.files import write_json
from taspo_bench.policies.language_model import LanguageModel
from taspo_bench.taspo.analyzers import Analyzer
from taspo_bench.training import record
from taspo_bench.training.kept_policies import keep_best
from taspo_bench.training.loggers import CellLog
from taspo_bench.training.loop import Trained

STATE = "taspo_bench.json"


class RecordingTrainer(AgentGRPOTrainer):
    """Keeps beside each of TRL's checkpoints what the cell must know to go on from it."""

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        super()._save_checkpoint(model, trial)
        states = processes.gathered([self.analyzer.state() if self.analyzer is not None else {}])
        if processes.is_first():
            place = Path(str(self.args.output_dir), f"checkpoint-{self.state.global_step}")
            analyzer = {key: value for state in states for key, value in state.items()}
            state = {"update": self.updates_done, "env_steps": self.env_steps, "analyzer": analyzer}
            write_json(place / STATE, state)


def train(
    config: CellConfig,
    folder: Path,
    policy: LanguageModel,
    scheme: CreditScheme,
    analyzer: Analyzer | None,
    make_env: Callable[[], TextEnv],
    task_ids: Sequence[str],
    notify: Callable[[str, int, int], None],
    log: CellLog,
) -> None:
    """Train the policy of a cell in place. Goes on from the newest whole checkpoint; every process must take part."""
    if config.updates == 0:
        if processes.is_first():
            record.begin(folder, 0)
        return
    check(config, processes.count())
    checkpoints = folder / "checkpoint"
    args = make_config(config, checkpoints, processes.count())
    if config.kl_coef > 0 and not policy.has_adapter:
        # TRL reads its reference model from where the policy says it comes from
        start = folder / "checkpoint" / "start"
        if processes.is_first():
            policy.model.save_pretrained(start)
        policy.model.config._name_or_path = str(start)
        processes.agree([0])

    env = make_env()

    def report(trained: Trained) -> None:
        done = trainer.updates_done
        if record.add(folder, config, done, trained):
            keep_best(folder, config, policy, env, done)
        log.update(done, trained.metrics)
        notify("train", done, config.updates)

    warnings.filterwarnings("ignore", message="`is_gradient_checkpointing` is deprecated", category=FutureWarning)
    trainer = RecordingTrainer(config, policy, scheme, analyzer, make_env, task_ids, args, report)
    last = _newest_whole(checkpoints)
    state: dict[str, Any] = {"update": 0, "env_steps": 0, "analyzer": {}}
    if last is not None:
        state = json.loads((last / STATE).read_text(encoding="utf-8"))
    if analyzer is not None:
        analyzer.load_state(state["analyzer"])
    trainer.env_steps, trainer.updates_done = state["env_steps"], state["update"]
    if processes.is_first():
        record.begin(folder, state["update"])
    notify("train", state["update"], config.updates)
    trainer.train(resume_from_checkpoint=str(last) if last is not None else None)
    policy.model.eval()


def _newest_whole(checkpoints: Path) -> Path | None:
    """The last checkpoint whose state was written too; a kill may have come in between."""
    found = {int(path.name.partition("-")[2]): path for path in checkpoints.glob("checkpoint-*")}
    return next((found[step] for step in sorted(found, reverse=True) if (found[step] / STATE).is_file()), None)
