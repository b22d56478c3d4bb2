"""Packing what runs and evaluations left behind."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
from pathlib import Path

import pytest
from rich.console import Console
from submission_builder import (
    describe,
    edit_manifest,
    evaluation,
    packed,
    play,
    run_folder,
    stamp,
    submission,
    unpacked,
)
from typer.testing import CliRunner

from taspo_bench.episode import Turn, read_episodes, write_episodes
from taspo_bench.errors import DataError, InputError
from taspo_bench.evaluation.command import evaluate_policy
from taspo_bench.leaderboard.commands import submit_app
from taspo_bench.leaderboard.submission import pack
from taspo_bench.leaderboard.verdict import write_verdict
from taspo_bench.leaderboard.verify import verify

TASKS = 5


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Evaluations of two benchmarks with two seeds each."""
    folder = tmp_path_factory.mktemp("played")
    return [
        evaluation(folder / f"{env}-{seed}", env, 0.6, seed, TASKS)
        for env in ("alfworld", "webshop")
        for seed in (0, 3)
    ]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_folder(tmp_path_factory.mktemp("run") / "run", ["warm_start", "grpo", "taspo"], "alfworld", TASKS)


def test_evaluations_of_several_benchmarks_and_seeds_make_one_verified_archive(
    played: list[Path], tmp_path: Path
) -> None:
    archive = submission(tmp_path / "x.tar.gz", played)
    manifest = json.loads(unpacked(archive)["manifest.json"])
    assert manifest["seeds"] == [0, 3]
    assert manifest["benchmarks"]["alfworld"]["data"] == stamp("alfworld")
    verdict = verify(archive)
    assert verdict.verdict == "verified"
    assert {split.episodes for split in verdict.benchmarks["webshop"].splits.values()} == {2 * TASKS}


def test_the_same_episodes_give_the_same_bytes_in_any_order_of_folders(played: list[Path], tmp_path: Path) -> None:
    one = submission(tmp_path / "one.tar.gz", played)
    other = submission(tmp_path / "other.tar.gz", played[::-1])
    assert one.read_bytes() == other.read_bytes()


def test_an_archive_holds_no_weights_no_tokens_and_no_observations(played: list[Path], tmp_path: Path) -> None:
    members = unpacked(submission(tmp_path / "x.tar.gz", played))
    assert list(members) == ["manifest.json", "episodes/alfworld.jsonl", "episodes/webshop.jsonl"]
    record = json.loads(members["episodes/alfworld.jsonl"].splitlines()[0])
    assert record.keys() == {"split", "task_id", "seed", "steps", "won", "score", "actions", "trace"}


def test_responses_are_packed_where_they_are_asked_for(played: list[Path], tmp_path: Path) -> None:
    archive = pack(played[:1], describe(), tmp_path / "x.tar.gz", responses=True).path
    record = json.loads(unpacked(archive)["episodes/alfworld.jsonl"].splitlines()[0])
    assert record["responses"] == record["actions"]
    assert verify(archive).verdict == "verified"


def test_a_run_gives_its_method_budget_and_model(run: Path, tmp_path: Path) -> None:
    described = describe(method="grpo", base_model=None, environment_steps=None, response_tokens=None)
    done = pack([run], described, tmp_path / "x.tar.gz")
    assert (done.manifest.method, done.manifest.base_model) == ("grpo", "tiny")
    assert done.manifest.parameters_trained == 1234
    budget = done.manifest.benchmarks["alfworld"].budget
    assert (budget.environment_steps, budget.response_tokens) == (900, 3000)
    assert verify(done.path).verdict == "verified"


def test_the_temperature_is_the_runs_or_what_the_submitter_says(
    run: Path, played: list[Path], tmp_path: Path
) -> None:
    cell = tmp_path / "cell"
    shutil.copytree(run / "cells/taspo/alfworld/seed-0", cell)
    config = json.loads((cell / "config.json").read_text())
    (cell / "config.json").write_text(json.dumps({**config, "eval_temperature": 1.0}))
    said = [
        pack([folder], described, tmp_path / "x.tar.gz").manifest.benchmarks["alfworld"].temperature
        for folder, described in ((cell, describe()), (played[0], describe()), (played[0], describe(temperature=0.4)))
    ]
    assert said == [1.0, None, 0.4]
    assert verify(tmp_path / "x.tar.gz").verdict == "verified"
    with pytest.raises(InputError, match=r"temperature -1\.0"):
        pack([cell], describe(temperature=-1.0), tmp_path / "x.tar.gz")
    (cell / "config.json").write_text(json.dumps({**config, "eval_temperature": 0.4}))
    other = tmp_path / "other"
    shutil.copytree(run / "cells/taspo/alfworld/seed-1", other)
    (other / "config.json").write_text(json.dumps({**config, "seed": 1, "eval_temperature": 1.0}))
    with pytest.raises(InputError, match="step limits or temperatures; pack them one by one"):
        pack([cell, other], describe(), tmp_path / "x.tar.gz")


