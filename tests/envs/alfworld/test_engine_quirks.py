"""What the reference does in corners that recorded walks seldom reach, on one small household."""

from __future__ import annotations

import pytest

from taspo_bench.errors import DataError
from taspo_envs.alfworld.game import Game, read_game
from taspo_envs.alfworld.generation import GENERATIONS, printed
from taspo_envs.alfworld.world import NOTHING_HAPPENS, World

DRAWER, SHELF, SINK = "Drawer_bar_1", "Shelf_bar_1", "Sink_bar_1_bar_SinkBasin"
MICROWAVE, FRIDGE = "Microwave_bar_1", "Fridge_bar_1"
PLACES = {DRAWER: "loc_bar_1", SHELF: "loc_bar_1", SINK: "loc_bar_2", MICROWAVE: "loc_bar_3", FRIDGE: "loc_bar_4"}
APPLE, KNIFE, LAMP, CUP, SECOND_CUP = "Apple_bar_1", "Knife_bar_1", "DeskLamp_bar_1", "Cup_bar_1", "Cup_bar_2"


def problem(init: str = "", goal: str = "") -> str:
    """A household: knife and lamp in the drawer, apple and cup on the shelf beside it, another cup in the sink."""
    facts = [f"(receptacleAtLocation {r} {at})" for r, at in PLACES.items()]
    facts += [f"(receptacleType {r} {r.split('_')[-1] if 'Basin' in r else r.split('_')[0]}Type)" for r in PLACES]
    facts += [f"(openable {r})" for r in (DRAWER, MICROWAVE, FRIDGE)]
    for item, place in ((KNIFE, DRAWER), (LAMP, DRAWER), (APPLE, SHELF), (CUP, SHELF), (SECOND_CUP, SINK)):
        kind = item.split("_")[0]
        facts += [f"(inReceptacle {item} {place})", f"(objectAtLocation {item} {PLACES[place]})"]
        facts += [f"(objectType {item} {kind}Type)"]
        facts += [f"(canContain {holder}Type {kind}Type)" for holder in ("Drawer", "Shelf", "SinkBasin")]
        facts += [f"(toggleable {item})"] if item == LAMP else [f"(pickupable {item})", f"(cleanable {item})"]
    facts += [f"({can} {APPLE})" for can in ("heatable", "coolable", "sliceable")]
    items = " ".join((APPLE, KNIFE, LAMP, CUP, SECOND_CUP))
    return f"""(define (problem p) (:domain alfred)
      (:objects agent1 - agent {items} - object {" ".join(PLACES)} - receptacle
        {" ".join(dict.fromkeys(PLACES.values()))} loc_bar_9 - location)
      (:init {" ".join(facts)} (atLocation agent1 loc_bar_9) {init})
      (:goal {goal or f"(and (exists (?a - agent) (holds ?a {CUP})))"}))"""


def play(*commands: str, init: str = "", goal: str = "", generation: str = "0.4") -> World:
    world = World(Game(problem(init, goal), "Your task is to: tidy up.", GENERATIONS[generation]))
    for command in commands:
        assert world.act(command) != NOTHING_HAPPENS, command
    return world


def test_the_last_name_in_order_gets_number_one() -> None:
    assert "a cup 2" in play("go to shelf 1").act("examine shelf 1")
    assert "a cup 1" in play("go to sinkbasin 1").act("examine sinkbasin 1")


def test_receptacles_at_one_place_are_faced_together() -> None:
    world = play("go to drawer 1")
    assert world.act("look") == "You are facing the drawer 1, and shelf 1. Next to it, you see nothing."
    assert world.act("go to shelf 1") == NOTHING_HAPPENS
    assert "examine shelf 1" in world.admissible


def test_an_object_moved_to_the_receptacle_beside_is_seen_next_to_it() -> None:
    world = play("go to shelf 1", "open drawer 1", "take apple 1 from shelf 1", "move apple 1 to drawer 1")
    assert world.act("look") == "You are facing the drawer 1, and shelf 1. Next to it, you see a apple 1."


