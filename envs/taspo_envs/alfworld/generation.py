"""Which generation of ALFWorld a game is of, read from the game's own domain and grammar.

Known are the files of alfworld 0.3 (``put X in/on R``, "You arrive at loc N.", no ``help``), of alfworld 0.4
(``move X to R``, ``help``), and of the releases of the official games. They differ in a few places only; the rest
is compared by content, so that comments, spacing, order and unused rules do not matter.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from taspo_bench.errors import DataError
from taspo_envs.alfworld import sexpr

_PUT_WORDS = {"0.3": ("put", "in/on"), "0.4": ("move", "to")}
_NAME_BY_PUT = {f"{verb} {{o}} {link} {{r}}": name for name, (verb, link) in _PUT_WORDS.items()}
_ARRIVE_AT_LOCATION = {
    "You arrive at {lend.name}. #examineReceptacle.feedback#": True,
    "You arrive at {r.name}. #examineReceptacle.feedback#": False,
}
_DOMAIN_REST = "1aa45e0650c072f2eea2774e3d2f33e0"
_GRAMMAR_REST = "f7f4284d00aa1c6d1881ead38b89870c"
_TASK = re.compile(r'("task"\s*:\s*\[\s*\{\s*"rhs"\s*:\s*)("(?:[^"\\]|\\.)*")')
_TOKEN = re.compile(r'"""(.*?)"""|"((?:[^"\\]|\\.)*)"|([\w.]+|::|[{};])', re.DOTALL)
_PLAIN = re.compile(r'"([^;|"<>\[\]#{}]*)"|([^;|"<>\[\]#{}]+)')
_SYMBOL = re.compile(r"#[\w()/!<>\-\s,.]+#|\[?\{[^\n]*\}")
_REFERENCE = re.compile(r"#([^#\s]+)#")


@dataclass(frozen=True)
class Generation:
    """What differs between generations.

    name: ``0.3`` or ``0.4``.
    arrive_at_location: arrival names the location ("loc 16") and not the receptacle.
    help_text: what ``help`` prints; None where the game has no such command.
    clean_types: receptacle types (lower case) that clean.
    """

    name: str
    arrive_at_location: bool
    help_text: str | None
    clean_types: tuple[str, ...]

    @property
    def put_words(self) -> tuple[str, str]:
        """Verb and preposition of putting down: ``move X to R`` or ``put X in/on R``."""
        return _PUT_WORDS[self.name]


HELP = """Available commands:
  look:                             look around your current location
  inventory:                        check your current inventory
  go to (receptacle):               move to a receptacle
  open (receptacle):                open a receptacle
  close (receptacle):               close a receptacle
  take (object) from (receptacle):  take an object from a receptacle
  move (object) to (receptacle):  place an object in or on a receptacle
  examine (something):              examine a receptacle or an object
  use (object):                     use an object
  heat (object) with (receptacle):  heat an object using a receptacle
  clean (object) with (receptacle): clean an object using a receptacle
  cool (object) with (receptacle):  cool an object using a receptacle
  slice (object) with (object):     slice an object using a sharp object
