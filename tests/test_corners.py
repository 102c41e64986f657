"""Corners that once went wrong: each test is a small story of what must not happen again."""

from __future__ import annotations

import datetime as dt
import inspect
import shutil
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import driftvote
from driftvote import (
    AdaptiveLabelModel,
    FixedWindowLabelModel,
    LabelerError,
    MajorityLabelModel,
    OrderError,
    SettingError,
    VoteError,
    WindowGrid,
)

from streams_for_tests import PAPERS_RULE, random_chunks, random_stream


@pytest.mark.parametrize("n_classes", [2, 126, 127, 128, 200, 255, 256, 300])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint16, np.int16, np.int64, np.float32])
def test_a_value_just_outside_the_classes_is_refused_in_every_type(n_classes, dtype):
    """An unsigned -2 is 254, and 254 may be a class: the kernel would have written outside its arrays."""
    if n_classes > np.iinfo(dtype).max if np.issubdtype(dtype, np.integer) else False:
        pytest.skip("the type cannot hold the value")
    inside = np.array([[n_classes - 1, 0, n_classes - 1]], dtype)
    assert AdaptiveLabelModel(n_classes=n_classes).label_stream(inside).codes[0] == n_classes - 1
    outside = np.array([[1, 0, n_classes]], dtype)
    with pytest.raises(VoteError, match=f"'labeler_2': {n_classes} is neither"):
        AdaptiveLabelModel(n_classes=n_classes).label_stream(outside)
    with pytest.raises(VoteError, match=f"column 'c': {n_classes} is neither"):
        AdaptiveLabelModel(n_classes=n_classes).label_stream(pd.DataFrame(outside, columns=["a", "b", "c"]))


@pytest.mark.slow
def test_editing_one_kernel_makes_every_cached_kernel_stale(tmp_path):
    """Kernels contain each other's machine code; the cache must look at all their files."""
    site = tmp_path / "site"
    shutil.copytree(Path(driftvote.__file__).parent, site / "driftvote", ignore=shutil.ignore_patterns("__pycache__"))
    votes = [[1, 1, 0], [0, 1, 1], [1, 0, 1], [0, 0, 1]]
    model = f"FixedWindowLabelModel(window=4).fit({votes})"
    code = f"from driftvote import FixedWindowLabelModel; print({model}.predict_proba([[1, 1, 0]]).max())"
    env = {"PYTHONPATH": str(site), "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PATH": ""}

    def probability() -> float:
        done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return float(done.stdout)

    before = probability()
    path = site / "driftvote" / "core" / "label_models" / "triplet.py"
    text = path.read_text()
    assert "* p / (1.0 - p)" in text
    path.write_text(text.replace("* p / (1.0 - p)", "* 2.0 * p / (1.0 - p)"))
    assert probability() > before + 0.02


def joining_rows():
    """Dict rows of a stream in which two labelers join, in the middle of any chunk."""
    votes = random_stream(8, 300, 6, 2, 0.2)
    rows = []
    for t, row in enumerate(votes.tolist()):
        present = [0, 1, 2, 3] + ([4] if t >= 110 else []) + ([5] if t >= 205 else [])
        rows.append({f"j{i}": row[i] if row[i] >= 0 else None for i in present})
    return rows


