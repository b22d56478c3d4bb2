"""``python -m taspo_bench`` is ``taspo-bench``, for launchers that start modules."""

from taspo_bench.cli import main

main()
