"""Guidance by a hosted model."""

from __future__ import annotations

from typing import Any, ClassVar

from taspo_bench.endpoint import ChatEndpoint
from taspo_bench.taspo.analyzers.language_model import LanguageModelAnalyzer


class EndpointAnalyzer(LanguageModelAnalyzer):
    """Guidance by a hosted model, as in the paper: an external frozen language model."""

    name: ClassVar[str] = "endpoint"

    def __init__(self, endpoint: ChatEndpoint, **settings: Any) -> None:
        super().__init__(endpoint.ask, **settings)
        self.endpoint = endpoint
