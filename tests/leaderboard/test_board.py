"""Ranks, ties, references, and the listings of a leaderboard."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest
from submission_builder import Json, edit_episodes, edit_manifest, evaluation, packed, submission, unpacked
from typer.testing import CliRunner

from taspo_bench.errors import InputError
from taspo_bench.leaderboard.commands import leaderboard_app
from taspo_bench.leaderboard.site import build_site

Rows = dict[str, dict[str, str]]
HOSTILE = "=1+1 | [x](javascript:x) <script>alert(1)</script>"


@pytest.fixture(scope="module")
def submissions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Strong and near are close to each other, weak is far below; narrow lacks unseen tasks."""
    folder = tmp_path_factory.mktemp("board")
    subs = folder / "subs"
    subs.mkdir()
    for name, skill, seed in (("strong", 0.75, 0), ("near", 0.72, 1), ("weak", 0.1, 0), ("expert", 1.0, 0)):
        played = evaluation(folder / name, "alfworld", skill, seed, method=name)
        submission(subs / f"{name}.tar.gz", [played], name.capitalize(), base_model=f"{name} model")
    seen_only = evaluation(folder / "narrow", "alfworld", 0.5, tasks=4)
    (seen_only / "eval-valid_unseen.jsonl.gz").unlink()
    submission(subs / "narrow.tar.gz", [seen_only], "Narrow")
    whole = [evaluation(folder / f"whole-{env}", env, 0.4) for env in ("alfworld", "searchqa", "webshop")]
    submission(subs / "whole.tar.gz", whole, HOSTILE, environment_steps=None)
    return subs


