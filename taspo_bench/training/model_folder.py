"""Trained language models as folders: an adapter with its card, or a whole model as transformers lays it out."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from taspo_bench.config import CellConfig
from taspo_bench.files import whole_folder, write_json
from taspo_bench.policies.adapters import START
from taspo_bench.policies.chat_format import ChatFormat
from taspo_bench.policies.language_model import LanguageModel
from taspo_bench.policies.models import chat_policy
from taspo_bench.training.checkpoint import SCHEMA, sha256_of


def save_model_folder(folder: Path, config: CellConfig, policy: LanguageModel, card: dict[str, Any]) -> None:
    """Write what ``--adapter`` and ``warm_start`` take, or what ``--model`` takes if all weights were trained.

    An adapter goes with a copy of the one that it was trained on top of.
    """
    with whole_folder(folder) as place:
        policy.model.save_pretrained(str(place))
        if policy.has_adapter:
            (place / "README.md").unlink(missing_ok=True)  # a form to fill in; the card says what there is to say
            if config.warm_start:
                shutil.copytree(config.warm_start, place / START)
        else:
            _save_tokenizer(policy, place)
        hashes = {path.name: sha256_of(path) for path in sorted(place.glob("*.safetensors"))}
        write_json(place / "card.json", {"schema": SCHEMA, "model": config.policy, **card, "sha256": hashes})


def export_merged(config: CellConfig, folder: Path) -> None:
    """Write a model with its adapter merged in as a plain folder of transformers, which any other program loads."""
    policy = chat_policy(config, is_trained=False)
    temporary = folder.with_name(folder.name + ".tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    policy.model.save_pretrained(str(temporary))
    _save_tokenizer(policy, temporary)
    os.replace(temporary, folder)


def _save_tokenizer(policy: LanguageModel, folder: Path) -> None:
    fmt = policy.format
    assert isinstance(fmt, ChatFormat)
    fmt.tokenizer.save_pretrained(str(folder))
