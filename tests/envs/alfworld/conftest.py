"""Keeps the index of official games out of the user's cache."""

import os
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def index_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    before = os.environ.get("TASPO_CACHE")
    os.environ["TASPO_CACHE"] = before or str(tmp_path_factory.mktemp("cache"))
    yield
    if before is None:
        del os.environ["TASPO_CACHE"]
