"""The official games: layouts, archives, counts, what is left out, and the index."""

from __future__ import annotations

import io
import json
import os
import shutil
import tarfile
import threading
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from alfworld_recorded import DATA, official

from taspo_bench.cache import cache_folder
from taspo_bench.errors import DataError, InputError
from taspo_envs.alfworld import official as reader
from taspo_envs.alfworld.env import ALFWorldEnv
from taspo_envs.alfworld.official import IncompleteDataError, OfficialData, locate, official_ids, read_json, scan

LOGIC = {"pddl_domain": "(define (domain d))", "grammar": '{"task": [{"rhs": "Your task is to: tidy up."}]}'}
STUB = json.dumps({**LOGIC, "pddl_problem": "(define)", "solvable": True}).encode()


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a game file, of no content, for every game of the release."""
    root = tmp_path_factory.mktemp("release") / "json_2.1.1"
    for split, task_ids in official_ids().items():
        for task_id in task_ids:
            (root / split / task_id).mkdir(parents=True)
            (root / split / task_id / "game.tw-pddl").write_bytes(STUB)
    return root


def test_the_ids_of_the_release_are_counted_and_sorted() -> None:
    ids = official_ids()
    assert {name: len(tasks) for name, tasks in ids.items()} == {
        "train": 3553,
        "valid_seen": 140,
        "valid_unseen": 134,
    }
    assert all(list(tasks) == sorted(set(tasks)) for tasks in ids.values())


def test_a_complete_folder_is_listed_sorted_by_id(release: Path) -> None:
    data = OfficialData(release, "test")
    assert {name: split.task_ids for name, split in data.splits().items()} == official_ids()
    assert data.check()[0] == "complete release: train 3553, valid_seen 140, valid_unseen 134"


@pytest.mark.parametrize("split", ["train", "valid_seen", "valid_unseen"])
def test_a_removed_game_file_is_named(release: Path, split: str) -> None:
    task_id = official_ids()[split][7]
    file = release / split / task_id / "game.tw-pddl"
    file.rename(file.with_name("elsewhere"))
    try:
        with pytest.raises(IncompleteDataError, match=task_id) as error:
            OfficialData(release, "test")
    finally:
        file.with_name("elsewhere").rename(file)
    assert error.value.exit_code == 1 and "\n" not in str(error.value)
    assert f"{split} of" in str(error.value) and "without a game file" in str(error.value)


MUG = "pick_and_place_simple-Mug-None-Desk-301"
MOVABLE = "pick_and_place_with_movable_recep-Mug-Bowl-Desk-301"
SLICED = "pick_and_place_simple-AppleSliced-None-CounterTop-10"


@contextmanager
def more_games(release: Path, games: Mapping[str, bytes | None]) -> Iterator[None]:
    """Further folders in training, with these game files (None: without one)."""
    folders = [release / "train" / task_id for task_id in games]
    try:
        for folder, content in zip(folders, games.values(), strict=True):
            folder.mkdir(parents=True)
            if content is not None:
                (folder / "game.tw-pddl").write_bytes(content)
        yield
    finally:
        for parent in {folder.parent for folder in folders}:
            shutil.rmtree(parent)


def changed(**changes: object) -> bytes:
    return json.dumps({**json.loads(STUB), **changes}).encode()


def test_folders_that_the_release_leaves_out_are_counted(release: Path) -> None:
    games = {
        f"{MOVABLE}/trial_empty": None,
        f"{MOVABLE}/trial_playable": STUB,
        f"{SLICED}/trial_playable": STUB,
        f"{MUG}/trial_empty": None,
        f"{MUG}/trial_unsolvable": changed(solvable=False),
        f"{MUG}/trial_unflagged": json.dumps({**LOGIC, "pddl_problem": "(define)"}).encode(),
    }
    with more_games(release, games):
        data = OfficialData(release, "test")
        assert len(data.splits()["train"]) == 3553
        assert data.check()[1] == (
            "left out: 3 left out by name (movable, sliced); 1 unsolvable; 1 without a game file; "
            "1 without the solvable flag"
        )
        with pytest.raises(DataError, match=r"trial_unsolvable.*unsolvable.*data fetch alfworld") as error:
            data.game(f"{MUG}/trial_unsolvable")
        assert str(release) in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (changed(pddl_problem=5), "not a game file"),
        (changed(pddl_domain=1, grammar=2), "not a game file"),
        (changed(pddl_problem="\ud800"), "not a game file"),
        (changed(grammar=r'{"task": [{"rhs": "a\q"}]}'), "without a task text"),
        (changed(grammar=r'{"task": [{"rhs": "\ud800"}]}'), "without a task text"),
        (changed(grammar="{}"), "without a task text"),
        (b"[" * 200_000, "not a complete JSON file"),
        (changed(solvable="false"), "with a solvable flag of another kind"),
        (changed(solvable=1), "with a solvable flag of another kind"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_game_file_of_wrong_types_is_left_out_alone(release: Path, content: bytes, reason: str) -> None:
    with more_games(release, {f"{MUG}/trial_odd": content}):
        data = OfficialData(release, "test")
        assert data.check()[1] == f"left out: 1 {reason}"
        with pytest.raises(DataError, match=f"trial_odd.*{reason}"):
            data.game(f"{MUG}/trial_odd")


def test_a_game_that_the_release_does_not_have_is_refused(release: Path) -> None:
    extra = release / "valid_seen" / "pick_and_place_simple-Mug-None-Desk-301" / "trial_new"
    extra.mkdir(parents=True)
    (extra / "game.tw-pddl").write_bytes(STUB)
    try:
        with pytest.raises(IncompleteDataError, match=r"trial_new.*not in the release"):
            OfficialData(release, "test")
    finally:
        (extra / "game.tw-pddl").unlink()
        extra.rmdir()
        extra.parent.rmdir()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "without a game file"),
        (STUB[:100], "not a complete JSON file"),
        (b"[]", "not a game file"),
        (b"{}", "not a game file"),
        (json.dumps({**LOGIC, "pddl_problem": ""}).encode(), "without the solvable flag"),
        (json.dumps({**LOGIC, "pddl_problem": "", "solvable": False}).encode(), "unsolvable"),
        (b"\xff\xfe", "not a complete JSON file"),
    ],
)
def test_a_game_file_that_cannot_be_played_is_told_why(content: bytes | None, reason: str) -> None:
    with pytest.raises(DataError, match=reason):
        read_json(content)


@pytest.mark.parametrize("layout", ["", "json_2.1.1", "alfworld/json_2.1.1", "alfworld"])
def test_a_folder_is_found_in_every_layout(tmp_path: Path, layout: str) -> None:
    (tmp_path / layout / "train").mkdir(parents=True)
    assert locate(tmp_path) == tmp_path / layout


@pytest.mark.parametrize("name", ["json_2.1.3_tw-pddl.tar.xz", "json_2.1.2_tw-pddl.zip"])
@pytest.mark.parametrize("folder", ["", "alfworld"])
def test_an_archive_is_found_in_its_folder_and_by_itself(tmp_path: Path, name: str, folder: str) -> None:
    (tmp_path / folder).mkdir(exist_ok=True)
    archive = tmp_path / folder / name
    archive.write_bytes(b"")
    assert locate(tmp_path) == archive and locate(archive) == archive


def test_a_folder_without_games_is_told_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="taspo-bench data fetch alfworld"):
        locate(tmp_path)


@pytest.mark.parametrize("kind", ["zip", "tar.xz"])
def test_games_are_read_straight_from_an_archive(tmp_path: Path, kind: str) -> None:
    archive = tmp_path / f"games.{kind}"
    members = {"json_2.1.1/valid_seen/task/trial/game.tw-pddl": STUB, "json_2.1.1/valid_seen/task/trial/other": b""}
    if kind == "zip":
        with zipfile.ZipFile(archive, "w") as packed:
            for name, content in members.items():
                packed.writestr(name, content)
    else:
        with tarfile.open(archive, "w:xz") as tar:
            for name, content in members.items():
                member = tarfile.TarInfo(name)
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
    assert list(scan(archive)) == [("valid_seen", "task/trial", STUB)]


@pytest.mark.parametrize("content", [b"no archive", b"PK\x03\x04 cut short", b"\xfd7zXZ\x00 cut short"])
def test_a_broken_archive_is_an_error_of_one_line(tmp_path: Path, content: bytes) -> None:
    archive = tmp_path / "json_2.1.3_tw-pddl.zip"
    archive.write_bytes(content)
    with pytest.raises(DataError, match="fetch it again") as error:
        OfficialData(archive, "test")
    assert "\n" not in str(error.value)
    assert not list(cache_folder().glob("partial-*"))


def test_a_cache_folder_that_cannot_be_written_is_named(
    release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TASPO_CACHE", str(tmp_path / "file"))
    with pytest.raises(DataError, match="TASPO_CACHE"):
        OfficialData(release, "test")


def test_official_means_the_data_folder_of_alfworld(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path))
    assert reader.default_folder() == tmp_path
    monkeypatch.delenv("ALFWORLD_DATA")
    assert reader.default_folder() == Path("~/.cache/alfworld").expanduser()


# --- the real release --------------------------------------------------------------------------------


def test_the_release_gives_its_splits_and_stamp() -> None:
    official()
    env = ALFWorldEnv("valid_unseen", data=str(DATA))
    assert [len(split) for split in env.splits().values()] == [3553, 140, 134]
    assert env.data_stamp() == ALFWorldEnv(data=str(DATA / "alfworld")).data_stamp().__class__(
        DATA.name, "json_2.1.1", env.data_stamp().sha256
    )
    assert "no evaluation task is in training" in env.check()


def test_the_families_of_the_release_are_counted() -> None:
    official()
    env = ALFWorldEnv(data=str(DATA))
    order = ("look", "pick", "clean", "heat", "cool", "two")
    counts = {
        name: [sum(env.task(task).family == family for task in split.task_ids) for family in order]
        for name, split in env.splits().items()
    }
    assert counts == {
        "train": [308, 790, 650, 459, 533, 813],
        "valid_seen": [13, 35, 27, 16, 25, 24],
        "valid_unseen": [18, 24, 31, 23, 21, 17],
    }


def test_a_game_comes_back_as_it_stands_in_the_archive() -> None:
    data = official()
    found = next(found for found in scan(data.path) if found.split == "valid_unseen")
    assert found.content is not None
    assert data.game(found.task_id) == json.loads(found.content)


def test_games_without_a_split_are_opened_by_id() -> None:
    env = ALFWorldEnv(data=str(official().path))
    task_id = official().ids["valid_train"][0]
    assert env.reset(options={"task_id": task_id})[1]["task_id"] == task_id
    assert not any(task_id in split.task_ids for split in env.splits().values())


def test_threads_open_games_at_once() -> None:
    data = official()
    found: list[int] = []
    threads = [
        threading.Thread(target=lambda t=task_id: found.append(len(data.game(t)["walkthrough"])))
        for task_id in data.ids["valid_seen"][:8]
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8


def test_an_unknown_id_is_refused_with_an_example() -> None:
    with pytest.raises(InputError, match="ids look like"):
        official().game("no/such")


def test_a_second_opening_builds_no_new_index() -> None:
    path = official().path
    before = {file: os.stat(file).st_mtime_ns for file in cache_folder().iterdir()}
    OfficialData(path, "again")
    assert {file: os.stat(file).st_mtime_ns for file in cache_folder().iterdir()} == before
