"""A game's goal: closed PDDL formulas of ``and``, ``exists``, ``not`` and ``=``, compiled to small joins.

Each conjunct of the goal becomes one :class:`Query`: variables with the few entities that static facts leave for
them, and the other literals, checked as soon as their last variable is bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from taspo_bench.errors import DataError
from taspo_envs.alfworld.sexpr import Expr, typed_names

Holds = Callable[[str, Sequence[str]], bool]
"""Tells whether a fact (predicate, entity names) holds now."""

FLUENTS = frozenset(
    {"atlocation", "objectatlocation", "inreceptacle", "holds", "holdsany", "opened"}
    | {"isclean", "ishot", "iscool", "issliced", "istoggled", "ison"}
)
UNTRACKED = frozenset({"checked", "examined", "wasinreceptacle"})


@dataclass(frozen=True)
class Literal:
    """``predicate(terms)``, or its negation; a term is a variable (``?o``, renamed apart) or an entity's name."""

    predicate: str
    terms: tuple[str, ...]
    negated: bool


@dataclass(frozen=True)
class Query:
    """One conjunct. ``choices`` gives each variable's entities in the order of binding.

    ``checks[i]`` holds the literals that need checking in a state and whose last variable is the i-th.
    """

    literals: tuple[Literal, ...]
    choices: tuple[tuple[str, tuple[str, ...]], ...]
    checks: tuple[tuple[Literal, ...], ...]

    def holds(self, fact: Holds) -> bool:
        return next(self.bindings(fact), None) is not None

    def bindings(self, fact: Holds) -> Iterator[dict[str, str]]:
        """Every binding of the variables that makes the conjunct true."""
        yield from self._bind(0, {}, fact)

    def _bind(self, depth: int, bound: dict[str, str], fact: Holds) -> Iterator[dict[str, str]]:
        if depth == len(self.choices):
            yield dict(bound)
            return
        variable, entities = self.choices[depth]
        for entity in entities:
            bound[variable] = entity
            if all(self._true(literal, bound, fact) for literal in self.checks[depth]):
                yield from self._bind(depth + 1, bound, fact)
        bound.pop(variable, None)

    @staticmethod
    def _true(literal: Literal, bound: dict[str, str], fact: Holds) -> bool:
        values = [bound.get(term, term) for term in literal.terms]
        if literal.predicate == "=":
            return (values[0] == values[1]) != literal.negated
        return fact(literal.predicate, values) != literal.negated


@dataclass(frozen=True)
class Goal:
    """All conjuncts, and the predicates in them."""

    queries: tuple[Query, ...]
    predicates: frozenset[str]

    def holds(self, fact: Holds) -> bool:
        return all(query.holds(fact) for query in self.queries)


def compile_goal(
    formula: Expr, entities: Mapping[str, Sequence[str]], static: Mapping[str, set[tuple[str, ...]]]
) -> Goal:
    """Compile a goal.

    Args:
        formula: the goal as :mod:`sexpr` reads it.
        entities: names by type.
        static: argument tuples of the facts that never change, by predicate.

    Raises:
        DataError: the goal has a form or a predicate that no ALFWorld goal has.
    """
    conjuncts = formula[1:] if isinstance(formula, list) and formula[:1] == ["and"] else [formula]
    queries = tuple(_compile(conjunct, entities, static) for conjunct in conjuncts)
    used = {literal.predicate for query in queries for literal in query.literals}
    if strange := used & UNTRACKED:
        raise DataError(f"goals over {', '.join(sorted(strange))} are not known: play it with engine='textworld'")
    return Goal(queries, frozenset(used))


def _compile(
    conjunct: Expr, entities: Mapping[str, Sequence[str]], static: Mapping[str, set[tuple[str, ...]]]
) -> Query:
    kinds: dict[str, str] = {}
    literals: list[Literal] = []
    _flatten(conjunct, {}, kinds, literals)
    choices = {variable: list(entities.get(kind, ())) for variable, kind in kinds.items()}
    open_literals = []
    for literal in literals:
        first, *others = literal.terms or ("",)
        if first not in kinds:
            raise DataError(f"goal literal {literal.predicate} has no variable: play it with engine='textworld'")
        if literal.predicate in FLUENTS or literal.predicate == "=" or any(term in kinds for term in others):
            open_literals.append(literal)
        else:
            facts = static.get(literal.predicate, set())
            choices[first] = [name for name in choices[first] if ((name, *others) in facts) != literal.negated]
    order = sorted(choices, key=lambda variable: len(choices[variable]))
    checks: list[list[Literal]] = [[] for _ in order]
    for literal in open_literals:
        checks[max(order.index(term) for term in literal.terms if term in choices)].append(literal)
    return Query(
        tuple(literals),
        tuple((variable, tuple(choices[variable])) for variable in order),
        tuple(map(tuple, checks)),
    )


def _flatten(part: Expr, names: Mapping[str, str], kinds: dict[str, str], literals: list[Literal]) -> None:
    """Collect the variables (renamed apart) and the literals of nested ``and`` and ``exists``."""
    match part:
        case ["and", *inner]:
            for one in inner:
                _flatten(one, names, kinds, literals)
        case ["exists", list(variables), body]:
            scope = dict(names)
            for variable, kind in typed_names(variables):
                fresh = f"{variable}#{len(kinds)}"
                scope[variable] = fresh
                kinds[fresh] = kind
            _flatten(body, scope, kinds, literals)
        case ["not", [str(predicate), *terms]] if predicate not in ("and", "exists", "not", "or"):
            literals.append(_literal(predicate, terms, names, True))
        case [str(predicate), *terms] if predicate not in ("or", "forall", "imply", "not"):
            literals.append(_literal(predicate, terms, names, False))
        case _:
            raise DataError(f"goal part {part!r} has an unknown form: play it with engine='textworld'")


def _literal(predicate: str, terms: Sequence[Expr], names: Mapping[str, str], negated: bool) -> Literal:
    resolved = []
    for term in terms:
        if not isinstance(term, str) or (term.startswith("?") and term not in names):
            raise DataError(f"goal term {term!r} is not bound: the file is broken")
        resolved.append(names.get(term, term))
    return Literal(predicate, tuple(resolved), negated)
