"""File names made from names that people gave."""

from __future__ import annotations

import re
import unicodedata


def slug(name: str) -> str:
    """Lower-case ASCII letters, digits and hyphens; ``submission`` if nothing of the name is left."""
    ascii_name = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", ascii_name).strip("-")[:60] or "submission"
