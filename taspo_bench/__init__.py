"""taspo-bench: credit assignment for language-model agents, measured."""

from taspo_bench.registry import register_gymnasium_ids

__version__ = "0.1.0"

register_gymnasium_ids()
