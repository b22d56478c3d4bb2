"""Raw files, imports and downloads: what is built, what is refused, and that nothing is left half-written."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from functools import cache, partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import chain
from pathlib import Path
from urllib.parse import parse_qs, urlparse

import pytest
import recorded

from taspo_bench.cache import cache_folder
from taspo_bench.errors import DataError, InputError, RunError
from taspo_envs.webshop.build import Source, build
from taspo_envs.webshop.catalogue import iter_json_array
from taspo_envs.webshop.choices import full_choice
from taspo_envs.webshop.env import WebShopEnv
from taspo_envs.webshop.fetch import FILES, fetch
from taspo_envs.webshop.locate import import_files
from taspo_envs.webshop.nouns import LexiconTagger
from taspo_envs.webshop.reward import option_matches
from taspo_envs.webshop.solver import solve
from taspo_envs.webshop.store import open_store

COPY = recorded.COPIES / "catalogue.json.gz"
needs_data = pytest.mark.skipif(not recorded.DATA.is_dir(), reason=f"no real data in {recorded.DATA}: set TASPO_DATA")


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    raw = recorded.read(COPY)
    folder = tmp_path / "raw"
    folder.mkdir()
    parts = {
        "items_shuffle_120.json": raw["products"],
        "items_ins_v2_120.json": raw["attributes"],
        "items_human_ins.json": raw["human_instructions"],
    }
    for name, value in parts.items():
        (folder / name).write_text(json.dumps(value))
    return [folder / name for name in parts]


def test_an_import_reports_counts_and_oddities_and_can_be_played(files: list[Path], tmp_path: Path) -> None:
    reported: list[tuple[str, int]] = []
    store = import_files(files, tmp_path / "built", lambda what, done: reported.append((what, done)))
    assert store.manifest["products"] == 120
    assert store.manifest["goals"] == {"human": 125, "synthetic": 573}
    assert store.manifest["oddities"]["asin seen before"] == 1
    assert ("index", 120) in reported
    assert store.report()[0] == "120 products, 125 human goals, 573 synthetic goals"
    assert "1 x asin seen before" in store.report()
    env = WebShopEnv(data=str(tmp_path / "built"))
    env.reset(seed=0)
    assert env.data_stamp().sha256 == store.manifest["sha256"]


def test_an_import_into_a_taken_folder_is_refused(files: list[Path], tmp_path: Path) -> None:
    import_files(files, tmp_path / "built")
    with pytest.raises(DataError, match="remove it first"):
        import_files(files, tmp_path / "built")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("items_shuffle_120.json", '[{"asin": "B1", "name"'),
        ("items_shuffle_120.json", '{"asin": "B1"}'),
        ("items_shuffle_120.json", '[{"asin": "B1"}]'),
        ("items_shuffle_120.json", ""),
        ("items_ins_v2_120.json", "<html>"),
        ("items_ins_v2_120.json", "[]"),
        ("items_human_ins.json", '{"B0KTAI6P8P": [{"instruction": "a"}]}'),
        ("items_human_ins.json", '{"B0KTAI6P8P": 5}'),
        ("items_ins_v2_120.json", '{"B0KTAI6P8P": {"attributes": ["a"], "instruction": "b"}}'),
        ("items_ins_v2_120.json", '{"B0KTAI6P8P": {"attributes": "a"}}'),
    ],
)
def test_a_broken_file_is_one_line_and_leaves_nothing(
    files: list[Path], tmp_path: Path, name: str, content: str
) -> None:
    next(path for path in files if path.name == name).write_text(content)
    with pytest.raises(DataError) as error:
        import_files(files, tmp_path / "to" / "built")
    assert "\n" not in str(error.value)
    assert not (tmp_path / "to").exists() or not list((tmp_path / "to").iterdir())


def test_a_missing_attribute_file_is_named(files: list[Path], tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"items_ins_v2\*\.json"):
        import_files(files[:1], tmp_path / "built")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no such file"):
        import_files([tmp_path / "items_shuffle.json"], tmp_path / "built")


def test_official_data_that_is_not_installed_is_answered_with_the_commands() -> None:
    with pytest.raises(InputError, match="data fetch webshop"):
        WebShopEnv(data="official")


def test_a_build_that_another_process_finished_first_keeps_that_one(tmp_path: Path) -> None:
    folder, tagger, source = tmp_path / "built", LexiconTagger(), recorded.source(COPY)
    raced = False

    def race(_what: str, _done: int) -> None:
        nonlocal raced
        if not raced:
            raced = True
            build(source, folder, tagger)
            (folder / "first").touch()

    build(source, folder, tagger, race)
    assert (folder / "first").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["built"]


def test_raw_files_that_have_changed_are_built_anew(files: list[Path]) -> None:
    before = WebShopEnv(data=str(files[0].parent)).data_stamp()
    files[2].write_text("{}")
    env = WebShopEnv(data=str(files[0].parent))
    assert env.data_stamp().sha256 != before.sha256
    assert env.goals == "synthetic"


@pytest.mark.parametrize("chunk", [1, 7, 64, 1 << 20])
def test_a_list_of_products_is_read_the_same_in_chunks_of_any_size(tmp_path: Path, chunk: int) -> None:
    path = tmp_path / "items.json"
    values = [{"a": 1.5, "b": "x, ] y"}, {}, {"c": ["é", None, "\U0001f642"]}]
    path.write_text(json.dumps(values, indent=1, ensure_ascii=False), encoding="utf-8")
    assert list(iter_json_array(path, chunk)) == values


def test_official_protocols_cut_the_fixed_order_by_position(files: list[Path]) -> None:
    data = str(files[0].parent)
    official = WebShopEnv(data=data, goals="synthetic", protocol="official", split="test")
    sizes = {name: len(split) for name, split in official.splits().items()}
    assert sizes == {"train": 0, "dev": 73, "test": 500}
    verl = WebShopEnv(data=data, goals="synthetic", protocol="verl-agent")
    assert {name: len(split) for name, split in verl.splits().items()} == {"train": 73, "test": 500}
    assert verl.splits()["test"].task_ids == official.splits()["test"].task_ids
    assert "no evaluation task is in training" in "\n".join(verl.check())


def test_products_of_one_id_or_query_never_stand_on_both_sides_of_our_splits(files: list[Path]) -> None:
    env = WebShopEnv(data=str(files[0].parent), goals="synthetic")
    assert any("none of its" in fact for fact in env.check())


class _Answers(BaseHTTPRequestHandler):
    """Serves files by id, as the drive does; an unknown id is a page for people."""

    def __init__(self, bodies: dict[str, bytes], *arguments: object) -> None:
        self._bodies = bodies
        super().__init__(*arguments)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        body = self._bodies.get(parse_qs(urlparse(self.path).query)["id"][0], b"<html>quota</html>")
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing on the terminal."""


