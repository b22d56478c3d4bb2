"""Which settings of an analyzer go together; found out before a run begins, without loading a model."""

from __future__ import annotations

from taspo_bench.config import CellConfig
from taspo_bench.endpoint import PREFIX, ChatEndpoint, split_address
from taspo_bench.errors import InputError


def check_analyzer(config: CellConfig) -> None:
    """:class:`InputError` for settings that cannot work together, and for an endpoint that cannot be asked."""
    kind = config.analyzer
    if kind == "endpoint":
        if not config.analyzer_endpoint:
            raise InputError(
                f"--set analyzer=endpoint: say which, with --set analyzer_endpoint={PREFIX}http://host/v1#model"
            )
        ChatEndpoint(*split_address(config.analyzer_endpoint))
    elif config.analyzer_endpoint:
        raise InputError(f"--set analyzer_endpoint: analyzer {kind!r} asks no endpoint; add --set analyzer=endpoint")
    if kind == "self" and config.policy == "tiny":
        # it would answer with noise: no item, w = 1 everywhere, and GRPO's figures under another name
        raise InputError(
            "--set analyzer=self: the tiny policy writes actions and cannot write guidance; "
            "train a language model, or leave the analyzer at replay"
        )
    if kind != "replay" and (config.guidance_source != "aligned" or config.guidance_bank):
        raise InputError(
            f"--set analyzer={kind}: a model aligns the group's own evidence itself; "
            "guidance_source and guidance_bank are for analyzer replay"
        )
