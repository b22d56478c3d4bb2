"""What there is to say before a model is downloaded from the hub: its size, and where it will be kept."""

from __future__ import annotations

from pathlib import Path

import httpx
from huggingface_hub import HfApi, constants, try_to_load_from_cache
from huggingface_hub.errors import RepositoryNotFoundError

_WEIGHTS = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json")
_WAIT_S = 10.0


def download_line(name: str) -> str | None:
    """One line on the download that loading a model begins; None for a folder, for one that is here, and offline."""
    try:
        if Path(name).is_dir() or constants.HF_HUB_OFFLINE or _is_here(name):
            return None
        size = _size(name)
    except (RepositoryNotFoundError, ValueError):
        return None  # no such model: loading it says so
    amount = f"{size / 1e9:.1f} GB of weights" if size else "of a size that the hub does not tell, maybe gigabytes"
    return f"downloading {name} from {constants.ENDPOINT}, {amount}, kept in {constants.HF_HUB_CACHE}"


def _is_here(name: str) -> bool:
    return any(isinstance(try_to_load_from_cache(name, file), str) for file in _WEIGHTS)


def _size(name: str) -> int:
    """Bytes of the weights that would be loaded; 0 if the hub does not tell."""
    try:
        files = HfApi(endpoint=constants.ENDPOINT).model_info(name, files_metadata=True, timeout=_WAIT_S).siblings
    except RepositoryNotFoundError:
        raise
    except (OSError, httpx.HTTPError):
        return 0
    for suffix in (".safetensors", ".bin"):
        if found := sum(file.size or 0 for file in files or () if file.rfilename.endswith(suffix)):
            return found
    return 0
