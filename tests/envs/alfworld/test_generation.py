"""Which generation of ALFWorld a game is of: known ones are told apart, all others refused with what is known."""

from __future__ import annotations

from typing import Any

import pytest
from alfworld_recorded import official

from taspo_bench.errors import DataError
from taspo_envs.alfworld.game import read_game
from taspo_envs.alfworld.generation import named_generation


@pytest.fixture(scope="module")
def game() -> dict[str, Any]:
    """A game of the release."""
    return official().game(official().ids["valid_seen"][0])


@pytest.mark.parametrize("name", ["0.5", "", None, 4, ["0.4"]])
def test_a_named_generation_that_is_unknown_is_refused_with_the_known_ones(name: Any) -> None:
    with pytest.raises(DataError) as error:
        read_game({"generation": name, "task": "tidy up", "pddl_problem": ""})
    message = str(error.value)
    assert repr(name) in message and "known are 0.3, 0.4" in message and "\n" not in message


@pytest.mark.parametrize("name", ["0.3", "0.4"])
def test_a_known_generation_has_its_own_words_for_putting_down(name: str) -> None:
    assert named_generation(name).put_words == {"0.3": ("put", "in/on"), "0.4": ("move", "to")}[name]


def test_the_generation_of_the_release_is_read_from_the_game(game: dict[str, Any]) -> None:
    assert read_game(game).generation.put_words == ("move", "to")


@pytest.mark.parametrize(
    ("what", "old", "new"),
    [
        ("domain", "(:action SliceObject", "(:action CutObject"),
        ("domain", "(isHot ?o)", "(isCool ?o)"),
        ("domain", "(:action", "(:deed"),
        ("grammar", "move {o} to {r}", "lay {o} on {r}"),
        ("grammar", "You arrive at {r.name}.", "You are at {r.name}."),
        ("grammar", "You are carrying:", "In your hands:"),
        ("grammar", '"GotoLocation.feedback": [', '"GotoLocation.feedback": {'),
    ],
)
def test_an_altered_game_is_refused_with_the_known_generations(
    game: dict[str, Any], what: str, old: str, new: str
) -> None:
    key = {"domain": "pddl_domain", "grammar": "grammar"}[what]
    assert old in game[key]
    with pytest.raises(DataError, match=rf"unknown ALFWorld {what} \(sha256 [0-9a-f]{{16}}\)") as error:
        read_game({**game, key: game[key].replace(old, new)})
    message = str(error.value)
    assert "known are those of alfworld 0.3, alfworld 0.4 and the official releases" in message
    assert "engine='textworld'" in message and "\n" not in message


def test_a_domain_of_something_else_is_refused() -> None:
    grammar = '{"task": [{"rhs": "Your task is to: tidy up."}]}'
    with pytest.raises(DataError, match=r"unknown ALFWorld domain .*known are"):
        read_game({"pddl_domain": "(define (domain blocks))", "grammar": grammar, "pddl_problem": ""})


def test_a_grammar_nested_beyond_reason_is_refused(game: dict[str, Any]) -> None:
    deep = '"""' + "[" * 200_000 + '"""'
    with pytest.raises(DataError, match="unknown ALFWorld grammar"):
        read_game({**game, "grammar": game["grammar"] + deep})
