"""The embedded splits: frozen, balanced, disjoint, and unseen in the two ways that they promise."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from taspo_bench.api import Split
from taspo_bench.errors import DataError, InputError, SplitError
from taspo_envs.alfworld import splits as embedded
from taspo_envs.alfworld.generator import TASK_TYPES, parse_id


@pytest.fixture
def other_manifest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A function that puts another manifest in place of the shipped one."""

    def put(manifest: object) -> None:
        path = tmp_path / "manifest.json"
        path.write_text(manifest if isinstance(manifest, str) else json.dumps(manifest))
        monkeypatch.setattr(embedded, "MANIFEST", path)
        embedded._manifest.cache_clear()
        embedded._digests.cache_clear()

    yield put
    embedded._manifest.cache_clear()
    embedded._digests.cache_clear()


def test_the_manifest_is_what_the_generator_makes() -> None:
    assert json.loads(embedded.MANIFEST.read_text()) == embedded.build_manifest()


def test_splits_have_their_sizes_and_every_family_in_equal_share() -> None:
    for name, kind, per_family in embedded.SPLITS:
        split = embedded.embedded_splits()[name]
        families = Counter(task_id.split("/")[0] for task_id in split.task_ids)
        assert split.kind == kind
        assert families == {family: per_family for family in TASK_TYPES}


def test_no_evaluation_task_is_in_training() -> None:
    Split.check_disjoint(embedded.embedded_splits())


def test_unseen_rooms_and_combinations_are_new_and_seen_ones_are_not() -> None:
    asked = {
        name: [parse_id(task_id) for task_id in split.task_ids] for name, split in embedded.embedded_splits().items()
    }
    rooms = {name: {room for _, room in pairs} for name, pairs in asked.items()}
    slugs = {name: {combo.slug for combo, _ in pairs} for name, pairs in asked.items()}
    assert rooms["train"].isdisjoint(rooms["valid_unseen"]) and rooms["valid_seen"] <= rooms["train"]
    assert slugs["train"].isdisjoint(slugs["valid_unseen"]) and slugs["valid_seen"] <= slugs["train"]
    assert len(rooms["valid_unseen"]) >= 16 and len(slugs["valid_unseen"]) == 6 * embedded.HELD_OUT_COMBOS


def test_what_is_held_out_is_the_combination_not_its_parts() -> None:
    train = [parse_id(task_id)[0] for task_id in embedded.embedded_splits()["train"].task_ids]
    for task_id in embedded.embedded_splits()["valid_unseen"].task_ids:
        combo, _ = parse_id(task_id)
        assert any(other.family == combo.family and other.recep == combo.recep for other in train)
        assert any(other.obj == combo.obj for other in train)


def test_check_states_the_proved_facts() -> None:
    assert "all 1002 games differ" in embedded.embedded_check()


def test_check_names_a_room_of_training_among_the_unseen(other_manifest) -> None:
    manifest = json.loads(embedded.MANIFEST.read_text())
    moved = next(iter(manifest["splits"]["train"]["games"]))
    manifest["splits"]["valid_unseen"]["games"][moved[:-4] + "9999"] = "0" * 16
    other_manifest(manifest)
    with pytest.raises(SplitError, match="valid_unseen shares rooms with training"):
        embedded.embedded_check()


def test_a_game_that_differs_from_the_manifest_is_refused(other_manifest) -> None:
    manifest = json.loads(embedded.MANIFEST.read_text())
    task_id = next(iter(manifest["splits"]["train"]["games"]))
    manifest["splits"]["train"]["games"][task_id] = "0" * 16
    other_manifest(manifest)
    with pytest.raises(DataError, match=task_id):
        embedded.embedded_game(task_id)


def test_a_broken_manifest_is_named(other_manifest) -> None:
    other_manifest('{"splits": ')
    with pytest.raises(DataError, match=r"manifest\.json: cannot be read"):
        embedded.embedded_splits()


def test_a_task_outside_the_splits_is_refused() -> None:
    task_id = embedded.embedded_splits()["train"].task_ids[0]
    with pytest.raises(InputError, match="in no embedded split"):
        embedded.embedded_game(task_id[:-4] + "9999")
    with pytest.raises(InputError, match="names no game"):
        embedded.embedded_game("heat/mug-moon/kitchen-03/0001")


def test_the_stamp_follows_the_games(other_manifest) -> None:
    before = embedded.embedded_stamp()
    manifest = json.loads(embedded.MANIFEST.read_text())
    manifest["splits"]["train"]["games"].popitem()
    other_manifest(manifest)
    assert embedded.embedded_stamp().sha256 != before.sha256
