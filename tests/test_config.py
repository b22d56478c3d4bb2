"""Settings: where a value comes from, and what is said of one that cannot be."""

from __future__ import annotations

import pytest

from taspo_bench.cli import parse_seeds
from taspo_bench.config import PRESETS, parse_overrides, resolve
from taspo_bench.errors import InputError
from taspo_bench.run import Plan


def test_an_override_beats_the_benchmark_and_the_benchmark_beats_the_preset():
    own = {"quick": {"max_turns": 20, "updates": 7}}
    config = resolve("quick", own, {"updates": 9, "scheme.eps": 0.2}, method="taspo", env="x", seed=1)
    assert (config.updates, config.max_turns, config.group_size) == (9, 20, PRESETS["quick"]["group_size"])
    assert config.scheme == {"eps": 0.2}


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"learning_rat": 1}, "did you mean learning_rate"),
        ({"seed": 3}, "no such key"),
        ({"group_size": 1}, "group_size=1"),
        ({"learning_rate": "fast"}, "learning_rate=fast"),
        ({"guidance_scope": "world"}, "guidance_scope=world"),
    ],
)
def test_a_bad_setting_is_one_line_that_names_it(overrides, message):
    with pytest.raises(InputError, match=message) as caught:
        resolve("quick", {}, overrides)
    assert "\n" not in str(caught.value) and caught.value.exit_code == 2


def test_an_unknown_preset_lists_the_known_ones():
    with pytest.raises(InputError, match=r"did you mean 'quick'.*smoke"):
        resolve("quik", {}, {})


def test_values_are_json_or_else_text():
    assert parse_overrides(["a=1", "b=0.5", "c=true", "d=turn", 'e=["x"]', "f=x=y"]) == {
        "a": 1, "b": 0.5, "c": True, "d": "turn", "e": ["x"], "f": "x=y",
    }  # fmt: skip
    with pytest.raises(InputError, match="key=value"):
        parse_overrides(["novalue"])


def test_a_setting_of_schemes_goes_to_those_that_have_it():
    cells = Plan.make(["grpo", "taspo"], ["searchqa"], None, "smoke", "embedded", {"scheme.eps": 0.2}).cells()
    assert {cell.name: cell.config.scheme for cell in cells} == {"warm_start": {}, "grpo": {}, "taspo": {"eps": 0.2}}
    with pytest.raises(InputError, match=r"scheme\.nothing: method 'grpo' has no such setting"):
        Plan.make(["grpo", "taspo"], ["searchqa"], None, "smoke", "embedded", {"scheme.nothing": 1}).cells()


def test_seeds_by_number_or_by_name():
    assert parse_seeds("3") == [0, 1, 2]
    assert parse_seeds("0,4,7") == [0, 4, 7]
    assert parse_seeds("7,") == [7]
    for bad in ("0", "x", "1,1", "-1", ",", "1,,2"):
        with pytest.raises(InputError):
            parse_seeds(bad)
