"""Submissions played on the data that users install, and how long it takes to verify them."""

from __future__ import annotations

import os
import time
from functools import partial
from pathlib import Path

import pytest
from submission_builder import describe, evaluation, submission

from taspo_bench import registry
from taspo_bench.leaderboard.site import build_site
from taspo_bench.leaderboard.submission import pack
from taspo_bench.leaderboard.verdict import page
from taspo_bench.leaderboard.verify import verify

DATA = Path(os.environ.get("TASPO_DATA", Path(__file__).parents[3] / "shared" / "data"))
SEEDS = (0, 1, 2)

pytestmark = pytest.mark.slow
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason=f"no real data in {DATA}: set TASPO_DATA")


def seconds(work: partial[object]) -> float:
    """CPU seconds, so that a busy machine does not count."""
    begun = time.process_time()
    work()
    return time.process_time() - begun


@needs_data
def test_the_official_games_with_three_seeds_are_verified_within_20_seconds(tmp_path: Path) -> None:
    played = [evaluation(tmp_path / f"x-{seed}", "alfworld", 1.0, seed, data=str(DATA)) for seed in SEEDS]
    archive = pack(played, describe(), tmp_path / "x.tar.gz", data=str(DATA)).path
    verdict = verify(archive, str(DATA))
    assert verdict.verdict == "verified"
    assert {name: split.episodes for name, split in verdict.benchmarks["alfworld"].splits.items()} == {
        "valid_seen": 3 * 140,
        "valid_unseen": 3 * 134,
    }
    assert seconds(partial(verify, archive, str(DATA))) < 20


def test_all_three_embedded_benchmarks_are_verified_within_60_seconds(tmp_path: Path) -> None:
    played = [
        evaluation(tmp_path / f"{env}-{seed}", env, 0.5, seed) for env in registry.suite_names() for seed in SEEDS
    ]
    archive = submission(tmp_path / "x.tar.gz", played)
    verdict = verify(archive)
    assert verdict.verdict == "verified"
    assert len(verdict.benchmarks) == 3
    assert seconds(partial(verify, archive)) < 60


@needs_data
@pytest.mark.parametrize("env", ["webshop", "searchqa"])
def test_real_data_and_embedded_data_are_never_on_one_board(tmp_path: Path, env: str) -> None:
    folder = tmp_path / "subs"
    folder.mkdir()
    real = evaluation(tmp_path / "real", env, 1.0, tasks=3, data=str(DATA))
    pack([real], describe("Real"), folder / "real.tar.gz", data=str(DATA))
    submission(folder / "embedded.tar.gz", [evaluation(tmp_path / "embedded", env, 1.0, tasks=3)])
    verdict = verify(folder / "real.tar.gz", str(DATA))
    assert verdict.verdict == "verified", page(verdict)
    built = build_site(folder, tmp_path / "site", str(DATA))
    assert built.left_out == {}
    listing = (built.out / "leaderboard.md").read_text()
    assert listing.count(f"## {env}") == 2