def test_an_archive_without_a_temperature_stays_valid(played: list[Path], tmp_path: Path) -> None:
    members = unpacked(submission(tmp_path / "x.tar.gz", played[:1]))
    older = edit_manifest(members, lambda manifest: manifest["benchmarks"]["alfworld"].pop("temperature"))
    verdict = verify(packed(tmp_path / "older.tar.gz", older))
    assert (verdict.verdict, verdict.manifest and verdict.manifest.benchmarks["alfworld"].temperature) == (
        "verified",
        None,
    )


def test_a_warm_start_took_no_environment_steps(run: Path, tmp_path: Path) -> None:
    described = describe(method="warm_start", environment_steps=None, response_tokens=None)
    budget = pack([run], described, tmp_path / "x.tar.gz").manifest.benchmarks["alfworld"].budget
    assert (budget.environment_steps, budget.response_tokens) == (0, 0)


def test_one_cell_of_a_run_can_be_packed(run: Path, tmp_path: Path) -> None:
    archive = submission(tmp_path / "x.tar.gz", [run / "cells/taspo/alfworld/seed-1"])
    assert json.loads(unpacked(archive)["manifest.json"])["seeds"] == [1]
    assert verify(archive).verdict == "verified"


def test_a_run_of_several_methods_asks_which(run: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"choose one with --method; there are: .*grpo.*taspo"):
        submission(tmp_path / "x.tar.gz", [run])


def test_a_failed_cell_counts_0_on_every_task(run: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(run, broken)
    cell = broken / "cells/taspo/alfworld/seed-1"
    (cell / "eval.json").unlink()
    (cell / "failed.json").write_text('{"error": "loss is not finite"}')
    verdict = verify(submission(tmp_path / "x.tar.gz", [broken], method="taspo"))
    split = verdict.benchmarks["alfworld"].splits["valid_seen"]
    assert verdict.verdict == "verified"
    assert split.missing == split.tasks + split.tasks - TASKS
    assert split.seeds[1]["success"] == 0


def test_an_episode_that_broke_is_left_out_and_counts_0(played: list[Path], tmp_path: Path) -> None:
    folder = tmp_path / "broken"
    shutil.copytree(played[0], folder)
    path = folder / "eval-valid_seen.jsonl.gz"
    episodes = list(read_episodes(path))
    episodes[2].error = "ValueError: out of memory"
    write_episodes(path, episodes)
    done = pack([folder], describe(), tmp_path / "x.tar.gz")
    assert done.broken == 1
    assert done.manifest.benchmarks["alfworld"].splits["valid_seen"].claimed.episodes == TASKS - 1
    assert verify(done.path).verdict == "verified"


def test_an_episode_without_a_turn_can_be_packed(played: list[Path], tmp_path: Path) -> None:
    folder = tmp_path / "empty"
    shutil.copytree(played[0], folder)
    path = folder / "eval-valid_seen.jsonl.gz"
    episodes = list(read_episodes(path))
    episodes[0].turns, episodes[0].won, episodes[0].score = [], False, 0.0
    write_episodes(path, episodes)
    assert verify(submission(tmp_path / "x.tar.gz", [folder])).verdict == "verified"


def test_episodes_that_did_not_happen_as_stored_are_found_by_verification(played: list[Path], tmp_path: Path) -> None:
    folder = tmp_path / "changed"
    shutil.copytree(played[0], folder)
    path = folder / "eval-valid_seen.jsonl.gz"
    episodes = list(read_episodes(path))
    episodes[0].turns.insert(0, Turn(observation="You see a hint.", response="look", action="look"))
    write_episodes(path, episodes)
    verdict = verify(submission(tmp_path / "x.tar.gz", [folder]))
    assert verdict.exit_code == 1
    assert "step 1, action 'look': the replay departs here" in verdict.problems[0]


def test_the_expert_is_always_a_reference(tmp_path: Path) -> None:
    folder = evaluation(tmp_path / "expert", "alfworld", 1.0, tasks=2, method="expert")
    archive = submission(tmp_path / "x.tar.gz", [folder], method="my own method")
    assert json.loads(unpacked(archive)["manifest.json"])["ranked"] is False


def test_a_shorter_step_limit_is_declared(run: Path, tmp_path: Path) -> None:
    short = tmp_path / "short"
    shutil.copytree(run / "cells/taspo/alfworld/seed-0", short)
    for path in short.glob("episodes/eval-*"):
        split = path.name.removeprefix("eval-").removesuffix(".jsonl.gz")
        episodes = next(own for found, own in play("alfworld", 0.6, tasks=TASKS, max_steps=20) if found.name == split)
        write_episodes(path, episodes)
    config = json.loads((short / "config.json").read_text())
    (short / "config.json").write_text(json.dumps({**config, "max_turns": 20}))
    archive = submission(tmp_path / "x.tar.gz", [short])
    benchmark = verify(archive).benchmarks["alfworld"]
    assert (benchmark.max_turns, benchmark.own_max_turns) == (20, 50)


def test_an_evaluation_with_a_shorter_limit_is_declared_and_verified(tmp_path: Path) -> None:
    folder, quiet = tmp_path / "short", Console(file=io.StringIO())
    evaluate_policy(quiet, "webshop", "random", ["valid_seen"], "embedded", 3, 0, 1.0, folder, {"max_turns": 3})
    verdict = verify(submission(tmp_path / "x.tar.gz", [folder]))
    benchmark = verdict.benchmarks["webshop"]
    assert (benchmark.max_turns, benchmark.own_max_turns, verdict.problems) == (3, 15, [])


def test_folders_that_are_no_evaluation_are_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"neither a run \(cells/\) nor an evaluation \(eval.json\)"):
        submission(tmp_path / "x.tar.gz", [tmp_path])


