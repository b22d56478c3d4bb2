"""What write_summary leaves in a run folder, and what it refuses."""

from __future__ import annotations

import json
import resource
import shutil
import warnings
from pathlib import Path
from xml.etree import ElementTree

import pytest
from run_builder import break_episodes, build_run, dump, set_in_cells

from taspo_bench.errors import DataError, RunError
from taspo_bench.evaluation.publish import compare, write_summary
from taspo_bench.evaluation.results import episode_files, read_run
from taspo_bench.evaluation.summary import summarize
from taspo_bench.evaluation.training_plots import learning_curves

PLOTS = {"credit", "gain", "generalization", "learning_curves", "profiles", "wall_clock"}
SUMMARIES = [f"summary.{kind}" for kind in ("json", "csv", "md", "tex")]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = build_run(tmp_path_factory.mktemp("publish") / "run", n=20, failed=[("taspo", "webshop", 1)])
    write_summary(path)
    return path


def small(path: Path) -> Path:
    return build_run(path, methods=["taspo"], envs=["alfworld"], seeds=[0], n=6, updates=3)


def test_episodes_that_a_kill_left_half_written_are_passed_over(tmp_path):
    for name in ("train-00001.jsonl.gz", "train-00002.jsonl.gz.tmp", "eval-valid_seen.jsonl"):
        (tmp_path / name).write_bytes(b"")
    assert [path.name for path in episode_files(tmp_path, "train")] == ["train-00001.jsonl.gz"]
    assert [path.name for path in episode_files(tmp_path, "eval")] == ["eval-valid_seen.jsonl"]


def test_every_promised_file_is_there_and_no_temporary_one(run: Path) -> None:
    assert {path.name for path in run.iterdir()} == {"cells", "config.json", "plots", "report.html", *SUMMARIES}
    assert {path.name for path in (run / "plots").iterdir()} == {
        f"{name}.{k}" for name in PLOTS for k in ("png", "svg")
    }


def test_plots_are_valid_images(run: Path) -> None:
    for path in (run / "plots").iterdir():
        if path.suffix == ".svg":
            assert ElementTree.parse(path).getroot().tag == "{http://www.w3.org/2000/svg}svg"
        else:
            assert path.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")


def test_equal_results_give_equal_bytes_wherever_they_lie_and_however_long_they_took(
    run: Path, tmp_path: Path
) -> None:
    other = tmp_path / "elsewhere"
    shutil.copytree(run, other)
    for name in SUMMARIES:
        (other / name).unlink()
    for path in other.glob("cells/*/*/*/metrics.jsonl"):
        records = [json.loads(line) for line in path.read_text().splitlines()]
        slow = [{**record, "seconds": {"rollout": 99.0}} for record in records]
        path.write_text("".join(json.dumps(record) + "\n" for record in slow))
    write_summary(other)
    for name in SUMMARIES:
        assert (other / name).read_bytes() == (run / name).read_bytes()


def test_writing_twice_changes_nothing(run: Path) -> None:
    before = {path: path.read_bytes() for path in [*run.glob("*.*"), *run.glob("plots/*")]}
    write_summary(run)
    assert before == {path: path.read_bytes() for path in before}


def test_summary_json_holds_the_averaging_rule_and_every_cell(run: Path) -> None:
    record = json.loads((run / "summary.json").read_text())
    assert (record["schema"], len(record["cells"]), record["baseline"]) == (1, 27, "grpo")
    assert "arithmetic mean" in record["averaging"]


