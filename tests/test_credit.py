"""Group advantages: check values worked out by hand, and the cases in which they must be zero."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from taspo_baselines.agent_opsd import AgentOPSD
from taspo_baselines.gigpo import GiGPO
from taspo_baselines.grpo import GRPO
from taspo_baselines.rlsd import RLSD
from taspo_baselines.serl import SERL
from taspo_baselines.step_opsd import StepOPSD
from taspo_bench.credit import Credit, group_advantages, is_equal, make_scheme
from taspo_bench.errors import InputError
from taspo_bench.taspo.scheme import TASPO


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"ddof": 1}, [1.5, -0.5, -0.5, -0.5]),
        ({"ddof": 0}, [1.7320508, -0.5773503, -0.5773503, -0.5773503]),
        ({"normalize": "none"}, [0.75, -0.25, -0.25, -0.25]),
        ({"normalize": "leave_one_out"}, [1.0, -1 / 3, -1 / 3, -1 / 3]),
    ],
)
def test_advantages_of_one_success_in_four(settings, expected):
    np.testing.assert_allclose(group_advantages([1, 0, 0, 0], **settings), expected, atol=1e-5)


def test_equal_returns_have_no_advantage_whatever_the_rounding_of_their_std():
    assert not group_advantages([0.1 + 0.2] * 7).any()
    assert not group_advantages([0.1] * 3).any()
    assert is_equal([0.3, 0.3])


@pytest.mark.parametrize(("size", "share"), [(2, 0.702), (4, 0.449), (8, 0.201), (16, 0.040)])
def test_the_share_of_groups_that_teach_nothing_at_a_known_success_rate(size, share):
    success = 0.1819
    found = sum(
        success ** sum(returns) * (1 - success) ** (size - sum(returns))
        for returns in product((0.0, 1.0), repeat=size)
        if is_equal(returns)
    )
    assert found == pytest.approx(share, abs=5e-4)


def test_a_group_of_one_has_no_advantage():
    assert group_advantages([1.0]).tolist() == [0.0]


def test_each_trajectory_counts_once_whatever_its_turns():
    np.testing.assert_allclose(group_advantages([10.0, 0.0], normalize="none"), [5.0, -5.0])


def test_an_unknown_setting_of_a_scheme_is_named():
    with pytest.raises(InputError, match=r"scheme\.epsilon.*grpo"):
        make_scheme(GRPO, {"epsilon": 1})


def test_a_setting_is_read_by_its_annotation():
    assert make_scheme(TASPO, {"preserve_mean": "False", "eps": "0.25"}).rule == TASPO(0.25, preserve_mean=False).rule
    assert make_scheme(RLSD, {"decay_updates": 20.0}).decay_updates == 20


@pytest.mark.parametrize(
    ("scheme", "name", "value", "expected"),
    [
        (TASPO, "eps", "high", "valid number"),
        (TASPO, "preserve_mean", "maybe", "valid boolean"),
        (TASPO, "tau", None, "valid number"),
        (RLSD, "mix", "a", "valid number"),
        (RLSD, "decay_updates", 2.5, "valid integer"),
        (RLSD, "decay_updates", 0, "at least 1"),
        (SERL, "clip", 1.5, "from 0 to 1"),
        (StepOPSD, "mix", -0.5, "from 0 to 1"),
        (AgentOPSD, "gamma", float("nan"), "from 0 to 1"),
        (AgentOPSD, "margin", 0, "from 1e-12 to 0.5"),
        (GiGPO, "omega", float("inf"), "at least 0"),
        (GiGPO, "gamma", 2, "from 0 to 1"),
    ],
)
def test_a_value_that_a_setting_cannot_take_is_named_with_what_is_expected(scheme, name, value, expected):
    with pytest.raises(InputError, match=rf"scheme\.{name}={value}: .*{expected}"):
        make_scheme(scheme, {name: value})


class Plain:
    name = "plain"
    uses_guidance = False

    def __init__(self, factor=0.5, kind: "NowhereDefined" = None):  # type: ignore[name-defined]  # noqa: F821, UP037
        self.factor = factor / 1

    def credit(self, group, scorer) -> list[Credit]:
        return []


def test_a_scheme_without_annotations_takes_what_it_is_given_and_its_refusal_is_one_line():
    assert make_scheme(Plain, {"factor": 0.25}).factor == 0.25
    with pytest.raises(InputError, match=r"--set scheme\.factor=half: method 'plain' cannot be made so"):
        make_scheme(Plain, {"factor": "half"})


def test_returns_that_differ_by_rounding_alone_are_equal() -> None:
    alike = [1 / 6 * 0.5, 5 / 6 * 0.1]
    assert alike[0] != alike[1] and is_equal(alike)
    assert group_advantages(alike).tolist() == [0.0, 0.0]
    assert not is_equal([0.5, 0.5 + 1e-6])
