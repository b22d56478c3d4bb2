"""Trained language models as folders: an adapter with its card, or a whole model as transformers lays it out."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from taspo_bench.config import CellConfig
from taspo_bench.errors import InputError
from taspo_bench.files import whole_folder, write_json
from taspo_bench.policies.adapters import START, merge_adapter
from taspo_bench.policies.chat_format import ChatFormat
from taspo_bench.policies.language_model import LanguageModel
from taspo_bench.policies.models import load_model
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
        elif isinstance(policy.format, ChatFormat):
            policy.format.tokenizer.save_pretrained(str(place))
        hashes = {path.name: sha256_of(path) for path in sorted(place.glob("*.safetensors"))}
        write_json(place / "card.json", {"schema": SCHEMA, "model": config.policy, **card, "sha256": hashes})


def export_merged(name: str, adapter: str, folder: Path) -> None:
    """Write a model with its adapter merged in as a plain folder of transformers, which any other program loads."""
    if folder.exists():
        raise InputError(f"--out {folder}: is there already; name a new folder")
    model, tokenizer = load_model(name)
    merged = merge_adapter(model, Path(adapter))
    with whole_folder(folder) as place:
        merged.save_pretrained(str(place))
        tokenizer.save_pretrained(str(place))
