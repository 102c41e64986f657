"""Checks of the settings that models share: a wrong one is refused when the model is made."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from numbers import Real
from reprlib import repr as shown
from typing import Any

from driftvote.errors import SettingError
from driftvote.labels import TIE_POLICIES

ABSTENTIONS = ("zero", "random")

Number = Any
"""Any real number, Python's or NumPy's; it is checked, so the type need not be."""


def positive(name: str, value: Number) -> float:
    """A finite number above 0."""
    number = _number(name, value)
    if not 0.0 < number < float("inf"):
        raise SettingError(f"{name} must be a number above 0, not {shown(value)}")
    return number


def probability(name: str, value: Number) -> float:
    """A number strictly between 0 and 1."""
    number = _number(name, value)
    if not 0.0 < number < 1.0:
        raise SettingError(f"{name} must lie between 0 and 1, both excluded, not {shown(value)}")
    return number


def clip_range(value: object) -> tuple[float, float]:
    """The pair (low, high) that accuracies are limited to."""
    ends = tuple(value) if isinstance(value, Iterable) and not isinstance(value, str) else ()
    if len(ends) != 2:
        raise SettingError(f"clip must be a pair (low, high) such as (0.1, 0.9), not {shown(value)}")
    low, high = (_number("clip", end) for end in ends)
    if not 0.0 < low <= 0.5 <= high < 1.0:
        raise SettingError(
            f"clip must be (low, high) with 0 < low <= 0.5 <= high < 1, so that weights stay finite, not {shown(value)}"
        )
    return low, high


def one_of(name: str, value: str, allowed: tuple[str, ...]) -> str:
    """One of a few words."""
    if value not in allowed:
        raise SettingError(f"{name} must be {' or '.join(repr(word) for word in allowed)}, not {shown(value)}")
    return value


def tie_policy(value: str) -> str:
    """What to do when the weighted vote is tied."""
    return one_of("tie_break_policy", value, TIE_POLICIES)


def whole(name: str, value: int) -> int:
    """A whole number."""
    if isinstance(value, bool):
        raise SettingError(f"{name} must be a whole number, not {shown(value)}")
    try:
        return operator.index(value)
    except TypeError:
        raise SettingError(f"{name} must be a whole number, not {shown(value)}") from None


def class_shares(value: Any, n_classes: int) -> tuple[float, ...] | None:
    """The class balance: a share above 0 for each class, together 1; None to estimate it."""
    if value is None:
        return None
    many = isinstance(value, Iterable) and not isinstance(value, (str, dict))
    shares = tuple(_number("class_balance", share) for share in value) if many else ()
    if len(shares) != n_classes:
        raise SettingError(f"class_balance must be {n_classes} shares, one for each class, not {shown(value)}")
    if not all(0.0 < share < 1.0 for share in shares) or abs(sum(shares) - 1.0) > 1e-6:
        raise SettingError(f"class_balance must be shares above 0 that add up to 1, not {shown(value)}")
    return shares


def watching(rate: Any, on_event: Any) -> tuple[float | None, Any]:
    """Events that chance may make, per row (small, or there would be one at every look), and whom to tell of them."""
    if rate is not None and not 0.0 < _number("false_event_rate", rate) <= 0.001:
        raise SettingError(
            f"false_event_rate must be above 0 and at most 0.001 events a row (None: do not look), not {shown(rate)}"
        )
    if on_event is not None and not callable(on_event):
        raise SettingError(f"on_event must be a function of one event, or None, not {shown(on_event)}")
    return None if rate is None else float(rate), on_event


def threads(name: str, value: int) -> int:
    """A number of threads, at least 1."""
    count = whole(name, value)
    if not 1 <= count <= 256:
        raise SettingError(f"{name} must be a number of threads from 1 to 256, not {shown(value)}")
    return count


def _number(name: str, value: Number) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise SettingError(f"{name} must be a number, not {shown(value)}")
    try:
        return float(value)
    except OverflowError:
        return math.inf
