"""What the tests of tampering ask of a verdict."""

from __future__ import annotations

import re

from taspo_bench.leaderboard.verify import Verdict


def matches(pattern: str, problems: list[str]) -> bool:
    return any(re.search(pattern, problem) for problem in problems)


def assert_malformed(verdict: Verdict, pattern: str) -> None:
    assert verdict.exit_code == 2
    assert verdict.benchmarks == {}
    assert matches(pattern, [verdict.malformed]), verdict.malformed
    assert len(verdict.malformed) < 400
    assert verdict.malformed.isprintable()
