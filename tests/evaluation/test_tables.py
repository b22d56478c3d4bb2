"""The tables and their formats."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from rich.console import Console
from run_builder import break_episodes, build_run

from taspo_bench.evaluation.breakdowns import credit_table, result_records
from taspo_bench.evaluation.reference import PAPER
from taspo_bench.evaluation.results import read_run
from taspo_bench.evaluation.summary import Summary, summarize
from taspo_bench.evaluation.table import Entry, Table, share
from taspo_bench.evaluation.table_formats import terminal_table, to_csv, to_latex, to_markdown
from taspo_bench.evaluation.tables import all_tables, success_table

MARKS = Table(
    "marks",
    "A & B_c (%)",
    "50 % of $1",
    ("method", "x|y"),
    (
        (Entry("a_b"), Entry("9.0 [8.0, 9.5]", best=True)),
        (Entry("c|d"), Entry("8.9 [7.0, 9.5]", tied=True, failed=True)),
    ),
)


@pytest.fixture(scope="module")
def summary(tmp_path_factory: pytest.TempPathFactory) -> Summary:
    path = tmp_path_factory.mktemp("tables") / "run"
    build_run(path, methods=["grpo", "taspo"], n=24, failed=[("taspo", "webshop", 1)])
    return summarize(read_run(path).cells)


def printed(summary: Summary, width: int, paper: bool = False) -> str:
    console = Console(width=width, file=io.StringIO())
    console.print(terminal_table(summary, paper))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_markdown_sets_the_best_in_bold_and_marks_ties_and_failures() -> None:
    text = to_markdown(MARKS)
    assert r"| a\_b | **9.0 [8.0, 9.5]** |" in text
    assert r"| c\|d | 8.9 [7.0, 9.5]†‡ |" in text


def test_latex_uses_booktabs_and_escapes_every_special_character() -> None:
    text = to_latex(MARKS)
    for part in (r"\toprule", r"\midrule", r"\bottomrule", r"A \& B\_c (\%)", r"50 \% of \$1", r"\textbf{9.0}"):
        assert part in text
    assert r"8.9\textsuperscript{\dag}\textsuperscript{\ddag}" in text
    assert text.count("{") == text.count("}")


def test_every_table_is_rectangular_and_can_be_written_in_every_format(summary: Summary) -> None:
    for table in all_tables(summary, paper=True):
        assert {len(row) for row in table.rows} == {len(table.columns)}
        assert to_markdown(table).count("\n| ") == len(table.rows) + 2
        body = to_latex(table).split(r"\midrule")[1].split(r"\bottomrule")[0]
        assert body.count(r"\\" + "\n") == len(table.rows)


def test_the_credit_table_is_the_mean_over_updates_and_seeds() -> None:
    def line(skipped: float, spread: float) -> dict[str, float]:
        rest = dict.fromkeys(("guidance_coverage", "guided_turns", "weighted", "sign_flips"), 0.5)
        return {"groups_skipped": skipped, "weight_spread": spread, **rest}

    logs = {
        ("taspo", "alfworld", 0): [line(0.1, 0.02), line(0.3, 0.04)],
        ("taspo", "alfworld", 1): [line(0.5, 0.06), {"success": 0.5}],
        ("grpo", "alfworld", 0): [{"success": 0.5}],
    }
    (row,) = credit_table(logs).rows
    assert [entry.text for entry in row] == ["taspo", "alfworld", "30.0", "50.0", "50.0", "50.0", "0.040", "0.50"]


def test_families_name_both_averages(summary: Summary) -> None:
    families = [table for table in all_tables(summary) if table.name.startswith("families ")]
    assert len(families) == 6
    for table in families:
        assert table.columns[1:3] == ("micro", "macro")


def test_failed_runs_are_marked_where_they_count_and_listed_as_zero(summary: Summary) -> None:
    tables = {table.name: table for table in all_tables(summary)}
    place = tables["success"].columns.index("webshop seen")
    (row,) = [row for row in tables["success"].rows if row[0].text == "taspo"]
    assert row[place].failed
    (row,) = [row for row in tables["runs"].rows if row[3].text.startswith("failed")]
    assert [entry.text for entry in row] == [
        "taspo",
        "webshop",
        "1",
        "failed: RunError: loss is <not> finite at update 7",
        "0.0",
        "0.0",
    ]


def test_the_papers_figures_stand_beside_the_same_averages_of_ours_only_on_request(summary: Summary) -> None:
    assert not any(table.name == "paper" for table in all_tables(summary))
    (table,) = [table for table in all_tables(summary, paper=True) if table.name == "paper"]
    headings = [
        "alfworld seen, macro",
        "searchqa seen, macro",
        "webshop seen, success (micro)",
        "webshop seen, score",
    ]
    assert list(table.columns[1:]) == headings
    rows = {row[0].text: [entry.text for entry in row[1:]] for row in table.rows}
    assert len(rows) == len(PAPER) + 2 == 11
    assert rows["TASPO, Qwen2.5-3B-Instruct (paper)"] == ["86.2", "46.4", "78.1", "88.5"]
    seen = {r.env: r for r in summary.results if (r.method, r.kind) == ("grpo", "seen")}
    shop = seen["webshop"]
    assert shop.score != shop.success
    ours = (seen["alfworld"].macro, seen["searchqa"].macro, shop.success, shop.score)
    assert rows["grpo"] == [share(figure) for figure in ours]
    assert not any(entry.best or entry.tied for row in table.rows for entry in row)
    main = success_table(summary)
    assert not any("(paper)" in row[0].text for row in main.rows)
    assert "Beside the paper" in printed(summary, 80, paper=True) and "Beside" not in printed(summary, 80)


def test_errored_episodes_are_marked_with_their_number_where_there_are_some(tmp_path: Path, summary: Summary) -> None:
    assert not any("§" in to_markdown(table) for table in all_tables(summary))
    path = build_run(tmp_path / "run", envs=["webshop"], seeds=(0, 1), n=20)
    break_episodes(path / "cells/taspo/webshop/seed-1", "valid_seen", 3)
    broken = summarize(read_run(path).cells)
    tables = {table.name: table for table in all_tables(broken, paper=True)}
    (row,) = [row for row in tables["success"].rows if row[0].text == "taspo"]
    assert [entry.errored for entry in row] == [False, True, False]
    counts = "§: episodes that ended with an error, lost: taspo on webshop seen 3 of 40."
    for name in ("success", "score", "paper", "families webshop seen"):
        assert counts in tables[name].note and "§" in to_markdown(tables[name]).split(counts)[0], name
        assert r"\textsuperscript{\S}" in to_latex(tables[name])
    assert "§" not in to_markdown(tables["families webshop unseen"])
    assert counts in " ".join(printed(broken, 80).split())
    (state,) = [row[3].text for row in tables["runs"].rows if "episodes" in row[3].text]
    assert state == "done, 3 episodes ended with an error"


def test_the_main_table_says_what_bold_and_its_marks_mean(summary: Summary) -> None:
    note = success_table(summary).note
    for words in ("Bold: highest of its column", "†: not told apart from it", "95 % interval of their difference"):
        assert words in note


def test_csv_holds_one_row_per_method_split_and_seed_at_full_precision(summary: Summary) -> None:
    rows = list(csv.DictReader(io.StringIO(to_csv(*result_records(summary.results)))))
    assert len(rows) == 2 * 3 * 2 * (1 + 3)
    row = next(row for row in rows if (row["method"], row["env"], row["seed"]) == ("taspo", "alfworld", "all"))
    result = next(result for result in summary.results if (result.method, result.env) == ("taspo", "alfworld"))
    assert float(row["success"]) == result.success.value
    assert {row["status"] for row in rows if row["seed"] == "1" and row["method"] == "taspo"} == {"done", "failed"}


def test_a_gain_that_is_defined_nowhere_is_left_out(tmp_path: Path) -> None:
    path = build_run(tmp_path / "run", envs=["alfworld"], seeds=[0], n=6, skill=lambda *_: 0.0)
    assert "Gain over" not in printed(summarize(read_run(path).cells), 80)


def test_the_terminal_table_fits_eighty_columns_with_nothing_cut(summary: Summary) -> None:
    text = printed(summary, 80)
    assert "…" not in text
    for word in ("grpo", "taspo", "alfworld seen", "webshop unseen", "mean unseen"):
        assert word in text