def test_a_line_of_each_benchmark_says_what_was_run(tmp_path: Path) -> None:
    path = small(tmp_path / "run")
    settings = {"policy": "tiny", "eval_temperature": 1.0, "max_turns": 12, "tasks_per_update": 8, "group_size": 4}
    settings["processor"] = "x86_64 AVX2"
    set_in_cells(path, **settings, warm_start_card={"sha256": {"model.safetensors": "cd" * 32}})
    write_summary(path)
    head, table = (path / "summary.md").read_text().split("\n### ", 1)
    assert head == (
        "# Results\n\n- alfworld: preset quick; data embedded 1; sha256 abababababab; policy tiny; "
        "warm start cdcdcdcdcdcd; evaluation temperature 1; step limit 12; updates 3; tasks an update 8; "
        "rollouts a task 4; processor x86_64 AVX2\n"
    )
    assert table.startswith("Success (%)\n\n| method |")
    kept = json.loads((path / "summary.json").read_text())["settings"]["alfworld"]
    assert (kept["preset"], kept["data_sha256"], kept["max_turns"]) == (["quick"], ["ab" * 6], [12])

    longer = build_run(tmp_path / "longer", methods=["grpo"], envs=["alfworld"], seeds=[0], n=6, updates=9)
    set_in_cells(longer, **{**settings, "processor": "x86_64 AVX512"})
    compare([path, longer], out=tmp_path / "both")
    both = (tmp_path / "both/summary.md").read_text()
    assert "step limit 12; updates differs (3, 9); tasks an update 8" in both
    assert "processor differs (x86_64 AVX2, x86_64 AVX512)" in both


def test_the_curve_of_a_failed_run_ends_no_other_and_the_legend_tells_of_it(tmp_path: Path) -> None:
    path = build_run(tmp_path / "run", envs=["alfworld"], n=6, updates=9)
    cell = path / "cells/taspo/alfworld/seed-1"
    dump(cell / "failed.json", {"error": "RunError: loss is not finite at update 2"})
    lines = (cell / "metrics.jsonl").read_text().splitlines(keepends=True)
    (cell / "metrics.jsonl").write_text("".join(lines[:2]))
    cells = read_run(path).cells
    figure = learning_curves({cell.key: cell.metrics() for cell in cells}, summarize(cells))
    assert figure is not None
    assert {len(line.get_xdata()) for ax in figure.axes for line in ax.lines} == {9}
    labels = [text.get_text() for legend in figure.legends for text in legend.get_texts()]
    assert labels == ["grpo", "taspo (without 1 failed run)"]


def test_panels_keep_their_height_however_many_methods_the_legend_names(tmp_path: Path) -> None:
    def height(methods: list[str]) -> float:
        path = build_run(tmp_path / str(len(methods)), methods=methods, envs=["alfworld"], seeds=[0], n=6, updates=3)
        cells = read_run(path).cells
        figure = learning_curves({cell.key: cell.metrics() for cell in cells}, summarize(cells))
        assert figure is not None
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # constrained layout warns where it finds no room
            figure.draw_without_rendering()
        return float(figure.axes[0].get_window_extent().height)

    few, many = height(["grpo", "taspo"]), height(["grpo", "taspo", *(f"variant-{n}" for n in range(28))])
    assert many == pytest.approx(few, rel=0.1)


def test_a_run_of_one_method_one_benchmark_one_seed_is_published(tmp_path: Path) -> None:
    path = small(tmp_path / "run")
    summary = write_summary(path)
    assert (summary.gains, summary.failed) == ((), ())
    assert "Success (%)" in (path / "summary.md").read_text()


def test_a_run_in_which_everything_failed_is_published_as_failed(tmp_path: Path) -> None:
    path = tmp_path / "run"
    build_run(path, methods=["taspo"], envs=["alfworld"], seeds=[0], failed=[("taspo", "alfworld", 0)])
    shutil.rmtree(path / "cells/warm_start")
    summary = write_summary(path)
    assert len(summary.failed) == 1
    assert "1 of 1 runs have no result" in (path / "report.html").read_text()


def test_the_report_tells_of_errored_episodes_and_shows_the_papers_figures_on_request(tmp_path: Path) -> None:
    path = small(tmp_path / "run")
    write_summary(path)
    assert "ended with an error" not in (path / "report.html").read_text()
    break_episodes(path / "cells/taspo/alfworld/seed-0", "valid_seen", 2)
    write_summary(path, paper=True)
    page = (path / "report.html").read_text()
    assert "2 evaluation episodes ended with an error and count as lost" in page
    assert "<b>taspo, alfworld, seed 0</b>: 2" in page and "Beside the paper" in page


