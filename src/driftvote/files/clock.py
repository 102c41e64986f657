"""Time columns of files: numbers to compare, checked a batch at a time.

A clock holds times as the models do (`driftvote.doors.Times`), so that a stream begun in Python and gone on with
here, or the other way round, keeps to one order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from driftvote.doors import Times
from driftvote.errors import OrderError
from driftvote.files.table import Table

_NANOSECONDS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}


@dataclass(frozen=True)
class Clock:
    """Times of a batch: `kind` and comparable `values`.

    `scale` turns a value into the models' unit: nanoseconds in a unit, or units in a second of a duration.
    """

    kind: str  # number, datetime, duration or text
    values: npt.NDArray[Any]
    scale: int = 1
    typed: Any = None  # the column as Arrow read it

    def plain(self, row: int) -> Any:
        """One time as the models keep it."""
        value = self.values[row]
        if self.kind == "text":
            return value
        if self.kind == "duration":
            return value.item() / self.scale
        return value.item() * self.scale

    def show(self, row: int) -> str:
        return Times(self.kind, ()).show(self.plain(row))

    def ends(self) -> Times:
        """First and last time: all that a model needs once the rows between are known to be in order."""
        return Times(self.kind, [self.plain(0), self.plain(-1)], self.plain)

    def take(self, rows: npt.NDArray[np.int64]) -> Clock:
        return Clock(self.kind, self.values[rows], self.scale, self.typed.take(rows))


class ClockReader:
    """Reads the time column; what text means is settled by the first batch."""

    def __init__(self, table: Table, column: str) -> None:
        self.table = table
        self.column = column
        self._type: Any = None

    def read(self, array: Any, first_row: int) -> Clock:
        """The clock of a batch that begins at this row of the file."""
        import pyarrow as pa

        if pa.types.is_dictionary(array.type):
            array = array.cast(array.type.value_type)
        if self.table.textual:
            array = self._parsed(array, first_row)
        if array.null_count:
            row = first_row + int(np.argmax(array.is_null().to_numpy(zero_copy_only=False)))
            raise self._wrong(row, "there is no time; every row needs one")
        return self._clock(array, first_row)

    def _clock(self, array: Any, first_row: int) -> Clock:
        import pyarrow as pa

        kind = array.type
        if pa.types.is_date(kind):
            return Clock("datetime", array.cast(pa.timestamp("ms")).cast(pa.int64()).to_numpy(), 1_000_000, array)
        if pa.types.is_timestamp(kind):
            return Clock("datetime", array.cast(pa.int64()).to_numpy(), _NANOSECONDS[kind.unit], array)
        if pa.types.is_duration(kind):
            return Clock("duration", array.cast(pa.int64()).to_numpy(), 1_000_000_000 // _NANOSECONDS[kind.unit], array)
        if pa.types.is_integer(kind):
            return Clock("number", array.to_numpy(), 1, array)
        if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
            values = array.cast(pa.float64()).to_numpy()
            if not np.isfinite(values).all():
                raise self._wrong(
                    first_row + int(np.argmin(np.isfinite(values))), "there is no time; every row needs one"
                )
            return Clock("number", values, 1, array)
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            return Clock("text", array.to_numpy(zero_copy_only=False), 1, array)
        raise OrderError(
            f"{self.table.shown}: column {self.column!r} ({kind}) cannot be read as time; use numbers, dates or"
            " times, or"
            " text that sorts"
        )

    def _parsed(self, array: Any, first_row: int) -> Any:
        """Text as whole numbers, numbers, times (ISO 8601), or else as text that sorts."""
        import pyarrow as pa
        import pyarrow.compute as pc

        array = pc.utf8_trim_whitespace(array)
        empty = pc.equal(array, "").to_numpy(zero_copy_only=False)
        if empty.any():
            raise self._wrong(first_row + int(np.argmax(empty)), "there is no time; every row needs one")
        if self._type is None:
            # Naive times are read as UTC. Only times finer than microseconds need the narrow range of nanoseconds.
            zoned = [pa.timestamp(unit, zone) for unit in ("us", "ns") for zone in (None, "UTC")]
            tries = [pa.int64(), pa.float64(), *zoned, pa.string()]
            self._type = next(kind for kind in tries if _casts(array, kind))
        try:
            return array.cast(self._type)
        except pa.ArrowInvalid:
            row = next(place for place in range(len(array)) if not _casts(array.slice(place, 1), self._type))
            kind = "time like those" if pa.types.is_timestamp(self._type) else "number like those"
            raise self._wrong(first_row + row, f"{array[row].as_py()!r} is not a {kind} of the lines before") from None

    def _wrong(self, row: int, what: str) -> OrderError:
        return OrderError(f"{self.table.shown}: {self.table.place(row)}, column {self.column!r}: {what}")

    def check_order(self, clock: Clock, rows: npt.NDArray[np.int64], last: Any, where: str = "") -> None:
        """Refuse a time that goes back; `rows` are the rows' numbers in the file, `last` the (kind, time) before."""
        backward = clock.values[1:] < clock.values[:-1]
        if last is not None and last[0] == clock.kind and clock.plain(0) < last[1]:
            before, row = Times(clock.kind, ()).show(last[1]), 0
        elif backward.any():
            row = int(np.argmax(backward)) + 1
            before = clock.show(row - 1)
        else:
            return
        raise self._wrong(
            int(rows[row]),
            f"time {clock.show(row)} is before {before} of the row before it{where}; sort the rows, or pass --sort",
        )


def _casts(array: Any, kind: Any) -> bool:
    import pyarrow as pa

    try:
        array.cast(kind)
    except pa.ArrowInvalid:
        return False
    return True
