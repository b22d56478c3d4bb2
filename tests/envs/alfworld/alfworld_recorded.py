"""Recorded games and where they lie: the copies that the project keeps, and the shared folders where present.

``$TASPO_GOLDEN`` and ``$TASPO_DATA`` name the shared folders; by default they lie beside the project.
"""

from __future__ import annotations

import gzip
import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from taspo_envs.alfworld.game import TASK_PREFIX, Game, read_game
from taspo_envs.alfworld.generation import GENERATIONS, printed
from taspo_envs.alfworld.official import OfficialData, open_official

ROOT = Path(__file__).parents[3]
COPIES = ROOT / "tests" / "golden_copies" / "alfworld"
GOLDEN = Path(os.environ.get("TASPO_GOLDEN", ROOT.parent / "shared" / "golden"))
DATA = Path(os.environ.get("TASPO_DATA", ROOT.parent / "shared" / "data"))


def recorded(folder: str) -> list[Any]:
    """The recorded games of a golden folder, as parameters; a skipped one where it is not there."""
    found = sorted((GOLDEN / folder).glob("*.json.gz")) or [
        pytest.param(None, marks=pytest.mark.skip(reason=f"no {GOLDEN / folder}: set TASPO_GOLDEN"), id="absent")
    ]
    return [path if not isinstance(path, Path) else pytest.param(path, id=path.name.split(".")[0]) for path in found]


def copies() -> list[Any]:
    """The recorded games that the project keeps."""
    return [pytest.param(path, id=path.name.split(".")[0]) for path in sorted(COPIES.glob("*.json.gz"))]


@cache
def official() -> OfficialData:
    """The official games; skips where they are not there."""
    if not (DATA / "alfworld").is_dir():
        pytest.skip(f"no {DATA / 'alfworld'}: set TASPO_DATA")
    return open_official(str(DATA))


def load(path: Path) -> tuple[Game, dict[str, Any]]:
    """A recorded game, ready to play, and its record."""
    record = json.loads(gzip.decompress(path.read_bytes()))
    if "game" in record:
        return read_game(official().game(record["game"].partition("/")[2])), record
    generation = GENERATIONS["0.4" if record["alfworld"].startswith("0.4") else "0.3"]
    return Game(record["pddl_problem"], printed(f"{TASK_PREFIX}{record['task']}."), generation), record
