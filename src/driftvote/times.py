"""Times of rows: parse, compare, format. Frames, files, messages and events all use this module.

A time is a kind and a value that can be compared and saved: numbers and text as they are, dates and times as
nanoseconds since 1970 in UTC, durations as seconds. A date without a zone is UTC.

Text is read as numbers, as ISO 8601, or as dates in the order that the column shows (31.01.2026, 1/31/2026 1:05 PM).
Other text must sort as it is. Dates whose order the column does not show are refused: sorted as text they would turn a
stream upside down.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property, lru_cache
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from driftvote.errors import OrderError, SettingError

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
    in a unit of a datetime, or units in a second of a duration. `form` is how messages and events write a datetime.
    """

    kind: str  # number, datetime, duration or text
    values: Any  # a NumPy array, or a list of one value
    scale: int = 1
    form: TimeForm | None = None  # None: ISO 8601 without a zone

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: Any) -> Times:
        """The times of some of the rows: a slice or an array of row numbers."""
        return Times(self.kind, self.values[rows], self.scale, self.form)

    def at(self, row: int) -> Any:
        """The value of one row, in the unit in which a time is saved."""
        value = self.values[row]
        if isinstance(value, np.generic):
            value = value.item()
        if self.kind == "datetime":
            return value * self.scale
        return value / self.scale if self.kind == "duration" and self.scale != 1 else value

    def format(self, row: int) -> int | float | str | None:
        """One time as events hold it, in the form in which it came."""
        return format_time((self.kind, self.at(row)), self.form)

    def to_array(self) -> npt.NDArray[Any]:
        """The times as an array: numbers, text, seconds of durations, or `datetime64` in UTC."""
        values = np.asarray(self.values)
        if self.kind == "datetime":
            return (values.astype(np.int64) * self.scale).astype("datetime64[ns]")
        return values / self.scale if self.kind == "duration" and self.scale != 1 else values

    def show(self, row: int) -> str:
        """One time for a message."""
        return _show((self.kind, self.at(row)), self.form)

    def find_decrease(self, latest: LastTime) -> tuple[int, str] | None:
        """The first row whose time is before that of the row before it, and that earlier time for a message.

        `latest` is the time of the row before these. None: the times do not decrease.
        """
        if latest is not None:
            latest = read_again(latest, self.kind)
            if latest[0] != self.kind:
                raise OrderError(
                    f"the time column held {latest[0]}s so far and holds {self.kind}s now; keep to one kind"
                )
            if self.at(0) < latest[1]:
                return 0, _show(latest, self.form)
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


def read_time(value: Any, time_format: str | None = None) -> tuple[str, Any]:
    """Kind and value of one time: a number, a date or a time, a duration, or text that writes one or sorts.

    >>> read_time(17.5), read_time("week 09"), read_time(datetime.date(1970, 1, 2)), read_time("02.01.1970")
    (('number', 17.5), ('text', 'week 09'), ('datetime', 86400000000000), ('datetime', 86400000000000))
    """
    return read_one(value, time_format)[:2]


def read_one(value: Any, time_format: str | None = None) -> tuple[str, Any, TimeForm | None]:
    """What `read_time` returns, and the form in which the time came."""
    if time_format is not None and isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.bool_)):
        value = str(value)
    if isinstance(value, str):
        if time_format is None:
            value = parse_time(str(value))
        if isinstance(value, str):
            return _read_text(value, time_format)
    elif time_format is not None:
        raise OrderError(f"time={value!r} is not text; leave time_format= out")
    if isinstance(value, (bool, np.bool_)):
        raise OrderError(f"time={value!r} {_USABLE}")
    if value is None or value != value:  # NaN and NaT differ from themselves
        raise OrderError("time= has no time; leave it out, or give every row one")
    if isinstance(value, np.timedelta64):
        return "duration", float(value / np.timedelta64(1, "s")), None
    if isinstance(value, datetime.timedelta):
        return "duration", value.total_seconds(), None
    if isinstance(value, (int, np.integer)):
        return "number", int(value), None
    zoned = getattr(value, "tzinfo", None) is not None
    if hasattr(value, "to_datetime64"):  # pandas
        value = value.to_datetime64()
    if isinstance(value, np.datetime64):
        if np.datetime_data(value.dtype)[0] == "ns":
            return "datetime", int(value.astype(np.int64)), ZONED if zoned else None
        value = value.astype("datetime64[us]").item()
    if isinstance(value, datetime.date):
        # Nanoseconds from microseconds: a float of seconds would round.
        since = (_with_zone(value) - _EPOCH) // datetime.timedelta(microseconds=1)
        return "datetime", since * 1000, ZONED if zoned else None
    if isinstance(value, (Real, Decimal)) and math.isfinite(value):
        return "number", float(value), None
    raise OrderError(f"time={value!r} {_USABLE}")


