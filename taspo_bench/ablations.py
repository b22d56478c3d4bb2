"""The ablation tables by name: each row is a method with some settings changed, all else as in the run.

``all`` holds the rows of every table once, so that GRPO and TASPO as it stands are trained once for all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Variant:
    """A row of a table; ``label`` is the name that its cells and table rows carry."""

    label: str
    method: str
    overrides: Mapping[str, Any] = field(default_factory=dict)


GRPO = Variant("grpo", "grpo")
TASPO = Variant("taspo", "taspo")


def _taspo(label: str, **overrides: Any) -> Variant:
    return Variant(label, "taspo", {key.replace("__", "."): value for key, value in overrides.items()})


TABLES: dict[str, tuple[Variant, ...]] = {
    "granularity": (GRPO, Variant("token", "token_taspo"), Variant("action", "taspo")),
    "source": (
        GRPO,
        _taspo("generic", guidance_source="generic"),
        _taspo("random", guidance_source="random"),
        _taspo("nearest", guidance_source="nearest"),
        _taspo("aligned", guidance_source="aligned"),
    ),
    "scope": (
        GRPO,
        _taspo("turn", guidance_scope="turn"),
        _taspo("turn-reveal", guidance_scope="turn", guidance_reveal=True),
        _taspo("trajectory", guidance_scope="trajectory"),
        _taspo("trajectory-reveal", guidance_scope="trajectory", guidance_reveal=True),
    ),
    "strength": (
        GRPO,
        *(
            _taspo(f"eps-{eps}-tau-{tau}", scheme__eps=eps, scheme__tau=tau)
            for eps in (0.2, 0.4, 0.8)
            for tau in (0.1, 0.5, 1.0)
        ),
    ),
    "margin": (GRPO, *(_taspo(f"kappa-{kappa}", scheme__kappa=kappa) for kappa in (0.0, 0.05, 0.2))),
    "orientation": (GRPO, TASPO, _taspo("no-orientation", scheme__orient=False)),
    "mean": (GRPO, TASPO, _taspo("no-mean-preservation", scheme__preserve_mean=False)),
    "bank": (GRPO, TASPO, _taspo("bank-4", guidance_bank=4)),
    "controls": (GRPO, TASPO, Variant("random_weights", "random_weights"), Variant("oracle_credit", "oracle_credit")),
}

AS_IT_STANDS = ("action", "aligned", "turn", "eps-0.4-tau-0.5", "kappa-0.0")
"""Rows that are TASPO with its defaults under the name that they have in their table."""


def _all_rows() -> tuple[Variant, ...]:
    rows = {row.label: row for row in (GRPO, TASPO, *(row for table in TABLES.values() for row in table))}
    return tuple(row for row in rows.values() if row.label not in AS_IT_STANDS)


TABLES["all"] = _all_rows()