"""
GENERATIONS = {
    "0.3": Generation("0.3", arrive_at_location=True, help_text=None, clean_types=("sinkbasintype",)),
    "0.4": Generation("0.4", arrive_at_location=False, help_text=HELP, clean_types=("sinkbasintype",)),
}
"""The packages alfworld 0.3 and 0.4, for games that name their generation instead of carrying a domain."""


def named_generation(name: str) -> Generation:
    """The generation of that name; :class:`DataError` lists the known ones if there is none."""
    if name not in list(GENERATIONS):
        raise DataError(
            f"unknown ALFWorld generation {name!r}: known are {', '.join(GENERATIONS)}; name one of these, or "
            "give the game its own pddl_domain and grammar and play it with engine='textworld'"
        )
    return GENERATIONS[name]


def split_task(grammar: str) -> tuple[str, str, str]:
    """A grammar as what stands before its task text, what stands after it, and the text ("Your task is to: ...")."""
    found = _TASK.search(grammar)
    try:
        text = str(json.loads(found[2], strict=False)) if found else ""
        text.encode()
    except ValueError:
        found = None
    if not found:
        raise DataError("the game's grammar has no task text that can be read: the file is broken")
    return grammar[: found.start(2)], grammar[found.end(2) :], text


def printed(text: str) -> str:
    """A task text as the game prints it.

    It is a piece of grammar: quotation marks around words vanish, and it ends at the first sign that has no meaning
    there, such as a semicolon (human-written tasks have some).
    """
    text = text.lstrip()
    pieces, at = [], 0
    while piece := _PLAIN.match(text, at):
        pieces.append(piece[2] or piece[1] or "")
        at = piece.end()
    if _SYMBOL.match(text, at):
        raise DataError(f"the task text {text!r} holds grammar symbols: play it with engine='textworld'")
    return "".join(pieces)


@lru_cache(maxsize=32)
def recognise(domain: str, grammar: str) -> Generation:
    """The generation of a domain and a grammar (any task text will do).

    Raises:
        DataError: neither is one of the known; named by sha256, since that is all such a file has for a name.
    """
    rest, clean_types, has_help = _read_domain(domain)
    if _digest(rest) != _DOMAIN_REST:
        raise _unknown("domain", domain)
    templates, productions = _read_grammar(grammar)
    try:
        name = _NAME_BY_PUT[templates["putobject"][0]]
        by_location = _ARRIVE_AT_LOCATION[productions.pop("GotoLocation.feedback")[0]["rhs"]]
        verb, link = _PUT_WORDS[name]
        put_feedback = f"You {verb} the {{o.name}} {link} the {{r.name}}."
        known_put = productions.pop("PutObject.feedback")[0]["rhs"] == put_feedback
        help_text = _help_text(templates, productions) if has_help else None
    except (KeyError, IndexError, TypeError):
        raise _unknown("grammar", grammar) from None
    templates["putobject"] = ("", templates["putobject"][1])
    used = {action: templates[action] for action in rest if action in templates}
    if not known_put or _digest([used, _reachable(used, productions)]) != _GRAMMAR_REST:
        raise _unknown("grammar", grammar)
    return Generation(name, by_location, help_text, clean_types)


def _unknown(what: str, text: str) -> DataError:
    digest = hashlib.sha256(text.encode()).hexdigest()
    return DataError(
        f"unknown ALFWorld {what} (sha256 {digest[:16]}): known are those of alfworld 0.3, alfworld 0.4 and the "
        "official releases; play it with engine='textworld'"
    )


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:32]


def _read_domain(domain: str) -> tuple[dict[str, sexpr.Expr], tuple[str, ...], bool]:
    """Actions by name without what may differ; the types that clean; whether there is a help action."""
    top = sexpr.parse(domain)
    if len(top) != 1 or not isinstance(top[0], list):
        raise _unknown("domain", domain)
    actions: dict[str, sexpr.Expr] = {}
    for part in top[0]:
        if isinstance(part, list) and len(part) > 2 and part[0] == ":action":
            actions[str(part[1])] = part[2:]
    has_help = actions.pop("help", None) is not None
    clean_types = []
    body = actions.get("cleanobject", [])
    for condition in body[3] if len(body) > 3 else []:
        if isinstance(condition, list) and condition and condition[0] == "or":
            clean_types = [str(choice[2]) for choice in condition[1:] if len(choice) == 3]
            del condition[1:]
    return actions, tuple(sorted(clean_types)), has_help


def _read_grammar(grammar: str) -> tuple[dict[str, tuple[str, str]], dict[str, list[dict[str, str]]]]:
    """(template, feedback) by lower-case action name, and the productions by symbol."""
    templates: dict[str, tuple[str, str]] = {}
    productions: dict[str, list[dict[str, str]]] = {}
    action, fields = "", {"template": "", "feedback": ""}
    key, previous = "", ""
    for block, quoted, word in _TOKEN.findall(grammar):
        if block:
            lines = [line for line in block.split("\n") if not line.lstrip().startswith("#")]
            try:
                productions.update(json.loads("\n".join(lines), strict=False))
            except (ValueError, RecursionError):
                raise _unknown("grammar", grammar) from None
        elif word == "}":
            templates[action.lower()] = (fields["template"], fields["feedback"])
        elif word:
            if previous == "action":
                action, fields = word, {"template": "", "feedback": ""}
            elif word == "::":
                key = previous
            previous = word
        elif key:
            fields[key] = quoted
    return templates, productions


def _help_text(templates: dict[str, tuple[str, str]], productions: dict[str, list[dict[str, str]]]) -> str:
    """What help prints: the engine drops white space in front of a text."""
    template, feedback = templates.pop("help")
    if template != "help":
        raise KeyError(template)
    if feedback.startswith("#"):
        feedback = productions[feedback.strip("#")][0]["rhs"]
    return feedback.lstrip()


def _reachable(
    templates: dict[str, tuple[str, str]], productions: dict[str, list[dict[str, str]]]
) -> dict[str, list[dict[str, str]]]:
    """The productions that an action's feedback or the introduction can use, without the task."""
    waiting = ["intro", "list_empty", "list_separator", "list_last_separator", "examineReceptacle.feedback"]
    waiting += [name for _, feedback in templates.values() for name in _REFERENCE.findall(feedback)]
    found: dict[str, list[dict[str, str]]] = {}
    while waiting:
        name = waiting.pop()
        if name in found or name == "task" or name not in productions:
            continue
        found[name] = productions[name]
        waiting += [ref for rule in productions[name] for ref in _REFERENCE.findall(rule.get("rhs", ""))]
    return found