def read_again(time: tuple[str, Any], kind: str) -> tuple[str, Any]:
    """A saved time for a comparison with times of this kind; states of other versions kept dates as text."""
    return read_time(time[1]) if time[0] == "text" != kind else time


def _read_text(text: str, time_format: str | None) -> tuple[str, Any, TimeForm | None]:
    """A text that is not ISO 8601, read as a column of one."""
    import pyarrow as pa

    if time_format is None:
        short = text.strip()
        if re.fullmatch(r"[+-]?\d{1,18}", short):
            return "number", int(short), None
        if not _LOOKS_LIKE_TIME.search(short):
            number = re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", short)
            return ("number", float(short), None) if number else ("text", text, None)
    times, _ = TextTimes(time_format).read(pa.array([text]), lambda row, rest: OrderError(f"time={text!r}{rest}"))
    return times.kind, times.at(0), times.form


def _with_zone(value: datetime.date) -> datetime.datetime:
    """The moment of a date or time: a date begins at midnight, and without a zone it is UTC."""
    if not isinstance(value, datetime.datetime):
        value = datetime.datetime(value.year, value.month, value.day)
    return value if value.tzinfo else value.replace(tzinfo=UTC)


def parse_time(text: str) -> datetime.datetime | str:
    """The moment that a text writes (ISO 8601), without a zone if the text has none; any other text as it is.

    >>> parse_time("2026-05-31T14:20:00+02:00").isoformat(), parse_time("20260531"), parse_time("week 7")
    ('2026-05-31T14:20:00+02:00', '20260531', 'week 7')
    >>> parse_time("2026-05-31 14:20:07.123456789Z").isoformat()
    '2026-05-31T14:20:07.123456+00:00'
    """
    short = text.strip()
    if not re.match(r"\d{4}-\d\d-\d\d", short):
        return text
    short = f"{short[:-1]}+00:00" if short[-1] in "Zz" else short
    short = re.sub(r"\.(\d+)", lambda digits: f".{digits[1][:6]:0<6}", short)  # Python 3.10 reads 3 or 6 digits only
    try:
        moment = datetime.datetime.fromisoformat(short)
        if moment.tzinfo:
            moment.astimezone(UTC)
    except OverflowError:
        raise OrderError(f"time {text!r} lies outside the years 1 to 9999 in UTC") from None
    except ValueError:
        return text
    return moment


