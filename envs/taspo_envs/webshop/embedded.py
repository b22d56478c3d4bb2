"""The catalogue that comes with the package: generated, checked against a frozen manifest, built like any other."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Any

from taspo_bench.errors import DataError
from taspo_envs.webshop.build import Source, build, sha256_of
from taspo_envs.webshop.generator import Catalogue, generate
from taspo_envs.webshop.nouns import LexiconTagger

EVALUATION_GOALS = 100
FROZEN = "embedded.json"


def frozen() -> dict[str, Any]:
    """The shipped manifest: digests of the catalogue and of each split's ids, and the held-out queries."""
    manifest: dict[str, Any] = json.loads(resources.files("taspo_envs.webshop").joinpath(FROZEN).read_text("utf-8"))
    return manifest


def digest(catalogue: Catalogue) -> str:
    """sha256 of the generated raw files."""
    parts = [*catalogue.products, catalogue.attributes, catalogue.instructions]
    return sha256_of(json.dumps(part, sort_keys=True) for part in parts)


def build_embedded(folder: Path) -> Path:
    """Generate the catalogue and build its store; :class:`DataError` if it is not the frozen one."""
    catalogue, expected = generate(), frozen()["sha256"]
    found = digest(catalogue)
    if found != expected:
        raise DataError(
            f"the generated WebShop catalogue is {found[:12]}, expected {expected[:12]}: reinstall taspo-bench"
        )
    source = Source(
        catalogue.products, catalogue.attributes, catalogue.instructions, "embedded", found, EVALUATION_GOALS
    )
    return build(source, folder, LexiconTagger())
