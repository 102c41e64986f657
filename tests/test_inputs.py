"""Four doors, one engine: the same votes give the same labels whatever they came in."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from driftvote import AdaptiveLabelModel, LabelerError, MajorityLabelModel, OrderError, VoteError
from driftvote.inputs import read_batch, read_row
from driftvote.votes import Roster, declare_votes

from streams_for_tests import random_stream

NAMES = ["ann", "bob", "cat", "dan"]
VOTES = random_stream(1, 120, 4, 2, 0.3)
VOTES[:4] = [[1, 1, 0, 0], [0, 1, 1, 0], [1, 0, 1, 0], [0, 0, 0, 1]]  # everybody is named early
TEXT = {0: "ham", 1: "spam", -1: None}


def wide_dict(missing=None):
    return {name: [missing if v < 0 else int(v) for v in VOTES[:, i]] for i, name in enumerate(NAMES)}


def wide_frames():
    nullable = pd.DataFrame(wide_dict()).astype("Int64")
    return {
        "pandas float": pd.DataFrame(wide_dict(np.nan)),
        "pandas nullable": nullable,
        "pandas arrow": nullable.astype("int64[pyarrow]"),
        "polars": pl.DataFrame(wide_dict()),
        "arrow": pa.table(wide_dict()),
        "record batch": pa.record_batch(wide_dict()),
        "records": [{n: v for n, v in zip(NAMES, row.tolist(), strict=True) if v >= 0} for row in VOTES],
        "records with None": [
            dict(zip(NAMES, [None if v < 0 else v for v in row.tolist()], strict=True)) for row in VOTES
        ],
    }


def reference():
    return AdaptiveLabelModel(labelers=NAMES).label_stream(VOTES)


@pytest.mark.parametrize("kind", list(wide_frames()))
def test_wide_frames_and_records_equal_the_array(kind):
    model = AdaptiveLabelModel(labelers=NAMES)
    out = model.label_stream(wide_frames()[kind])
    assert np.array_equal(out.proba, reference().proba)
    assert np.array_equal(out.weights, reference().weights)
    assert out.labelers == tuple(NAMES)


def test_dict_rows_equal_the_array():
    model = AdaptiveLabelModel()
    steps = [model.update(row) for row in wide_frames()["records with None"]]
    assert np.array_equal([step.proba for step in steps], reference().proba)
    assert model.labelers == tuple(NAMES)
    assert model.predict_one({"ann": 1, "bob": 1}) == 1


def test_a_row_of_a_frame_is_a_row():
    frame = wide_frames()["pandas float"]
    model = AdaptiveLabelModel()
    steps = [model.update(frame.iloc[i]) for i in range(30)]
    assert np.array_equal([step.proba for step in steps], reference().proba[:30])


def long_frame():
    """One vote per line; later votes of a task come after votes of the next one."""
    lines = [
        {"task": f"t{t}", "worker": name, "label": TEXT[int(VOTES[t, i])], "at": t * 10.0 + i * 3}
        for t in range(len(VOTES))
        for i, name in enumerate(NAMES)
        if VOTES[t, i] >= 0
    ]
    return sorted(lines, key=lambda line: line["at"])


KEYS = {"task": "task", "labeler": "worker", "label": "label", "time": "at"}


def kept_rows():
    """Tasks with at least one vote, by the time of their last vote."""
    ends = {
        t: max(t * 10 + i * 3 for i in range(4) if VOTES[t, i] >= 0) for t in range(len(VOTES)) if (VOTES[t] >= 0).any()
    }
    return sorted(ends, key=ends.get)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.Table.from_pylist])
def test_long_frames_equal_the_array(make):
    rows = kept_rows()
    expected = AdaptiveLabelModel(labelers=NAMES).label_stream(VOTES[rows])
    model = AdaptiveLabelModel(classes=["ham", "spam"], labelers=NAMES)
    out = model.label_stream(make(long_frame()), **KEYS)
    assert np.array_equal(out.proba, expected.proba)
    frame = out.to_frame()
    assert type(frame) is type(make(long_frame()))
    assert [str(x) for x in list(frame["task"].to_pylist() if make == pa.Table.from_pylist else frame["task"])] == [
        f"t{t}" for t in rows
    ]
    labels = model.predict(make(long_frame()), task="task", labeler="worker", label="label")
    assert type(labels) is type(frame)
    proba = model.predict_proba(make(long_frame()), task="task", labeler="worker", label="label")
    assert "proba_spam" in (proba.column_names if isinstance(proba, pa.Table) else proba.columns)


def test_what_comes_back_has_the_shape_of_what_went_in():
    frame = wide_frames()["pandas float"].set_index(pd.Index([f"r{i}" for i in range(len(VOTES))]))
    model = AdaptiveLabelModel(classes=[0, 1], abstain=-1)
    out = model.label_stream(frame)
    back = out.to_frame(per_labeler=True)
    assert isinstance(back, pd.DataFrame)
    assert back.index.equals(frame.index)
    assert back["label"].tolist() == out.labels.tolist()
    assert np.array_equal(back["accuracy_cat"], out.accuracies[:, 2])
    assert np.array_equal(back["weight_cat"], out.weights[:, 2])
    assert out[10:12].to_frame().index.tolist() == ["r10", "r11"]
    labels = model.predict(frame)
    assert isinstance(labels, pd.Series)
    assert labels.index.equals(frame.index)
    proba = model.predict_proba(frame)
    assert list(proba.columns) == ["proba_0", "proba_1"]
    assert isinstance(model.predict(pl.DataFrame(wide_dict())), pl.Series)
    assert isinstance(model.predict(VOTES), np.ndarray)
    assert isinstance(reference().to_frame(), pa.Table)
    assert isinstance(reference().to_frame("polars"), pl.DataFrame)


def test_text_classes_in_arrays_and_frames():
    text = np.array([[TEXT[v] for v in row] for row in VOTES.tolist()], object)
    out = AdaptiveLabelModel(classes=["ham", "spam"]).label_stream(text)
    assert np.array_equal(out.proba, reference().proba)
    assert set(out.labels.tolist()) <= {"ham", "spam", None}
    frame = pd.DataFrame(text, columns=NAMES).astype("category")
    assert np.array_equal(AdaptiveLabelModel(classes=["ham", "spam"]).label_stream(frame).proba, reference().proba)


def test_signed_votes_are_flyingsquids():
    signed = np.where(VOTES < 0, 0, 2 * VOTES - 1)
    out = AdaptiveLabelModel(votes="signed").label_stream(signed)
    assert np.array_equal(out.proba, reference().proba)
    assert np.array_equal(out.labels, np.where(reference().codes < 0, 0, 2 * reference().codes - 1))


def test_any_numbers_as_classes():
    odd = np.where(VOTES < 0, 99, 3 * VOTES + 7)
    for values in (odd, odd.astype(float)):
        out = AdaptiveLabelModel(classes=[7, 10], abstain=99).label_stream(values)
        assert np.array_equal(out.proba, reference().proba)
        assert set(out.labels.tolist()) <= {7, 10, 99}
    with_nan = np.where(VOTES < 0, np.nan, VOTES)
    assert np.array_equal(
        AdaptiveLabelModel(classes=[0, 1], abstain=float("nan")).label_stream(with_nan).proba, reference().proba
    )
    listed = [[float("nan") if v < 0 else "yes" if v else "no" for v in row] for row in VOTES.tolist()]
    named = AdaptiveLabelModel(classes=["no", "yes"], abstain=float("nan")).label_stream(listed)
    assert np.array_equal(named.proba, reference().proba)


def test_booleans_are_classes_zero_and_one():
    votes = random_stream(2, 50, 4)
    plain = AdaptiveLabelModel().label_stream(votes)
    assert np.array_equal(AdaptiveLabelModel().label_stream(votes.astype(bool)).proba, plain.proba)
    assert np.array_equal(
        AdaptiveLabelModel().label_stream(pd.DataFrame(votes.astype(bool), columns=NAMES)).proba, plain.proba
    )
    with pytest.raises(VoteError, match="True"):
        AdaptiveLabelModel(votes="signed").label_stream(np.ones((3, 3), bool))


def test_many_classes_need_wider_codes():
    votes = np.random.default_rng(0).integers(-1, 300, size=(40, 4))
    votes[:, 1] = votes[:, 0]
    out = AdaptiveLabelModel(n_classes=300).label_stream(votes)
    assert out.proba.shape == (40, 300)
    assert np.array_equal(out.labels[votes[:, 0] >= 0][-5:], votes[votes[:, 0] >= 0, 0][-5:])


# -- labelers that come and go -------------------------------------------------------------------


@pytest.mark.parametrize("abstentions", ["zero", "random"])
def test_a_labeler_that_joins_late_was_silent_before(abstentions):
    """From the row on which it joins, all is as if it had been declared from the start."""
    votes = VOTES.copy()
    votes[:60, 3] = -1
    declared = AdaptiveLabelModel(labelers=NAMES, abstentions=abstentions, windows=[1, 4, 16, 32])
    expected = declared.label_stream(votes)
    model = AdaptiveLabelModel(abstentions=abstentions, windows=[1, 4, 16, 32])
    first = model.label_stream(pd.DataFrame(votes[:60, :3], columns=NAMES[:3]).replace(-1, np.nan))
    assert first.labelers == tuple(NAMES[:3])
    rest = model.label_stream(pd.DataFrame(votes[60:], columns=NAMES).replace(-1, np.nan))
    assert rest.labelers == tuple(NAMES)
    for name in ("proba", "accuracies", "weights", "coverage", "windows"):
        assert np.array_equal(getattr(rest, name), getattr(expected[60:], name)), name


def test_the_majority_takes_newcomers_too():
    model = MajorityLabelModel()
    model.update({"a": 1, "b": 0, "c": 1})
    assert model.update({"d": 0, "b": 0, "c": 1}).label == 0
    assert model.n_rows == 2
    assert model.labelers == ("a", "b", "c", "d")


def test_a_labeler_that_falls_silent_abstains():
    model = AdaptiveLabelModel()
    model.label_stream(wide_frames()["pandas float"])
    out = model.label_stream(wide_frames()["pandas float"][NAMES[:3]])
    assert out.labelers == tuple(NAMES)
    assert model.coverage[3] < 0.4


def test_predict_gives_a_stranger_no_weight():
    model = AdaptiveLabelModel().fit(wide_frames()["pandas float"])
    row = {"ann": 1, "bob": 1, "cat": 0}
    assert model.predict_proba_one({**row, "zoe": 0}) == model.predict_proba_one(row)
    assert model.labelers == tuple(NAMES)


def test_declared_labelers_select_the_columns_of_a_frame():
    frame = wide_frames()["polars"].with_columns(text=pl.lit("hello"), gold=pl.lit(1))
    out = AdaptiveLabelModel(labelers=NAMES).label_stream(frame)
    assert np.array_equal(out.proba, reference().proba)


# -- time ------------------------------------------------------------------------------------------


def timed(values):
    return pd.DataFrame({"a": [1, 0, 1], "b": [1, 0, 1], "c": [1, 0, 0], "when": values})


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ([1, 2, 2], [1, 3, 2]),
        ([0.5, 0.5, 0.75], [0.5, 0.25, 1.0]),
        (["2026-01-01", "2026-01-02", "2026-01-02"], ["2026-01-03", "2026-01-02", "2026-01-04"]),
        (
            [dt.datetime(2026, 1, 1), dt.datetime(2026, 1, 2), dt.datetime(2026, 1, 3)],
            [dt.datetime(2026, 1, 1), dt.datetime(2026, 1, 3), dt.datetime(2026, 1, 2)],
        ),
        (
            [dt.date(2026, 1, 1), dt.date(2026, 1, 2), dt.date(2026, 1, 3)],
            [dt.date(2026, 1, 1), dt.date(2026, 1, 3), dt.date(2026, 1, 2)],
        ),
    ],
)
@pytest.mark.parametrize(
    "convert", [pd.DataFrame, pl.from_pandas, lambda f: pa.Table.from_pandas(f, preserve_index=False)]
)
def test_time_must_not_go_backwards(good, bad, convert, tmp_path):
    model = AdaptiveLabelModel()
    model.label_stream(convert(timed(good)), time="when")
    assert model.labelers == ("a", "b", "c")
    with pytest.raises(OrderError, match=r"row \d .* is before .*sort the rows by time"):
        model.label_stream(convert(timed(bad)), time="when")
    with pytest.raises(OrderError, match=r"row 0 .* of the row before this batch"):
        model.label_stream(convert(timed(good)), time="when")
    model.save(tmp_path / "s.npz")
    with pytest.raises(OrderError, match="row 0"):
        AdaptiveLabelModel.load(tmp_path / "s.npz").label_stream(convert(timed(good)), time="when")
    assert model.n_rows == 3


def test_time_kinds_do_not_mix():
    model = AdaptiveLabelModel()
    model.label_stream(timed([1, 2, 3]), time="when")
    with pytest.raises(OrderError, match="held numbers so far and holds texts now"):
        model.label_stream(timed(["day 4", "day 5", "day 6"]), time="when")
    with pytest.raises(OrderError, match="row 1 .* has no time"):
        model.label_stream(timed([4, None, 6]), time="when")


def test_chunks_of_frames():
    frame = pl.DataFrame(wide_dict())
    parts = list(AdaptiveLabelModel().label_stream(frame.iter_slices(25)))
    assert np.array_equal(np.concatenate([part.proba for part in parts]), reference().proba)
    reader = pa.table(wide_dict()).to_reader(max_chunksize=40)
    parts = list(AdaptiveLabelModel().label_stream(reader))
    assert [len(part) for part in parts] == [40, 40, 40]
    assert np.array_equal(np.concatenate([part.proba for part in parts]), reference().proba)
    rows = AdaptiveLabelModel().label_stream(iter(wide_frames()["records"]))
    assert np.array_equal(np.concatenate([part.proba for part in rows]), reference().proba)
    fitted = AdaptiveLabelModel().fit(iter([frame[:50], frame[50:]]))
    assert np.array_equal(fitted.accuracies, reference().accuracies[-1])


def test_a_closed_roster_refuses_strangers_everywhere():
    model = AdaptiveLabelModel(labelers=NAMES)
    for call in (model.update, model.predict_one):
        with pytest.raises(LabelerError, match=r"unknown labeler 'zoe'.*ann, bob, cat, dan"):
            call({"ann": 1, "zoe": 1})


def test_numbered_columns_are_named_by_their_numbers():
    frame = pd.DataFrame(np.where(VOTES < 0, np.nan, VOTES))
    model = AdaptiveLabelModel(labelers=[0, 1, 2, 3])
    assert np.array_equal(model.label_stream(frame).proba, reference().proba)
    assert model.labelers == ("0", "1", "2", "3")
    assert AdaptiveLabelModel().label_stream(frame).labelers[0] == "labeler_0"  # without names they are places
    assert list(frame.columns) == [0, 1, 2, 3]


def test_a_row_in_which_nobody_votes_may_be_an_empty_dict():
    model = AdaptiveLabelModel(labelers=NAMES)
    step = model.update({})
    assert (step.label, step.n_votes, model.n_rows) == (-1, 0, 1)
    named = AdaptiveLabelModel()
    named.update({"a": 1, "b": None, "c": None})
    assert named.update({}).n_votes == 0
    assert named.labelers == ("a", "b", "c")


def test_whole_classes_stay_whole_in_pandas():
    frame = pd.DataFrame({"a": [1, 2], "b": [1, 1], "c": [1, 2], "d": [1, 1]})
    model = MajorityLabelModel(classes=[1, 2, 3])
    assert model.label_stream(frame).to_frame()["label"].astype(object).tolist() == [1, pd.NA]
    assert str(model.predict(frame).dtype) == "Int64"


def test_nan_among_text_is_a_missing_cell():
    text = np.array([["ham", "spam", np.nan, "ham"]], object)
    assert AdaptiveLabelModel(classes=["ham", "spam"]).label_stream(text).n_votes.tolist() == [3]


def test_chunks_without_rows_give_results_without_rows():
    frame = pl.DataFrame(wide_dict())
    parts = list(AdaptiveLabelModel().label_stream(iter([frame[:0], frame[:50], frame[:0], frame[50:]])))
    assert [len(part) for part in parts] == [0, 50, 0, 70]
    assert parts[2].accuracies.shape == (0, 4)
    assert np.array_equal(parts[3].proba, reference().proba[50:])
    assert AdaptiveLabelModel().fit(iter([frame[:0], frame])).n_rows == 120


def test_a_bad_chunk_leaves_the_chunks_before_it():
    chunks = iter([VOTES[:50], VOTES[50:80] + 9, VOTES[80:]])
    model = AdaptiveLabelModel()
    with pytest.raises(VoteError, match="row 0 of this batch"):
        list(model.label_stream(chunks))
    assert model.n_rows == 50
    with pytest.raises(VoteError):
        model.fit(iter([VOTES, VOTES + 9]))
    assert model.n_rows == 50  # fit is all or nothing


# -- batches ---------------------------------------------------------------------------------------

FORMS = {
    "snorkel": declare_votes(n_classes=3),
    "signed": declare_votes(votes="signed"),
    "text": declare_votes(classes=["a", "b"]),
    "numbers": declare_votes(classes=[1, 2.5], abstain=0),
    "nan": declare_votes(classes=[0, 1], abstain=float("nan")),
}
ROWS = [
    [1, 0, -1],
    [1.0, 2.5, 0],
    [True, False, 1],
    ["a", "b", None],
    ["a", float("nan"), "b"],
    [0, float("nan"), 1],
    [2, np.int8(1), np.float32(0)],
    [1, [0], 2],
    [1, "1", 0],
    [None, None, None],
]


def batch_or_refusal(read, data, form):
    try:
        return read(data, form, Roster(("x", "y", "z")))
    except VoteError as refusal:
        return str(refusal)


@pytest.mark.parametrize("form", FORMS.values(), ids=list(FORMS))
@pytest.mark.parametrize("row", ROWS, ids=str)
def test_one_row_is_a_batch_of_one(form, row):
    """The short way of a single row gives the codes of the long one, and refuses what it refuses."""
    named = dict(zip("xyz", row, strict=True))
    for one, many in ((row, [row]), (tuple(row), [row]), (named, [named])):
        expected, batch = batch_or_refusal(read_batch, many, form), batch_or_refusal(read_row, one, form)
        if isinstance(expected, str):
            assert batch == expected
            continue
        assert batch.codes.tolist() == expected.codes.tolist()
        assert (batch.codes.dtype, batch.names, batch.origin) == (expected.codes.dtype, expected.names, expected.origin)


def test_ids_verified_labels_and_times_are_fields_of_a_batch():
    form, roster = declare_votes(classes=["a", "b"]), Roster()
    votes = [["a", "b", "a"], ["b", "b", None]]
    batch = read_batch(votes, form, roster, ids=["m", 7.0], verified=[None, "b"])
    assert (list(batch.ids), batch.verified.tolist(), batch.times) == (["m", 7], [-1, 1], None)
    records = [{"x": "a", "y": "b", "z": "a", "who": "m", "truth": "a"}, {"x": "b", "y": "b", "who": "n"}]
    batch = read_batch(records, form, roster, ids="who", verified="truth")
    assert (batch.names, list(batch.ids), batch.verified.tolist()) == (("x", "y", "z"), ["m", "n"], [0, -1])
    frame = pl.DataFrame(records).with_columns(at=pl.Series([1.5, 2.5]))
    batch = read_batch(frame, form, roster, ids="who", verified="truth", time="at")
    assert (batch.names, list(batch.ids), batch.verified.tolist()) == (("x", "y", "z"), ["m", "n"], [0, -1])
    assert (batch.times.kind, batch.times.values.tolist()) == ("number", [1.5, 2.5])
    batch = read_row(["a", "b", "a"], form, roster, id="m", verified="b", time=3)
    assert (list(batch.ids), batch.verified.tolist(), batch.times.at(0)) == (["m"], [1], 3)
    assert read_row(["a", "b", "a"], form, roster).ids is None
    wrong = frame.drop("at").with_columns(truth=pl.Series(["a", "c"]))
    for call in (
        lambda: read_batch(votes, form, roster, verified=[None, "c"]),
        lambda: read_batch(wrong, form, roster, ids="who", verified="truth"),
    ):
        with pytest.raises(VoteError, match=r"row 1 .*the verified label 'c' is not one of the classes 'a', 'b'"):
            call()
    with pytest.raises(VoteError, match="ids= holds 1 values for 2 rows"):
        read_batch(votes, form, roster, ids=["m"])


def test_tasks_are_ids_and_any_line_may_verify_one():
    form, roster = declare_votes(classes=["a", "b"]), Roster()
    lines = {"t": [7, 7, 8, 7, 8], "w": ["x", "y", "x", "z", "y"], "l": list("abbaa"), "at": [1, 2, 3, 9, 5]}
    keys = {"task": "t", "labeler": "w", "label": "l", "time": "at"}
    frame = pd.DataFrame({**lines, "truth": [None, "b", None, "b", "a"]})
    batch = read_batch(frame, form, roster, **keys, verified="truth")
    assert (list(batch.ids), batch.verified.tolist(), batch.times.values.tolist()) == ([8, 7], [0, 1], [5, 9])
    frame["truth"] = [None, "b", None, "a", "a"]
    with pytest.raises(VoteError, match="row 3 .*task 7 is verified as 'a', but as 'b' on an earlier line"):
        read_batch(frame, form, roster, **keys, verified="truth")
    with pytest.raises(VoteError, match="leave ids= out"):
        read_batch(frame, form, roster, **keys, ids="t")