@pytest.mark.parametrize(
    "model",
    [
        AdaptiveLabelModel(windows=[1, 4, 16, 64], delta=0.9),
        AdaptiveLabelModel.paper(windows=[1, 4, 16, 64]),
        FixedWindowLabelModel(window=40, abstentions="random"),
        FixedWindowLabelModel(window=None),
        MajorityLabelModel(abstentions="random"),
    ],
    ids=lambda model: repr(model)[:60],
)
def test_where_a_labeler_joins_inside_a_chunk_does_not_matter(model):
    rows = joining_rows()
    single = model.clone()
    steps = [single.update(row) for row in rows]
    for seed in (1, 2):
        chunked = model.clone()
        parts = [chunked.label_stream(rows[part]) for part in random_chunks(seed, len(rows), 150)]
        assert [step.code for step in steps] == np.concatenate([part.codes for part in parts]).tolist()
        assert np.array_equal([step.proba for step in steps], np.concatenate([part.proba for part in parts]))
        assert [step.window for step in steps] == np.concatenate([part.windows for part in parts]).tolist()
    out = model.clone().label_stream(rows)
    assert out.labelers == tuple(f"j{i}" for i in range(6))
    assert np.array_equal(out.weights[-1], steps[-1].weights)
    assert (out.coverage[:110, 4] == 0).all()
    assert (out.accuracies[:110, 4] <= 0.74).all()
    fitted = model.clone().fit(rows)
    assert np.array_equal(fitted.accuracies, single.accuracies)
    assert fitted.n_rows == 300


def test_the_first_row_of_a_chunk_is_judged_as_a_first_row():
    for call in (AdaptiveLabelModel().label_stream, AdaptiveLabelModel().fit):
        with pytest.raises(LabelerError, match="at least 3 labelers"):
            call([{"a": 1, "b": 1}, {"a": 1, "b": 1, "c": 0}])


def test_all_the_past_cannot_be_made_up_for_a_newcomer():
    model = FixedWindowLabelModel(window=None, abstentions="random")
    model.update({"a": 1, "b": 0, "c": 1})
    with pytest.raises(LabelerError, match=r"'d' cannot join: .*declare all labelers"):
        model.update({"a": 1, "b": 0, "c": 1, "d": 1})
    assert (model.labelers, model.n_rows) == (("a", "b", "c"), 1)
    assert model.update({"a": 1, "c": 1}).window == 2


def test_signed_votes_are_noticed_through_every_door():
    signed = np.random.default_rng(0).choice([-1, 1], size=(200, 3))
    lines = pd.DataFrame(
        [{"task": t, "worker": f"w{i}", "label": signed[t, i], "at": t} for t in range(200) for i in range(3)]
    )
    keys = {"task": "task", "labeler": "worker", "label": "label"}
    for call in (
        lambda: AdaptiveLabelModel().label_stream(lines, **keys, time="at"),
        lambda: AdaptiveLabelModel().fit(lines, **keys, time="at"),
        lambda: AdaptiveLabelModel().fit(signed),
    ):
        with pytest.raises(VoteError, match="votes='signed'"):
            call()
    # None is nobody's -1.
    assert len(AdaptiveLabelModel().label_stream([[1, None, 1]] * 100)) == 100


def test_numbered_columns_are_places():
    votes = random_stream(3, 80, 4, 2, 0.2)
    model = AdaptiveLabelModel().fit(votes)
    frame = pd.DataFrame(np.where(votes < 0, np.nan, votes))
    assert model.predict(frame).tolist() == model.predict(votes).tolist()
    assert model.label_stream(frame).labelers == ("labeler_0", "labeler_1", "labeler_2", "labeler_3")
    assert model.update(pd.Series([1.0, 0.0, np.nan, 1.0])).n_votes == 3
    timed = pd.DataFrame({0: [1, 0], 1: [1, 0], 2: [1, 1], 3: [10, 20]})
    assert AdaptiveLabelModel().label_stream(timed, time=3).labelers == ("labeler_0", "labeler_1", "labeler_2")
    with pytest.raises(OrderError, match="row 0"):
        AdaptiveLabelModel().fit(timed, time=3).fit(timed, time=3).label_stream(timed, time=3)


def timed(values, make=pd.DataFrame):
    return make({"a": [1, 0, 1], "b": [1, 0, 1], "c": [1, 0, 0], "when": values})


DAYS = [dt.timedelta(days=d) for d in (9, 10, 11)]
OBJECTS = [
    DAYS,
    [Decimal(9), Decimal(10), Decimal(11)],
    pd.Series([9, 10, 11], dtype=object),
    pd.Series(
        [np.datetime64("2200-01-01", "us"), np.datetime64("3000-01-01", "us"), np.datetime64("9999-01-01", "us")]
    ),
    pd.Series([dt.datetime(2026, 1, d, tzinfo=dt.timezone.utc) for d in (9, 10, 11)], dtype=object),
]


