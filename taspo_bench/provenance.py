"""What results depend on besides their settings: versions of packages, the commit of the source, the processor."""

from __future__ import annotations

import platform
import subprocess
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


def provenance() -> dict[str, object]:
    """Versions and commit, for the records beside results."""
    return {"versions": versions(), "git": git_hash()}


def versions() -> dict[str, str]:
    """Versions of what the numbers depend on."""
    packages = ("taspo-bench", "torch", "transformers", "tokenizers", "numpy", "gymnasium")
    return {"python": platform.python_version(), **{name: version(name) for name in packages}}


def processor(device: torch.device) -> str:
    """What the last bits of a product depend on: the graphics processor, or the instructions PyTorch uses here."""
    import torch

    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"{platform.machine()} {torch.backends.cpu.get_cpu_capability()}"


def git_hash() -> str:
    """The commit of the source tree that the package is run from; empty outside of one."""
    own = ["git", "-C", str(Path(__file__).parent)]
    with suppress(OSError, subprocess.CalledProcessError):
        # an installed package may lie in an environment inside another project's repository
        subprocess.run([*own, "ls-files", "--error-unmatch", Path(__file__).name], capture_output=True, check=True)
        return subprocess.run([*own, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
    return ""
