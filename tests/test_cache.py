"""One cache folder for everything that is built once."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from taspo_bench.cache import cache_folder
from taspo_envs.searchqa.store import stores_folder
from taspo_envs.webshop.locate import official_folder


def test_a_named_folder_may_begin_with_a_tilde(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TASPO_CACHE", "~/built")
    assert cache_folder() == tmp_path / "built"
    assert stores_folder() == tmp_path / "built" / "searchqa"
    assert official_folder() == tmp_path / "built" / "webshop" / "official"


@pytest.mark.skipif(sys.platform != "linux", reason="other platforms have places of their own")
@pytest.mark.parametrize("given", [None, ""])
def test_the_default_follows_the_user_s_cache_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, given: str | None
) -> None:
    if given is None:
        monkeypatch.delenv("TASPO_CACHE", raising=False)
    else:
        monkeypatch.setenv("TASPO_CACHE", given)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert cache_folder() == tmp_path / ".cache" / "taspo-bench"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "taspo-bench"