@pytest.mark.parametrize(
    "values", OBJECTS, ids=["timedelta", "decimal", "object ints", "far years", "object datetimes"]
)
def test_times_of_every_kind_are_compared_as_what_they_are(values):
    model = AdaptiveLabelModel()
    assert len(model.label_stream(timed(values), time="when")) == 3
    with pytest.raises(OrderError, match=r"row 1 .* is before"):
        AdaptiveLabelModel().label_stream(timed(list(values)[::-1]), time="when")
    with pytest.raises(OrderError, match="row 0"):
        model.label_stream(timed(values), time="when")


def test_long_frames_are_ordered_by_durations_too():
    lines = {"task": [1] * 3 + [2] * 3, "worker": list("abc") * 2, "label": [0, 0, 0, 1, 1, 1]}
    lines["at"] = [DAYS[1]] * 3 + [DAYS[0]] * 3
    out = AdaptiveLabelModel().label_stream(
        pd.DataFrame(lines), task="task", labeler="worker", label="label", time="at"
    )
    assert out.labels.tolist() == [1, 0]


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_a_time_that_is_no_number_is_missing(make):
    with pytest.raises(OrderError, match="row 1 .* has no time"):
        AdaptiveLabelModel().label_stream(timed([1.0, float("nan"), 2.0], make), time="when")


def test_categories_are_no_times():
    with pytest.raises(OrderError, match="cannot be read as time"):
        AdaptiveLabelModel().label_stream(timed(pd.Categorical(["mon", "tue", "wed"])), time="when")


REFUSED = [
    ("a huge number", lambda: AdaptiveLabelModel().label_stream([[1, 0, 10**400]]), VoteError, "1000.*is neither"),
    ("a list in a row", lambda: AdaptiveLabelModel().label_stream([[1, [0], 1], [1, 0, 1]]), VoteError, r"'labeler_1': \[0\] is neither"),
    ("a list in an update", lambda: AdaptiveLabelModel().update([1, [0, 1], 1]), VoteError, r"\[0, 1\] is neither"),
    ("text as a row", lambda: AdaptiveLabelModel().label_stream(["abc", [1, 0, 1]]), VoteError, "row 1"),
    ("classes as a number", lambda: AdaptiveLabelModel(classes=5), SettingError, "classes must be a list"),
    ("classes of lists", lambda: AdaptiveLabelModel(classes=[["a"], ["b"]]), SettingError, "cannot be a class"),
    ("abstain as a list", lambda: AdaptiveLabelModel(classes=["a", "b"], abstain=["x"]), SettingError, "cannot be a class"),
    ("labelers as a number", lambda: AdaptiveLabelModel(labelers=5), LabelerError, "list of names"),
    ("beta beyond floats", lambda: AdaptiveLabelModel(beta=10**400), SettingError, "beta must be a number above 0"),
    ("windows beyond integers", lambda: AdaptiveLabelModel(n_classes=5000, estimator="majority", windows=[2**26 - 1, 2**27]), SettingError, "too large to be compared exactly"),
    ("a grid from zero", lambda: WindowGrid.geometric(0, 100), SettingError, "first must be a whole number"),
    ("a grid that stands still", lambda: WindowGrid.geometric(1, 100, ratio=1 + 1e-12), SettingError, "ratio must be at least"),
    ("a grid to infinity", lambda: WindowGrid.geometric(1, float("inf")), SettingError, "last must be"),
    ("an iterator to predict", lambda: AdaptiveLabelModel().fit([[1, 1, 0]]).predict(iter([[1, 1, 0]])), VoteError, "not an iterator"),
    ("tasks of lists", lambda: AdaptiveLabelModel().label_stream(
        pl.DataFrame({"t": [[1]], "w": ["a"], "l": [0], "at": [1]}), task="t", labeler="w", label="l", time="at"), VoteError, "must be text or numbers"),
    ("a task column named like a result", lambda: AdaptiveLabelModel().label_stream(
        pd.DataFrame({"window": [1, 1, 1], "w": list("abc"), "l": [0, 0, 1], "at": [1, 2, 3]}), task="window", labeler="w", label="l", time="at").to_frame(), VoteError, "rename it"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "message"), [c[1:] for c in REFUSED], ids=[c[0] for c in REFUSED])