def test_look_in_the_middle_of_the_room_sees_nothing_though_the_introduction_lists_all() -> None:
    world = play()
    assert "you see a drawer 1, a fridge 1, a microwave 1, a sinkbasin 1, and a shelf 1." not in world.reset()
    assert "you see a drawer 1, a fridge 1, a microwave 1, a shelf 1, and a sinkbasin 1." in world.reset()
    assert world.act("look") == "You are in the middle of a room. Looking quickly around you, you see nothing."


def test_starting_at_a_receptacle_the_introduction_faces_it() -> None:
    text = problem().replace("(atLocation agent1 loc_bar_9)", "(atLocation agent1 loc_bar_2)")
    world = World(Game(text, "Your task is to: tidy up.", GENERATIONS["0.4"]))
    assert "\n\nYou are facing the sinkbasin 1. Next to it, you see nothing.\n\n" in world.reset()


def test_only_a_held_object_can_be_examined() -> None:
    world = play("go to shelf 1")
    assert world.act("examine apple 1") == NOTHING_HAPPENS
    world.act("take apple 1 from shelf 1")
    assert world.act("examine apple 1") == "There's nothing special about apple 1."


def test_a_lamp_in_a_closed_drawer_can_be_turned_on_and_never_off() -> None:
    world = play("go to drawer 1")
    assert [world.act("use desklamp 1") for _ in range(2)] == ["You turn on the desklamp 1."] * 2
    assert "desklamp 1 is on" not in world.state_key
    world.act("open drawer 1")
    assert "desklamp 1 is on" in world.state_key


def test_slicing_reaches_into_a_closed_drawer() -> None:
    world = play("go to drawer 1", "open drawer 1", "take apple 1 from shelf 1", "move apple 1 to drawer 1")
    for command in ("take knife 1 from drawer 1", "close drawer 1"):
        world.act(command)
    assert world.act("slice apple 1 with knife 1") == "You sliced the apple 1 with the knife 1."


@pytest.mark.parametrize(
    ("treatments", "text"),
    [
        ((), "This is a sliced apple 1."),
        (("heat",), "This is a hot sliced apple 1."),
        (("cool",), "This is a cool sliced apple 1."),
        (("clean",), "This is a clean sliced apple 1."),
        (("clean", "heat"), "This is a hot and clean sliced apple 1."),
        (("clean", "cool"), "This is a cool and clean sliced apple 1."),
        (("heat", "cool"), "This is a cool sliced apple 1."),
    ],
)
def test_examining_a_sliced_object_tells_its_state(treatments: tuple[str, ...], text: str) -> None:
    world = play("go to shelf 1", "take apple 1 from shelf 1", init=f"(isSliced {APPLE})")
    for treatment in treatments:
        place = {"heat": "microwave 1", "cool": "fridge 1", "clean": "sinkbasin 1"}[treatment]
        world.act(f"go to {place}")
        assert world.act(f"{treatment} apple 1 with {place}") == f"You {treatment} the apple 1 using the {place}."
    assert world.act("examine apple 1") == text


@pytest.mark.parametrize(
    ("init", "text"),
    [
        ("(isHot {})", "This is a hot apple 1."),
        ("(isCool {})", "This is a cold apple 1."),
        ("(isClean {})", "This is a clean apple 1."),
        ("(isClean {0}) (isHot {0})", "This is a hot and clean apple 1."),
        ("(isClean {0}) (isCool {0})", "This is a cool and clean apple 1."),
        ("(isReceptacleObject {})", "This is a normal apple 1. In it, you see nothing."),
        (
            f"(isReceptacleObject {{}}) (inReceptacleObject {CUP} {{}})",
            "This is a normal apple 1. In it, you see a cup 2.",
        ),
    ],
)
def test_examining_tells_the_state_that_an_object_starts_with(init: str, text: str) -> None:
    world = play(
        "go to shelf 1", "take apple 1 from shelf 1", init=init.format(*[APPLE] * init.count("{}") or [APPLE])
    )
    assert world.act("examine apple 1") == text


