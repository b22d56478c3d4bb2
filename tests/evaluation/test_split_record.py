"""The record of one evaluated split: what counts, and what is refused (C2, C4, C6, C8, C9)."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from run_builder import episode, task_split

from taspo_bench.api import Split
from taspo_bench.episode import Episode
from taspo_bench.errors import SplitError
from taspo_bench.evaluation.results import split_record

FAMILIES = ("clean", "heat", "place")
OUTCOMES = st.lists(st.tuples(st.sampled_from(FAMILIES), st.booleans(), st.booleans()), min_size=1, max_size=30)


def episodes_of(split: Split, won: bool = True) -> list[Episode]:
    rng = np.random.default_rng(0)
    return [episode("alfworld", task_id, number, won, rng) for number, task_id in enumerate(split.task_ids)]


def test_only_won_is_success_even_at_the_step_limit() -> None:
    split = task_split("alfworld", "valid_seen", "seen", 2)
    done, stopped = episodes_of(split)
    stopped = dataclasses.replace(stopped, won=False, truncated=True, score=0.0)
    record = split_record([done, stopped], split)
    assert record["success"] == 0.5
    assert record["tasks"][stopped.task_id]["won"] is False


def test_an_errored_episode_counts_as_lost_and_is_flagged() -> None:
    split = task_split("alfworld", "valid_seen", "seen", 4)
    episodes = episodes_of(split)
    episodes[1].error = "RetrieverError: no answer"
    record = split_record(episodes, split)
    assert (record["success"], record["score"], record["errors"], record["n"]) == (0.75, 0.75, 1, 4)
    assert record["tasks"][split.task_ids[1]] == {
        "family": episodes[1].family,
        "won": False,
        "score": 0.0,
        "steps": len(episodes[1].turns),
        "error": "RetrieverError: no answer",
    }


def test_a_missing_task_is_refused_by_name() -> None:
    split = task_split("alfworld", "valid_seen", "seen", 5)
    with pytest.raises(SplitError, match=f"1 of 5 tasks were not evaluated, first '{split.task_ids[3]}'"):
        split_record([done for done in episodes_of(split) if done.task_id != split.task_ids[3]], split)


def test_a_task_evaluated_twice_is_refused() -> None:
    split = task_split("alfworld", "valid_seen", "seen", 3)
    with pytest.raises(SplitError, match="evaluated twice"):
        split_record([*episodes_of(split), episodes_of(split)[0]], split)


def test_a_task_of_another_split_is_refused() -> None:
    split, other = (task_split("alfworld", name, "seen", 3) for name in ("valid_seen", "train"))
    with pytest.raises(SplitError, match="not of it"):
        split_record([*episodes_of(split), *episodes_of(other)], split)


def test_an_empty_split_is_refused() -> None:
    with pytest.raises(SplitError, match="empty"):
        split_record([], Split("valid_seen", "seen", ()))


def test_tasks_stand_in_the_order_of_the_split() -> None:
    split = task_split("alfworld", "valid_seen", "seen", 6)
    assert list(split_record(reversed(episodes_of(split)), split)["tasks"]) == list(split.task_ids)


@given(OUTCOMES)
def test_micro_is_over_tasks_and_macro_over_families(outcomes: list[tuple[str, bool, bool]]) -> None:
    split = task_split("alfworld", "valid_unseen", "unseen", len(outcomes))
    episodes = [
        Episode("alfworld", task_id, family, won=won, score=float(won), error="broken" * broken)
        for task_id, (family, won, broken) in zip(split.task_ids, outcomes, strict=True)
    ]
    record = split_record(episodes, split)
    good = [(family, won and not broken) for family, won, broken in outcomes]
    shares = [
        np.mean([won for name, won in good if name == family]) for family in sorted({family for family, _ in good})
    ]
    assert record["micro"] == record["success"] == pytest.approx(np.mean([won for _, won in good]))
    assert record["macro"] == pytest.approx(np.mean(shares))
    assert sum(family["n"] for family in record["families"].values()) == record["n"] == len(outcomes)
    assert 0 <= record["wilson"][0] <= record["micro"] <= record["wilson"][1] <= 1