def test_nothing_escapes_as_somebody_elses_error(call, kind, message):
    with pytest.raises(kind, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


def test_an_unknown_keyword_is_a_type_error():
    with pytest.raises(TypeError, match="no keyword 'n_epochs'"):
        AdaptiveLabelModel().fit([[1, 1, 0]], n_epochs=10)


@pytest.mark.parametrize(
    "settings", [{"beta": 1e308}, {"delta": 1e-307}, {"beta": np.float32(0.1)}, {"delta": np.float64(0.1)}]
)
def test_extreme_settings_work(settings):
    out = AdaptiveLabelModel(**settings).label_stream(random_stream(1, 100, 4))
    assert np.isfinite(out.proba).all()


def test_values_of_several_types_share_a_column_as_text():
    model = AdaptiveLabelModel(classes=[1, 2], abstain="?", estimator="triplet")
    out = model.label_stream([[1, 2, "?"], [2, 2, 2]])
    assert out.to_frame().column("label").to_pylist() == ["?", "2"]
    assert model.predict(pl.DataFrame({"labeler_0": ["?"], "labeler_1": ["?"], "labeler_2": ["?"]})).to_list() == ["?"]
    odd = AdaptiveLabelModel(classes=[1, "1"]).label_stream([[1, "1", 1]])
    assert {"proba_1", "proba_'1'"} <= set(odd.to_frame().column_names)


def test_what_says_nothing_abstains():
    masked = np.ma.array([[1, 0, 1]], mask=[[0, 0, 1]])
    assert AdaptiveLabelModel().label_stream(masked).n_votes.tolist() == [2]
    row = {"a": 1, "b": pd.NA, "c": pd.NaT, "d": np.float32("nan"), "e": 0}
    assert AdaptiveLabelModel().update(row).n_votes == 2
    with pytest.raises(VoteError):
        AdaptiveLabelModel(votes="signed").update({"a": np.False_, "b": 1, "c": 1})


def test_polars_wide_integers():
    frame = pl.DataFrame({"a": [1, 0], "b": [1, 0], "c": [0, 0]}).cast(pl.Int128)
    assert AdaptiveLabelModel().label_stream(frame).n_votes.tolist() == [3, 3]


def test_memory_that_cannot_be_had_changes_nothing(monkeypatch):
    from driftvote.core import engine

    model = AdaptiveLabelModel(**PAPERS_RULE)
    model.label_stream(timed([1, 2, 3]), time="when")

    def no_memory(*_, **__):
        raise MemoryError

    monkeypatch.setattr(engine, "Outputs", no_memory)
    late = timed([4, 5, 6]).assign(d=[1, 1, 1])
    with pytest.raises(MemoryError):
        model.label_stream(late, time="when")
    monkeypatch.undo()
    assert (model.labelers, model.n_rows) == (("a", "b", "c"), 3)
    assert len(model.label_stream(late, time="when")) == 3


def test_every_flipped_bit_of_a_state_is_a_state_error(tmp_path):
    path = tmp_path / "s.npz"
    AdaptiveLabelModel(windows=[1, 2]).fit([[1, 0, 1]] * 3).save(path)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    for place in rng.choice(len(whole), 250, replace=False):
        broken = bytearray(whole)
        broken[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(broken)
        try:
            loaded = AdaptiveLabelModel.load(path)
        except driftvote.StateError:
            continue
        assert loaded.n_rows == 3  # a bit that means nothing, such as a time stamp of the archive


@pytest.mark.parametrize("abstain", [("x", 1), b"x", dt.date(2026, 1, 1), Decimal(1)])
def test_an_abstention_that_cannot_be_written_is_refused_when_saving(tmp_path, abstain):
    with pytest.raises(driftvote.StateError, match="cannot be written to a state file"):
        AdaptiveLabelModel(classes=["a", "b"], abstain=abstain).save(tmp_path / "s.npz")


def test_every_keyword_of_the_models_is_kept_in_the_settings():
    for kind in (AdaptiveLabelModel, FixedWindowLabelModel, MajorityLabelModel):
        needs = {"window": 5} if kind is FixedWindowLabelModel else {}
        # A callback is not a setting: it can be neither saved nor compared. Shortcuts become part of another setting.
        keywords = set(inspect.signature(kind).parameters) - {"on_event", "shortcuts"}
        assert set(kind(**needs).get_params(deep=False)) == keywords


class TestManyClasses:
    """Tables of labelers x classes x classes have a limit; label models without tables have none."""

    def test_too_many_for_tables_is_one_sentence(self):
        with pytest.raises(
            SettingError, match="3 labelers with 5,000 classes need too much memory; use estimator='wawa'"
        ):
            AdaptiveLabelModel(n_classes=5_000)
        model = AdaptiveLabelModel(n_classes=1_000)
        with pytest.raises(SettingError, match="10 labelers with 1,000 classes need too much memory"):
            model.label_stream(np.zeros((5, 10), np.int16))
        assert model.n_rows == 0
        assert AdaptiveLabelModel(n_classes=300).update([7] * 10).label == 7

    def test_a_labeler_too_many_leaves_the_model_as_it_was(self):
        model = AdaptiveLabelModel(n_classes=1_000)
        model.update({"a": 1, "b": 1, "c": 2})
        with pytest.raises(SettingError, match="5 labelers with 1,000 classes"):
            model.update({"a": 1, "b": 1, "c": 2, "d": 1, "e": 2})
        assert (model.n_rows, model.labelers) == (1, ("a", "b", "c"))

    @pytest.mark.slow
    @pytest.mark.parametrize("estimator", ["wawa", "majority"])
    def test_a_thousand_classes_in_little_memory(self, estimator):
        code = f"""import resource, numpy as np
from driftvote import AdaptiveLabelModel
rng = np.random.default_rng(0)
truth = rng.integers(1_000, size=10_000)
votes = np.where(rng.random((10_000, 10)) < 0.7, truth[:, None], rng.integers(1_000, size=(10_000, 10)))
AdaptiveLabelModel(n_classes=1_000, estimator={estimator!r}).label_stream(votes[:100].astype(np.int16))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
out = AdaptiveLabelModel(n_classes=1_000, estimator={estimator!r}).label_stream(votes.astype(np.int16))
print((out.labels == truth).mean(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"""
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=500)
        right, kilobytes = map(float, done.stdout.split())
        assert right > 0.99
        assert kilobytes < 500_000


@pytest.mark.parametrize("form", ["pd.DataFrame(columns)", "pd.DataFrame(columns, dtype=object)", "columns"])
@pytest.mark.parametrize("column", ["a", "when"])
def test_columns_of_mixed_objects_do_not_crash(form, column):
    """pyarrow ends the process at dates before numbers, both of NumPy; so it must not be asked to read them."""
    code = f"""import numpy as np, pandas as pd
from driftvote import DriftvoteError, MajorityLabelModel
mixed = [np.datetime64("NaT"), np.int8(1), np.int8(0)]
columns = {{"a": [1, 0, 1], "b": [1, 0, 1], "c": [0, 0, 1], "when": [1, 2, 3], {column!r}: mixed}}
try:
    MajorityLabelModel().label_stream({form}, time="when")
except DriftvoteError as refusal:
    print(refusal)"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    assert f"column '{column}'" in done.stdout