@pytest.fixture
def drive() -> Iterator[tuple[str, dict[str, bytes]]]:
    """A host to download from, and what it serves by file id."""
    bodies: dict[str, bytes] = {}
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Answers, bodies))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", bodies
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_fetch_downloads_imports_and_leaves_only_the_store(
    drive: tuple[str, dict[str, bytes]], files: list[Path], tmp_path: Path
) -> None:
    host, bodies = drive
    bodies.update({key: path.read_bytes() for key, path in zip(FILES["small"].values(), files, strict=True)})
    told: list[tuple[str, int]] = []
    store = fetch("small", tmp_path / "built", lambda *news: told.append(news), host=host)
    size = files[0].stat().st_size
    what = f"bytes of items_shuffle_1000.json, {size / 1e6:,.1f} MB of about 5 MB"
    assert told[0] == (what, 0) and (what, size) in told
    assert store.manifest["goals"]["synthetic"] == 573
    assert not list(cache_folder().glob("webshop-*"))


def test_a_fetch_that_gets_a_page_for_people_says_what_to_do(
    drive: tuple[str, dict[str, bytes]], tmp_path: Path
) -> None:
    with pytest.raises(DataError, match="in a browser"):
        fetch("small", tmp_path / "built", host=drive[0])
    assert not (tmp_path / "built").exists()


def test_a_fetch_without_a_host_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="in a browser"):
        fetch("small", tmp_path / "built", host="http://127.0.0.1:9")


@needs_data
def test_the_small_set_has_the_published_goals() -> None:
    env = WebShopEnv(data=str(recorded.DATA.parent))
    assert env.store.manifest["products"] == 1000
    assert env.store.manifest["goals"] == {"human": 13, "synthetic": 6910}
    assert env.goals == "synthetic"
    official = WebShopEnv(data=str(recorded.DATA.parent), protocol="official")
    assert {name: len(split) for name, split in official.splits().items()} == {
        "train": 5410,
        "dev": 1000,
        "test": 500,
    }


@needs_data
@pytest.mark.parametrize("share", [pytest.param(1, marks=pytest.mark.slow), 20])
def test_the_expert_wins_every_real_goal_that_can_be_won(share: int) -> None:
    env = WebShopEnv(data=str(recorded.DATA.parent), max_steps=50)
    beyond = set(env.store.splits("synthetic")["beyond_reach"])
    assert len(beyond) == 458
    for goal_id in env.store.goal_ids("synthetic")[::share]:
        env.reset(options={"task_id": goal_id})
        assert env.session is not None
        actions = solve(env.session)
        for action in actions:
            env.step(action)
        assert env.won is (goal_id not in beyond), goal_id


@needs_data
def test_no_purchase_of_any_real_product_wins_the_goals_that_are_beyond_reach() -> None:
    store = WebShopEnv(data=str(recorded.DATA.parent)).store
    catalogue = [store.product(store.listing(row)[0]) for row in range(len(store))]
    values = {product.asin: set(chain.from_iterable(product.options.values())) for product in catalogue}
    every = set(chain.from_iterable(values.values()))
    fitting = cache(lambda option: {value for value in every if option_matches([value], [option])})
    for goal_id in store.splits("synthetic")["beyond_reach"]:
        goal = store.goal(goal_id)
        for product in catalogue:
            if all(values[product.asin] & fitting(option) for option in goal.options):
                wanted, price = store.product(goal.asin), store.price(product.asin)
                assert full_choice(product, wanted, goal, price) is None, (goal_id, product.asin)


def test_a_source_without_products_builds_an_empty_store(tmp_path: Path) -> None:
    store = open_store(build(Source([], {}, {}, "none", ""), tmp_path / "built", LexiconTagger()))
    assert len(store) == 0 and store.search("red") == [] and store.goal_ids("human") == ()
