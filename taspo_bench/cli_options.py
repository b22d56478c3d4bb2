"""Options of the command line that several commands take, and what their numbers may be."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from taspo_bench.errors import InputError


def _checked(is_right: Callable[[float], bool], right: str) -> Callable[[typer.CallbackParam, Any], Any]:
    """A callback of an option that refuses other numbers; typer's own ranges would make the help longer."""

    def check(param: typer.CallbackParam, value: Any) -> Any:
        if value is not None and not (is_right(value) and math.isfinite(value)):
            raise InputError(f"{param.opts[0]} {value:g}: give a number {right}")
        return value

    return check


not_negative = _checked(lambda value: value >= 0, "of at least 0")
at_least_one = _checked(lambda value: value >= 1, "of at least 1")
above_zero = _checked(lambda value: value > 0, "above 0")
share = _checked(lambda value: 0 <= value <= 1, "from 0 to 1")

Env = Annotated[str, typer.Option("--env", help="Benchmark.")]
Envs = Annotated[list[str] | None, typer.Option("--env", help="Benchmark, or all; repeatable.")]
Data = Annotated[str, typer.Option("--data", help="embedded, official, or a folder.", show_default=False)]
Model = Annotated[str, typer.Option("--model", help="smollm2-135m, a name or path; tiny if unset.")]
Overrides = Annotated[list[str] | None, typer.Option("--set", help="key=value of the configuration; repeatable.")]
Preset = Annotated[str, typer.Option("--preset", help="smoke, quick (default), standard, paper.", show_default=False)]
Seeds = Annotated[
    str, typer.Option("--seeds", help="A count, such as 3, or a list, such as 0,4,7; the preset's count if unset.")
]
RunFolder = Annotated[Path | None, typer.Option("--out", help="Output folder; made from the names if unset.")]
Jobs = Annotated[
    int | None, typer.Option("--jobs", callback=at_least_one, help="Cells at once; one a core if unset.")
]
Cluster = Annotated[str, typer.Option("--cluster", help="ray or ray:ADDRESS.")]
Paper = Annotated[bool, typer.Option("--paper", help="Add the paper's figures for reference.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with a run that was broken off.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Remove the run that is there.")]
Target = Annotated[
    float,
    typer.Option(
        "--target",
        callback=share,
        help="Stop at this success on training tasks; the benchmark's own value if 0.",
    ),
]


def parse_seeds(text: str) -> list[int] | None:
    """``3`` means seeds 0, 1, 2; ``0,4,7`` means these, and ``3,`` seed 3 alone."""
    if not text:
        return None
    parts = [part.strip() for part in text.strip().removesuffix(",").split(",")]
    if not all(part.isdigit() for part in parts):
        raise InputError(f"--seeds {text}: give a number of seeds (3) or a list (0,4,7 or 3,)")
    numbers = [int(part) for part in parts]
    if len(numbers) == 1 and "," not in text:
        if numbers[0] < 1:
            raise InputError(f"--seeds {text}: at least one seed is needed")
        return list(range(numbers[0]))
    if len(set(numbers)) < len(numbers):
        raise InputError(f"--seeds {text}: a seed stands there twice")
    return numbers
