"""Which analyzer builds the guidance of a run's groups, by its settings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from taspo_bench.api import TextEnv
from taspo_bench.config import CellConfig
from taspo_bench.endpoint import ChatEndpoint, split_address
from taspo_bench.errors import InputError
from taspo_bench.policies.formats import Converses
from taspo_bench.policies.language_model import LanguageModel
from taspo_bench.taspo.analyzers import Analyzer
from taspo_bench.taspo.analyzers.endpoint import EndpointAnalyzer
from taspo_bench.taspo.analyzers.language_model import SelfAnalyzer
from taspo_bench.taspo.analyzers.replay import ReplayAnalyzer
from taspo_bench.taspo.analyzers.settings import check_analyzer

CONCURRENCY = 8
"""Requests of an endpoint analyzer that are open at once."""


def make_analyzer(config: CellConfig, env: TextEnv, policy: LanguageModel, folder: Path) -> Analyzer:
    """The analyzer of a cell, which may keep files in ``folder``.

    Raises:
        InputError: settings that do not go together, or analyzer ``self`` for a policy that answers no questions.
    """
    check_analyzer(config)
    settings: dict[str, Any] = {
        "scope": config.guidance_scope,
        "reveal": config.guidance_reveal,
        "count_tokens": lambda text: len(policy.format.guide(text)),
    }
    if config.analyzer == "endpoint":
        url, model = split_address(config.analyzer_endpoint)
        endpoint = ChatEndpoint(url, model, folder, prices=config.analyzer_prices, concurrency=CONCURRENCY)
        return EndpointAnalyzer(endpoint, **settings)
    if config.analyzer == "self":
        return SelfAnalyzer(_generator(policy), **settings)
    source, seed, bank = config.guidance_source, config.seed, config.guidance_bank
    return ReplayAnalyzer(env, source=source, seed=seed, bank=bank, **settings)


def _generator(policy: LanguageModel) -> Callable[[str, int], str]:
    """(question, at most so many new tokens) -> the policy's most likely answer."""
    chat = policy.format
    if not isinstance(chat, Converses):
        raise InputError(f"analyzer 'self': policy {policy.name!r} answers no questions; use analyzer=replay")

    @torch.inference_mode()
    def generate(question: str, max_tokens: int) -> str:
        ids = chat.ask(question)
        room = min(max_tokens, policy.context_tokens - len(ids))
        if room < 1:
            return ""
        prompt = torch.tensor([ids], device=policy.device)
        answer = policy.model.generate(  # type: ignore[operator]
            prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=room, do_sample=False,
            eos_token_id=chat.stop_id, pad_token_id=chat.stop_id,
        )[0, len(ids) :].tolist()  # fmt: skip
        return chat.parse(answer, len(answer))[0]

    return generate
