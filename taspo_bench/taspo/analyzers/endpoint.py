"""Guidance by a hosted model."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from taspo_bench.endpoint import ChatEndpoint, Usage
from taspo_bench.taspo.analyzers.language_model import LanguageModelAnalyzer


class EndpointAnalyzer(LanguageModelAnalyzer):
    """Guidance by a hosted model, as in the paper: an external frozen language model."""

    name = "endpoint"

    def __init__(self, endpoint: ChatEndpoint, **settings: Any) -> None:
        super().__init__(endpoint.ask, **settings)
        self.endpoint = endpoint

    def figures(self) -> dict[str, float]:
        return {f"analyzer_{name}": value for name, value in self.state().items()}

    def state(self) -> dict[str, Any]:
        return asdict(self.endpoint.usage)

    def load_state(self, state: dict[str, Any]) -> None:
        self.endpoint.usage = Usage(**state)
