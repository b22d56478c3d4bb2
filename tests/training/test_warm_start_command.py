"""`taspo-bench warm-start --out`: a folder that holds anything else is refused before training and left as it is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from taspo_bench.errors import InputError
from taspo_bench.files import refuse_replacing, whole_folder
from taspo_bench.training.warm_start_command import build, build_adapter


def tiny(out: Path) -> None:
    build(Console(quiet=True), "searchqa", "embedded", out, 0, 0.0, 60.0)


def adapter(out: Path) -> None:
    build_adapter(Console(quiet=True), "searchqa", "embedded", "nobody/nothing", out, 0, 60.0, [])


@pytest.mark.parametrize("make", [tiny, adapter])
@pytest.mark.parametrize("given", ["work", "."])
def test_a_folder_with_other_files_is_refused_and_keeps_them(
    make: Callable[[Path], None], given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "thesis.tex").write_text("mine")
    monkeypatch.chdir(folder if given == "." else tmp_path)
    with pytest.raises(InputError, match=rf"--out {given}: holds other files"):
        make(Path(given))
    assert (folder / "thesis.tex").read_text() == "mine"
    assert [path.name for path in tmp_path.rglob("*")] == ["work", "thesis.tex"]


def test_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="this is a file"):
        tiny(tmp_path / "file")


def test_an_absent_an_empty_and_an_earlier_folder_are_taken(tmp_path: Path) -> None:
    refuse_replacing(tmp_path / "new", "card.json")
    refuse_replacing(tmp_path, "card.json")
    for name in ("card.json", "model.safetensors"):
        (tmp_path / name).write_text("{}")
    refuse_replacing(tmp_path, "card.json")


def test_the_present_folder_is_replaced_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    with whole_folder(Path()) as place:
        (place / "card.json").write_text("{}")
    assert [path.name for path in folder.iterdir()] == ["card.json"]
