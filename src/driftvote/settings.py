"""Checks of settings: a wrong one is refused when the object is made, with a sentence that names it."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from difflib import get_close_matches
from numbers import Real
from reprlib import repr as shorten
from typing import Any

from driftvote.errors import SettingError

Number = Any
"""Any real number, Python's or NumPy's; it is checked, so the type need not be."""


REVIEW_BELOW = 0.6
"""A less probable label needs review. Probabilities are careful: two votes against one are about 0.7."""


SETTING_HINTS = {
    "window": "windows=[...] for sizes to choose from, or FixedWindowLabelModel(window=...)",
    "cardinality": "n_classes=",
    "k": "n_classes=",
    "num_classes": "n_classes=",
    "random_state": "seed=",
    "label_model": "estimator=",
    "workers": "labelers=",
    "annotators": "labelers=",
}
COLUMN_HINTS = {
    "worker": "labeler=",
    "annotator": "labeler=",
    "rater": "labeler=",
    "item": "task=",
    "answer": "label=",
    "vote": "label=",
    "timestamp": "time=",
    "date": "time=",
    "gold": "verified=",
    "y_true": "verified=",
}
"""What people of other libraries mean by a keyword that does not exist here."""


def unknown_keyword(
    who: str, name: str, known: Iterable[str], hints: dict[str, str], kind: str = "keyword"
) -> TypeError:
    """The error for a keyword that does not exist, with the one that was probably meant.

    >>> unknown_keyword("update", "tiem", ["time", "id"], {})
    TypeError("update has no keyword 'tiem'; did you mean time=?")
    """
    close = get_close_matches(name, list(known), 1)
    meant = hints.get(name.lower()) or (f"{close[0]}=" if close else "")
    return TypeError(f"{who} has no {kind} {name!r}; {f'did you mean {meant}?' if meant else 'leave it out'}")


def positive(name: str, value: Number) -> float:
    """Return a finite number above 0."""
    number = _number(name, value)
    if not 0.0 < number < float("inf"):
        raise SettingError(f"{name} must be a number above 0, not {shorten(value)}")
    return number


def probability(name: str, value: Number) -> float:
    """Return a number strictly between 0 and 1."""
    number = _number(name, value)
    if not 0.0 < number < 1.0:
        raise SettingError(f"{name} must lie between 0 and 1, both excluded, not {shorten(value)}")
    return number


def error_share(name: str, value: Number) -> float:
    """Return a share of errors above 0 and below one half."""
    number = _number(name, value)
    if not 0.0 < number < 0.5:
        raise SettingError(f"{name} must lie above 0 and below 0.5, not {shorten(value)}")
    return number


def clip_range(value: object) -> tuple[float, float]:
    """Return the pair (low, high) that accuracies are limited to."""
    ends = tuple(value) if isinstance(value, Iterable) and not isinstance(value, str) else ()
    if len(ends) != 2:
        raise SettingError(f"clip must be a pair (low, high) such as (0.1, 0.9), not {shorten(value)}")
    low, high = (_number("clip", end) for end in ends)
    if not 0.0 < low <= 0.5 <= high < 1.0:
        raise SettingError(
            "clip must be (low, high) with 0 < low <= 0.5 <= high < 1, so that weights stay finite,"
            f" not {shorten(value)}"
        )
    return low, high


def one_of(name: str, value: str, allowed: Iterable[str]) -> str:
    """Return one of a few words."""
    words = tuple(allowed)
    if value not in words:
        raise SettingError(f"{name} must be {' or '.join(repr(word) for word in words)}, not {shorten(value)}")
    return value


def whole(name: str, value: int) -> int:
    """Return a whole number."""
    if isinstance(value, bool):
        raise SettingError(f"{name} must be a whole number, not {shorten(value)}")
    try:
        return operator.index(value)
    except TypeError:
        raise SettingError(f"{name} must be a whole number, not {shorten(value)}") from None


def n_rows(name: str, value: int, most: int = 2**62) -> int:
    """Return a number of rows, at least 1."""
    count = whole(name, value)
    if not 1 <= count <= most:
        limit = "at least 1" if most == 2**62 else f"from 1 to {most}"
        raise SettingError(f"{name} must be a number of rows {limit}, not {shorten(value)}")
    return count


def class_balance(value: Any, words: tuple[str, ...] = ("estimated", "even")) -> str | tuple[float, ...]:
    """Return the class balance: a share above 0 for each class, together 1, or a word; None stands for the first."""
    if value is None or (isinstance(value, str) and value in words):
        return value or words[0]
    many = isinstance(value, Iterable) and not isinstance(value, (str, dict))
    shares = tuple(_number("class_balance", share) for share in value) if many else ()
    if not shares or not all(0.0 < share < 1.0 for share in shares) or abs(sum(shares) - 1.0) > 1e-6:
        choice = " or ".join(repr(word) for word in words)
        raise SettingError(f"class_balance must be {choice}, or shares above 0 that add up to 1, not {shorten(value)}")
    return shares


def boolean(name: str, value: bool) -> bool:
    """Return True or False."""
    if not isinstance(value, bool):
        raise SettingError(f"{name} must be True or False, not {shorten(value)}")
    return value


def event_rate(value: Number | None) -> float | None:
    """Return the drift events that chance may make per row (small, or every comparison would make one), or None."""
    if value is None:
        return None
    rate = _number("false_event_rate", value)
    if not 0.0 < rate <= 0.001:
        raise SettingError(
            "false_event_rate must be above 0 and at most 0.001 events per row (None: do not look for events),"
            f" not {shorten(value)}"
        )
    return rate


def n_threads(name: str, value: int) -> int:
    """Return a number of threads, at least 1."""
    count = whole(name, value)
    if not 1 <= count <= 256:
        raise SettingError(f"{name} must be a number of threads from 1 to 256, not {shorten(value)}")
    return count


def _number(name: str, value: Number) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise SettingError(f"{name} must be a number, not {shorten(value)}")
    try:
        return float(value)
    except OverflowError:
        return math.inf
