"""Bad input, each with the sentence it gets."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from driftvote import (
    AdaptiveLabelModel,
    DriftvoteError,
    FixedWindowLabelModel,
    LabelerError,
    MajorityLabelModel,
    OrderError,
    SettingError,
    VoteError,
    VoteFormatWarning,
    WindowGrid,
)
from driftvote.inputs import to_list
from driftvote.streams import simulate
from driftvote.votes import SignedVotesCheck, declare_votes

SIGNED = np.random.default_rng(0).choice([-1, 1], size=(200, 3))


def label(data, **settings):
    keys = {key: settings.pop(key) for key in ("time", "task", "labeler", "label") if key in settings}
    return AdaptiveLabelModel(**settings).label_stream(data, **keys)


VOTES = [
    # what, call, kind, message
    ("two columns", lambda: label([[1, 0]]), LabelerError, r"at least 3 labelers are needed .* not 2; add labelers"),
    ("two declared", lambda: AdaptiveLabelModel(labelers=["a", "b"]), LabelerError, "at least 3 labelers"),
    ("a frame as one row", lambda: AdaptiveLabelModel().update(pa.table({"a": [1], "b": [0], "c": [1]})), VoteError, "one row of votes is needed, .* not a frame"),
    ("several rows to explain", lambda: AdaptiveLabelModel().explain(pd.DataFrame({"a": [1, 0], "b": [0, 0], "c": [1, 0]})), VoteError, "not a frame"),
    ("a frame of rows and no columns", lambda: label(pd.DataFrame(index=range(3))), VoteError, "the frame has no columns of votes"),
    ("two keys", lambda: AdaptiveLabelModel().update({"a": 1, "b": 0}), LabelerError, "at least 3 labelers"),
    ("two frame columns", lambda: label(pd.DataFrame({"a": [1], "b": [0]})), LabelerError, "at least 3 labelers"),
    ("unknown name before its value", lambda: AdaptiveLabelModel(labelers=["a", "b", "c"]).update({"id": "x", "a": 1}), LabelerError, "unknown labeler 'id'"),
    ("NaN among declared numbers", lambda: label(np.array([[0, np.nan, 1]]), classes=[0, 1]), VoteError, "write abstentions as None, or pass a data frame"),
    ("id column beside text classes", lambda: label(pd.DataFrame({"id": ["x"], "a": ["no"], "b": ["no"], "c": ["no"]}), classes=["no", "yes"]), VoteError, r"labelers=\[\.\.\.\] if 'id' is not one"),
    ("a frame library we do not know", lambda: label([[1, 1, 0]]).to_frame("duckdb"), SettingError, "backend must be 'pandas', 'polars', 'pyarrow', not 'duckdb'"),
    ("class 2 of 2", lambda: label([[1, 0, 1], [0, 2, 1]]), VoteError,
     r"row 1 of this batch \(counting from 0\), column 'labeler_1': 2 is neither a class \(0, 1\) nor an abstention \(-1\); pass n_classes=3 or more"),
    ("a whole float is shown as the number it is", lambda: label(np.array([[1.0, 5.0, 0.0]])), VoteError, "'labeler_1': 5 is neither"),
    ("below -1", lambda: label([[1, 0, -2]]), VoteError, r"'labeler_2': -2 is neither .*classes=\[\.\.\.\], abstain="),
    ("half a class", lambda: label(np.array([[1, 0.5, 0]])), VoteError, r"'labeler_1': 0.5 is neither"),
    ("infinity", lambda: label(np.array([[1, np.inf, 0]])), VoteError, "inf is neither"),
    ("NaN in an array", lambda: label(np.array([[1, np.nan, 0]])), VoteError,
     r"row 0 .*'labeler_1': nan is neither .*write abstentions as -1, or pass a data frame"),
    ("text in a list", lambda: label([[1, "a", 0]]), VoteError, r"row 0 .*'labeler_1': 'a' is neither .*pass classes=\[\.\.\.\]"),
    ("text in an array", lambda: label(np.array([["a", "b", "c"]])), VoteError, r"'labeler_0': 'a' is neither"),
    ("digits as text", lambda: label([["1", "0", "1"]]), VoteError, r"'1' is neither .*pass classes="),
    ("a list as a vote", lambda: AdaptiveLabelModel().update({"a": [1], "b": 1, "c": 0}), VoteError, r"row 0 .*'a': \[1\] is neither"),
    ("signed 2", lambda: label([[1, 2, -1]], votes="signed"), VoteError, r"2 is neither a class \(-1, 1\) nor an abstention \(0\); pass votes='snorkel'"),
    ("signed half", lambda: label([[1, 0.5, -1]], votes="signed"), VoteError, r"0.5 is neither .*declare the values"),
    ("undeclared class", lambda: label([["ham", "egg", "ham"]], classes=["ham", "spam"]), VoteError,
     r"'egg' is neither a class \('ham', 'spam'\) nor an abstention \(a missing value\); add it to classes"),
    ("many classes shown short", lambda: label([[99, 0, 0]], n_classes=50), VoteError, r"\(0, 1, 2, 3, 4, \.\.\., 49\)"),
    ("declared name in the message", lambda: label([[1, 0, 7]], labelers=["ann", "bob", "cat"]), VoteError, "column 'cat': 7"),
    ("id column in a frame", lambda: label(pd.DataFrame({"id": ["x"], "a": [1], "b": [1], "c": [0]})), VoteError,
     r"row 0 .*column 'id': 'x' is neither .*labelers=\[\.\.\.\] if 'id' is not a labeler"),
    ("bad cell of a frame", lambda: label(pl.DataFrame({"a": [1, 1], "b": [1, 5], "c": [0, 0]})), VoteError, r"row 1 .*column 'b': 5 is"),
    ("bad dict value", lambda: AdaptiveLabelModel().update({"a": 1, "b": 9, "c": 0}), VoteError, r"column 'b': 9 is neither"),
    ("signed by default", lambda: label(SIGNED), VoteError,
     r"the first 200 rows hold only -1 and \+1.*votes='signed' if -1 is the negative class, or votes='snorkel' to insist"),
    ("ragged", lambda: label([[1, 0, 1], [1, 0]]), VoteError, r"row 1 \(counting from 0\) holds 2 votes, but row 0 holds 3"),
    ("a number among rows", lambda: label([[1, 0, 1], 1]), VoteError, r"row 1 .* is 1, not a row of 3 votes"),
    ("one row to label_stream", lambda: label([1, 0, 1]), VoteError, r"table of rows x labelers, not an array of shape \(3,\); use update"),
    ("a table to update", lambda: AdaptiveLabelModel().update(np.zeros((2, 3))), VoteError, r"one row of votes .* shape \(2, 3\); use label_stream"),
    ("columns to update", lambda: AdaptiveLabelModel().update({"a": [1, 0], "b": [1, 1], "c": [0, 0]}), VoteError, "not columns; use label_stream"),
    ("a number to update", lambda: AdaptiveLabelModel().update(1), VoteError, r"one row of votes"),
    ("no votes to update", lambda: AdaptiveLabelModel().update([]), VoteError, r"one row of votes"),
    ("empty array", lambda: label(np.zeros((0, 3))), VoteError, r"no votes to read: the table has shape \(0, 3\)"),
    ("empty list", lambda: label([]), VoteError, "no votes to read: the list of rows is empty"),
    ("empty frame", lambda: label(pd.DataFrame({"a": [], "b": [], "c": []})), VoteError, "no votes to read: the frame has no rows"),
    ("empty dict", lambda: AdaptiveLabelModel().update({}), VoteError, "names no labeler"),
    ("duplicate declared", lambda: AdaptiveLabelModel(labelers=["a", "b", "a"]), LabelerError, "labeler 'a' is named twice"),
    ("duplicate columns", lambda: label(pd.DataFrame([[1, 0, 1]], columns=["a", "b", "a"])), LabelerError, "labeler 'a' is named twice"),
    ("names as text", lambda: AdaptiveLabelModel(labelers="abc"), LabelerError, "list of names"),
    ("same text twice", lambda: AdaptiveLabelModel().update({1: 1, "1": 0, 2: 1}), LabelerError, "'1' is named twice"),
    ("missing declared column", lambda: label(pd.DataFrame({"a": [1], "b": [1], "c": [1]}), labelers=["a", "b", "x"]), LabelerError,
     r"no column for labeler 'x'.*a, b, c"),
    ("a thing", lambda: label(object()), VoteError, "cannot read votes from object"),
    ("a lazy frame", lambda: label(pl.LazyFrame({"a": [1]})), VoteError, r"LazyFrame \(collect\(\) a lazy frame first\)"),
    ("time on an array", lambda: label([[1, 1, 1]], time="t"), VoteError, "time='t' names a column, but a list of rows"),
    ("task on an array", lambda: label(np.ones((2, 3)), task="t"), VoteError, "task='t' names a column, but an array"),
    ("no such time", lambda: label(pd.DataFrame({"a": [1], "b": [1], "c": [1]}), time="t"), VoteError, "time='t': the frame has no such column; it has a, b, c"),
]  # fmt: skip

LINES = {"task": [1, 1, 1, 2], "worker": ["a", "b", "c", "a"], "label": [0, 1, 1, 0], "at": [1, 2, 3, 4]}
KEYS = {"task": "task", "labeler": "worker", "label": "label", "time": "at"}


def long(**changes):
    return pd.DataFrame({**LINES, **changes})


LONG = [
    ("repeated vote", lambda: label(long(task=[1, 1, 1, 1]), **KEYS), VoteError, r"row 3 .*labeler 'a' votes again on task 1 \(first in row 0\)"),
    ("no time", lambda: label(long(), **{k: v for k, v in KEYS.items() if k != "time"}), OrderError, "a long frame needs time="),
    ("no such column", lambda: label(long(), **{**KEYS, "time": "when"}), VoteError, "time='when': the frame has no such column"),
    ("half declared", lambda: label(long(), task="task", time="at"), VoteError, "labeler= is missing"),
    ("not declared", lambda: label(long()), VoteError, "look like a long frame"),
    ("empty task", lambda: label(long(task=[1, None, 1, 2]), **KEYS), VoteError, "row 1 .*column 'task' is empty"),
    ("bad vote", lambda: label(long(label=[0, 1, 5, 0]), **KEYS), VoteError, "row 2 .*column 'label': 5 is neither"),
    ("no rows", lambda: label(long().head(0), **KEYS), VoteError, "no rows"),
    ("two workers", lambda: label(long().iloc[:2], **KEYS), LabelerError, "at least 3 labelers"),
    ("stranger", lambda: label(long(), labelers=["a", "b", "d"], **KEYS), LabelerError, "unknown labeler 'c'"),
]  # fmt: skip

SETTINGS = [
    ("decreasing windows", lambda: AdaptiveLabelModel(windows=[4, 2]), r"windows must increase: windows\[1\] = 2 comes after 4"),
    ("repeated windows", lambda: AdaptiveLabelModel(windows=[4, 4]), "windows must increase"),
    ("zero window", lambda: AdaptiveLabelModel(windows=[0, 1]), r"windows\[0\] must be a whole number of rows from 1 to \d+, not 0"),
    ("negative window", lambda: FixedWindowLabelModel(window=-5), "window must be a whole number of rows"),
    ("half a window", lambda: AdaptiveLabelModel(windows=[1.5]), r"windows\[0\] .* not 1.5"),
    ("a boolean window", lambda: FixedWindowLabelModel(window=True), "not True"),
    ("huge window", lambda: FixedWindowLabelModel(window=2**40), "from 1 to"),
    ("no windows", lambda: AdaptiveLabelModel(windows=[]), "at least one size"),
    ("windows as a number", lambda: AdaptiveLabelModel(windows=7), "list of increasing sizes"),
    ("ratio of one", lambda: WindowGrid.geometric(1, 100, ratio=1.0), "ratio must be at least 1.01"),
    ("beta zero", lambda: AdaptiveLabelModel(beta=0), "beta must be a number above 0, not 0"),
    ("beta NaN", lambda: AdaptiveLabelModel(beta=float("nan")), "beta must be"),
    ("beta text", lambda: AdaptiveLabelModel(beta="a"), "beta must be a number, not 'a'"),
    ("delta one", lambda: AdaptiveLabelModel(delta=1), "delta must lie between 0 and 1, both excluded, not 1"),
    ("clip to one", lambda: AdaptiveLabelModel(estimator="triplet", clip=(0.1, 1.0)), r"clip must be \(low, high\)"),
    ("clip reversed", lambda: AdaptiveLabelModel(estimator="triplet", clip=(0.9, 0.1)), "clip must be"),
    ("clip of one number", lambda: AdaptiveLabelModel(estimator="triplet", clip=0.9), r"pair \(low, high\)"),
    ("abstentions", lambda: AdaptiveLabelModel(abstentions="skip"), "abstentions must be 'zero' or 'random', not 'skip'"),
    ("ties", lambda: MajorityLabelModel(tie_break_policy="first"), "tie_break_policy must be 'abstain' or 'random'"),
    ("ties in predict", lambda: MajorityLabelModel().fit([[1, 1, 0]]).predict([[1, 1, 0]], tie_break_policy="x"), "tie_break_policy must be"),
    ("seed", lambda: AdaptiveLabelModel(seed=1.5), "seed must be a whole number, not 1.5"),
    ("seed True", lambda: AdaptiveLabelModel(seed=True), "seed must be"),
    ("one class", lambda: AdaptiveLabelModel(n_classes=1), "n_classes must be a whole number from 2"),
    ("classes True", lambda: AdaptiveLabelModel(n_classes=True), "n_classes must be"),
    ("unknown format", lambda: AdaptiveLabelModel(votes="squid"), r"votes must be 'snorkel' .* or 'signed'"),
    ("signed with three", lambda: AdaptiveLabelModel(votes="signed", n_classes=3), "votes='signed' has two classes"),
    ("two declarations", lambda: AdaptiveLabelModel(votes="signed", classes=["a", "b"]), "both declare the format"),
    ("classes as text", lambda: AdaptiveLabelModel(classes="ab"), "classes must be a list"),
    ("one class named", lambda: AdaptiveLabelModel(classes=["a"]), "from 2 to"),
    ("class twice", lambda: AdaptiveLabelModel(classes=["a", "b", "a"]), "classes names 'a' twice"),
    ("count differs", lambda: AdaptiveLabelModel(classes=["a", "b"], n_classes=3), "n_classes=3 but classes names 2"),
    ("class None", lambda: AdaptiveLabelModel(classes=["a", None]), "cannot be a class"),
    ("abstain is a class", lambda: AdaptiveLabelModel(classes=["a", "b"], abstain="a"), "is one of the classes"),
    ("abstain alone", lambda: AdaptiveLabelModel(abstain=9), r"goes with classes=\[\.\.\.\]"),
    ("all the past without rows", lambda: FixedWindowLabelModel(window=None, estimator="confusion"), "window=None keeps no rows, which estimator='confusion' needs"),
    ("a setting of another estimator", lambda: FixedWindowLabelModel(window=5, estimator="one_coin", clip=(0.1, 0.9)), "clip goes with estimator='triplet', not 'one_coin'"),
    ("simulated accuracies", lambda: simulate(np.array([[0.5, 1.5]]), 0), "values from 0 to 1"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "message"), [c[1:] for c in VOTES + LONG], ids=[c[0] for c in VOTES + LONG])
def test_votes(call, kind, message):
    with pytest.raises(kind, match=message) as caught:
        call()
    assert isinstance(caught.value, DriftvoteError)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("call", "message"), [c[1:] for c in SETTINGS], ids=[c[0] for c in SETTINGS])
def test_settings(call, message):
    with pytest.raises(SettingError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_wrong_width_says_who_is_expected():
    model = AdaptiveLabelModel(labelers=["a", "b", "c", "d"])
    for call in (model.update, model.predict_one):
        with pytest.raises(LabelerError, match="a row must hold 4 votes, one for each of a, b, c, d, not 3"):
            call([1, 0, 1])
    wide = AdaptiveLabelModel().fit(np.ones((5, 9), int))
    with pytest.raises(LabelerError, match=r"labeler_0, .* \.\.\. labeler_8 \(9 in all\), not 3"):
        wide.update([1, 0, 1])


def test_the_default_format_is_judged_by_the_first_rows():
    assert len(AdaptiveLabelModel(votes="snorkel").label_stream(SIGNED)) == 200
    assert len(AdaptiveLabelModel(votes="signed").label_stream(SIGNED)) == 200
    assert AdaptiveLabelModel().update(SIGNED[0]).window == 1
    later = AdaptiveLabelModel().fit([[0, 1, 1]])
    assert len(later.label_stream(SIGNED)) == 200
    assert len(AdaptiveLabelModel(n_classes=3).label_stream(SIGNED)) == 200
    # Cells that are empty are not written as -1, so nothing contradicts the format.
    frame = pd.DataFrame(np.where(SIGNED < 0, np.nan, 1), columns=["a", "b", "c"])
    assert len(AdaptiveLabelModel().label_stream(frame)) == 200
    assert len(AdaptiveLabelModel().label_stream(frame[:20])) == 20
    with pytest.raises(VoteError, match="votes='signed'"):
        AdaptiveLabelModel().label_stream(pd.DataFrame(SIGNED, columns=["a", "b", "c"]))
    with pytest.raises(VoteError, match="votes='signed'"):
        AdaptiveLabelModel().label_stream([dict(zip("abc", row, strict=True)) for row in SIGNED.tolist()])


def signed_votes(n, coverage):
    draw = np.random.default_rng(3)
    truth = draw.choice([-1, 1], n)
    votes = np.where(draw.random((n, 5)) < 0.85, truth[:, None], -truth[:, None])
    return np.where(draw.random((n, 5)) < coverage, votes, 0)


@pytest.mark.parametrize(("n", "coverage"), [(2, 1.0), (50, 1.0), (99, 1.0), (100, 0.8), (300, 0.8)])
def test_a_batch_of_signed_votes_is_pointed_out(n, coverage):
    votes = signed_votes(n, coverage)
    for data in (votes, pd.DataFrame(votes, columns=list("abcde")), votes.tolist()):
        with pytest.warns(VoteFormatWarning, match=rf"the first {n} rows .* pass votes='signed'"):
            AdaptiveLabelModel().label_stream(data)
    for form in ("signed", "snorkel"):
        AdaptiveLabelModel(votes=form).label_stream(votes)


@pytest.mark.parametrize("coverage", [1.0, 0.8])
@pytest.mark.parametrize("as_dict", [False, True])
def test_single_rows_of_signed_votes_are_pointed_out_once(coverage, as_dict):
    model, seen = AdaptiveLabelModel(), []
    for number, row in enumerate(signed_votes(300, coverage).tolist(), 1):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.update(dict(zip("abcde", row, strict=True)) if as_dict else row)
        seen += [number] * len(caught)
    assert len(seen) == 1
    assert seen[0] < (20 if coverage == 1.0 else 200)


@pytest.mark.parametrize("coverage", ["rows", "random", "one-sided"])
def test_snorkel_votes_are_not_doubted(coverage):
    """Also where abstentions come together, where a class is rare, and where rules vote for one class only."""
    for seed in range(20):
        draw = np.random.default_rng(seed)
        truth = (draw.random(300) < [0.5, 0.05][seed % 2]).astype(int)
        votes = np.where(draw.random((300, 6)) < 0.8, truth[:, None], 1 - truth[:, None])
        share = {"rows": draw.random((300, 1)), "random": 0.6, "one-sided": votes == np.arange(6) % 2}[coverage]
        votes = np.where(draw.random((300, 6)) < share, votes, -1)
        check = SignedVotesCheck.of(declare_votes())
        for begin, end in ((0, 40), (40, 41), (41, 300)):
            check.look(declare_votes(), votes[begin:end], range(votes.shape[1]), True, begin)


@pytest.mark.parametrize("size", [1, 50, 600])
@pytest.mark.parametrize("share", [0.05, 0.2])
def test_rules_for_one_class_are_not_doubted(size, share):
    """Four rules, each for one class only, of which one is rare: -1 and 1 are together in few columns."""
    for seed in range(10):
        draw = np.random.default_rng(seed)
        truth = (draw.random(600) < share).astype(int)
        votes = np.where(draw.random((600, 4)) < 0.7, truth[:, None], 1 - truth[:, None])
        votes[votes != np.arange(4) % 2] = -1
        check = SignedVotesCheck.of(declare_votes())
        for begin in range(0, 600, size):
            check.look(declare_votes(), votes[begin : begin + size], range(votes.shape[1]), True, begin)


MEANT = [
    (lambda: AdaptiveLabelModel(window=100), r"no setting 'window'; did you mean windows=.*FixedWindowLabelModel\(window="),
    (lambda: AdaptiveLabelModel(n_class=3), r"no setting 'n_class'; did you mean n_classes=\?"),
    (lambda: FixedWindowLabelModel(windows=100), r"FixedWindowLabelModel has no setting 'windows'; did you mean window=\?"),
    (lambda: MajorityLabelModel(cardinality=3), r"MajorityLabelModel has no setting 'cardinality'; did you mean n_classes=\?"),
    (lambda: AdaptiveLabelModel(frobnicate=3), r"no setting 'frobnicate'; leave it out"),
    (lambda: AdaptiveLabelModel().label_stream([[1, 0, 1]], worker="w"), r"no keyword 'worker'; did you mean labeler=\?"),
    (lambda: AdaptiveLabelModel().fit([[1, 0, 1]], timestamp="t"), r"no keyword 'timestamp'; did you mean time=\?"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), MEANT)
def test_a_keyword_of_other_libraries_is_told_its_name_here(call, message):
    with pytest.raises(TypeError, match=message):
        call()


@pytest.mark.parametrize(
    "rows", [[[1, 0, 1]], [(1, 0, 1)], [[1, 0, 1, 1], [1, 1, 1, 1], [0, 0, 0, 0]], [np.ones(3, int)]]
)
def test_rows_are_not_one_row(rows):
    model = AdaptiveLabelModel()
    for _ in range(2):
        with pytest.raises(VoteError, match=rf"not a list of {len(rows)} rows; use label_stream"):
            model.update(rows)
        model.update([1, 1, 0])


def test_classes_that_begin_at_one():
    for data in ([[1, 2, 1], [2, 2, 1]], pd.DataFrame({"a": [1, 2], "b": [2, 2], "c": [1, 2]})):
        with pytest.raises(VoteError, match=r"or classes=\[1, 2\] for classes from 1"):
            label(data)
    with pytest.raises(VoteError, match=r"pass n_classes=10 or more for classes from 0, or classes=range\(1, 10\)"):
        label([[1, 9, 1]])
    assert label([[1, 9, 1], [9, 9, 9]], classes=range(1, 10)).labels.tolist()[1] == 9


def test_a_dict_of_lists_is_a_wide_frame():
    votes = {"a": [1, 0, -1], "b": [1, 1, 0], "c": [0, 0, 0]}
    expected = label(pd.DataFrame(votes))
    for columns in (
        votes,
        {name: np.array(v) for name, v in votes.items()},
        {name: pd.Series(v) for name, v in votes.items()},
    ):
        out = label(columns)
        assert out.labelers == ("a", "b", "c")
        np.testing.assert_array_equal(out.proba, expected.proba)
    out = AdaptiveLabelModel(classes=["n", "y"]).label_stream(
        {"a": ["n", None], "b": ["n", "y"], "c": ["y", "y"], "at": ["31.01.2026", "01.02.2026"]}, time="at"
    )
    assert out.labels.tolist() == ["n", "y"]
    with pytest.raises(VoteError, match="column 'b' holds 1 votes, but 'a' holds 2"):
        label({"a": [1, 0], "b": [1], "c": [1, 1]})
    with pytest.raises(VoteError, match="votes of one type in each list"):
        label({"a": [1, "x"], "b": [1, 0], "c": [1, 1]})


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_labels_that_no_column_holds_become_text(backend):
    out = label([[2**70] * 3], classes=[2**70, 2**71])
    assert to_list(out.to_frame(backend)["label"]) == [str(2**70)]
    half = AdaptiveLabelModel(classes=["\ud800", "b"], labelers=["\udc80", "x", "y"]).label_stream([["\ud800"] * 3])
    frame = half.to_frame(backend, per_labeler=True)
    assert next(iter(frame["label"])) is not None
    assert any("accuracy_\\udc80" in str(name) for name in getattr(frame, "column_names", frame.columns))
    with pytest.raises(IndexError, match="row 7 is not among these 1 rows"):
        half.explain(7)


def test_agreements_need_rows():
    with pytest.raises(DriftvoteError, match="seen no rows"):
        AdaptiveLabelModel().why_window()
    with pytest.raises(DriftvoteError, match="seen no rows"):
        _ = FixedWindowLabelModel(window=3).agreements
