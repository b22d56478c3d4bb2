"""Checkpoints: a policy's folder (weights, tokenizer, card), and a trainer's state between updates.

Everything is written beside its place and then renamed; there is never half a checkpoint.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save
from tokenizers import Tokenizer

from taspo_bench.errors import DataError
from taspo_bench.files import whole_folder, write_json, write_text
from taspo_bench.policies.language_model import LanguageModel
from taspo_bench.policies.tiny import of_shape, plain, tiny_policy

SCHEMA = 1


def sha256_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def save_tiny(
    folder: Path,
    policy: LanguageModel,
    tokenizer: Tokenizer,
    card: dict[str, Any],
    precision: torch.dtype = torch.float16,
) -> None:
    """Write a tiny policy with its tokenizer and its card (hashes are added)."""
    weights = {name: value.to(precision).contiguous() for name, value in policy.model.state_dict().items()}
    weights.pop("lm_head.weight", None)  # tied to the embedding
    shape = {
        key: getattr(policy.model.config, key)
        for key in ("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads")
    }
    with whole_folder(folder) as place:
        _write_tensors(place / "model.safetensors", weights)
        write_text(place / "tokenizer.json", tokenizer.to_str(pretty=True))
        hashes = {name: sha256_of(place / name) for name in ("model.safetensors", "tokenizer.json")}
        write_json(place / "card.json", {"schema": SCHEMA, **card, "shape": shape, "sha256": hashes})


def read_card(folder: Path) -> dict[str, Any]:
    """The card of a policy folder; :class:`DataError` if it is not one."""
    path = folder / "card.json"
    if not path.is_file():
        raise DataError(
            f"{folder}: not a policy folder (it has no card.json); make one with `taspo-bench warm-start`"
        )
    card: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if card.get("schema") != SCHEMA:
        raise DataError(f"{path}: schema {card.get('schema')!r}, this version reads schema {SCHEMA}")
    return card


def load_tiny(folder: Path) -> LanguageModel:
    """Read what :func:`save_tiny` wrote, in single precision; hashes are checked."""
    card = read_card(folder)
    for name, expected in card["sha256"].items():
        if not (folder / name).is_file() or sha256_of(folder / name) != expected:
            raise DataError(
                f"{folder / name}: missing or not what card.json says; make it again with `{card['command']}`"
            )
    tokenizer = plain(Tokenizer.from_file(str(folder / "tokenizer.json")))
    model = of_shape(card["shape"])
    weights = {name: value.float() for name, value in load_file(str(folder / "model.safetensors")).items()}
    model.load_state_dict(weights, strict=False)
    model.tie_weights()
    return tiny_policy(model, tokenizer)


def save_trainer(
    folder: Path, policy: LanguageModel, optimizer: torch.optim.Optimizer, state: dict[str, Any]
) -> None:
    """Keep the state after an update; the one before it is removed once this one is whole."""
    moments = {
        f"{index}.{name}": value
        for index, entry in optimizer.state_dict()["state"].items()
        for name, value in entry.items()
    }
    place = folder / f"update-{state['update']:05d}"
    with whole_folder(place) as filling:
        _write_tensors(filling / "model.safetensors", _trained(policy.model))
        _write_tensors(filling / "optimizer.safetensors", moments)
        write_json(filling / "state.json", {"schema": SCHEMA, **state})
    for old in folder.glob("update-*"):
        if old != place:
            shutil.rmtree(old)


def load_trainer(folder: Path, policy: LanguageModel, optimizer: torch.optim.Optimizer) -> dict[str, Any] | None:
    """Put policy and optimizer where the newest whole checkpoint left them; its state, or None if there is none."""
    found = _checkpoints(folder)
    if not found:
        return None
    policy.model.load_state_dict(load_file(str(found[-1] / "model.safetensors")), strict=False)
    state: dict[int, dict[str, Any]] = {}
    for key, value in load_file(str(found[-1] / "optimizer.safetensors")).items():
        index, _, name = key.partition(".")
        state.setdefault(int(index), {})[name] = value
    optimizer.load_state_dict({**optimizer.state_dict(), "state": state})
    record: dict[str, Any] = json.loads((found[-1] / "state.json").read_text(encoding="utf-8"))
    return record


def _checkpoints(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("update-?????") if (path / "state.json").is_file())


def _write_tensors(path: Path, tensors: dict[str, torch.Tensor]) -> None:
    # safetensors' own writer does not say which error of the system stopped it
    path.write_bytes(save(tensors))


def _trained(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """The weights that training changes, those that are tied to others once."""
    return {name: weight.detach().contiguous() for name, weight in model.named_parameters() if weight.requires_grad}
