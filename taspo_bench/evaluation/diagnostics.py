"""How well a scheme credits actions: its credit against what each action truly did, read off the simulator.

The supervision-credit gap as a figure. Every stored episode is replayed; an action's true value is the change of the
optimal number of steps that remain (and, on request, of the chance to succeed when the policy plays on from there).
Credit is compared inside trajectories, so that no figure rewards a scheme for telling successes from failures.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, Literal

import numpy as np
from scipy import stats

from taspo_bench.api import TextEnv
from taspo_bench.credit import Array, Credit, CreditScheme, Scorer, is_equal
from taspo_bench.episode import Episode, Group, Guidance
from taspo_bench.errors import DataError, InputError
from taspo_bench.evaluation.statistics import Estimate, t_estimate
from taspo_bench.taspo.guidance import observed_after
from taspo_bench.taspo.oracle_credit import OracleCredit, progress

Effect = Literal["progress", "information", "nothing", "regression"]
MonteCarlo = Callable[[Episode], Array]
"""Chance of success from the state before each turn and after the last (T + 1,); see :func:`chance_of_success`."""
PlayOn = Callable[[TextEnv, Episode, int, int], bool]
"""(environment, episode, number of turns taken, number of the try) -> whether it is won when played on from here."""


@dataclass(frozen=True)
class TrueValues:
    """What the actions of one episode did: optimal steps saved (T,), the effect of each, and the change of the
    chance of success (T,) where that was asked for."""

    progress: Array
    effects: list[Effect]
    chance: Array | None = None


@dataclass(frozen=True)
class Figures:
    """How one scheme credited the episodes of one seed.

    spearman: rank correlation of credit and progress inside a trajectory, mean over trajectories in which progress
        varies; a scheme that credits all turns alike has 0.
    spearman_chance: the same with the change of the chance of success (nan if not asked for).
    credit_on_*: share of a success's credit on turns of that effect. blame_on_*: share of a failure's blame.
    information_credit: mean of (credit - A) / abs(A) over information-gathering turns: below 0, they are paid less
        in a success and blamed more in a failure than they would be by GRPO.
    oracle_gap: mean abs(credit / A - oracle's credit / A) over turns, then trajectories.
    """

    spearman: float
    spearman_chance: float
    credit_on_progress: float
    credit_on_information: float
    credit_on_nothing: float
    credit_on_regression: float
    blame_on_progress: float
    blame_on_information: float
    blame_on_nothing: float
    blame_on_regression: float
    information_credit: float
    oracle_gap: float


FIGURES = tuple(field.name for field in fields(Figures))


def true_values(episode: Episode, remaining: Array, chance: Array | None = None) -> TrueValues:
    """Effects of the actions of an episode.

    An action that leaves the distance alone gathered information if it was valid, led to a state that the episode
    had not been in, and showed words that it had not met.

    Args:
        remaining: optimal steps left before each turn and after the last (T + 1,); inf where lost.
        chance: chance of success at the same places.
    """
    saved = progress(remaining)
    effects: list[Effect] = []
    met, states = set[str](), set[str]()
    for step, (turn, value) in enumerate(zip(episode.turns, saved, strict=True)):
        met |= _words(turn.observation)
        states.add(turn.state_key)
        is_last = step + 1 == len(episode.turns)
        state = episode.final_state_key if is_last else episode.turns[step + 1].state_key
        is_new = state not in states and not _words(observed_after(episode, step)) <= met
        if value:
            effects.append("progress" if value > 0 else "regression")
        else:
            effects.append("information" if turn.is_action_valid and is_new else "nothing")
    return TrueValues(saved, effects, None if chance is None else np.diff(chance))


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


class StoredCredit:
    """The credit that a run gave its own episodes, as stored with them: exact, and no policy is needed for it."""

    uses_guidance: ClassVar[bool] = False

    def __init__(self, name: str) -> None:
        self.name = name

    def credit(self, group: Group, scorer: Scorer) -> list[Credit]:
        """Credit of the episodes of a group that was trained on; :class:`InputError` if it was not."""
        if any(episode.advantage is None for episode in group.episodes):
            raise InputError(f"task {group.task_id}: its episodes hold no credit; give stored training episodes")
        return [Credit(list(episode.credit), float(episode.advantage or 0.0)) for episode in group.episodes]


def stored_groups(episodes: Sequence[Episode], group_size: int, update: int = 0) -> list[Group]:
    """The groups of one update's stored episodes (``group_size`` of a task, one after the other), with guidance."""
    groups = []
    for first in range(0, len(episodes), group_size):
        members = list(episodes[first : first + group_size])
        if len(members) < group_size or len({episode.task_id for episode in members}) > 1:
            raise DataError(f"episodes {first} to {first + group_size - 1} are no group of {group_size} of one task")
        guidance = [episode.guidance for episode in members]
        groups.append(Group(members[0].task_id, members, guidance if any(guidance) else [], update))
    return groups


def chance_of_success(env: TextEnv, episode: Episode, play_on: PlayOn, tries: int) -> Array:
    """Share of tries won from the state before each turn and after the last (T + 1,), restored for each try."""
    env.reset(seed=episode.seed, options={"task_id": episode.task_id})
    snapshots = [env.snapshot()]
    for action in episode.actions:
        env.step(action)
        snapshots.append(env.snapshot())
    chances = np.zeros(len(snapshots))
    for step, snapshot in enumerate(snapshots):
        for number in range(tries):
            env.restore(snapshot)
            chances[step] += play_on(env, episode, step, number) / tries
    return chances


class _Remembering:
    """A scorer that is asked each thing once, however many schemes ask for it."""

    def __init__(self, scorer: Scorer) -> None:
        self._scorer = scorer
        self._shifts: dict[tuple[int, ...], list[list[Array]]] = {}
        self._remaining: dict[int, Array] = {}

    def shift(self, episodes: Sequence[Episode], guidance: Sequence[Guidance]) -> list[list[Array]]:
        key = tuple(map(id, episodes))
        if key not in self._shifts:
            self._shifts[key] = self._scorer.shift(episodes, guidance)
        return self._shifts[key]

    def remaining_steps(self, episode: Episode) -> Array:
        if id(episode) not in self._remaining:
            self._remaining[id(episode)] = self._scorer.remaining_steps(episode)
        return self._remaining[id(episode)]


def figures_of_seed(
    groups: Sequence[Group],
    schemes: Mapping[str, CreditScheme],
    scorer: Scorer,
    monte_carlo: MonteCarlo | None = None,
) -> dict[str, Figures]:
    """Figures of each scheme on the same episodes.

    Args:
        groups: stored groups with their guidance; those with equal returns teach nothing and are left out.
        scorer: shifts under the policy that made the rollouts, and the simulator's distances.
    """
    kept = [group for group in groups if not is_equal(group.returns)]
    scorer = _Remembering(scorer)
    if not kept:
        raise InputError("no group with unequal returns: there is no credit to look at; give episodes of training")
    values = [
        true_values(episode, scorer.remaining_steps(episode), monte_carlo(episode) if monte_carlo else None)
        for group in kept
        for episode in group.episodes
    ]
    oracle = [credit for group in kept for credit in OracleCredit().credit(group, scorer)]
    return {
        name: _figures([credit for group in kept for credit in scheme.credit(group, scorer)], values, oracle)
        for name, scheme in schemes.items()
    }


def _figures(credits: Sequence[Credit], values: Sequence[TrueValues], oracle: Sequence[Credit]) -> Figures:
    rows = [
        (credit.per_turn(), credit.advantage, value, best.per_turn() / best.advantage)
        for credit, value, best in zip(credits, values, oracle, strict=True)
        if credit.turns and credit.advantage and best.advantage
    ]
    shares = {name: _shares([row for row in rows if row[1] * sign > 0]) for name, sign in _SIDES}
    favours = [
        (turns[step] - advantage) / abs(advantage)
        for turns, advantage, value, _ in rows
        for step, effect in enumerate(value.effects)
        if effect == "information"
    ]
    return Figures(
        spearman=_mean([spearman(turns, value.progress) for turns, _, value, _ in rows]),
        spearman_chance=_mean([spearman(turns, v.chance) for turns, _, v, _ in rows if v.chance is not None]),
        information_credit=_mean(favours),
        oracle_gap=_mean([float(np.abs(turns / advantage - best).mean()) for turns, advantage, _, best in rows]),
        **{f"{side}_on_{effect}": share for side, found in shares.items() for effect, share in found.items()},
    )


_SIDES = (("credit", 1.0), ("blame", -1.0))
_EFFECTS: tuple[Effect, ...] = ("progress", "information", "nothing", "regression")


def _shares(rows: Sequence[tuple[Array, float, TrueValues, Array]]) -> dict[str, float]:
    """Share of the credit that has the sign of the outcome on turns of each effect, mean over trajectories."""
    found: dict[str, list[float]] = {effect: [] for effect in _EFFECTS}
    for turns, advantage, value, _ in rows:
        amounts = np.maximum(turns * np.sign(advantage), 0.0)
        for effect in _EFFECTS:
            on = np.array([other == effect for other in value.effects])
            if amounts.sum() > 0:
                found[effect].append(float(amounts[on].sum() / amounts.sum()))
    return {effect: _mean(shares) for effect, shares in found.items()}


def spearman(credit: Array, truth: Array) -> float:
    """Rank correlation (ties share their mean rank); nan if the truth is all alike, 0 if only the credit is."""
    if len(truth) < 2 or np.ptp(truth) == 0:
        return float("nan")
    # equal up to rounding is equal: the ranks of a residue would be a correlation out of nothing
    ranks = stats.rankdata(np.round(credit, 12))
    if np.ptp(ranks) == 0:
        return 0.0
    return float(np.corrcoef(ranks, stats.rankdata(truth))[0, 1])


def _mean(values: Sequence[float]) -> float:
    finite = [value for value in values if np.isfinite(value)]
    return float(np.mean(finite)) if finite else float("nan")


# --- over seeds ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Diagnosis:
    """Figures of every seed and scheme; ``seeds[s][scheme]``, the same schemes for each seed."""

    env: str
    seeds: dict[int, dict[str, Figures]]

    @property
    def schemes(self) -> list[str]:
        return list(next(iter(self.seeds.values())))

    def estimate(self, scheme: str, figure: str) -> Estimate:
        """Mean over seeds with its 95 % t interval (nan bounds for a single seed)."""
        return t_estimate([getattr(figures[scheme], figure) for figures in self.seeds.values()])

    def difference(self, scheme: str, other: str, figure: str) -> Estimate:
        """Mean difference of two schemes, paired by seed, with its interval."""
        return t_estimate(
            [getattr(found[scheme], figure) - getattr(found[other], figure) for found in self.seeds.values()]
        )

    def ranking(self) -> list[str]:
        """Schemes from the best down by their mean correlation with progress."""
        return sorted(self.schemes, key=lambda scheme: -self.estimate(scheme, "spearman").value)

    def to_json(self) -> dict[str, Any]:
        """Every figure of every seed, and the estimates over seeds (nan is null)."""
        return {
            "env": self.env,
            "seeds": {
                str(seed): {scheme: _plain(asdict(figures)) for scheme, figures in found.items()}
                for seed, found in self.seeds.items()
            },
            "estimates": {
                scheme: {figure: _plain(asdict(self.estimate(scheme, figure))) for figure in FIGURES}
                for scheme in self.schemes
            },
            "ranking": self.ranking(),
        }


def _plain(values: Mapping[str, float]) -> dict[str, float | None]:
    return {name: value if np.isfinite(value) else None for name, value in values.items()}
