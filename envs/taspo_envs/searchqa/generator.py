"""An encyclopedia of invented entities, and questions of one to three hops that only its passages answer.

Two worlds share the words that names are put together from, the relations and the wording, and nothing else: no
entity of the held-out world stands in a passage of the training world. Questions over several hops follow a pattern,
the relations in the order of the searches; some patterns are held out too. Everything follows from :data:`SEED`
through ``random.Random``, so every process and every machine writes the same bytes.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cache

from taspo_envs.searchqa.bm25 import STOP_WORDS
from taspo_envs.searchqa.questions import Hop, Passage, Question

SEED = 20260831
MAX_HOPS = 3

# Relations of each kind of entity: the noun, and the kind of its value.
RELATIONS: dict[str, dict[str, str]] = {
    "person": {"birthplace": "city", "employer": "company", "teacher": "person", "rival": "person"},
    "city": {"country": "country", "river": "river", "mayor": "person"},
    "country": {"capital": "city", "ruler": "person", "currency": "coin", "language": "tongue"},
    "company": {"founder": "person", "headquarters": "city", "product": "product"},
    "book": {"author": "person", "publisher": "company"},
    "river": {"source": "mountain", "mouth": "lake"},
    "festival": {"venue": "city", "patron": "person"},
}
# How many entities of each kind the training world has; the held-out world has a quarter of it.
SIZES = {
    "person": 150, "city": 100, "country": 40, "company": 70, "book": 70, "river": 50, "festival": 50,
    "coin": 40, "tongue": 40, "product": 60, "mountain": 40, "lake": 40,
}  # fmt: skip
# A second sentence by kind of subject {s}, which says the value {v} once more in words that no question uses.
REMARKS: dict[str, tuple[str, ...]] = {
    "person": ("Letters of {s} speak of {v}.", "{s} wrote much about {v}."),
    "city": ("Every map of {s} shows {v}.", "Guests of {s} hear of {v}."),
    "country": ("Stamps of {s} show {v}.", "Children of {s} learn of {v}."),
    "company": ("Workers of {s} know {v}.", "A sign at {s} honours {v}."),
    "book": ("The cover of {s} names {v}.", "Readers of {s} know {v}."),
    "river": ("Boatmen of {s} know {v}.", "Old charts of {s} show {v}."),
    "festival": ("Posters of {s} name {v}.", "Guests of {s} know {v}."),
}
ONSETS = ("b", "d", "f", "g", "k", "l", "m", "n", "p", "r", "t", "v", "z", "br", "dr", "kr")
RHYMES = ("an", "el", "or", "im", "un", "ar", "et", "ol")
PATTERNS_HELD_OUT = 0.3
QUESTION_COUNTS = {"train": 1200, "valid_seen": 100, "valid_unseen": 100}
SHARES = {1: 0.5, 2: 1 / 3, 3: 1 / 6}


@dataclass(frozen=True, slots=True)
class World:
    """Facts of one world: ``facts[entity][relation]`` is the value; ``kinds`` tells what each entity is."""

    kinds: dict[str, str]
    facts: dict[str, dict[str, str]]


@dataclass(frozen=True, slots=True)
class Encyclopedia:
    """All passages, and the questions of each split in their frozen order."""

    passages: tuple[Passage, ...]
    questions: dict[str, tuple[Question, ...]]


@cache
def encyclopedia() -> Encyclopedia:
    """The embedded data, the same in every process."""
    rng = random.Random(SEED)
    names = _names(rng)
    training = _world(rng, names, 1.0)
    held_out = _world(rng, names, 0.25)
    seen, unseen = _patterns(rng)
    pool = _questions(rng, training, seen, QUESTION_COUNTS["train"] + QUESTION_COUNTS["valid_seen"])
    cut = _stratified(pool, QUESTION_COUNTS["valid_seen"])
    questions = {
        "train": tuple(q for q in pool if q not in cut),
        "valid_seen": tuple(q for q in pool if q in cut),
        "valid_unseen": tuple(_questions(rng, held_out, unseen, QUESTION_COUNTS["valid_unseen"])),
    }
    passages = [passage for world in (training, held_out) for passage in _passages(world)]
    rng.shuffle(passages)
    return Encyclopedia(tuple(passages), questions)


def _names(rng: random.Random) -> list[str]:
    """Names of two words, in random order; a word stands either first or last in all its names."""
    words = [(onset + rhyme).capitalize() for onset in ONSETS for rhyme in RHYMES if onset + rhyme not in STOP_WORDS]
    rng.shuffle(words)
    half = len(words) // 2
    names = [f"{first} {last}" for first in words[:half] for last in words[half:]]
    rng.shuffle(names)
    return names


def _world(rng: random.Random, names: list[str], share: float) -> World:
    """Take names off the list, and give every relation of every entity a value of the same world."""
    by_kind = {kind: [names.pop() for _ in range(round(size * share))] for kind, size in SIZES.items()}
    facts: dict[str, dict[str, str]] = {}
    for kind, entities in by_kind.items():
        for relation, value_kind in RELATIONS.get(kind, {}).items():
            for entity in entities:
                value = rng.choice([other for other in by_kind[value_kind] if other != entity])
                facts.setdefault(entity, {})[relation] = value
    return World({entity: kind for kind, entities in by_kind.items() for entity in entities}, facts)


def _passages(world: World) -> list[Passage]:
    return [
        Passage(
            id=f"{entity}/{relation}",
            title=entity,
            text=f"The {relation} of {entity} is {value}. "
            + _remark(world.kinds[entity], entity + relation).format(s=entity, v=value),
        )
        for entity, relations in world.facts.items()
        for relation, value in relations.items()
    ]


def _remark(kind: str, key: str) -> str:
    remarks = REMARKS[kind]
    return remarks[sum(key.encode()) % len(remarks)]


def _patterns(rng: random.Random) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """Patterns of training, and those of the held-out questions: single relations are in both, others in one."""
    starts: list[tuple[str, tuple[str, ...]]] = [
        (kind, (relation,)) for kind, relations in RELATIONS.items() for relation in relations
    ]
    grown = starts
    seen: list[tuple[str, ...]] = [path for _, path in starts]
    unseen: list[tuple[str, ...]] = list(seen)
    for _ in range(1, MAX_HOPS):
        grown = [
            (kind, (*path, relation)) for kind, path in grown for relation in RELATIONS.get(_end_kind(kind, path), {})
        ]
        paths = sorted({path for _, path in grown})
        held_out = set(rng.sample(paths, round(PATTERNS_HELD_OUT * len(paths))))
        seen += [path for path in paths if path not in held_out]
        unseen += [path for path in paths if path in held_out]
    return seen, unseen


def _end_kind(kind: str, path: tuple[str, ...]) -> str:
    for relation in path:
        kind = RELATIONS[kind][relation]
    return kind


def _questions(rng: random.Random, world: World, patterns: list[tuple[str, ...]], count: int) -> list[Question]:
    """Questions in random order: the shares of hop counts are exact, patterns take turns, no question twice."""
    chosen: list[Question] = []
    for hops, share in SHARES.items():
        wanted = round(share * count) if hops > 1 else count - round(SHARES[2] * count) - round(SHARES[3] * count)
        candidates: list[list[Question]] = []
        for path in patterns:
            if len(path) == hops:
                candidates.append([q for entity in world.facts if (q := _question(world, entity, path)) is not None])
                rng.shuffle(candidates[-1])
        rng.shuffle(candidates)
        candidates = [queue for queue in candidates if queue]
        taken = 0
        while taken < wanted:
            queue = candidates[taken % len(candidates)]
            chosen.append(queue.pop())
            taken += 1
            if not queue:
                candidates.remove(queue)
    rng.shuffle(chosen)
    return chosen


def _question(world: World, entity: str, path: tuple[str, ...]) -> Question | None:
    """The question along a path of relations; None if the path does not exist from here or meets a name twice."""
    chain = [entity]
    for relation in path:
        value = world.facts.get(chain[-1], {}).get(relation)
        if value is None:
            return None
        chain.append(value)
    if len(set(chain)) < len(chain):
        return None
    described = entity
    for relation in path:
        described = f"the {relation} of {described}"
    hops = tuple(
        Hop(f"{relation} of {name}", f"{name}/{relation}") for relation, name in zip(path, chain, strict=False)
    )
    asks = "Who" if world.kinds[chain[-1]] == "person" else "What"
    task_id = f"{len(path)}hop-{entity.lower().replace(' ', '-')}-{'-'.join(path)}"
    return Question(task_id, f"{len(path)}-hop", f"{asks} is {described}?", (chain[-1],), hops)


def _stratified(pool: list[Question], count: int) -> set[Question]:
    """``count`` questions of the pool with its own shares of families."""
    cut: set[Question] = set()
    for hops, share in sorted(SHARES.items(), reverse=True):
        wanted = round(share * count) if hops > 1 else count - len(cut)
        cut.update([q for q in pool if q.family == f"{hops}-hop"][:wanted])
    return cut