def test_runs_without_training_logs_or_episodes_are_published(tmp_path: Path) -> None:
    path = small(tmp_path / "run")
    for cell in path.glob("cells/*/*/*"):
        shutil.rmtree(cell / "episodes")
        (cell / "metrics.jsonl").unlink(missing_ok=True)
    write_summary(path)
    assert {plot.stem for plot in (path / "plots").iterdir()} == {"generalization", "profiles"}


def test_a_metrics_line_cut_short_by_a_kill_is_left_out(tmp_path: Path) -> None:
    path = small(tmp_path / "run")
    with (path / "cells/taspo/alfworld/seed-0/metrics.jsonl").open("a") as file:
        file.write('{"update": 4, "succ')
    write_summary(path)


def test_a_disk_without_room_leaves_every_file_whole(tmp_path: Path) -> None:
    path = small(tmp_path / "run")
    write_summary(path)
    before = {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}
    record = json.loads((path / "cells/taspo/alfworld/seed-0/eval.json").read_text())
    for split in record["splits"].values():
        split["tasks"] = {task_id: {**task, "won": True} for task_id, task in split["tasks"].items()}
    dump(path / "cells/taspo/alfworld/seed-0/eval.json", record)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))
    try:
        with pytest.raises(
            RunError, match=r"the summary could not be written \(File too large\); the results"
        ) as caught:
            write_summary(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "\n" not in str(caught.value)
    after = {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}
    assert after.keys() == before.keys()
    for file in path.glob("plots/*"):
        assert after[file] == before[file]
    json.loads((path / "summary.json").read_text())
    assert (path / "report.html").read_text().endswith("</html>")


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("config.json", None, "no config.json in it; give the folder"),
        ("config.json", "[1]", "a JSON object was expected"),
        ("config.json", '{"method": "taspo", "env": "alfworld", "seed": 0}', "not that of a run; give the whole"),
        ("cells/taspo/alfworld/seed-0/eval.json", '{"schema": 1, "spl', "not JSON"),
        ("cells/taspo/alfworld/seed-0/eval.json", '{"schema": 7}', "schema 7; this version reads schema 1"),
        ("cells/taspo/alfworld/seed-0/eval.json", '{"schema": 1}', "not an evaluation record"),
        ("cells/taspo/alfworld/seed-0/metrics.jsonl", '{"upd\n', "not JSON"),
    ],
)
def test_a_broken_file_is_named_in_one_line(tmp_path: Path, file: str, text: str | None, message: str) -> None:
    path = small(tmp_path / "run")
    if text is None:
        (path / file).unlink()
    else:
        (path / file).write_text(text)
    with pytest.raises(DataError, match=message) as caught:
        write_summary(path)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("other", [{"env": "webshop"}, {"seed": 5}])
def test_a_record_of_another_cell_is_refused(tmp_path: Path, other: dict[str, object]) -> None:
    path = small(tmp_path / "run")
    file = path / "cells/taspo/alfworld/seed-0/eval.json"
    dump(file, {**json.loads(file.read_text()), **other})
    with pytest.raises(DataError, match=f"{file}: the evaluation of .*, not of the cell of this folder"):
        write_summary(path)


def test_a_record_that_lost_a_task_is_refused(tmp_path: Path) -> None:
    path = small(tmp_path / "run")
    record = json.loads((path / "cells/taspo/alfworld/seed-0/eval.json").read_text())
    record["splits"]["valid_seen"]["tasks"].popitem()
    dump(path / "cells/taspo/alfworld/seed-0/eval.json", record)
    with pytest.raises(DataError, match="says n = 6 and holds 5 tasks"):
        write_summary(path)
