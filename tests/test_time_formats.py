"""Dates as people write them: read in the right order, or refused with the format that fits; never sorted as text."""

from __future__ import annotations

import csv
import datetime as dt
import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest

from driftvote import AdaptiveLabelModel, OrderError, SettingError
from driftvote.times import TextTimes, read_one, read_time, read_times
from test_files_bad import refused
from test_live import run_loop

from votes_on_disk import invoke, read_back

N = 1500
START = dt.datetime(2026, 1, 15, 3, 7)
MOMENTS = [START + dt.timedelta(minutes=31 * row) for row in range(N)]  # to the middle of February
WORKERS = ["Ann", "Bob", "Cleo", "Dee", "Eve"]
FORMS = {
    "German": "%d.%m.%Y %H:%M",
    "American": "%m/%d/%Y %I:%M:%S %p",
    "two digits": "%d.%m.%y %H:%M",
    "names": "%d %b %Y, %H:%M",
    "mail": "%a, %d %b %Y %H:%M:%S +0000",
    "log": "%d/%b/%Y:%H:%M:%S +0000",
    "year first": "%Y/%m/%d %H:%M",
}


def crowd() -> np.ndarray:
    """Votes of five workers; Bob falls from 85% to 40% half-way."""
    draw = np.random.default_rng(5)
    truth = draw.integers(0, 2, N)
    right = np.full((N, 5), 0.85)
    right[N // 2 :, 1] = 0.4
    return np.where(draw.random((N, 5)) < right, truth[:, None], 1 - truth[:, None])


VOTES = crowd()


def refuse(row, rest):
    return OrderError(f"row {row}{rest}")


def read(*texts, time_format=None):
    return read_times(pa.array(texts), refuse, TextTimes(time_format))


def bob_falls(sentence: str) -> bool:
    """Whether an event says that Bob became worse, near the middle."""
    before, after = (int(word.rstrip("%")) for word in reversed(sentence.split()) if word.endswith("%"))
    return "Bob" in sentence and before > 70 and after < 55


@pytest.mark.parametrize("name", FORMS)
def test_dates_are_read_in_their_order_and_come_back_as_they_were(name):
    texts = [moment.strftime(FORMS[name]) for moment in MOMENTS]
    times = read(*texts)
    assert times.kind == "datetime"
    assert [times.at(row) for row in (0, N - 1)] == [read_time(moment)[1] for moment in (MOMENTS[0], MOMENTS[-1])]
    assert times.find_decrease(None) is None
    again = read(*(str(times.format(row)) for row in range(N)))
    np.testing.assert_array_equal(again.values, times.values)
    if name in ("German", "two digits", "year first", "log"):
        assert times.format(1) == texts[1]


REFUSED = {
    ("01/02/2026", "02/02/2026"): r"row 0: '01/02/2026' can be read in more than one way; pass time_format='%d/%m/%Y' or",
    ("1/2/2026 1:05 PM",): r"pass time_format='%d/%m/%Y %I:%M %p' or time_format='%m/%d/%Y %I:%M %p'",
    ("20/01/26",): r"time_format='%d/%m/%y' or time_format='%y/%m/%d'",
    ("01.31.2026", "02.01.2026"): r"pass time_format='%m.%d.%Y'",
    ("Jan-26", "Feb-26"): r"pass time_format='%b-%y'",
    ("31. Januar 2026",): r"does not sort as text; write 2026-01-31 13:05, or pass time_format=",
    ("1:05 PM", "2:10 PM"): r"does not sort as text",
    ("31.02.2026",): r"'31.02.2026' looks like a date",
    ("31.01.2026", "32.01.2026"): r"row 1: '32.01.2026' is not a date like '31.01.2026' of the first row",
    ("noon", "31.01.2026"): r"row 1: '31.01.2026' looks like a date, unlike the first row",
    ("1/20/2026 1:05 PM", "1/20/2026 13:05"): r"row 1: of .* one has AM or PM",
    ("2026-01-09T12:30:15Z", "2026-01-09T14:30:16"): r"row 1: of .* one has a zone; write all times with a zone, or none",
    ("week 9", "week 10"): r"row 1: 'week 10' and 'week 9' do not sort as text; write their numbers with as many digits",
}  # fmt: skip


@pytest.mark.parametrize("texts", REFUSED, ids=" ".join)
def test_what_could_be_two_times_is_refused(texts):
    with pytest.raises(OrderError, match=REFUSED[texts]):
        read(*texts)


def test_text_that_sorts_is_text():
    for texts in (["week 09", "week 10"], ["2026-01-31 second run", "2026-02-01 first run"], ["mark 1", "mark 2"]):
        assert read(*texts).kind == "text"
    assert [read(*texts).kind for texts in (["1.5", "2.5"], ["1.2026", "1.3"], ["9", "10"])] == ["number"] * 3
    assert read("12.2025", "01.2026").find_decrease(None) is None  # months, which are no numbers


def test_zones_are_one_clock():
    mixed = read("2026-01-09T12:30:15Z", "2026-01-09T14:30:16+02:00", "2026-01-09T07:30:17-0500")
    assert np.diff(mixed.values).tolist() == [1_000_000] * 2
    mixed = read("31.01.2026 13:05 UTC", "31.01.2026 14:06 +0100")
    assert mixed.format(1) == "31.01.2026 13:06 UTC"
    assert read("2026-01-09T14:30:16+02:00").format(0) == "2026-01-09T12:30:16.000000Z"
    assert read("2026-01-09T14:30:16").format(0) == "2026-01-09T14:30:16.000000"


def test_a_format_that_is_given():
    assert read("01/02/2026", time_format="%d/%m/%Y").at(0) == read_time("2026-02-01")[1]
    assert read("01022026", time_format="%d%m%Y").at(0) == read_time("2026-02-01")[1]
    assert read_time(20260201, "%Y%m%d") == read_time("2026-02-01")
    assert read("01/02/2026", time_format="%d/%m/%Y").format(0) == "01/02/2026"
    with pytest.raises(OrderError, match=r"row 1: '1st' is not written as time_format='%d/%m/%Y' says"):
        read("01/02/2026", "1st", time_format="%d/%m/%Y")
    for wrong in ("%d/%q/%Y", "%H:%M", "%d.%m", "%d.%m.%Y %d", "noon", 7):
        with pytest.raises(SettingError, match="time_format="):
            read("01/02/2026", time_format=wrong)
    with pytest.raises(OrderError, match=r"\(double\) is not text; leave time_format="):
        read_times(pa.array([1.5]), refuse, TextTimes("%d/%m/%Y"))


def test_single_times_are_columns_of_one():
    for text in ("31.01.2026 13:05", "1/31/2026 1:05 PM", "31 Jan 2026 13:05", "2026-01-31T13:05"):
        assert read_time(text) == read_time(dt.datetime(2026, 1, 31, 13, 5)), text
    with pytest.raises(OrderError, match="more than one way"):
        read_time("01/02/2026")
    with pytest.raises(OrderError, match="outside the years 1 to 9999"):
        read_time("9999-12-31T23:59:59-05:00")
    model = AdaptiveLabelModel()
    model.update([1, 1, 0], time="31.01.2026")
    model.update([1, 1, 0], time="01.02.2026")
    model.update([1, 1, 0], time="03/02/2026", time_format="%d/%m/%Y")
    with pytest.raises(OrderError, match="time 02.02.2026 is before 03.02.2026 "):
        model.update([1, 1, 0], time="02.02.2026")
    assert read_one("31.01.2026")[2].date == "%d.%m.%Y"


def test_a_state_that_kept_dates_as_text_goes_on():
    times = read("2026-01-31", "2026-02-01")
    assert times.find_decrease(("text", "2026-01-30")) is None
    assert times.find_decrease(("text", "2026-01-31T10:00"))[0] == 0


# -- files and frames ------------------------------------------------------------------------------


def write_wide(path, form, delimiter=",", rows=range(N)):
    with path.open("w", newline="") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(["when", *WORKERS])
        writer.writerows([MOMENTS[row].strftime(form), *VOTES[row].tolist()] for row in rows)


def write_long(path, form):
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["task", "worker", "label", "time"])
        for row in np.random.default_rng(0).permutation(N):
            for place, name in enumerate(WORKERS):
                writer.writerow([f"t{row}", name, "ny"[VOTES[row, place]], MOMENTS[row].strftime(form)])


