"""What a cell starts from: the tiny policy's warm start, or a language model with or without one."""

from __future__ import annotations

from typing import Any

from taspo_bench.config import CellConfig, refuse_model_settings
from taspo_bench.policies.language_model import LanguageModel
from taspo_bench.policies.shipped import warm_start_folder
from taspo_bench.training.checkpoint import load_tiny, read_card


def load_policy(config: CellConfig, is_trained: bool = True) -> LanguageModel:
    """The policy of a cell, ready to be trained unless ``is_trained`` is false."""
    if config.policy != "tiny":
        from taspo_bench.policies.models import chat_policy

        return chat_policy(config, is_trained)
    refuse_model_settings(config)
    return load_tiny(warm_start_folder(config))


def warm_start_card(config: CellConfig) -> dict[str, Any]:
    """How what the cell starts from was made; empty for a language model as it was published."""
    if config.policy != "tiny" and not config.warm_start:
        return {}
    return read_card(warm_start_folder(config))