@pytest.fixture(scope="module")
def site(submissions: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_site(submissions, tmp_path_factory.mktemp("site") / "site", url="https://example.org/board").out


@pytest.fixture(scope="module")
def rows(site: Path) -> Rows:
    """The ALFWorld board by submission."""
    table = csv.DictReader(io.StringIO((site / "leaderboard.csv").read_text()))
    return {row["submission"]: row for row in table if row["board"] == "alfworld"}


def test_a_lead_that_is_not_told_apart_from_0_shares_the_rank(rows: Rows) -> None:
    assert float(rows["Strong"]["unseen"]) != float(rows["Near"]["unseen"])
    assert [rows[name]["rank"] for name in ("Strong", "Near", "Weak")] == ["1", "1", "4"]
    assert [rows[name]["tied"] for name in ("Strong", "Near", "Weak")] == ["True", "True", "False"]


def test_the_expert_has_no_rank_and_takes_none_away(rows: Rows) -> None:
    assert (rows["Expert"]["rank"], rows["Expert"]["ranked"]) == ("", "False")
    assert float(rows["Expert"]["unseen"]) == 1


def test_a_submission_without_the_unseen_split_has_no_rank(rows: Rows) -> None:
    assert (rows["Narrow"]["rank"], rows["Narrow"]["ranked"], rows["Narrow"]["unseen"]) == ("", "True", "")
    assert rows["Narrow"]["notes"] == "98 episodes missing, counted 0"


def test_intervals_hold_their_figure(rows: Rows) -> None:
    for row in rows.values():
        for kind in ("seen", "unseen"):
            if row[kind]:
                assert float(row[f"{kind}_low"]) <= float(row[kind]) <= float(row[f"{kind}_high"])
                assert float(row[f"{kind}_low"]) < float(row[f"{kind}_high"])


def test_temperatures_are_shown_on_a_board_where_they_differ(submissions: Path, tmp_path: Path) -> None:
    folder = tmp_path / "subs"
    folder.mkdir()
    for name, temperature in (("strong", 1.0), ("near", 0.4), ("weak", 0.4)):
        members = unpacked(submissions / f"{name}.tar.gz")

        def say(manifest: Json, temperature: float = temperature) -> None:
            manifest["benchmarks"]["alfworld"]["temperature"] = temperature

        packed(folder / f"{name}.tar.gz", edit_manifest(members, say))
    shutil.copy(submissions / "whole.tar.gz", folder)
    site = build_site(folder, tmp_path / "differing").out
    table = list(csv.DictReader(io.StringIO((site / "leaderboard.csv").read_text())))
    notes = {row["submission"]: row["notes"] for row in table if row["board"] == "alfworld"}
    expected = {"Strong": "temperature 1", "Near": "temperature 0.4", "Weak": "temperature 0.4"}
    assert notes == {**expected, f"'{HOSTILE}": "temperature not said"}
    assert {row["notes"] for row in table if row["board"] != "alfworld"} == {""}
    pages = [page.read_text() for page in sorted(site.glob("submissions/*.html"))]
    said = [re.findall("Temperature, as declared: ([^.]+(?:[.][0-9])?)[.]", page) for page in pages]
    assert sorted(said) == [["0.4"], ["0.4"], ["1"], ["not said"] * 3]
    for name in ("strong", "whole"):
        (folder / f"{name}.tar.gz").unlink()
    alike = build_site(folder, tmp_path / "alike").out
    assert "temperature" not in (alike / "leaderboard.csv").read_text()


def test_the_overall_board_holds_those_that_have_every_benchmark(site: Path) -> None:
    table = list(csv.DictReader(io.StringIO((site / "leaderboard.csv").read_text())))
    assert [row["submission"] for row in table if row["board"] == "overall"] == [f"'{HOSTILE}"]
    parts = [
        row for row in table if row["board"] in ("alfworld", "searchqa", "webshop") and HOSTILE in row["submission"]
    ]
    (overall,) = [row for row in table if row["board"] == "overall"]
    assert float(overall["unseen"]) == pytest.approx(sum(float(row["unseen"]) for row in parts) / 3, abs=1e-6)


def test_a_name_cannot_become_markup_or_a_formula(site: Path) -> None:
    for path in [site / "index.html", *site.glob("submissions/*.html")]:
        assert "<script>alert" not in path.read_text()
    listing = (site / "leaderboard.md").read_text()
    assert "<script" not in listing and "](" not in listing
    assert all(line.count(" | ") == 7 for line in listing.splitlines() if line.startswith("|"))
    assert "\n=1" not in (site / "leaderboard.csv").read_text().replace(",", "\n")


def test_the_feeds_name_every_submission_with_its_address(site: Path) -> None:
    items = ElementTree.parse(site / "feed.xml").getroot().findall("channel/item")
    feed = json.loads((site / "feed.json").read_text())
    assert HOSTILE in [item.findtext("title") for item in items]
    assert [item.findtext("link") for item in items] == [item["url"] for item in feed["items"]]
    for item in feed["items"]:
        page = item["url"].removeprefix("https://example.org/board/")
        assert (site / page).is_file()


def test_pages_link_only_to_pages_that_there_are(site: Path) -> None:
    for path in site.rglob("*.html"):
        for link in re.findall(r'(?:href|src)="([^"#]*)"', path.read_text()):
            assert link in ("", "data:,") or (path.parent / link).is_file(), (path, link)


def test_building_twice_gives_the_same_bytes(site: Path, submissions: Path, tmp_path: Path) -> None:
    again = build_site(submissions, tmp_path / "again", url="https://example.org/board/").out
    names = {path.relative_to(site) for path in site.rglob("*") if path.is_file()}
    assert names == {path.relative_to(again) for path in again.rglob("*") if path.is_file()}
    assert all((site / name).read_bytes() == (again / name).read_bytes() for name in names)


def test_what_is_not_verified_is_left_out_and_named(submissions: Path, tmp_path: Path) -> None:
    folder = tmp_path / "subs"
    folder.mkdir()
    shutil.copy(submissions / "strong.tar.gz", folder)
    shutil.copy(submissions / "strong.tar.gz", folder / "twice.tar.gz")
    members = unpacked(submissions / "near.tar.gz")
    packed(folder / "false.tar.gz", edit_episodes(members, lambda records: records[0].update(seed=9)))
    (folder / "broken.tar.gz").write_bytes(b"nothing")
    result = CliRunner().invoke(leaderboard_app, ["build", str(folder)])
    assert result.exit_code == 1
    assert "left out: broken.tar.gz: malformed: the archive is no gzip file" in result.output
    assert "left out: false.tar.gz: episodes/alfworld.jsonl, line 1" in result.output
    assert "left out: twice.tar.gz: the same submission as strong.tar.gz" in result.output
    assert len(list((folder / "site/submissions").iterdir())) == 1


def test_a_submission_whose_data_is_not_here_is_left_out_and_named(submissions: Path, tmp_path: Path) -> None:
    folder = tmp_path / "subs"
    folder.mkdir()

    def elsewhere(manifest: Json) -> None:
        manifest["benchmarks"]["alfworld"]["data"]["source"] = "elsewhere"

    packed(folder / "real.tar.gz", edit_manifest(unpacked(submissions / "weak.tar.gz"), elsewhere))
    built = build_site(folder, tmp_path / "site", data=str(tmp_path / "nothing"))
    assert "cannot be verified here" in built.left_out["real.tar.gz"]
    assert built.submissions == 0


def test_a_second_build_replaces_the_first(submissions: Path, tmp_path: Path) -> None:
    folder = tmp_path / "subs"
    folder.mkdir()
    shutil.copy(submissions / "weak.tar.gz", folder)
    assert CliRunner().invoke(leaderboard_app, ["build", str(folder)]).exit_code == 0
    (folder / "weak.tar.gz").unlink()
    assert CliRunner().invoke(leaderboard_app, ["build", str(folder)]).exit_code == 0
    assert list((folder / "site/submissions").iterdir()) == []
    assert "There is no verified submission yet" in (folder / "site/index.html").read_text()


def test_a_folder_with_other_files_is_never_replaced(submissions: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(InputError, match=r"holds something that is no leaderboard's"):
        build_site(submissions, tmp_path)
    assert (tmp_path / "thesis.txt").read_text() == "years of work"
