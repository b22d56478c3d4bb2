"""Credit diagnostics: true effects from the simulator, and figures that tell good credit from bad."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from corridor import Corridor, play
from taspo_baselines.grpo import GRPO
from taspo_bench.api import TextEnv
from taspo_bench.credit import Array, Credit
from taspo_bench.episode import Episode, Group, Guidance
from taspo_bench.errors import DataError, InputError
from taspo_bench.evaluation.diagnostics import (
    Diagnosis,
    StoredCredit,
    chance_of_success,
    figures_of_seed,
    spearman,
    stored_groups,
    true_values,
)
from taspo_bench.evaluation.diagnostics_report import diagnosis_plot, diagnosis_table, ranking_line
from taspo_bench.evaluation.plot_style import save
from taspo_bench.evaluation.table_formats import to_markdown
from taspo_bench.taspo.analyzers.replay import ReplayAnalyzer
from taspo_bench.taspo.oracle_credit import OracleCredit
from taspo_bench.taspo.scheme import TASPO

WON = ["look", "open box 1", "open box 2", "take key", "drop key", "take key", "unlock door"]
LOST = ["sing", "open box 2", "take key", "drop key", "look"]


class Simulator:
    """Distances from the corridor itself; a likelihood that guidance moves towards the action that it names."""

    def __init__(self) -> None:
        self.env = Corridor()
        self.passes = 0

    def shift(self, episodes: Sequence[Episode], guidance: Sequence[Guidance]) -> list[list[Array]]:
        self.passes += 1
        return [
            [
                np.array([0.0 if text is None else 1.0 if turn.action in text else -1.0])
                for turn, text in zip(episode.turns, texts.texts, strict=True)
            ]
            for episode, texts in zip(episodes, guidance, strict=True)
        ]

    def remaining_steps(self, episode: Episode) -> Array:
        self.env.reset(options={"task_id": episode.task_id})
        steps = [self.env.remaining_steps()]
        for action in episode.actions:
            self.env.step(action)
            steps.append(self.env.remaining_steps())
        return np.array([np.inf if left is None else left for left in steps], dtype=np.float64)


def group(*extra: Sequence[str], reveal: bool = False) -> Group:
    episodes = [play(WON), play(["open box 2", "take key", "unlock door"]), play(LOST), *map(play, extra)]
    made = Group("key-2", episodes)
    made.guidance = ReplayAnalyzer(Corridor(), reveal=reveal).guide(made)
    return made


def schemes() -> dict[str, GRPO | TASPO | OracleCredit]:
    return {"grpo": GRPO(), "taspo": TASPO(), "oracle_credit": OracleCredit()}


def test_effects_of_actions_come_from_the_simulator() -> None:
    episode = play(WON)
    values = true_values(episode, Simulator().remaining_steps(episode))
    assert values.progress.tolist() == [0, 0, 1, 1, -1, 1, 1]
    assert values.effects == [
        "nothing", "information", "progress", "progress", "regression", "progress", "progress"
    ]  # fmt: skip


def test_an_invalid_action_gathers_no_information() -> None:
    episode = play(["sing", "open box 1", "open box 1"])
    assert true_values(episode, Simulator().remaining_steps(episode)).effects == ["nothing", "information", "nothing"]


def test_a_state_lost_for_good_is_a_regression() -> None:
    episode = play(["look", "look"])
    values = true_values(episode, np.array([3.0, np.inf, np.inf]))
    assert values.effects == ["regression", "nothing"]


def test_oracle_credit_ranks_above_taspo_above_grpo_where_guidance_is_good() -> None:
    figures = figures_of_seed([group()], schemes(), Simulator())
    assert figures["oracle_credit"].spearman > figures["taspo"].spearman > figures["grpo"].spearman == 0
    assert figures["oracle_credit"].spearman == pytest.approx(1.0)
    assert 0 == figures["oracle_credit"].oracle_gap < figures["taspo"].oracle_gap
    assert figures["taspo"].credit_on_progress > figures["grpo"].credit_on_progress
    assert figures["taspo"].blame_on_progress < figures["grpo"].blame_on_progress


def test_even_credit_is_shared_out_by_the_number_of_turns() -> None:
    figures = figures_of_seed([group()], schemes(), Simulator())["grpo"]
    assert figures.credit_on_progress == pytest.approx((4 / 7 + 1) / 2)
    assert figures.credit_on_information == pytest.approx(1 / 14)
    assert figures.credit_on_nothing == pytest.approx(1 / 14)
    assert figures.blame_on_regression == pytest.approx(1 / 5)
    assert figures.information_credit == 0


def test_revealing_guidance_is_seen_to_punish_information_gathering() -> None:
    neutral = figures_of_seed([group()], schemes(), Simulator())["taspo"]
    revealing = figures_of_seed([group(reveal=True)], schemes(), Simulator())["taspo"]
    assert revealing.information_credit < neutral.information_credit < 0.1


def test_schemes_share_one_privileged_pass_a_group() -> None:
    simulator = Simulator()
    figures_of_seed([group()], {"a": TASPO(), "b": TASPO(eps=0.2)}, simulator)
    assert simulator.passes == 1


def test_stored_credit_is_diagnosed_as_the_scheme_that_gave_it() -> None:
    trained = group()
    for episode, guidance, credit in zip(
        trained.episodes, trained.guidance, TASPO().credit(trained, Simulator()), strict=True
    ):
        episode.credit, episode.advantage = credit.per_turn().tolist(), credit.advantage
        episode.guidance = guidance
    stored = [Episode.from_json(episode.to_json()) for episode in trained.episodes]
    groups = stored_groups(stored, 3)
    assert groups[0].guidance == trained.guidance
    figures = figures_of_seed(groups, {"stored": StoredCredit("taspo"), "taspo": TASPO()}, Simulator())
    assert asdict(figures["stored"]) == pytest.approx(asdict(figures["taspo"]), nan_ok=True)


def test_episodes_without_credit_are_refused_by_name() -> None:
    with pytest.raises(InputError, match="task key-2: its episodes hold no credit"):
        figures_of_seed([group()], {"stored": StoredCredit("taspo")}, Simulator())


def test_episodes_that_are_no_whole_group_are_refused() -> None:
    with pytest.raises(DataError, match="no group of 2"):
        stored_groups([play(WON), play(LOST), play(LOST)], 2)
    with pytest.raises(DataError, match="of one task"):
        stored_groups([play(WON), play(LOST, task_id="key-3")], 2)


def test_groups_with_equal_returns_alone_cannot_be_diagnosed() -> None:
    lost = Group("key-2", [play(LOST), play(LOST)])
    with pytest.raises(InputError, match="unequal returns"):
        figures_of_seed([lost], schemes(), Simulator())


def test_the_chance_of_success_is_measured_from_restored_states() -> None:
    def play_on(env: TextEnv, episode: Episode, step: int, number: int) -> bool:
        for action in env.solve()[: 2 if number == 0 else 3]:
            env.step(action)
        return env.won

    chances = chance_of_success(Corridor(), play(WON), play_on, tries=2)
    assert chances.tolist() == [0.5, 0.5, 0.5, 1, 1, 1, 1, 1]
    figures = figures_of_seed(
        [group()], schemes(), Simulator(), lambda episode: chance_of_success(Corridor(), episode, play_on, 2)
    )
    assert figures["oracle_credit"].spearman_chance > figures["grpo"].spearman_chance == 0


@pytest.mark.parametrize(
    ("credit", "truth", "expected"),
    [
        ([1.0, 2.0, 3.0], [0, 1, 2], 1.0),
        ([3.0, 2.0, 1.0], [0, 1, 2], -1.0),
        ([1.0, 1.0, 1.0], [0, 1, 2], 0.0),
        ([0.1 + 0.2, 0.3, 0.3], [0, 1, 2], 0.0),
        ([1.0, 2.0], [1, 1], np.nan),
        ([1.0], [1], np.nan),
    ],
)
def test_correlation_inside_a_trajectory(credit: list[float], truth: list[float], expected: float) -> None:
    np.testing.assert_allclose(spearman(np.array(credit), np.array(truth)), expected)


class Backwards(OracleCredit):
    """The worst credit: the oracle's, the other way round."""

    def credit(self, group: Group, scorer: Simulator) -> list[Credit]:  # type: ignore[override]
        return [
            Credit([2 * credit.advantage - value for value in credit.turns], credit.advantage)
            for credit in super().credit(group, scorer)
        ]


