"""How an outcome becomes credit: the protocol of a credit scheme, and the group advantage that most start from.

A scheme is pure: a group in, one :class:`Credit` per episode out, numpy float64, no I/O. The loss multiplies
credit onto token log-ratios and does nothing more.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, Protocol, get_type_hints

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError

from taspo_bench.episode import Episode, Group, Guidance
from taspo_bench.errors import InputError

Array = NDArray[np.float64]
ROUNDING = 1e-9
"""Returns that differ by less are equal; the benchmarks' scores differ by far more."""


@dataclass
class Credit:
    """Credit of one episode.

    turns: one value per turn; a float stands for all the turn's response tokens, an array (n_response_tokens,)
        gives each token its own.
    advantage: the outcome advantage A_i that the credit was built on.
    fallback: why the scheme fell back on A_i for the whole episode ("" if it did not).
    """

    turns: list[float | Array]
    advantage: float
    fallback: str = ""

    @classmethod
    def uniform(cls, episode: Episode, advantage: float, fallback: str = "") -> Credit:
        """The outcome advantage on every turn, as GRPO has it."""
        return cls([advantage] * len(episode.turns), advantage, fallback)

    def per_turn(self) -> Array:
        """Mean credit of each turn (T,)."""
        return np.array([float(np.mean(value)) if np.size(value) else 0.0 for value in self.turns])


class Scorer(Protocol):
    """What a scheme may ask of the frozen policy and of the simulator. Nothing is computed before it is asked."""

    def shift(self, episodes: Sequence[Episode], guidance: Sequence[Guidance]) -> list[list[Array]]:
        """Token shifts D = log pi_old(y | guidance, h) - log pi_old(y | h) of the sampled responses.

        One list per episode, one array (n_response_tokens,) per turn; zeros for a turn whose text is None.
        """

    def remaining_steps(self, episode: Episode) -> Array:
        """Optimal number of actions left before each turn and after the last (T + 1,); inf where lost for good."""


def guided_shifts(group: Group, scorer: Scorer) -> list[list[Array] | None]:
    """Token shifts of every episode of a group from one request; None for those without guidance."""
    chosen: list[tuple[int, Guidance]] = [
        (index, guidance) for index, guidance in enumerate(group.guidance) if guidance
    ]
    found: list[list[Array] | None] = [None] * len(group.episodes)
    if chosen:
        shifts = scorer.shift([group.episodes[index] for index, _ in chosen], [guidance for _, guidance in chosen])
        for (index, _), shift in zip(chosen, shifts, strict=True):
            found[index] = shift
    return found


class CreditScheme(Protocol):
    """A credit scheme. Its class takes its own settings as keyword arguments with defaults."""

    name: str
    uses_guidance: bool
    """Whether groups must come with guidance."""

    def credit(self, group: Group, scorer: Scorer) -> list[Credit]:
        """Credit of every episode of a group, in the group's order.

        Groups with equal returns reach only a scheme that says ``learns_from_equal_returns = True``.
        """


def group_advantages(
    returns: Sequence[float],
    normalize: Literal["std", "none", "leave_one_out"] = "std",
    delta: float = 1e-6,
    ddof: int = 1,
) -> Array:
    """Outcome advantages A_i of one group, each trajectory once.

    Args:
        returns: verified returns R_i (K,).
        normalize: ``std`` (R - mean) / (std + delta), GRPO; ``none`` R - mean, Dr. GRPO;
            ``leave_one_out`` R - mean of the others, RLOO.
        ddof: 1 as in the authors' code, 0 for the population standard deviation.

    Returns:
        Advantages (K,); all 0 for equal returns (:func:`is_equal`) or a group of one.
    """
    values = np.asarray(returns, dtype=np.float64)
    if len(values) < 2 or is_equal(values):
        return np.zeros(len(values))
    centred = values - values.mean()
    if normalize == "none":
        return centred
    if normalize == "leave_one_out":
        return centred * (len(values) / (len(values) - 1))
    return centred / (values.std(ddof=ddof) + delta)


def reaches(group: Group, scheme: CreditScheme) -> bool:
    """Whether a group is credited: its returns differ, or the scheme finds more in it than they say."""
    return not is_equal(group.returns) or getattr(scheme, "learns_from_equal_returns", False)


def teaches(group: Group, credits: Sequence[Credit]) -> bool:
    """Whether a credited group is learned from: equal returns that gave no credit would only dilute the loss."""
    return not is_equal(group.returns) or any(credit.per_turn().any() for credit in credits)


def is_equal(returns: Sequence[float] | Array) -> bool:
    """Whether all returns of a group are the same up to rounding, so that it teaches nothing.

    Scores that are sums of products, as WebShop's, can be equal and differ in their last digits.
    """
    values = np.asarray(returns, dtype=np.float64)
    return len(values) == 0 or float(values.max() - values.min()) < ROUNDING


def scheme_settings(scheme_class: type[CreditScheme]) -> list[str]:
    """The names of a scheme's settings: the arguments of its class."""
    return list(inspect.signature(scheme_class).parameters)


def make_scheme(scheme_class: type[CreditScheme], settings: Mapping[str, Any]) -> CreditScheme:
    """A scheme with its settings, read by the annotations of its class where it has them.

    Raises:
        InputError: a setting that the scheme does not have, or a value that it cannot take.
    """
    known = scheme_settings(scheme_class)
    if unknown := sorted(set(settings) - set(known)):
        raise InputError(
            f"--set scheme.{unknown[0]}: method {scheme_class.name!r} has no such setting; "
            f"it has: {', '.join(known) or 'none'}"
        )
    hints: dict[str, Any] = {}
    with suppress(Exception):  # an annotation that only a type checker can resolve
        hints = get_type_hints(scheme_class.__init__)
    read = {name: _read(scheme_class, name, value, hints) for name, value in settings.items()}
    try:
        return scheme_class(**read)
    except (TypeError, ValueError) as error:
        given = " ".join(f"--set scheme.{name}={value}" for name, value in settings.items()) or "its defaults"
        reason = " ".join(str(error).split())
        raise InputError(
            f"{given}: method {scheme_class.name!r} cannot be made so ({reason}); give other values"
        ) from error


def _read(scheme_class: type[CreditScheme], name: str, value: Any, hints: Mapping[str, Any]) -> Any:
    """The value of a setting as its annotation wants it; as it was given where that says nothing to pydantic."""
    if name not in hints:
        return value
    try:
        return TypeAdapter(hints[name]).validate_python(value)
    except PydanticUserError:
        return value
    except ValidationError as error:
        raise InputError(
            f"--set scheme.{name}={value}: method {scheme_class.name!r}: {error.errors()[0]['msg'].lower()}"
        ) from error


def check_range(name: str, value: float, low: float, high: float = math.inf) -> None:
    """:class:`InputError` unless a scheme's setting is a finite number from ``low`` to ``high``."""
    if not (low <= value <= high and math.isfinite(value)):
        limits = f"of at least {low:g}" if high == math.inf else f"from {low:g} to {high:g}"
        raise InputError(f"--set scheme.{name}={value:g}: give a number {limits}")
