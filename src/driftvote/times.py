"""Time columns of frames, as plain numbers or text that can be compared across calls."""

from __future__ import annotations

import datetime
import math
from numbers import Real
from typing import Any

import narwhals as nw

from driftvote.doors import Times
from driftvote.errors import OrderError


def read_times(frame: nw.DataFrame[Any], column: str) -> Times:
    """A time for every row: numbers, dates, times, durations, or text that sorts."""
    series = frame[column]
    values = series.to_list()
    for row, value in enumerate(values):
        if value is None or value != value:
            raise OrderError(
                f"row {row} of this batch (counting from 0), column {column!r} has no time; every row needs one"
            )
    if series.dtype == nw.Date:
        series = series.cast(nw.Datetime("us"))
    if isinstance(series.dtype, nw.Datetime):
        return Times("datetime", _nanoseconds(series))
    if isinstance(series.dtype, nw.Duration):
        return Times("duration", [value.total_seconds() for value in values])
    return _plain_times(values, column, series.dtype)


def one_time(value: Any) -> Times:
    """The time of one row: a number, a date or a time, or text that sorts.

    >>> one_time(17.5).kind, one_time("2026-03-01").kind, one_time(datetime.date(1970, 1, 2)).values
    ('number', 'text', [86400000000000])
    """
    if isinstance(value, datetime.timedelta):
        return Times("duration", [value.total_seconds()])
    if type(value).__name__ in ("datetime64", "Timestamp"):
        value = value.astype("datetime64[us]").item() if hasattr(value, "astype") else value.to_pydatetime()
    elif hasattr(value, "item"):
        value = value.item()
    if value is None or value != value:
        raise OrderError("time= has no time; leave it out, or give every row one")
    return _plain_times([value], "time", type(value).__name__)


def _nanoseconds(series: nw.Series[Any]) -> list[int]:
    """Whole nanoseconds as Python ints, which no year overflows."""
    unit = getattr(series.dtype, "time_unit", "us")
    if unit == "ns":
        return [int(value) for value in series.dt.timestamp("ns").to_list()]
    return [int(value) * 1000 for value in series.dt.timestamp("us").to_list()]


def _plain_times(values: list[Any], column: str, dtype: Any) -> Times:
    """Columns of Python objects, categories or decimals: one kind of value, or a refusal."""
    if all(isinstance(value, int) and not isinstance(value, bool) for value in values):
        return Times("number", values)
    if all(_is_number(value) for value in values):
        return Times("number", [float(value) for value in values])
    if all(isinstance(value, datetime.date) for value in values):
        # Nanoseconds from microseconds: a float of seconds would round.
        epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
        aware = [_aware(value) for value in values]
        return Times("datetime", [((v - epoch) // datetime.timedelta(microseconds=1)) * 1000 for v in aware])
    if all(isinstance(value, str) for value in values) and not isinstance(dtype, (nw.Categorical, nw.Enum)):
        return Times("text", values)
    raise OrderError(
        f"column {column!r} ({dtype}) cannot be read as time; use numbers, dates or times, or text that sorts"
    )


def _aware(value: datetime.date) -> datetime.datetime:
    """Dates begin at midnight; without a zone it is UTC."""
    if not isinstance(value, datetime.datetime):
        value = datetime.datetime(value.year, value.month, value.day)
    return value if value.tzinfo else value.replace(tzinfo=datetime.timezone.utc)


def _is_number(value: Any) -> bool:
    if isinstance(value, bool):
        return False
    return (isinstance(value, Real) or type(value).__name__ == "Decimal") and math.isfinite(value)
