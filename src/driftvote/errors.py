"""Errors by kind. Every message names the thing, the bound, the value and the remedy."""

from __future__ import annotations

import re

_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def one_line(text: str) -> str:
    r"""Return a message as one line that is safe to print: control characters, as names may hold them, are escaped.

    >>> print(one_line("labeler \x1b[31mred\nforged line"))
    labeler \x1b[31mred\nforged line
    """
    return _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


class DriftvoteError(Exception):
    """Base class of all errors of driftvote."""


class SettingError(DriftvoteError, ValueError):
    """A setting is out of range, or contradicts another one."""


class VoteError(DriftvoteError, ValueError):
    """Votes that contradict the declared format, or are not a table of votes at all."""


class VoteFormatWarning(UserWarning):
    """Votes that the assumed format most likely misreads; a declared format is never doubted."""


class LabelerError(DriftvoteError, ValueError):
    """Too few labelers, or labelers that are unknown or named twice."""


class OrderError(DriftvoteError, ValueError):
    """Rows that are not in time order."""


class FeedbackError(DriftvoteError, ValueError):
    """A verified label that cannot be used: the row or class is unknown, or the row has one already."""


class StateError(DriftvoteError, ValueError):
    """A state file that is damaged, of another version, or of another model."""


class NotFittedError(DriftvoteError, ValueError, AttributeError):
    """The model has seen no rows yet, and this call needs some."""


class MissingExtraError(DriftvoteError, ImportError):
    """An optional package that this call needs is not installed."""


class ContradictionError(DriftvoteError, ValueError):
    """Accuracies and agreements that no votes can have together."""
