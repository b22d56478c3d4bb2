"""Where built data is kept that can be made again."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """``$TASPO_CACHE``, else the platform's cache folder for taspo-bench (on Linux ``~/.cache/taspo-bench``)."""
    if given := os.environ.get("TASPO_CACHE"):
        return Path(given).expanduser()
    import pooch  # a slow import, and rarely needed

    return Path(pooch.os_cache("taspo-bench"))