def test_episodes_played_on_other_data_are_refused(played: list[Path], tmp_path: Path) -> None:
    folder = tmp_path / "other"
    shutil.copytree(played[0], folder)
    record = json.loads((folder / "eval.json").read_text())
    record["data_stamp"]["sha256"] = "0" * 64
    (folder / "eval.json").write_text(json.dumps(record))
    with pytest.raises(DataError, match=r"played on data 'embedded' 000000000000, not on .*--data"):
        submission(tmp_path / "x.tar.gz", [folder])


def test_a_seed_in_two_folders_is_refused(played: list[Path], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="alfworld seed 0 is in these folders twice"):
        submission(tmp_path / "x.tar.gz", [played[0], played[0]])


def test_a_name_that_cannot_be_shown_is_refused_before_anything_is_written(
    played: list[Path], tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=r"name .*has control or formatting characters"):
        submission(tmp_path / "x.tar.gz", played[:1], name="a\x1b[2J")
    assert list(tmp_path.iterdir()) == []


def test_the_command_packs_and_the_command_verifies(played: list[Path], tmp_path: Path) -> None:
    archive = tmp_path / "mixed.tar.gz"
    given = ["pack", str(played[0]), "--name", "Mixed", "--licence", "CC0-1.0", "--base-model", "none"]
    made = CliRunner().invoke(submit_app, [*given, "--temperature", "0.4", "--out", str(archive)])
    assert made.exit_code == 0
    assert json.loads(unpacked(archive)["manifest.json"])["benchmarks"]["alfworld"]["temperature"] == 0.4
    assert f"alfworld valid_seen: {TASKS} of 102 episodes" in made.output
    checked = CliRunner().invoke(submit_app, ["verify", str(archive), "--out", str(tmp_path / "result")])
    assert checked.exit_code == 0
    assert "verdict: VERIFIED" in checked.output
    assert (tmp_path / "result/mixed.txt").read_text() == checked.output


def test_equal_archives_give_equal_results_and_the_hash_covers_them(played: list[Path], tmp_path: Path) -> None:
    archive = submission(tmp_path / "x.tar.gz", played[:1])
    texts = []
    for name in ("one", "two"):
        CliRunner().invoke(submit_app, ["verify", str(archive), "--out", str(tmp_path / name)])
        texts.append((tmp_path / name / "x.json").read_text())
    assert texts[0] == texts[1]
    record = json.loads(texts[0])
    signed = record.pop("sha256")
    again = json.dumps(record, sort_keys=True, separators=(",", ":"))
    assert hashlib.sha256(again.encode()).hexdigest() == signed
    assert record["archive"]["sha256"] == hashlib.sha256(archive.read_bytes()).hexdigest()
    members = unpacked(archive)
    assert record["members"] == {name: hashlib.sha256(content).hexdigest() for name, content in members.items()}


def test_a_result_that_cannot_be_written_leaves_nothing_half_written(played: list[Path], tmp_path: Path) -> None:
    verdict = verify(submission(tmp_path / "x.tar.gz", played[:1]))
    (tmp_path / "result/x.json").mkdir(parents=True)
    with pytest.raises(InputError, match="cannot write there"):
        write_verdict(tmp_path / "result", verdict)
    assert [path.name for path in (tmp_path / "result").iterdir()] == ["x.json"]
