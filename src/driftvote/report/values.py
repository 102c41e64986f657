"""Numbers, times and settings as plain values that page and JSON can show."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from driftvote.report.parts import Time

MOST_DROPS = 50
"""Sharp falls of the window that are kept, the largest ones."""

DIGITS = 4
"""Decimals of shares and accuracies: a hundredth of a percent."""


def rounded(values: Any) -> list[Any]:
    """An array as nested lists of numbers with few decimals; None where it is not a number."""
    array = np.asarray(values, np.float64)
    plain = np.round(array, DIGITS).tolist()
    return plain if np.isfinite(array).all() else _without_nan(plain)


def _without_nan(plain: list[Any]) -> list[Any]:
    if plain and isinstance(plain[0], list):
        return [_without_nan(line) for line in plain]
    return [value if math.isfinite(value) else None for value in plain]


def share(part: float, whole: float) -> float | None:
    """part / whole with few decimals, or None of nothing."""
    return round(float(part) / float(whole), DIGITS) if whole else None


def plain_time(value: Any) -> Time:
    """A time as a number or as text (ISO for dates); what is missing is None."""
    if isinstance(value, np.datetime64):
        return None if np.isnat(value) else _short_iso(str(value.astype("datetime64[ms]")))
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return None
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    return _short_iso(value.isoformat()) if hasattr(value, "isoformat") else str(value)


def _short_iso(text: str) -> str:
    """Without a clock that says midnight and without zeros behind the seconds."""
    text = text.removesuffix(".000")
    return text.removesuffix("T00:00:00")


def shown(settings: Mapping[str, object]) -> dict[str, str]:
    """Names and values as text."""
    return {str(name): show(value) for name, value in settings.items()}


def show(value: object) -> str:
    """A value as a reader wants it: lists by their ends, numbers short."""
    if value is None:
        return "not set"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}" if abs(value) >= 10_000 else str(value)
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        return str(value)
    if isinstance(value, Mapping):
        return ", ".join(f"{name} = {show(entry)}" for name, entry in value.items()) or "none"
    entries = [show(entry) for entry in value]
    if len(entries) > 12:
        entries = [*entries[:4], "…", *entries[-2:]]
    return ", ".join(entries)


def brief(name: str, most: int = 32) -> str:
    """A name that fits into a sentence.

    >>> brief("judge"), brief("x" * 50)
    ('judge', 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…')
    """
    return name if len(name) <= most else name[: most - 1].rstrip() + "…"
