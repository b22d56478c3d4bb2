"""From cells to figures: failures, ties, gains, gaps, averages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from run_builder import build_run, dump, set_in_cells

from taspo_bench.errors import DataError, InputError
from taspo_bench.evaluation.publish import compare
from taspo_bench.evaluation.results import read_run
from taspo_bench.evaluation.statistics import Estimate, t_estimate
from taspo_bench.evaluation.summary import Result, Summary, summarize
from taspo_bench.evaluation.tables import success_table


def flat(chances: dict[str, float]):  # type: ignore[no-untyped-def]
    return lambda method, env, kind, seed: chances[method]


def result_of(summary: Summary, method: str, env: str, split: str = "valid_seen") -> Result:
    (found,) = [r for r in summary.results if (r.method, r.env, r.split) == (method, env, split)]
    return found


def test_success_is_the_mean_over_seeds_of_the_share_won(tmp_path: Path) -> None:
    run = read_run(build_run(tmp_path / "run", envs=["alfworld"], n=12))
    result = result_of(summarize(run.cells), "taspo", "alfworld")
    shares = [cell.splits["valid_seen"]["success"] for cell in run.cells if cell.method == "taspo"]
    assert result.per_seed == pytest.approx(shares)
    assert result.success.value == pytest.approx(sum(shares) / 3)
    assert result.success.low <= result.success.value <= result.success.high


@pytest.mark.parametrize("how", ["failed", "unfinished", "never begun"])
def test_a_cell_without_a_result_counts_as_zero_in_every_figure(tmp_path: Path, how: str) -> None:
    path = build_run(tmp_path / "run", envs=["alfworld"], n=12, skill=flat({"warm_start": 0, "grpo": 1, "taspo": 1}))
    cell = path / "cells/taspo/alfworld/seed-1"
    if how == "failed":
        dump(cell / "failed.json", {"error": "RunError: out of luck"})
    elif how == "unfinished":
        (cell / "eval.json").unlink()
    else:
        cell.rename(tmp_path / "gone")
    summary = summarize(read_run(path).cells)
    result = result_of(summary, "taspo", "alfworld")
    assert (result.success.value, result.failed, result.per_seed) == (pytest.approx(2 / 3), (1,), (1.0, 0.0, 1.0))
    (gain, _) = summary.gains
    assert gain.relative is not None
    assert gain.relative.value == pytest.approx(-100 / 3)
    (row,) = [row for row in summary.aggregates if (row.method, row.kind) == ("taspo", "seen")]
    assert row.mean.value == pytest.approx(2 / 3)
    (failure,) = summary.failed
    assert (failure.method, failure.env, failure.seed) == ("taspo", "alfworld", 1)
    assert failure.error == ("RunError: out of luck" if how == "failed" else "not finished")


def test_the_test_over_seeds_is_of_the_seeds_that_both_have(tmp_path: Path) -> None:
    better = flat({"warm_start": 0, "grpo": 0, "taspo": 1})
    path = build_run(tmp_path / "run", envs=["alfworld"], seeds=(0, 1, 2, 3), n=6, skill=better)
    (seen, _) = summarize(read_run(path).cells).gains
    assert (seen.p_seeds, seen.p) == (pytest.approx(2 / 2**4), pytest.approx(2 / 2**6))
    cells = [cell for cell in read_run(path).cells if cell.method != "taspo" or cell.seed > 1]
    assert summarize(cells).gains[0].p_seeds == pytest.approx(2 / 2**2)
    single = [cell for cell in read_run(path).cells if cell.method != "taspo" or cell.seed > 2]
    assert summarize(single).gains[0].p_seeds is None


def test_late_training_is_paired_by_seed_with_students_interval(tmp_path: Path) -> None:
    path = build_run(tmp_path / "run", envs=["alfworld"], seeds=(3, 4, 5), n=6, updates=9)
    late = {"grpo": (0.3, 0.5, 0.4), "taspo": (0.4, 0.7, 0.4)}
    for method, values in late.items():
        for seed, value in zip((3, 4, 5), values, strict=True):
            log = [{"success": 0.9}] * 7 + [{"success": value - 0.1}, {"success": value + 0.1}]
            lines = "".join(json.dumps(line) + "\n" for line in log)
            (path / f"cells/{method}/alfworld/seed-{seed}/metrics.jsonl").write_text(lines)
    grpo, taspo = summarize(read_run(path).cells).late_training
    assert grpo.difference is None and grpo.per_seed == pytest.approx(late["grpo"])
    assert taspo.success.value == pytest.approx(0.5)
    assert taspo.difference is not None
    reach = 4.302653 * 0.1 / 3**0.5  # t of 2 degrees of freedom; the differences .1, .2, 0 have deviation .1
    expected = pytest.approx((0.1, 0.1 - reach, 0.1 + reach), abs=1e-6)
    assert (taspo.difference.value, taspo.difference.low, taspo.difference.high) == expected

    dump(path / "cells/taspo/alfworld/seed-4/failed.json", {"error": "RunError: out of luck"})
    _, taspo = summarize(read_run(path).cells).late_training
    assert taspo.per_seed == pytest.approx((0.4, 0.0, 0.4)) and taspo.success.low == 0.0
    (path / "cells/grpo/alfworld/seed-3/metrics.jsonl").write_text('{"success": NaN}\n{"other": 1}\n')
    grpo, taspo = summarize(read_run(path).cells).late_training
    assert grpo.seeds == (4, 5) and taspo.pairs == 2


def test_runs_that_are_all_alike_do_not_look_certain() -> None:
    assert t_estimate([0.5, 0.5], 0.0, 1.0) == Estimate(0.5, 0.0, 1.0)
    assert t_estimate([0.9, 0.95], 0.0, 1.0).high == 1.0


def test_methods_that_won_the_same_tasks_do_not_look_equal_for_certain(tmp_path: Path) -> None:
    skill = flat({"warm_start": 0.1, "grpo": 0.5, "taspo": 0.5})
    path = build_run(tmp_path / "run", envs=["alfworld"], seeds=[0], n=24, skill=skill)
    record = json.loads((path / "cells/grpo/alfworld/seed-0/eval.json").read_text())
    for split in record["splits"].values():  # one win of 24, so that some draws of tasks hold none
        for place, task in enumerate(split["tasks"].values()):
            task["won"] = place == 0
    for method in ("grpo", "taspo"):
        dump(path / f"cells/{method}/alfworld/seed-0/eval.json", {**record, "method": method})
    for gain in summarize(read_run(path).cells).gains:
        assert gain.difference == Estimate(0.0, pytest.approx(-0.138, abs=1e-3), pytest.approx(0.138, abs=1e-3))
        assert gain.relative.low == -100.0 and gain.relative.high > 300.0


def test_runs_of_equal_seeds_are_drawn_together(tmp_path: Path) -> None:
    """Seeds that are easy for both methods do not blur their difference."""

    def skill(method: str, env: str, kind: str, seed: int) -> float:
        return {"warm_start": 0.1}.get(method, (0.2 if seed % 2 else 0.8) + 0.1 * (method == "taspo"))

    path = build_run(tmp_path / "run", envs=["alfworld"], seeds=range(8), n=200, skill=skill)
    (seen, _) = summarize(read_run(path).cells).gains
    assert seen.difference.high - seen.difference.low < 0.15
    for seed in range(8):
        cell = path / f"cells/taspo/alfworld/seed-{seed}"
        record = json.loads((cell / "eval.json").read_text())
        dump(cell / "eval.json", {**record, "seed": seed + 8})
        cell.rename(cell.with_name(f"seed-{seed + 8}"))
    apart = [cell for cell in read_run(path).cells if not cell.error]
    (seen, _) = summarize(apart).gains
    assert seen.difference.high - seen.difference.low > 0.3


def test_an_environment_that_no_cell_finished_still_counts_in_the_average(tmp_path: Path) -> None:
    path = tmp_path / "run"
    lost = [(method, "webshop", 0) for method in ("warm_start", "taspo")]
    skill = flat({"warm_start": 0, "taspo": 1})
    build_run(path, methods=["taspo"], envs=["alfworld", "webshop"], seeds=[0], n=6, failed=lost, skill=skill)
    summary = summarize(read_run(path).cells)
    assert result_of(summary, "taspo", "webshop").n == 0
    assert [row.mean.value for row in summary.aggregates] == [0.5, 0.5]


def test_methods_that_cannot_be_told_apart_are_tied_and_clear_losers_are_not(tmp_path: Path) -> None:
    skill = flat({"warm_start": 0.1, "grpo": 0.1, "taspo": 0.80, "a_rival": 0.79})
    path = build_run(tmp_path / "run", methods=["grpo", "taspo", "a_rival"], envs=["alfworld"], skill=skill)
    marks = {r.method: (r.best, r.tied) for r in summarize(read_run(path).cells).results if r.kind == "seen"}
    assert marks["grpo"] == (False, False)
    assert sorted([marks["taspo"], marks["a_rival"]]) == [(False, True), (True, True)]


def test_a_macro_average_and_a_mean_of_benchmarks_that_are_settled_do_not_look_certain(tmp_path: Path) -> None:
    """Everything won on one benchmark, everything lost on the other, in every run."""

    def skill(method: str, env: str, kind: str, seed: int) -> float:
        return float(env == "alfworld")

    summary = summarize(read_run(build_run(tmp_path / "run", envs=["alfworld", "webshop"], n=25, skill=skill)).cells)
    won, lost = (result_of(summary, "taspo", env).macro for env in ("alfworld", "webshop"))
    assert won.value == won.high == 1.0 and 0.8 < won.low < 0.9
    assert lost.value == lost.low == 0.0 and 0.1 < lost.high < 0.2
    for row in summary.aggregates:
        assert row.mean.value == 0.5 and 0.3 < row.mean.low < 0.5 < row.mean.high < 0.7


def test_nothing_is_best_where_all_methods_do_the_same(tmp_path: Path) -> None:
    skill = flat({"warm_start": 0, "grpo": 0, "taspo": 0})
    summary = summarize(read_run(build_run(tmp_path / "run", n=10, skill=skill)).cells)
    assert not any(row.best or row.tied for row in (*summary.results, *summary.aggregates))


def test_gain_over_the_baseline_is_relative_per_benchmark_and_averaged_over_benchmarks(tmp_path: Path) -> None:
    run = read_run(build_run(tmp_path / "run", envs=["alfworld", "webshop"], n=30))
    summary = summarize(run.cells)
    expected = []
    for env in ("alfworld", "webshop"):
        ours, base = (result_of(summary, method, env).success.value for method in ("taspo", "grpo"))
        expected.append(100 * (ours - base) / base)
    gains = [gain.relative.value for gain in summary.gains if gain.kind == "seen" and gain.relative]
    (average,) = [row.relative for row in summary.aggregates if (row.method, row.kind) == ("taspo", "seen")]
    assert gains == pytest.approx(expected)
    assert average is not None
    assert average.value == pytest.approx(sum(expected) / 2)
    assert "arithmetic mean" in summary.to_json()["averaging"]


def test_no_gain_is_claimed_over_a_baseline_that_never_wins(tmp_path: Path) -> None:
    path = build_run(tmp_path / "run", envs=["alfworld"], n=12, skill=flat({"warm_start": 0, "grpo": 0, "taspo": 1}))
    summary = summarize(read_run(path).cells)
    assert [gain.relative for gain in summary.gains] == [None, None]
    assert [gain.difference.value for gain in summary.gains] == [1.0, 1.0]


def test_without_the_baseline_there_are_no_gains(tmp_path: Path) -> None:
    summary = summarize(read_run(build_run(tmp_path / "run", methods=["taspo"], n=6)).cells)
    assert (summary.baseline, summary.gains) == (None, ())


def test_gap_is_seen_minus_unseen_of_the_same_runs(tmp_path: Path) -> None:
    path = build_run(
        tmp_path / "run", methods=["taspo"], envs=["alfworld"], skill=lambda m, e, kind, s: float(kind == "seen")
    )
    (gap,) = summarize(read_run(path).cells).gaps
    assert gap.gap.value == 1.0
    assert 0.9 < gap.gap.low < 1.0 == gap.gap.high


def test_a_single_seed_does_not_make_an_average_look_certain(tmp_path: Path) -> None:
    skill = flat({"warm_start": 0, "grpo": 0.5, "taspo": 1})
    summary = summarize(read_run(build_run(tmp_path / "run", seeds=[0], n=20, skill=skill)).cells)
    for row in summary.aggregates:
        assert row.mean.high - row.mean.low > 0.05
        assert row.iqm.high - row.iqm.low > 0.05


def test_a_figure_does_not_depend_on_what_else_stands_in_the_run(tmp_path: Path) -> None:
    alone = build_run(tmp_path / "alone", methods=["taspo"], envs=["webshop"], n=20)
    among = build_run(tmp_path / "among", methods=["grpo", "random_weights", "taspo"], n=20)
    first, second = (result_of(summarize(read_run(path).cells), "taspo", "webshop") for path in (alone, among))
    assert (first.success, first.iqm, first.score) == (second.success, second.iqm, second.score)


def test_warm_start_cells_are_the_policy_before_training_and_no_method(tmp_path: Path) -> None:
    summary = summarize(read_run(build_run(tmp_path / "run", methods=["taspo"], envs=["alfworld"], n=10)).cells)
    assert summary.methods == ("taspo",)
    assert {(r.method, r.seeds) for r in summary.warm_start} == {("warm_start", (0, 1, 2))}


def test_a_scheme_given_as_a_file_is_found_under_its_name(tmp_path: Path) -> None:
    path = build_run(tmp_path / "run", methods=["mine"], envs=["alfworld"], seeds=[0], n=6)
    config = json.loads((path / "config.json").read_text())
    dump(path / "config.json", {**config, "methods": ["schemes/mine.py:Mine"]})
    cell = path / "cells/mine/alfworld/seed-0/config.json"
    dump(cell, {**json.loads(cell.read_text()), "method": "schemes/mine.py:Mine"})
    summary = summarize(read_run(path).cells)
    assert (summary.methods, summary.failed) == (("mine",), ())


def test_comparing_runs_names_a_method_that_stands_in_both(tmp_path: Path) -> None:
    first = build_run(tmp_path / "first", envs=["alfworld"], n=10)
    second = build_run(tmp_path / "second", methods=["taspo"], envs=["alfworld"], n=10)
    assert compare([first, second]).methods == ("grpo", "taspo (first)", "taspo (second)")


def test_a_comparison_has_any_baseline_and_is_written_on_request(tmp_path: Path) -> None:
    first = build_run(tmp_path / "first", envs=["alfworld"], n=10)
    second = build_run(tmp_path / "second", methods=["random_weights"], envs=["alfworld"], n=10)
    summary = compare([first, second], "random_weights", tmp_path / "both")
    assert {gain.method for gain in summary.gains} == {"grpo", "taspo"}
    assert all(row.difference for row in summary.late_training if row.method != "random_weights")
    names = {str(path.relative_to(tmp_path / "both")) for path in (tmp_path / "both").rglob("*.*")}
    assert {"summary.md", "summary.csv", "summary.tex", "summary.json", "plots/learning_curves.svg"} <= names
    assert "Paired differences from random" in (tmp_path / "both/summary.md").read_text()
    with pytest.raises(InputError, match="unknown baseline 'tapso': did you mean 'taspo'"):
        compare([first, second], "tapso")
    with pytest.raises(InputError, match="holds a run, or results of one"):
        compare([first, second], out=first)
    third = build_run(tmp_path / "third", methods=["grpo"], envs=["alfworld"], n=10)
    assert len(compare([first, third]).cells) == 3 + 9  # each warm start once
    with pytest.raises(InputError, match="unknown baseline 'grpo'"):
        compare([first, third], "grpo")


def test_comparing_runs_of_one_folder_name_names_them_by_path(tmp_path: Path) -> None:
    paths = [build_run(tmp_path / place / "run", methods=["taspo"], envs=["alfworld"], n=6) for place in "ab"]
    assert compare(paths).methods == tuple(f"taspo ({path})" for path in paths)


def test_comparing_runs_on_other_tasks_is_refused(tmp_path: Path) -> None:
    first = build_run(tmp_path / "first", envs=["alfworld"], n=10)
    second = build_run(tmp_path / "second", envs=["alfworld"], n=12)
    with pytest.raises(DataError, match="compare runs of one preset and one data version"):
        compare([first, second])


@pytest.mark.parametrize(
    ("setting", "values", "message"),
    [
        ("max_turns", (12, 30), "has step limit 30 on alfworld, .* has 12; compare runs of one step limit"),
        ("eval_temperature", (1.0, 0.4), "evaluation temperature 0.4 on alfworld, .* has 1.0; compare"),
    ],
)
def test_comparing_runs_judged_in_other_ways_is_refused(
    tmp_path: Path, setting: str, values: tuple[float, float], message: str
) -> None:
    first, second = (
        set_in_cells(build_run(tmp_path / name, envs=["alfworld"], seeds=[0], n=6), **{setting: value})
        for name, value in zip("ab", values, strict=True)
    )
    with pytest.raises(DataError, match=message) as caught:
        compare([first, second])
    assert "\n" not in str(caught.value)
    set_in_cells(second, **{setting: values[0]}, updates=180)
    assert len(compare([first, second]).methods) == 4


def test_runs_that_began_from_different_policies_keep_a_named_row_for_each_and_a_note(tmp_path: Path) -> None:
    runs = []
    for name, weights in (("first", "aa"), ("again", "aa"), ("second", "bb")):
        run = build_run(tmp_path / name, methods=[f"mine_{name}"], envs=["alfworld"], seeds=[0, 1], n=10)
        card = {"sha256": {"tokenizer.json": "cc" * 32, "model.safetensors": weights * 32}}
        runs.append(set_in_cells(run, policy="tiny", warm_start_card=card))
    same, summary = compare(runs[:2]), compare(runs, out=tmp_path / "out")
    assert [result.method for result in same.warm_start] == ["warm_start"] * 2
    assert "different policies" not in success_table(same).note
    names = ["warm_start of first, again", "warm_start of second"]
    assert list(dict.fromkeys(result.method for result in summary.warm_start)) == names
    assert summary.methods == ("mine_first", "mine_again", "mine_second")
    assert len(summary.cells) == 2 * 3 + 2 * 2
    table = success_table(summary)
    rows = ["warm start of first, again (before training)", "warm start of second (before training)"]
    assert [row[0].text for row in table.rows[:2]] == rows
    assert "began from different policies on alfworld" in table.note
    assert "warm start differs (aaaaaaaaaaaa, bbbbbbbbbbbb)" in (tmp_path / "out/summary.md").read_text()


def test_family_results_of_each_seed_are_kept(tmp_path: Path) -> None:
    run = read_run(build_run(tmp_path / "run", envs=["alfworld"], n=24, failed=[("taspo", "alfworld", 1)]))
    result = result_of(summarize(run.cells), "taspo", "alfworld")
    families = {
        cell.seed: cell.splits["valid_seen"]["families"]
        for cell in run.cells
        if cell.key[0] == "taspo" and not cell.error
    }
    for family, values in result.families_per_seed.items():
        assert values == (families[0][family]["success"], 0.0, families[2][family]["success"])
        assert sum(values) / 3 == pytest.approx(result.families[family])


def test_comparing_runs_on_other_data_is_refused(tmp_path: Path) -> None:
    first, second = (build_run(tmp_path / name, envs=["alfworld"], seeds=[0], n=6) for name in ("a", "b"))
    for path in second.glob("cells/*/*/*/eval.json"):
        record = json.loads(path.read_text())
        dump(path, {**record, "data_stamp": {**record["data_stamp"], "sha256": "cd" * 32}})
    with pytest.raises(DataError, match="other data of alfworld"):
        compare([first, second])
