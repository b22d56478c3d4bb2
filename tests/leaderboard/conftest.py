"""The submission that is tampered with."""

from __future__ import annotations

import json

import pytest
from submission_builder import Members, evaluation, submission, unpacked

TASKS = 8
"""Tasks handed in of each split; all are won."""


@pytest.fixture(scope="session")
def members(tmp_path_factory: pytest.TempPathFactory) -> Members:
    folder = tmp_path_factory.mktemp("tampering")
    played = evaluation(folder / "played", "alfworld", 1.0, tasks=TASKS)
    found = unpacked(submission(folder / "whole.tar.gz", [played]))
    records = [json.loads(line) for line in found["episodes/alfworld.jsonl"].splitlines()]
    assert records[0]["won"] and len(records[0]["actions"]) > 3
    return found
