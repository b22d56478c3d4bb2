"""Guidance by replay: minimal evidence, only from other successes, quoted exactly, and nothing hidden."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corridor import Corridor, play
from taspo_bench.api import Outcome, Rule
from taspo_bench.episode import Episode, Group
from taspo_bench.errors import InputError
from taspo_bench.registry import make_env
from taspo_bench.taspo.analyzers.prune import prune
from taspo_bench.taspo.analyzers.replay import ReplayAnalyzer
from taspo_bench.taspo.guidance import Item, Source, is_quoted, item_defect

ACTIONS = ["look", *(f"open box {box}" for box in range(1, 5)), "take key", "drop key", "unlock door", "sing"]
SUCCESS = ["look", "open box 1", "open box 2", "take key", "drop key", "take key", "unlock door"]
FAILURE = ["open box 3", "open box 2", "look", "take key", "look"]


def group(*episodes: Episode) -> Group:
    return Group("key-2", list(episodes))


def test_pruning_keeps_only_what_the_success_needs() -> None:
    kept = prune(Corridor(), "key-2", SUCCESS)
    assert kept is not None
    assert [SUCCESS[step] for step in kept] == ["open box 2", "take key", "unlock door"]


def test_a_sequence_that_does_not_win_gives_no_evidence() -> None:
    assert prune(Corridor(), "key-2", FAILURE) is None
    assert prune(Corridor(), "key-1", SUCCESS[2:]) is None


@given(st.lists(st.sampled_from(ACTIONS), max_size=12))
def test_the_pruned_sequence_still_wins_and_none_of_it_can_go(extra: list[str]) -> None:
    actions = [*extra, "open box 2", "take key", "unlock door"]
    kept = prune(Corridor(), "key-2", actions)
    assert kept is not None
    rest = [actions[step] for step in kept]
    assert play(rest).won
    for gone in range(len(rest)):
        assert not play(rest[:gone] + rest[gone + 1 :]).won


SAID = ("say[mellon]", "<say>mellon</say>", "<action>say[mellon]</action>", "<action><say> mellon </say></action>")


class Library(Corridor):
    """The same door, opened by saying a word that a book tells: free text that replay alone cannot justify."""

    action_templates = ("say[{}]",)

    def act(self, action: str) -> Outcome:
        if action == "read":
            return Outcome("The book says mellon.")
        if action in SAID:
            self.is_open = True
            return Outcome("The door opens.")
        return super().act(action)


@pytest.mark.parametrize("said", SAID)
def test_the_search_that_found_an_answer_is_not_cut_away(said: str) -> None:
    assert prune(Library(), "key-1", ["look", "read", "look", said]) == [1, 3]


def test_tagged_searches_of_search_qa_are_pruned_as_plain_ones_are() -> None:
    env = make_env("searchqa")
    for task_id in env.splits()["train"].task_ids[:40]:
        env.reset(options={"task_id": task_id})
        plain = env.solve()
        tagged = [re.sub(r"^(\w+)\[(.*)\]$", r"<\1>\2</\1>", action) for action in plain]
        assert tagged != plain and prune(env, task_id, tagged) == prune(env, task_id, plain) is not None


def test_an_answer_that_nothing_told_owes_nothing() -> None:
    assert prune(Library(), "key-1", ["look", "say[mellon]"]) == [1]


def test_a_turn_sees_the_rule_that_fits_its_state_and_the_others_see_nothing() -> None:
    _, guidance = ReplayAnalyzer(Corridor()).guide(group(play(SUCCESS), play(FAILURE)))
    assert guidance is not None
    assert guidance.texts == [None, None, "take key", "take key", "unlock door"]
    assert guidance.scope == "turn"


def test_hidden_places_are_named_only_with_reveal() -> None:
    episodes = group(play(SUCCESS), play(["open box 1", "open box 3"]))
    hidden = ReplayAnalyzer(Corridor(), reveal=False).guide(episodes)[1]
    revealed = ReplayAnalyzer(Corridor(), reveal=True).guide(episodes)[1]
    assert not hidden and hidden is not None and hidden.reason == "no item fits"
    assert revealed is not None and revealed.texts == ["open box 2", "open box 2"]


@pytest.mark.parametrize(
    ("met", "known"),
    [
        ("you see a tissuebox 1.", False),
        ("you see a box 12.", False),
        ("you see a tissuebox 1, and a box 1.", True),
        ("box 1", True),
    ],
)
def test_a_phrase_is_met_as_whole_words_only(met: str, known: bool) -> None:
    needed = Rule(0, "box 1 is at sofa 1", "go to sofa 1", "", needs=("box 1",))
    outdated = Rule(0, "box 1 is at sofa 1", "go to sofa 1", "", stale=("box 1",))
    assert needed.fits("", met) is needed.is_known(met) is known
    assert outdated.fits("", met) is not known


def test_the_trajectory_scope_names_only_what_the_first_observation_allows() -> None:
    guidance = ReplayAnalyzer(Corridor(), scope="trajectory").guide(group(play(SUCCESS), play(FAILURE)))[1]
    assert guidance is not None
    assert guidance.texts == ["take key\nunlock door"] * 5


def test_no_episode_is_its_own_evidence() -> None:
    only, failed = ReplayAnalyzer(Corridor()).guide(group(play(SUCCESS), play(FAILURE)))
    assert not only and only is not None and only.reason == "no other success"
    assert failed is not None and all(
        source["trajectory"] == 0 for item in failed.items for source in item["sources"]
    )


def test_the_outcome_of_the_target_does_not_change_its_guidance() -> None:
    failed = play(FAILURE)
    flagged = replace(failed, won=True, score=1.0)
    guide = ReplayAnalyzer(Corridor()).guide
    assert guide(group(play(SUCCESS), failed))[1] == guide(group(play(SUCCESS), flagged))[1]


@pytest.mark.parametrize("scope", ["turn", "trajectory"])
@pytest.mark.parametrize("source", ["aligned", "nearest", "random"])
@pytest.mark.parametrize("reveal", [False, True])
@given(others=st.lists(st.lists(st.sampled_from(ACTIONS), min_size=1, max_size=8), min_size=1, max_size=4))
def test_every_item_is_verified_and_every_text_is_made_of_items(
    scope: str, source: str, reveal: bool, others: list[list[str]]
) -> None:
    episodes = group(play(SUCCESS), play(["open box 2", "take key", "unlock door"]), *map(play, others))
    analyzer = ReplayAnalyzer(Corridor(), scope=scope, source=source, reveal=reveal, max_tokens=6)  # type: ignore[arg-type]
    for target, guidance in enumerate(analyzer.guide(episodes)):
        assert guidance is not None and len(guidance.items) <= 8
        assert len(guidance.texts) == len(episodes.episodes[target].turns)
        items = [_item(record) for record in guidance.items]
        assert all(item_defect(item, episodes, target) == "" for item in items)
        statements = {item.statement for item in items}
        for text in guidance.texts:
            assert text is None or (set(text.split("\n")) <= statements and len(text.split()) <= 6)


def _item(record: dict) -> Item:  # type: ignore[type-arg]
    return Item(**{**record, "sources": tuple(Source(**source) for source in record["sources"])})


def test_without_alignment_all_statements_of_one_success_are_shown() -> None:
    episodes = group(play(SUCCESS), play(FAILURE))
    guidance = ReplayAnalyzer(Corridor(), source="nearest", reveal=True).guide(episodes)[1]
    assert guidance is not None
    assert guidance.texts == ["open box 2\ntake key\nunlock door"] * 5


def test_nearest_takes_the_success_that_shares_most_actions() -> None:
    near, far = play(["open box 3", "open box 2", "take key", "unlock door"]), play(["open box 2", *SUCCESS[3:]])
    guidance = ReplayAnalyzer(Corridor(), source="nearest").guide(group(far, near, play(FAILURE)))[2]
    assert guidance is not None and {item["sources"][0]["trajectory"] for item in guidance.items} == {1}


def test_random_is_the_same_again_for_the_same_seed_task_and_update() -> None:
    episodes = group(*(play(SUCCESS[start:]) for start in range(3)), play(FAILURE))
    draws = [ReplayAnalyzer(Corridor(), source="random", seed=3).guide(episodes)[3] for _ in range(3)]
    assert draws[0] == draws[1] == draws[2]


def test_generic_advice_rests_on_no_success() -> None:
    guidance = ReplayAnalyzer(Corridor(), source="generic").guide(group(play(FAILURE)))[0]
    assert guidance and len(set(guidance.texts)) == 1


class Misquoting(Corridor):
    """A benchmark whose rules cite what no episode saw."""

    def rules(self, actions: Sequence[str]) -> list[Rule]:
        return [replace(rule, quote="never said", action="never done") for rule in super().rules(actions)]


def test_a_quote_that_the_original_lacks_is_replaced_by_what_the_step_led_to() -> None:
    guidance = ReplayAnalyzer(Misquoting()).guide(group(play(SUCCESS), play(FAILURE)))[1]
    assert guidance is not None
    assert guidance.items[0]["sources"][0]["observation"] == "You take the key."


ITEM = Item("a", "progress", "take key", (Source(0, 3, "take key", "You take the key."),), 2, "A key lies in it.")


@pytest.mark.parametrize(
    ("change", "defect"),
    [
        ({}, ""),
        ({"quote": "A  key \n lies in it."}, ""),
        ({"quote": "A key lies here."}, "the target is misquoted"),
        ({"quote": ""}, "the target is misquoted"),
        ({"step": 1}, "the target is misquoted"),
        ({"step": 99}, "the target is misquoted"),
        ({"kind": "praise"}, "kind 'praise'"),
        ({"statement": " "}, "a statement of 1 characters"),
        ({"statement": "x" * 801}, "a statement of 801 characters"),
        ({"sources": ()}, "no source"),
        ({"sources": (Source(1, 3, "take key", "You take the key."),)}, "the target is its own source"),
        ({"sources": (Source(2, 0, "look", "four boxes"),)}, "trajectory 2 is no verified success of the group"),
        ({"sources": (Source(7, 0, "look", "four boxes"),)}, "trajectory 7 is no verified success of the group"),
        ({"sources": (Source(0, 9, "look", "four boxes"),)}, "trajectory 0 has no step 9"),
        ({"sources": (Source(0, 3, "take lamp", "You take the key."),)}, "the action of step 3 is misquoted"),
        ({"sources": (Source(0, 3, "take key", "four boxes"),)}, "the observation of step 3 is misquoted"),
    ],
)
def test_items_are_checked_mechanically(change: dict, defect: str) -> None:  # type: ignore[type-arg]
    episodes = group(play(SUCCESS), play(FAILURE), play(["look"]))
    assert item_defect(replace(ITEM, **change), episodes, target=1) == defect


def test_the_bank_gives_evidence_of_earlier_groups() -> None:
    analyzer = ReplayAnalyzer(Corridor(), bank=1)
    analyzer.guide(group(play(SUCCESS), play(FAILURE)))
    guidance = analyzer.guide(group(play(FAILURE)))[0]
    assert guidance is not None and guidance.texts == [None, None, "take key", "take key", "unlock door"]
    assert {source["trajectory"] for item in guidance.items for source in item["sources"]} == {1}


def test_without_a_bank_earlier_groups_are_forgotten() -> None:
    analyzer = ReplayAnalyzer(Corridor())
    analyzer.guide(group(play(SUCCESS), play(FAILURE)))
    assert not any(analyzer.guide(group(play(FAILURE))))


def test_the_bank_keeps_the_newest_successes_and_survives_a_checkpoint() -> None:
    analyzer, resumed = ReplayAnalyzer(Corridor(), bank=2), ReplayAnalyzer(Corridor(), bank=2)
    for start in range(3):
        analyzer.guide(group(play(SUCCESS[start:])))
    resumed.load_state(json.loads(json.dumps(analyzer.state())))
    kept = [Episode.from_json(line).actions for line in resumed.state()["key-2"]]
    assert kept == [SUCCESS[2:], SUCCESS[1:]]
    assert resumed.guide(group(play(FAILURE))) == analyzer.guide(group(play(FAILURE)))


def test_an_errored_episode_is_no_evidence() -> None:
    broken = replace(play(SUCCESS), error="RuntimeError: gone")
    guidance = ReplayAnalyzer(Corridor()).guide(group(broken, play(FAILURE)))[1]
    assert not guidance


def test_quotes_ignore_white_space_only() -> None:
    assert is_quoted("a  key\nlies", "There: a key lies.")
    assert not is_quoted("A key", "a key")
    assert not is_quoted("  ", "a key")


@pytest.mark.parametrize(
    "setting", [{"scope": "turns"}, {"source": "alignd"}, {"max_items": 0}, {"max_tokens": 0}, {"bank": -1}]
)
def test_unusable_settings_are_refused(setting: dict) -> None:  # type: ignore[type-arg]
    with pytest.raises(InputError):
        ReplayAnalyzer(Corridor(), **setting)


def test_guidance_costs_milliseconds() -> None:
    episodes = group(*(play(SUCCESS) for _ in range(8)))
    start = time.perf_counter()
    ReplayAnalyzer(Corridor()).guide(episodes)
    assert time.perf_counter() - start < 8 * 0.02
