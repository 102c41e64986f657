"""One time type: single values, columns in memory and columns of files give the same kinds and values."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from driftvote import AdaptiveLabelModel, OrderError
from driftvote.times import TextTimes, Times, format_time, read_time, read_times, to_python

NINE = dt.datetime(2026, 1, 9, 12, 30, 15, 123456)
ZONE = dt.timezone(dt.timedelta(hours=2))
NANOSECONDS = 1_767_961_815_123_456_000

ALIKE = {
    "datetime": [
        NINE,
        NINE.replace(tzinfo=dt.timezone.utc),
        (NINE + dt.timedelta(hours=2)).replace(tzinfo=ZONE),
        np.datetime64(NINE),
        np.datetime64(NINE, "ns"),
        pd.Timestamp(NINE),
        pd.Timestamp(NINE, tz="UTC").tz_convert("Europe/Berlin"),
    ],
    "number": [7, 7.0, np.int32(7), np.float32(7), Decimal(7), "7"],
    "duration": [dt.timedelta(seconds=7), np.timedelta64(7_000, "ms"), pd.Timedelta(7, "s")],
    "text": ["week 7", np.str_("week 7")],
}
VALUES = {"datetime": NANOSECONDS, "number": 7, "duration": 7.0, "text": "week 7"}


def refuse(row, rest):
    return OrderError(f"row {row}{rest}")


@pytest.mark.parametrize("kind", list(ALIKE))
def test_one_moment_however_it_is_written(kind):
    for value in ALIKE[kind]:
        assert read_time(value) == (kind, VALUES[kind]), type(value)


@pytest.mark.parametrize("kind", list(ALIKE))
def test_columns_hold_what_their_values_are(kind):
    for value in ALIKE[kind]:
        for column in ([value, value], pa.array([value, value])):
            times = read_times(column, refuse)
            assert (times.kind, times.at(0), times.at(-1)) == (kind, VALUES[kind], VALUES[kind]), type(column)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_units_of_columns(unit):
    moment = NINE.replace(microsecond=0)
    times = read_times(pa.array([moment]).cast(pa.timestamp(unit)), refuse)
    assert times.at(0) == read_time(moment)[1]
    assert times.to_numpy()[0] == np.datetime64(moment)
    assert read_times(pa.array([dt.timedelta(seconds=7)]).cast(pa.duration(unit)), refuse).at(0) == 7.0


def test_a_date_is_its_midnight():
    day = dt.date(2026, 1, 9)
    midnight = ("datetime", read_time(dt.datetime(2026, 1, 9))[1])
    assert read_time(day) == midnight
    for column in (pa.array([day]), pa.array([day]).cast(pa.date64()), [day]):
        times = read_times(column, refuse)
        assert (times.kind, times.at(0)) == midnight


def test_years_beyond_the_range_of_nanoseconds():
    far = dt.datetime(9999, 1, 1)
    times = read_times(pa.array([NINE, far]), refuse)
    assert times.at(1) == read_time(far)[1] > 2**63
    assert times.find_decrease(None) is None
    assert times[::-1].find_decrease(None) == (1, "9999-01-01T00:00:00.000000")


@pytest.mark.parametrize("value", [None, float("nan"), np.datetime64("NaT"), pd.NaT])
def test_a_missing_time_is_refused(value):
    with pytest.raises(OrderError, match="has no time"):
        read_time(value)
    with pytest.raises(OrderError, match="row 1 has no time"):
        read_times([7, value], refuse)


@pytest.mark.parametrize("value", [True, np.True_, b"7", [7], float("inf")])
def test_what_is_no_time_is_refused(value):
    with pytest.raises(OrderError, match="cannot be read as time"):
        read_time(value)
    with pytest.raises(OrderError, match="cannot be read as time"):
        read_times([value], refuse)


def test_values_of_two_kinds_are_no_column():
    with pytest.raises(OrderError, match=r"\(number and text\) cannot be read as time"):
        read_times([7, "seven"], refuse)


TEXTS = [
    (["9", "10"], "number", [9, 10]),
    (["9.5", "10"], "number", [9.5, 10.0]),
    (["2026-01-09 12:30:15.123456", "2026-01-10"], "datetime", [NANOSECONDS, 1_768_003_200_000_000_000]),
    (["2026-01-09T12:30:15.123456Z", "2026-01-09T14:30:16+02:00"], "datetime", [NANOSECONDS, 1_767_961_816_000_000_000]),
    (["2026-01-09T12:30:15.123456789"] * 2, "datetime", [NANOSECONDS + 789] * 2),
    ([" week 1", "week 2 "], "text", ["week 1", "week 2"]),
]  # fmt: skip


@pytest.mark.parametrize(("texts", "kind", "values"), TEXTS)
def test_text_in_files_means_one_thing_from_the_first_batch_on(texts, kind, values):
    parser = TextTimes()
    times = parser.read(pa.array(texts), refuse)[0]
    assert (times.kind, [times.at(row) for row in range(2)]) == (kind, values)
    if kind != "text":
        with pytest.raises(OrderError, match="row 1: 'noon' is not a (number|time) like those of the lines before"):
            parser.read(pa.array([texts[0], "noon"]), refuse)


def test_order_within_and_across_batches():
    times = Times("number", np.array([1, 3, 3, 2]))
    assert times.find_decrease(None) == (3, "3")
    assert times.find_decrease(("number", 2)) == (0, "2")
    assert times[:3].check_order(("number", 1)) == ("number", 3)
    with pytest.raises(OrderError, match=r"row 3 of this batch .*: time 2 is before 3 of row 2; sort"):
        times.check_order(None)
    with pytest.raises(OrderError, match=r"row 0 .*: time 1 is before 2 of the row before this batch"):
        times.check_order(("number", 2))
    with pytest.raises(OrderError, match="held texts so far and holds numbers now"):
        times.check_order(("text", "one"))


def test_times_go_out_as_they_came_in():
    aware = NINE.replace(tzinfo=dt.timezone.utc)
    assert to_python(read_time(aware)) == aware
    assert format_time(read_time(aware)) == "2026-01-09T12:30:15.123456"
    assert [to_python(t) for t in (None, ("text", "a"), ("number", 1.5))] == [None, "a", 1.5]


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_a_stream_goes_on_in_another_form(make, tmp_path):
    """A frame, a single row and a saved state tell the same time."""
    votes = {"a": [1, 0], "b": [1, 0], "c": [1, 1]}
    model = AdaptiveLabelModel()
    model.label_stream(make({**votes, "at": [NINE, NINE + dt.timedelta(hours=1)]}), time="at")
    model.save(tmp_path / "s.npz")
    for again in (model, AdaptiveLabelModel.load(tmp_path / "s.npz")):
        with pytest.raises(OrderError, match=r"2026-01-09T13:00:00.000000 is before 2026-01-09T13:30:15.123456"):
            again.update([1, 1, 0], time=dt.datetime(2026, 1, 9, 13))
        again.update([1, 1, 0], time=np.datetime64("2026-01-09T13:30:15.123456"))
