"""The report as text: self-contained, escaped, bounded."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from run_builder import FAMILIES, build_run

from taspo_bench.episode import read_episodes, write_episodes
from taspo_bench.evaluation.episode_sample import sample_episodes
from taspo_bench.evaluation.publish import write_summary
from taspo_bench.evaluation.results import read_run

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>&lt;"
PEAK = """
import resource, sys
from pathlib import Path
from taspo_bench.evaluation.publish import write_summary
write_summary(Path(sys.argv[1]))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = build_run(tmp_path_factory.mktemp("report") / "run", n=20, failed=[("taspo", "webshop", 1)])
    write_summary(path)
    return path


def embedded(run: Path) -> list[dict[str, Any]]:
    page = (run / "report.html").read_text(encoding="utf-8")
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, flags=re.DOTALL)
    return list(json.loads(text))


def test_the_page_refers_to_nothing_outside_itself(run: Path) -> None:
    page = (run / "report.html").read_text(encoding="utf-8")
    assert not re.findall(r'(?:src|href|action)="(?!#)[^"]*"', page)
    assert not re.findall(r"@import|url\((?!#)", page)
    assert "default-src 'none'" in page


def test_the_page_holds_configuration_versions_stamps_and_failures(run: Path) -> None:
    page = (run / "report.html").read_text(encoding="utf-8")
    for text in ("learning_rate", "2.13", "0123abc", "abababababababab", "valid_unseen (20 tasks)"):
        assert text in page
    assert "loss is &lt;not&gt; finite at update 7" in page


def test_ids_of_the_page_are_unique(run: Path) -> None:
    page = (run / "report.html").read_text(encoding="utf-8")
    counts = Counter(re.findall(r'\bid="([^"]+)"', page))
    assert [name for name, count in counts.items() if count > 1] == []


def test_untrusted_text_cannot_end_its_element(tmp_path: Path) -> None:
    path = build_run(tmp_path / "run", methods=["taspo"], envs=["alfworld"], seeds=[0], n=6, updates=2)
    for file in path.glob("cells/taspo/*/*/episodes/*.gz"):
        episodes = list(read_episodes(file))
        for episode in episodes:
            episode.turns[0].observation = episode.turns[0].action = episode.final_observation = HOSTILE
            episode.family = HOSTILE
        write_episodes(file, episodes)
    record = path / "cells/taspo/alfworld/seed-0/eval.json"
    record.write_text(record.read_text().replace('"family": "heat"', f'"family": {json.dumps(HOSTILE)}'))
    write_summary(path)
    page = (path / "report.html").read_text(encoding="utf-8")
    assert "<script>alert" not in page
    assert "<img" not in page
    assert HOSTILE in {turn["observation"] for episode in embedded(path) for turn in episode["turns"]}


def test_credit_and_guidance_of_training_episodes_are_embedded(run: Path) -> None:
    trained = [e for e in embedded(run) if (e["method"], e["split"]) == ("taspo", "train")]
    assert trained
    for episode in trained:
        weights = [turn["weight"] for turn in episode["turns"]]
        assert sum(weights) / len(weights) == pytest.approx(1)
        assert [turn["credit"] for turn in episode["turns"]] == pytest.approx(
            [episode["advantage"] * w for w in weights]
        )
        assert [bool(turn["guidance"]) for turn in episode["turns"]] == [bool(i % 2) for i in range(len(weights))]


def test_the_sample_is_bounded_and_says_how_many_there_are(run: Path) -> None:
    cells = read_run(run).cells
    sample = sample_episodes(cells, limit=30)
    assert len(sample.episodes) <= 30
    assert sample.evaluated == sum(record["n"] for cell in cells for record in cell.splits.values()) == 26 * 40
    assert f"{len(embedded(run))} episodes are embedded: a sample of the 1,040 evaluation episodes" in (
        run / "report.html"
    ).read_text(encoding="utf-8")


def test_the_sample_holds_every_method_split_outcome_and_family(run: Path) -> None:
    seen = {(e["method"], e["env"], e["split"]) for e in embedded(run)}
    assert {(m, e, s) for m in ("grpo", "taspo") for e in FAMILIES for s in ("valid_seen", "valid_unseen")} <= seen
    assert {(e["env"], e["family"]) for e in embedded(run)} == {(env, f) for env in FAMILIES for f in FAMILIES[env]}
    assert {e["outcome"] for e in embedded(run)} == {"won", "lost"}


def test_long_texts_are_cut_and_say_so(tmp_path: Path) -> None:
    path = build_run(tmp_path / "run", methods=["taspo"], envs=["alfworld"], seeds=[0], n=4, updates=2)
    (file,) = path.glob("cells/taspo/*/*/episodes/train-*.gz")
    episodes = list(read_episodes(file))
    episodes[0].turns[0].observation = "x" * 5000
    write_episodes(file, episodes)
    write_summary(path)
    texts = [turn["observation"] for episode in embedded(path) for turn in episode["turns"]]
    assert "x" * 1600 + "\n[... 3400 more characters]" in texts


@pytest.mark.slow
def test_100_000_stored_episodes_are_published_within_60_seconds_and_2_gb(tmp_path: Path) -> None:
    methods = ["grpo", "taspo", *(f"method_{letter}" for letter in "abcdefgh")]
    run = build_run(tmp_path / "run", methods=methods, seeds=range(5), n=304)
    begun = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", PEAK, str(run)], capture_output=True, text=True, check=True)
    seconds = time.perf_counter() - begun
    assert "a sample of the 100,320 evaluation episodes" in (run / "report.html").read_text(encoding="utf-8")
    print(f"{seconds:.1f} s, {int(done.stdout) / 1e6:.2f} GB")
    assert seconds < 60
    assert int(done.stdout) * 1024 < 2e9
