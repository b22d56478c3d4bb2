"""Where the warm start that a benchmark ships lies."""

from __future__ import annotations

import inspect
from pathlib import Path

from taspo_bench import registry
from taspo_bench.config import CellConfig


def warm_start_folder(config: CellConfig) -> Path:
    """Where the policy starts from: the folder of the configuration, else the one that the benchmark ships."""
    if config.warm_start:
        return Path(config.warm_start)
    return Path(inspect.getfile(registry.env_class(config.env))).parent / "warm_start"