def to_python(time: LastTime) -> datetime.datetime | int | float | str | None:
    """A time as `update(time=...)` takes it: datetimes as `datetime`, to the microsecond.

    >>> to_python(("datetime", 86400000000000)).isoformat(), to_python(("number", 7))
    ('1970-01-02T00:00:00+00:00', 7)
    """
    if time is None or time[0] != "datetime":
        return None if time is None else time[1]
    return _EPOCH + datetime.timedelta(microseconds=int(time[1]) // 1000)


def format_time(time: LastTime, form: TimeForm | None = None) -> int | float | str | None:
    """A time as events hold it: numbers and text as they are, datetimes in their form, usually ISO 8601.

    >>> format_time(("datetime", 86400000000000)), format_time(("number", 7))
    ('1970-01-02T00:00:00.000000', 7)
    """
    if time is None or time[0] != "datetime":
        return None if time is None else time[1]
    if form is not None and form.date:
        try:
            return form.write(_EPOCH + datetime.timedelta(microseconds=int(time[1]) // 1000))
        except OverflowError:  # years that Python has no datetime for
            pass
    return f"{np.datetime64(int(time[1]) // 1000, 'us')}{'Z' if form is not None and form.zoned else ''}"


def show_time(value: int | float | str | None) -> str:
    """A formatted time as people write it.

    >>> show_time("2026-03-01T14:20:00.000000"), show_time("2026-03-01T14:20:07.5Z"), show_time(1500)
    ('2026-03-01 14:20', '2026-03-01 14:20:07 UTC', '1,500')
    """
    if isinstance(value, str):
        iso = re.fullmatch(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d)(:\d\d)?(?:\.\d+)?(Z?)", value)
        if iso is None:
            return value
        day, clock, seconds, zone = iso.groups(default="")
        return f"{day} {clock}{'' if seconds == ':00' else seconds}{' UTC' if zone else ''}"
    return f"{value:,}" if isinstance(value, int) else f"{value:,g}" if value is not None else "an unknown time"


def _show(time: tuple[str, Any], form: TimeForm | None = None) -> str:
    shown = format_time(time, form)
    return str(shown) if time[0] == "datetime" else repr(shown)


# -- columns of times --------------------------------------------------------------------------


def read_times(column: Any, refuse: Refuse, text: TextTimes | None = None) -> Times:
    """The times in a column: an Arrow array of numbers, dates, times, durations or text, or a list of such values.

    `text` knows how the column writes times, if rows before this batch or a setting say so.
    """
    import pyarrow as pa

    if isinstance(column, list):
        return _read_list(column, refuse, None if text is None else text.time_format)
    kind = column.type
    if column.null_count:
        raise refuse(int(np.argmax(column.is_null().to_numpy(zero_copy_only=False))), _NO_TIME)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return (text or TextTimes()).read(column.cast(pa.string()), refuse)[0]
    if text is not None and text.time_format is not None:
        if not pa.types.is_integer(kind):
            raise refuse(None, f" ({kind}) is not text; leave {text.option('')} out")
        return text.read(column.cast(pa.string()), refuse)[0]
    return _read_typed(column, refuse)


def _read_typed(column: Any, refuse: Refuse) -> Times:
    """The times in an Arrow array that is not text."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_date(kind):
        return Times("datetime", column.cast(pa.timestamp("ms")).cast(pa.int64()).to_numpy(), 1_000_000)
    if pa.types.is_timestamp(kind):
        form = None if kind.tz is None else ZONED
        return Times("datetime", column.cast(pa.int64()).to_numpy(), _NANOSECONDS[kind.unit], form)
    if pa.types.is_duration(kind):
        return Times("duration", column.cast(pa.int64()).to_numpy(), 1_000_000_000 // _NANOSECONDS[kind.unit])
    if pa.types.is_integer(kind):
        return Times("number", column.to_numpy())
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        values = column.cast(pa.float64()).to_numpy()
        if not np.isfinite(values).all():
            raise refuse(int(np.argmin(np.isfinite(values))), _NO_TIME)
        return Times("number", values)
    raise refuse(None, f" ({kind}) {_USABLE}")


def _read_list(values: list[Any], refuse: Refuse, time_format: str | None) -> Times:
    """Values that no Arrow array holds, such as numbers beyond 64 bits."""
    times = []
    for row, value in enumerate(values):
        if value is None or value != value:
            raise refuse(row, _NO_TIME)
        try:
            times.append(read_one(value, time_format))
        except OrderError:
            raise refuse(None, f" ({type(value).__name__}) {_USABLE}") from None
    kinds = sorted({kind for kind, _, _ in times})
    if len(kinds) > 1:
        raise refuse(None, f" ({' and '.join(kinds)}) {_USABLE}")
    array = np.empty(len(times), object)
    array[:] = [value for _, value, _ in times]
    return Times(kinds[0], array, form=times[0][2])


# -- text that writes dates --------------------------------------------------------------------

_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_MONTH_OF = {name.lower()[:size]: n for n, name in enumerate(_MONTHS, 1) for size in (3, 9)} | {"sept": 9}
_ZONE = r"(?P<z>[Zz]|UTC|GMT|[+-]\d\d(?::?\d\d)?)"
_PIECES = {
    "%Y": r"(?P<Y>\d{4})", "%y": r"(?P<y>\d{2})", "%m": r"(?P<m>\d{1,2})", "%d": r"(?P<d>\d{1,2})",
    "%b": r"(?P<b>[A-Za-z]{3,9})\.?", "%a": r"[A-Za-z]{3,9}", "%H": r"(?P<H>\d{1,2})", "%I": r"(?P<H>\d{1,2})",
    "%M": r"(?P<M>\d{1,2})", "%S": r"(?P<S>\d{1,2})", "%f": r"(?P<f>\d{1,6})\d*", "%p": r"(?P<p>[AaPp])\.?[Mm]\.?",
    "%z": _ZONE, "%%": "%",
}  # fmt: skip
_SAME = {"%B": "%b", "%A": "%a", "%Z": "%z", "%T": "%H:%M:%S", "%R": "%H:%M", "%F": "%Y-%m-%d", "%D": "%m/%d/%y"}
_WEEKDAY = r"(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*\.?,? +)?"
_CLOCK = (
    r"(?:(?:[Tt]|,? +)(?P<H>\d{1,2}):(?P<M>\d\d)(?::(?P<S>\d\d)(?:[.,](?P<f>\d{1,6})\d*)?)?"
    rf"(?: *(?P<p>[AaPp])\.?[Mm]\.?)?(?: *{_ZONE})?)?"
)
_NAME = "|".join(f"{name[:3]}({name[3:]})?".replace("()?", "") for name in _MONTHS)
_LOOKS = (
    rf"\d[-/.]\d+[-/.]\d|^\d{{1,2}}[-/.](19|20)\d\d$|\b({_NAME}|sept)\b.*\d|\d[ ./-]*({_NAME}|sept)\b"
    r"|\d:\d\d.*[ap]\.?m\b|\d\.? [a-zäé]{3,9}\.? \d{4}$"
)
_LOOKS_LIKE_TIME = re.compile(_LOOKS, re.IGNORECASE)
_SORTS = r"^\d{4}-\d\d-\d\d"  # more than a date, but text that sorts: 2026-01-31 second run
_MOST_SKELETONS = 1000  # kinds of text whose numbers are compared; a time column has one or two


@dataclass(frozen=True)
class TimeForm:
    """How text writes dates and times.

    `date` is the pattern of the date, as for `strptime`, and a clock may follow it; of an `exact` form it is that of
    the whole text. An empty one stands for ISO 8601. `assumed` forms are used if a column fits no other one; the
    others are only proposed.
    """

    date: str = ""
    exact: bool = False
    assumed: bool = True
    twelve: bool = False  # the clock has AM and PM
    zoned: bool = False

    @cached_property
    def regex(self) -> str:
        """The pattern as a regular expression with a group for each part."""
        pattern = re.sub(r"%[BAZTRFD]", lambda found: _SAME[found[0]], self.date)
        pieces = re.findall(r"%.|\s+|[^%\s]+|%", pattern)
        found = []
        for place, piece in enumerate(pieces):
            if piece.startswith("%"):
                regex = _PIECES[piece]
                beside = [*pieces[max(0, place - 1) : place], *pieces[place + 1 : place + 2]]
                if any(other.startswith("%") and other not in ("%%", "%p", "%z") for other in beside):
                    regex = regex.replace(r"\d{1,2}", r"\d\d")  # no separator tells where a number ends
                found.append(regex)
            else:
                found.append(r"\s+" if piece.isspace() else re.escape(piece))
        return "^" + ("".join(found) if self.exact else _WEEKDAY + "".join(found) + _CLOCK) + "$"

    def write(self, moment: datetime.datetime) -> str:
        """A moment in UTC as text; a clock only as fine as it must be, which does not depend on other rows."""
        pattern = self.date
        if not self.exact:
            clock = moment.time()
            if clock != datetime.time() or self.zoned:
                fine = (":%S" if clock.second or clock.microsecond else "") + (".%f" if clock.microsecond else "")
                pattern += f" %I:%M{fine} %p" if self.twelve else f" %H:%M{fine}"
            pattern += " UTC" if self.zoned else ""
        name = _MONTHS[moment.month - 1]  # in English, whatever the locale
        return moment.strftime(pattern.replace("%b", name[:3]).replace("%B", name))

    def example(self, text: str) -> str:
        """The `strptime` pattern of a text in this form."""
        found = re.match(self.regex, text)
        if self.exact or found is None:
            return self.date
        parts = found.groupdict()
        pattern = self.date.replace("%b", "%B") if len(parts.get("b") or "") > 3 else self.date
        if parts["H"] is None:
            return pattern
        between = "T" if re.search(r"\d[Tt]\d", text) else ", " if re.search(r", +\d+:", text) else " "
        pattern += (
            f"{between}{'%I' if parts['p'] else '%H'}:%M{':%S' if parts['S'] else ''}{'.%f' if parts['f'] else ''}"
        )
        return f"{pattern}{' %p' if parts['p'] else ''}{'%z' if parts['z'] else ''}"


ZONED = TimeForm(zoned=True)
"""ISO 8601 in UTC."""


@lru_cache(maxsize=1)
def _known_forms() -> tuple[TimeForm, ...]:
    forms = []
    for s in ".-/":
        forms += [TimeForm(f"%Y{s}%m{s}%d"), TimeForm(f"%d{s}%m{s}%Y"), TimeForm(f"%d{s}%m{s}%y")]
        # Between dots the day comes first wherever dates are written so.
        others = (f"%m{s}%d{s}%Y", f"%m{s}%d{s}%y", f"%y{s}%m{s}%d")
        forms += [TimeForm(date, assumed=s != ".") for date in others]
        forms += [TimeForm(f"%m{s}%Y")]
    names = "%d %b %Y", "%d. %b %Y", "%d-%b-%Y", "%d/%b/%Y", "%d-%b-%y", "%d %b %y", "%b %d, %Y", "%b %d %Y", "%b %Y"
    forms += [TimeForm(date) for date in (*names, "%b-%Y")]
    forms += [TimeForm(date, assumed=False) for date in ("%b-%y", "%b %y")]
    exact = "%b %d %H:%M:%S %Y", "%a %b %d %H:%M:%S %Y", "%d/%b/%Y:%H:%M:%S %z"
    return (*forms, *(TimeForm(date, exact=True) for date in exact))


def given_form(time_format: str, option: str = "time_format=") -> TimeForm:
    """The form that a user gives, or an error that says what it may hold."""
    if not isinstance(time_format, str):
        raise SettingError(f"{option} must be text such as '%d.%m.%Y %H:%M', not {time_format!r}")
    plain = re.sub(r"%[BAZTRFD]", lambda found: _SAME[found[0]], time_format)
    parts = re.findall(r"%.?", plain)
    unknown = next((part for part in parts if part not in _PIECES), None)
    if unknown is not None:
        raise SettingError(
            f"{option} {time_format!r}: {unknown} is unknown; use {' '.join(part for part in _PIECES if part != '%%')}"
        )
    if len(set(parts) & {"%Y", "%y"}) != 1 or len(set(parts) & {"%m", "%b"}) != 1:
        raise SettingError(f"{option} {time_format!r} needs a year (%Y or %y) and a month (%m or %b)")
    groups = [{"%I": "%H"}.get(part, part) for part in parts if part not in ("%%", "%a")]
    twice = next((part for place, part in enumerate(groups) if part in groups[:place]), None)
    if twice is not None:
        raise SettingError(f"{option} {time_format!r} has {twice} twice; each part once")
    return TimeForm(time_format, exact=True, twelve="%p" in parts, zoned="%z" in parts)


@dataclass(frozen=True)
class _ReadDates:
    """A text column read in some form."""

    microseconds: Any  # since 1970 in UTC
    fits: Any  # which rows are written in the form
    twelve: Any  # which rows have AM or PM
    zoned: Any  # which rows have a zone
    clock: Any  # which rows have a clock

    @property
    def whole(self) -> bool:
        """Whether all rows fit, and say in one way whether there is a zone and AM or PM."""
        return bool(self.fits.all()) and self.odd_row() is None

    def odd_row(self) -> int | None:
        """The first row with a zone, or with AM and PM, where an earlier row has none, or the other way round."""
        twelve = self.twelve[self.clock] if self.clock.any() else self.twelve[:0]
        if len(twelve) and twelve.any() != twelve.all():
            return int(np.flatnonzero(self.clock)[np.argmax(twelve != twelve[0])])
        return None if self.zoned.all() == self.zoned.any() else int(np.argmax(self.zoned != self.zoned[0]))


def _read_dates(column: Any, form: TimeForm) -> _ReadDates:
    """Parse a text column."""
    import pyarrow as pa
    import pyarrow.compute as pc

    found = pc.extract_regex(column, form.regex)
    fits = found.is_valid().to_numpy(zero_copy_only=False).copy()
    parts = {field.name: found.field(place) for place, field in enumerate(found.type)}

    def number(name: str, default: int) -> Any:
        if name not in parts:
            return np.full(len(column), default, np.int64)
        return pc.if_else(pc.equal(parts[name], ""), str(default), parts[name]).cast(pa.int64()).to_numpy()

    def coded(name: str, code: Callable[[str], int]) -> Any:
        if name not in parts:
            return np.zeros(len(column), np.int64)
        words = parts[name].dictionary_encode()
        return np.array([code(word) for word in words.dictionary.to_pylist()], np.int64)[words.indices.to_numpy()]

    year = number("Y", 1970)
    if "y" in parts:
        short = number("y", 70)
        year = short + np.where(short < 69, 2000, 1900)
    month = coded("b", lambda word: _MONTH_OF.get(word.lower(), 0 if word else 1)) if "b" in parts else number("m", 1)
    day, hour, minute, second = number("d", 1), number("H", 0), number("M", 0), number("S", 0)
    half = coded("p", lambda word: {"a": 1, "p": 2}.get(word.lower(), 0))
    offset = coded("z", _offset_minutes)
    fits &= (month >= 1) & (month <= 12) & (minute < 60) & (second < 60)
    fits &= np.where(half > 0, (hour >= 1) & (hour <= 12), hour < 24)
    hour = np.where(half > 0, hour % 12 + np.where(half == 2, 12, 0), hour)
    months = ((year - 1970) * 12 + np.clip(month, 1, 12) - 1).astype("datetime64[M]")
    first = months.astype("datetime64[D]").astype(np.int64)
    length = (months + 1).astype("datetime64[D]").astype(np.int64) - first
    fits &= (day >= 1) & (day <= length)
    seconds = (((first + day - 1) * 24 + hour) * 60 + minute - np.where(offset == _NO_ZONE, 0, offset)) * 60 + second
    fraction = np.zeros(len(column), np.int64)
    if "f" in parts:
        fraction = pc.utf8_rpad(parts["f"], 6, "0").cast(pa.int64()).to_numpy()
    clock = np.zeros(len(column), bool)
    if "H" in parts:
        clock = pc.not_equal(parts["H"], "").to_numpy(zero_copy_only=False)
    zoned = (offset != _NO_ZONE) if "z" in parts else np.zeros(len(column), bool)
    return _ReadDates(seconds * 1_000_000 + fraction, fits, half > 0, zoned, clock)


_NO_ZONE = 10_000  # minutes


def _offset_minutes(zone: str) -> int:
    if not zone:
        return _NO_ZONE
    digits = zone[1:].replace(":", "")
    if not digits.isdigit():
        return 0  # Z, UTC, GMT
    return (-1 if zone[0] == "-" else 1) * (int(digits[:2]) * 60 + int(digits[2:] or 0))


class TextTimes:
    """Reads time columns that are text; the first batch settles what the text means.

    Parameters
    ----------
    time_format
        The pattern of the times, as for `strptime`; None leaves it to the column.
    option
        The option that gives the pattern, for messages.
    whole_column
        Returns the batches of the whole column, if the first one does not show the order of day and month.
    """

    def __init__(
        self,
        time_format: str | None = None,
        option: str = "time_format=",
        whole_column: Callable[[], Iterator[Any]] | None = None,
    ) -> None:
        self.time_format = time_format
        self._option = option
        self._whole_column = whole_column
        self._form = None if time_format is None else given_form(time_format, option)
        self._type: Any = None
        self._widths: dict[str, tuple[str, str]] = {}  # by text without digits: its shape, and a text

    def option(self, pattern: str) -> str:
        """The option as a user writes it."""
        return f"{self._option}{' ' if self._option.startswith('--') else ''}{pattern!r}"

    def read(self, column: Any, refuse: Refuse) -> tuple[Times, Any]:
        """The times of a batch, and the column as whole numbers, numbers, times, or text that sorts."""
        import pyarrow as pa
        import pyarrow.compute as pc

        column = pc.utf8_trim_whitespace(column)
        empty = pc.equal(column, "").to_numpy(zero_copy_only=False)
        if empty.any():
            raise refuse(int(np.argmax(empty)), _NO_TIME)
        if self._type is None and self._form is None:
            self._settle(column, refuse)
        if self._form is not None:
            return self._read_dates(column, self._form, refuse)
        if pa.types.is_string(self._type):
            self._check_sorts(column, refuse)
            return Times("text", column.to_numpy(zero_copy_only=False)), column
        try:
            column = column.cast(self._type)
        except pa.ArrowInvalid:
            row = next(row for row in range(len(column)) if not _can_cast(column.slice(row, 1), self._type))
            kind = "time" if pa.types.is_timestamp(self._type) else "number"
            raise refuse(row, f": {column[row].as_py()!r} is not a {kind} like those of the lines before") from None
        return _read_typed(column, refuse), column

    def _settle(self, column: Any, refuse: Refuse) -> None:
        """Find out from the first batch what the text means."""
        import pyarrow as pa

        first = column[0].as_py()
        near = [form for form in _known_forms() if re.match(form.regex, first)]
        near = [form for form in near if _read_dates(column.slice(0, 1), form).whole]
        months = len(column) > 1 and any(_read_dates(column, form).whole for form in near if form.date == "%m.%Y")
        numbers = [] if months else [pa.int64(), pa.float64()]  # 12.2025 and 01.2026 are no numbers
        # Only times finer than microseconds need the narrow range of nanoseconds.
        zoned = [pa.timestamp(unit, zone) for unit in ("us", "ns") for zone in (None, "UTC")]
        self._type = next((kind for kind in (*numbers, *zoned) if _can_cast(column, kind)), None)
        if self._type is not None:
            return
        fitting = [form for form in near if _read_dates(column, form).whole]
        forms = [form for form in fitting if form.assumed]
        if len(forms) > 1 and self._whole_column is not None:
            for batch in self._whole_column():
                forms = [form for form in forms if _read_dates(batch, form).whole] or forms
                if len(forms) == 1:
                    break
        if len(forms) == 1:
            read = _read_dates(column, forms[0])
            self._form = replace(forms[0], twelve=bool(read.twelve.any()), zoned=bool(read.zoned.any()))
            return
        if fitting:
            fit = [self.option(form.example(first)) for form in forms or fitting]
            why = "can be read in more than one way" if len(fit) > 1 else "looks like a date that does not sort as text"
            raise refuse(0, f": {first!r} {why}; pass {' or '.join(fit)}")
        if near or (_LOOKS_LIKE_TIME.search(first) and not re.match(_SORTS, first)):
            raise self._refuse_dates(column, near, refuse)
        self._type = pa.string()

    def _refuse_dates(self, column: Any, near: list[TimeForm], refuse: Refuse) -> OrderError:
        """The error for text that looks like dates and fits no form."""
        first = column[0].as_py()
        if not near:
            return refuse(
                0, f": {first!r} looks like a date that does not sort as text; write 2026-01-31 13:05, or pass"
                f" {self.option('%d.%m.%Y %H:%M')} with the pattern that fits"
            )  # fmt: skip
        reads = [_read_dates(column, form) for form in near]
        read = max(reads, key=lambda read: int(np.argmin(read.fits)) if not read.fits.all() else len(column))
        if not read.fits.all():
            row = int(np.argmin(read.fits))
            return refuse(
                row, f": {column[row].as_py()!r} is not a date like {first!r} of the first row; write all in one way,"
                " such as 2026-01-31 13:05"
            )  # fmt: skip
        row = read.odd_row() or 0
        what = "a zone" if read.zoned.any() != read.zoned.all() else "AM or PM"
        return refuse(
            row, f": of {column[row].as_py()!r} and {first!r}, one has {what}; write all times with {what}, or none"
        )  # fmt: skip

    def _read_dates(self, column: Any, form: TimeForm, refuse: Refuse) -> tuple[Times, Any]:
        import pyarrow as pa

        read = _read_dates(column, form)
        wrong = ~read.fits | (read.zoned != form.zoned)
        if not form.exact:
            wrong |= read.clock & (read.twelve != form.twelve)
        if wrong.any():
            row = int(np.argmax(wrong))
            like = "a time like those of the lines before"
            if self.time_format is not None:
                like = f"written as {self.option(self.time_format)} says"
            raise refuse(row, f": {column[row].as_py()!r} is not {like}")
        typed = pa.array(read.microseconds, pa.timestamp("us", "UTC" if form.zoned else None))
        return Times("datetime", read.microseconds, 1000, form), typed

    def _check_sorts(self, column: Any, refuse: Refuse) -> None:
        """Refuse text that holds numbers of different length: 'week 10' would come before 'week 9'."""
        import pyarrow.compute as pc

        looks = pc.and_not(
            pc.match_substring_regex(column, _LOOKS, ignore_case=True), pc.match_substring_regex(column, _SORTS)
        ).to_numpy(zero_copy_only=False)
        if looks.any():
            row = int(np.argmax(looks))
            raise refuse(
                row, f": {column[row].as_py()!r} looks like a date, unlike the first row; write all in one way"
            )
        skeletons = pc.replace_substring_regex(column, r"\d+", "#")
        shapes = pc.replace_substring_regex(column, r"\d", "0")
        kinds = pc.binary_join_element_wise(skeletons, shapes, "\0").dictionary_encode()
        for place, kind in enumerate(kinds.dictionary.to_pylist()):
            skeleton, _, shape = kind.partition("\0")
            row = int(pc.index(kinds.indices, place).as_py())
            text = column[row].as_py()
            known = self._widths.get(skeleton)
            if known is None and len(self._widths) < _MOST_SKELETONS:
                self._widths[skeleton] = shape, text
            elif known is not None and known[0] != shape:
                raise refuse(
                    row, f": {text!r} and {known[1]!r} do not sort as text; write their numbers with as many digits"
                )  # fmt: skip


def _can_cast(column: Any, kind: Any) -> bool:
    import pyarrow as pa

    try:
        column.cast(kind)
    except pa.ArrowInvalid:
        return False
    return True
