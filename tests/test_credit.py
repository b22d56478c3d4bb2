"""Group advantages: check values worked out by hand, and the cases in which they must be zero."""

from __future__ import annotations

import numpy as np
import pytest

from taspo_baselines.grpo import GRPO
from taspo_bench.credit import group_advantages, is_equal, make_scheme
from taspo_bench.errors import InputError


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


def test_a_group_of_one_has_no_advantage():
    assert group_advantages([1.0]).tolist() == [0.0]


def test_each_trajectory_counts_once_whatever_its_turns():
    np.testing.assert_allclose(group_advantages([10.0, 0.0], normalize="none"), [5.0, -5.0])


def test_an_unknown_setting_of_a_scheme_is_named():
    with pytest.raises(InputError, match=r"scheme\.epsilon.*grpo"):
        make_scheme(GRPO, {"epsilon": 1})
