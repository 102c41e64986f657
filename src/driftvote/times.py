"""Times of rows: parse, compare, format. Frames, files, messages and events all use this module.

A time is a kind and a value that can be compared and saved: numbers and text as they are, dates and times as
nanoseconds since 1970 in UTC, durations as seconds. A date without a zone is UTC.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from driftvote.errors import OrderError

LastTime = tuple[str, Any] | None
"""Kind and value of the latest time of a stream; None while its rows have no times."""

Refuse = Callable[[int | None, str], OrderError]
"""Makes the error for a row of a column (None: for the whole column) from the rest of the sentence."""

UTC = datetime.timezone.utc
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=UTC)
_NANOSECONDS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
_NO_TIME = " has no time; every row needs one"
_USABLE = "cannot be read as time; use numbers, dates or times, or text that sorts"


@dataclass(frozen=True)
class Times:
    """The times of consecutive rows.

    `values` can be compared with each other. `scale` converts them to the unit in which a time is saved: nanoseconds
    in a unit of a datetime, or units in a second of a duration.
    """

    kind: str  # number, datetime, duration or text
    values: Any  # a NumPy array, or a list of one value
    scale: int = 1

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: Any) -> Times:
        """The times of some of the rows: a slice or an array of row numbers."""
        return Times(self.kind, self.values[rows], self.scale)

    def at(self, row: int) -> Any:
        """The value of one row, in the unit in which a time is saved."""
        value = self.values[row]
        if isinstance(value, np.generic):
            value = value.item()
        if self.kind == "datetime":
            return value * self.scale
        return value / self.scale if self.kind == "duration" and self.scale != 1 else value

    def show(self, row: int) -> str:
        """One time for a message."""
        return _show((self.kind, self.at(row)))

    def find_decrease(self, latest: LastTime) -> tuple[int, str] | None:
        """The first row whose time is before that of the row before it, and that earlier time for a message.

        `latest` is the time of the row before these. None: the times do not decrease.
        """
        if latest is not None:
            if latest[0] != self.kind:
                raise OrderError(
                    f"the time column held {latest[0]}s so far and holds {self.kind}s now; keep to one kind"
                )
            if self.at(0) < latest[1]:
                return 0, _show(latest)
        if len(self.values) > 1:
            backward = self.values[1:] < self.values[:-1]
            if backward.any():
                row = int(np.argmax(backward))
                return row + 1, self.show(row)
        return None

    def check_order(self, latest: LastTime) -> LastTime:
        """The latest time after these rows; a time that is before an earlier one is refused."""
        decrease = self.find_decrease(latest)
        if decrease is not None:
            row, before = decrease
            where = f"row {row - 1}" if row else "the row before this batch"
            raise OrderError(
                f"row {row} of this batch (counting from 0): time {self.show(row)} is before {before} of {where}; sort"
                " the rows by time"
            )
        return self.kind, self.at(-1)

    def to_numpy(self) -> Any:
        """The values as NumPy shows them: datetimes as datetime64."""
        if self.kind != "datetime":
            return self.values
        unit = next(unit for unit, scale in _NANOSECONDS.items() if scale == self.scale)
        return self.values.astype(f"datetime64[{unit}]")


# -- single times ------------------------------------------------------------------------------


def read_time(value: Any) -> tuple[str, Any]:
    """Kind and value of one time: a number, a date or a time, a duration, or text that sorts.

    >>> read_time(17.5), read_time("2026-03-01"), read_time(datetime.date(1970, 1, 2))
    (('number', 17.5), ('text', '2026-03-01'), ('datetime', 86400000000000))
    """
    if isinstance(value, str):
        return "text", str(value)
    if isinstance(value, (bool, np.bool_)):
        raise OrderError(f"time={value!r} {_USABLE}")
    if value is None or value != value:  # NaN and NaT differ from themselves
        raise OrderError("time= has no time; leave it out, or give every row one")
    if isinstance(value, np.timedelta64):
        return "duration", float(value / np.timedelta64(1, "s"))
    if isinstance(value, datetime.timedelta):
        return "duration", value.total_seconds()
    if isinstance(value, (int, np.integer)):
        return "number", int(value)
    if hasattr(value, "to_datetime64"):  # pandas
        value = value.to_datetime64()
    if isinstance(value, np.datetime64):
        if np.datetime_data(value.dtype)[0] == "ns":
            return "datetime", int(value.astype(np.int64))
        value = value.astype("datetime64[us]").item()
    if isinstance(value, datetime.date):
        # Nanoseconds from microseconds: a float of seconds would round.
        return "datetime", (_with_zone(value) - _EPOCH) // datetime.timedelta(microseconds=1) * 1000
    if isinstance(value, (Real, Decimal)) and math.isfinite(value):
        return "number", float(value)
    raise OrderError(f"time={value!r} {_USABLE}")


def _with_zone(value: datetime.date) -> datetime.datetime:
    """The moment of a date or time: a date begins at midnight, and without a zone it is UTC."""
    if not isinstance(value, datetime.datetime):
        value = datetime.datetime(value.year, value.month, value.day)
    return value if value.tzinfo else value.replace(tzinfo=UTC)


def parse_time(text: str) -> datetime.datetime | str:
    """The moment that a text writes (ISO 8601), in UTC; any other text as it is.

    >>> parse_time("2026-05-31T14:20:00+02:00").isoformat(), parse_time("20260531"), parse_time("week 7")
    ('2026-05-31T12:20:00+00:00', '20260531', 'week 7')
    >>> parse_time("2026-05-31 14:20:07.123456789Z").isoformat()
    '2026-05-31T14:20:07.123456+00:00'
    """
    short = text.strip()
    if not re.match(r"\d{4}-\d\d-\d\d", short):
        return text
    short = f"{short[:-1]}+00:00" if short[-1] in "Zz" else short
    short = re.sub(r"\.(\d+)", lambda digits: f".{digits[1][:6]:0<6}", short)  # Python 3.10 reads 3 or 6 digits only
    try:
        return _with_zone(datetime.datetime.fromisoformat(short)).astimezone(UTC)
    except ValueError:
        return text


def to_python(time: LastTime) -> datetime.datetime | int | float | str | None:
    """A time as `update(time=...)` takes it: datetimes as `datetime`, to the microsecond.

    >>> to_python(("datetime", 86400000000000)).isoformat(), to_python(("number", 7))
    ('1970-01-02T00:00:00+00:00', 7)
    """
    if time is None or time[0] != "datetime":
        return None if time is None else time[1]
    return _EPOCH + datetime.timedelta(microseconds=int(time[1]) // 1000)


def format_time(time: LastTime) -> int | float | str | None:
    """A time as events hold it: numbers and text as they are, datetimes as ISO 8601 text.

    >>> format_time(("datetime", 86400000000000)), format_time(("number", 7))
    ('1970-01-02T00:00:00.000000', 7)
    """
    if time is None or time[0] != "datetime":
        return None if time is None else time[1]
    return str(np.datetime64(int(time[1]) // 1000, "us"))


def show_time(value: int | float | str | None) -> str:
    """A formatted time as people write it.

    >>> show_time("2026-03-01T14:20:00.000000"), show_time(1500), show_time("day 3")
    ('2026-03-01 14:20', '1,500', 'day 3')
    """
    if isinstance(value, str):
        day, _, clock = value.partition("T")
        if len(day) == 10 and clock[:5].replace(":", "").isdigit():
            return f"{day} {clock[:8] if clock[6:8] not in ('', '00') else clock[:5]}"
        return value
    return f"{value:,}" if isinstance(value, int) else f"{value:,g}" if value is not None else "an unknown time"


def _show(time: tuple[str, Any]) -> str:
    shown = format_time(time)
    return str(shown) if time[0] == "datetime" else repr(shown)


# -- columns of times --------------------------------------------------------------------------


def read_times(column: Any, refuse: Refuse) -> Times:
    """The times in a column: an Arrow array of numbers, dates, times, durations or text, or a list of such values."""
    import pyarrow as pa

    if isinstance(column, list):
        return _read_list(column, refuse)
    kind = column.type
    if column.null_count:
        raise refuse(int(np.argmax(column.is_null().to_numpy(zero_copy_only=False))), _NO_TIME)
    if pa.types.is_date(kind):
        return Times("datetime", column.cast(pa.timestamp("ms")).cast(pa.int64()).to_numpy(), 1_000_000)
    if pa.types.is_timestamp(kind):
        return Times("datetime", column.cast(pa.int64()).to_numpy(), _NANOSECONDS[kind.unit])
    if pa.types.is_duration(kind):
        return Times("duration", column.cast(pa.int64()).to_numpy(), 1_000_000_000 // _NANOSECONDS[kind.unit])
    if pa.types.is_integer(kind):
        return Times("number", column.to_numpy())
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        values = column.cast(pa.float64()).to_numpy()
        if not np.isfinite(values).all():
            raise refuse(int(np.argmin(np.isfinite(values))), _NO_TIME)
        return Times("number", values)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return Times("text", column.to_numpy(zero_copy_only=False))
    raise refuse(None, f" ({kind}) {_USABLE}")


def _read_list(values: list[Any], refuse: Refuse) -> Times:
    """Values that no Arrow array holds, such as numbers beyond 64 bits."""
    times = []
    for row, value in enumerate(values):
        if value is None or value != value:
            raise refuse(row, _NO_TIME)
        try:
            times.append(read_time(value))
        except OrderError:
            raise refuse(None, f" ({type(value).__name__}) {_USABLE}") from None
    kinds = sorted({kind for kind, _ in times})
    if len(kinds) > 1:
        raise refuse(None, f" ({' and '.join(kinds)}) {_USABLE}")
    array = np.empty(len(times), object)
    array[:] = [value for _, value in times]
    return Times(kinds[0], array)


class TextTimes:
    """Reads time columns that are text in the file; the first batch settles what the text means."""

    def __init__(self) -> None:
        self._type: Any = None

    def parse(self, column: Any, refuse: Refuse) -> Any:
        """The column as whole numbers, numbers, times (ISO 8601), or text that sorts."""
        import pyarrow as pa
        import pyarrow.compute as pc

        column = pc.utf8_trim_whitespace(column)
        empty = pc.equal(column, "").to_numpy(zero_copy_only=False)
        if empty.any():
            raise refuse(int(np.argmax(empty)), _NO_TIME)
        if self._type is None:
            # Only times finer than microseconds need the narrow range of nanoseconds.
            zoned = [pa.timestamp(unit, zone) for unit in ("us", "ns") for zone in (None, "UTC")]
            types = [pa.int64(), pa.float64(), *zoned, pa.string()]
            self._type = next(kind for kind in types if _can_cast(column, kind))
        try:
            return column.cast(self._type)
        except pa.ArrowInvalid:
            row = next(row for row in range(len(column)) if not _can_cast(column.slice(row, 1), self._type))
            kind = "time" if pa.types.is_timestamp(self._type) else "number"
            raise refuse(row, f": {column[row].as_py()!r} is not a {kind} like those of the lines before") from None


def _can_cast(column: Any, kind: Any) -> bool:
    import pyarrow as pa

    try:
        column.cast(kind)
    except pa.ArrowInvalid:
        return False
    return True