@pytest.mark.parametrize("name", ["German", "American"])
def test_the_drift_is_not_reported_backwards(tmp_path, name):
    form, shuffled = FORMS[name], np.random.default_rng(1).permutation(N)
    write_long(tmp_path / "long.csv", form)
    write_wide(tmp_path / "wide.csv", form)
    write_wide(tmp_path / "shuffled.csv", form, rows=shuffled)
    long = ["--task", "task", "--labeler", "worker", "--label", "label", "--time", "time"]
    commands = {
        "long.csv": long,
        "wide.csv": ["--time", "when"],
        "shuffled.csv": ["--time", "when", "--sort"],
    }
    for file, options in commands.items():
        out = tmp_path / f"labels-{file}"
        done = invoke("label", tmp_path / file, "-o", out, *options)
        drift = [line for line in done.output.splitlines() if line.startswith("drift")]
        assert [bob_falls(line) for line in drift] == [True], (file, done.output)
        with out.open() as file_of_labels:
            column = [row["time" if "long" in file else "when"] for row in csv.DictReader(file_of_labels)]
        assert column == [moment.strftime(form) for moment in MOMENTS]


def test_the_whole_column_tells_day_from_month(tmp_path, monkeypatch, capsys):
    """The first batch shows no day above 12; the file does."""
    from driftvote.files import csv as csv_files

    monkeypatch.setattr(csv_files.CsvTable, "batch_rows", 40)
    days = [dt.date(2026, 1, 1) + dt.timedelta(days=row // 10) for row in range(200)]
    rows = [f"{day:%m/%d/%Y},{row % 2},1,0\n" for row, day in enumerate(days)]
    (tmp_path / "v.csv").write_text("when,a,b,c\n" + "".join(rows))
    invoke("label", tmp_path / "v.csv", "--time", "when", "-o", tmp_path / "l.parquet")
    assert read_back(tmp_path / "l.parquet")["when"][-1].as_py() == dt.datetime(2026, 1, 20)
    (tmp_path / "w.csv").write_text("when,a,b,c\n" + "".join(rows[:100]))
    said = refused(
        monkeypatch, capsys, "label", tmp_path / "w.csv", "--time", "when", "--sort", "-o", tmp_path / "x.csv"
    )
    assert "line 2, column 'when': '01/01/2026' can be read in more than one way" in said
    assert "--time-format '%d/%m/%Y' or --time-format '%m/%d/%Y'" in said
    assert not (tmp_path / "x.csv").exists()
    pattern = ["--time-format", "%m/%d/%Y"]
    invoke("label", tmp_path / "w.csv", "--time", "when", *pattern, "-o", tmp_path / "x.csv")
    (tmp_path / "v.csv").write_text("when,a,b,c\n" + "".join(rows) + "31/01/2026,0,1,1\n")
    said = refused(monkeypatch, capsys, "label", tmp_path / "v.csv", "--time", "when", "-o", tmp_path / "y.csv")
    assert "line 202, column 'when': '31/01/2026' is not a time like those of the lines before" in said
    assert "--time-format needs --time" in refused(
        monkeypatch, capsys, "label", tmp_path / "v.csv", *pattern, "-o", tmp_path / "y.csv"
    )


def test_text_in_typed_files_is_read_too_and_stays_text(tmp_path):
    texts = [moment.strftime("%d.%m.%Y %H:%M") for moment in MOMENTS[:40]] + ["01.03.2026 00:00"]
    votes = {name: VOTES[:41, place] for place, name in enumerate("abc")}
    pyarrow.parquet.write_table(pa.table({"when": texts[::-1], **votes}), tmp_path / "v.parquet")
    invoke("label", tmp_path / "v.parquet", "--time", "when", "--sort", "-o", tmp_path / "l.parquet")
    assert read_back(tmp_path / "l.parquet")["when"].to_pylist() == texts


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_frames_and_chunks(make):
    """Long and wide frames, and chunks of them: the same events, with the times as they came."""
    form = FORMS["German"]
    order = np.random.default_rng(0).permutation(N)
    lines = [(row, place) for row in order.tolist() for place in range(5)]
    long = make(
        {
            "task": [row for row, _ in lines],
            "worker": [WORKERS[place] for _, place in lines],
            "label": [int(VOTES[row, place]) for row, place in lines],
            "time": [MOMENTS[row].strftime(form) for row, _ in lines],
        }
    )
    columns = {"task": "task", "labeler": "worker", "label": "label", "time": "time"}
    out = AdaptiveLabelModel(labelers=WORKERS).label_stream(long, **columns)
    (event,) = out.events
    assert bob_falls(event.sentence)
    assert dt.datetime.strptime(event.about_time, form if ":" in event.about_time else form[:8]) > MOMENTS[N // 3]
    votes = {name: VOTES[:, place] for place, name in enumerate(WORKERS)}
    texts = [moment.strftime(form) for moment in MOMENTS]
    chunked = AdaptiveLabelModel()
    for begin in range(0, N, 333):
        part = {name: column[begin : begin + 333] for name, column in votes.items()}
        chunked.label_stream(make({**part, "when": texts[begin : begin + 333]}), time="when", time_format=form)
    whole = AdaptiveLabelModel().label_stream(make({**votes, "when": texts}), time="when", time_format=form)
    assert chunked.events == whole.events
    assert whole.events[0].about_time in texts


def kept_as_text(time):
    """A model of a version that kept dates as text."""
    model = AdaptiveLabelModel(labelers=["a", "b", "c"])
    header, arrays = model.to_state()
    return AdaptiveLabelModel.from_state({**header, "last_time": ["text", time]}, arrays)


def test_lines_of_a_stream(tmp_path):
    """`watch` reads dates as `label` does, and a late line gets the time of the line before in the same form."""
    votes = {"a": 1, "b": 0, "c": 1}
    texts = ["31.01.2026 13:05", "01.02.2026 08:00", "31.01.2026 23:00", "2026-02-03T10:00"]

    def run(texts, **options):
        return run_loop([json.dumps({"votes": votes, "time": text}) for text in texts], tmp_path, **options)

    loop, answers = run(texts)
    assert loop.counts.late_lines == 1
    assert [answer["row"] for answer in answers] == [0, 1, 2, 3]
    american = ["02/01/2026", "02/03/2026", "2026-02-04"]
    loop, answers = run(american, time_format="%m/%d/%Y")
    assert "is not written as" in answers[2]["error"]
    assert loop.model.last_time == read_time("2026-02-03")
    loop, answers = run(texts[1:2], model=kept_as_text("31.01.2026"))
    assert "error" not in answers[0]
    loop, answers = run(american[:1])
    assert "can be read in more than one way" in answers[0]["error"]