def test_what_the_agent_was_not_told_is_not_in_the_state_key() -> None:
    held = play("go to shelf 1", "take apple 1 from shelf 1", init=f"(isHot {APPLE})")
    assert held.state_key.splitlines()[:3] == ["at drawer 1", "at shelf 1", "holding apple 1"]
    assert "held is" not in held.state_key
    for command in ("go to fridge 1", "cool apple 1 with fridge 1"):
        held.act(command)
    assert "held is cool" in held.state_key.splitlines()


def test_the_state_key_names_place_hand_door_and_what_lies_here() -> None:
    assert play().state_key == "at room\nholding nothing"
    world = play("go to sinkbasin 1")
    assert world.state_key == "at sinkbasin 1\nholding nothing\nhere: cup 1"
    world = play("go to fridge 1")
    assert world.state_key == "at fridge 1\nholding nothing\nfridge 1 is closed"


@pytest.mark.parametrize("command", [" go to shelf 1", "go to shelf 1\n", "\tgo to shelf 1  "])
def test_spaces_around_a_command_do_not_matter(command: str) -> None:
    assert play().act(command).startswith("You arrive at shelf 1.")


@pytest.mark.parametrize(
    "command", ["", " ", "GO TO SHELF 1", "go to  shelf 1", "go to shelf 1.", "go", "go to", "take", "héat"]
)
def test_anything_else_does_nothing(command: str) -> None:
    world = play()
    before = world.save()
    assert (world.act(command), world.save()) == (NOTHING_HAPPENS, before)


def test_the_older_generation_has_its_own_words() -> None:
    world = play("go to shelf 1", "take cup 2 from shelf 1", generation="0.3")
    assert world.act("go to sinkbasin 1").startswith("You arrive at loc 4. On the sinkbasin 1, you see")
    assert world.act("move cup 2 to sinkbasin 1") == NOTHING_HAPPENS
    assert world.act("put cup 2 in/on sinkbasin 1") == "You put the cup 2 in/on the sinkbasin 1."
    assert "help" not in world.admissible


def test_an_object_in_two_receptacles_stays_in_the_other() -> None:
    world = play(
        "go to shelf 1", "open drawer 1", "take apple 1 from shelf 1", init=f"(inReceptacle {APPLE} {DRAWER})"
    )
    assert "a apple 1" in world.act("examine drawer 1")
    assert world.act("examine shelf 1") == "On the shelf 1, you see a cup 2."


def test_the_goal_can_be_lost_again() -> None:
    world = play("go to shelf 1", "take cup 2 from shelf 1")
    assert world.won
    world.act("move cup 2 to shelf 1")
    assert not world.won


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda text: text[:-40], "cut short"),
        (lambda text: text.replace("(:init", "(:start"), "init"),
        (lambda text: text.replace("(atLocation agent1 loc_bar_9)", ""), "0 locations"),
        (lambda text: text.replace("(holds ?a", "(or (holds ?a"), "broken|unknown form"),
        (lambda text: text.replace("(holds ?a", "(holds ?b"), "not bound"),
        (lambda text: text.replace(f"(holds ?a {CUP})", f"(checked {CUP})"), "not known|no variable"),
    ],
)
def test_a_broken_problem_is_refused_in_one_line(change, complaint: str) -> None:  # type: ignore[no-untyped-def]
    data = {"generation": "0.4", "task": "tidy up", "pddl_problem": change(problem())}
    with pytest.raises(DataError, match=complaint) as error:
        read_game(data)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ('put the "clean" mug away; then go.', "put the clean mug away"),
        ("  tidy up.", "tidy up."),
        ("look under the lamp (the tall one), it's there!", "look under the lamp (the tall one), it's there!"),
        ("a [x] b", "a "),
    ],
)
def test_a_human_written_task_is_printed_as_the_grammar_reads_it(text: str, seen: str) -> None:
    assert printed(text) == seen
