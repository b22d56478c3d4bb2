"""One exception family. The command line shows each as a single line.

The exit code is 2 for bad input (what the user gave can be mended) and 1 for a failure while working.
Write every message as: what was given, what is wrong with it, what to do next.
"""

from __future__ import annotations

import difflib
import errno
from collections.abc import Iterable


class TaspoBenchError(Exception):
    """Base of every error that taspo-bench raises on purpose."""

    exit_code = 1


class InputError(TaspoBenchError):
    """The user's input cannot be used; the message names the fix."""

    exit_code = 2


class DataError(InputError):
    """A data file or data folder is missing, broken, or of an unknown kind."""


class SplitError(InputError):
    """A split has the wrong tasks: an overlap with training, a wrong count, an unknown name."""


class RunError(TaspoBenchError):
    """Work that was asked for correctly could not be finished."""


def is_disk_error(error: BaseException | None) -> bool:
    """Whether the disk would not take any more: it is full, over quota, or read-only, or the file too large."""
    stops = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG)
    return isinstance(error, OSError) and error.errno in stops


def unknown_name(kind: str, given: str, known: Iterable[str]) -> InputError:
    """One line for a name that is not known, with the close one first and then all that are."""
    names = sorted(known)
    close = difflib.get_close_matches(given, names, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return InputError(f"unknown {kind} {given!r}: {hint}known: {', '.join(names) or 'none'}")