def diagnosis() -> Diagnosis:
    everyone = {**schemes(), "backwards": Backwards()}
    extra = ["open box 3", "open box 2", "look"]
    return Diagnosis(
        "corridor",
        {
            0: figures_of_seed([group()], everyone, Simulator()),
            1: figures_of_seed([group(extra)], everyone, Simulator()),
            2: figures_of_seed([group(extra, ["look", "open box 2"])], everyone, Simulator()),
        },
    )


def test_seeds_are_averaged_with_an_interval() -> None:
    found = diagnosis()
    values = [figures["taspo"].spearman for figures in found.seeds.values()]
    estimate = found.estimate("taspo", "spearman")
    assert estimate.value == pytest.approx(np.mean(values)) and estimate.low < estimate.value < estimate.high
    assert found.ranking() == ["oracle_credit", "taspo", "grpo", "backwards"]


def test_the_report_says_whether_the_order_is_as_expected() -> None:
    line = ranking_line(diagnosis())
    assert line.startswith("oracle_credit is above taspo") and "taspo is above grpo" in line
    swapped = {"taspo": "grpo", "grpo": "taspo"}
    others = {
        seed: {swapped.get(name, name): value for name, value in found.items()}
        for seed, found in diagnosis().seeds.items()
    }
    assert "taspo is not above grpo" in ranking_line(Diagnosis("corridor", others))


def test_a_diagnosis_is_written_as_json_table_and_plot(tmp_path: Path) -> None:
    found = diagnosis()
    record = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert record["ranking"][0] == "oracle_credit" and set(record["seeds"]) == {"0", "1", "2"}
    assert record["seeds"]["0"]["grpo"]["spearman_chance"] is None
    table = to_markdown(diagnosis_table(found))
    assert "oracle\\_credit" in table and "chance" not in table
    save(diagnosis_plot(found), tmp_path, "diagnosis")
    assert (tmp_path / "diagnosis.png").stat().st_size > 10_000


def test_a_single_seed_has_no_interval() -> None:
    found = Diagnosis("corridor", {0: figures_of_seed([group()], schemes(), Simulator())})
    assert np.isnan(found.estimate("taspo", "spearman").low)
    assert found.to_json()["estimates"]["taspo"]["spearman"]["low"] is None
    assert "[" not in diagnosis_table(found).rows[0][1].text
