"""Verified labels: by hand, at any time, in any portion, through every door, and what is refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from driftvote import AdaptiveLabelModel, FeedbackError, FixedWindowLabelModel, MajorityLabelModel, VoteError
from driftvote.models.feedback import FeedbackBook
from experiments.quality.scoring import credit_labels, credit_majority
from experiments.quality.streams import load

import naive_label_models as naive
from streams_for_tests import DATA, needs_data, random_chunks, random_stream

SMALL = {"windows": [1, 2, 4, 8, 16, 32, 64], "refresh": 8}
VOTES = random_stream(5, 150, 4, 3, 0.2)
TRUTH = np.random.default_rng(5).integers(3, size=150)  # what the stream was drawn from


def fed(votes=VOTES, **settings):
    model = AdaptiveLabelModel(**({"n_classes": 3, **SMALL} | settings))
    return model, model.label_stream(votes)


def state(model):
    return {name: part.copy() for name, part in model.to_state()[1].items()}


def same_state(left, right):
    left, right = state(left), state(right)
    return left.keys() == right.keys() and all(np.array_equal(left[name], right[name]) for name in left)


class TestByHand:
    def test_a_window_of_verified_rows(self):
        """With every row verified nothing is left to guess: votes are counted and smoothed."""
        votes = [[0, 0, 1], [0, 1, 1], [1, 1, 1], [0, 0, 0]]
        model = AdaptiveLabelModel(windows=[4], estimator="confusion")
        model.label_stream(votes)
        model.feedback([0, 1, 2, 3], [0, 0, 1, 0])
        theta = model.confusions
        # Class 0 has three rows; the prior is worth four rows, 7 in 10 right, silent 1 in 6.
        voting = 5 / 6
        for labeler, right in enumerate([3, 2, 1]):
            assert theta[labeler, 0, 0] == pytest.approx((right + 4 * voting * 0.7) / (3 + 4))
            assert theta[labeler, 0, 1] == pytest.approx((3 - right + 4 * voting * 0.3) / (3 + 4))
            assert theta[labeler, 1, 1] == pytest.approx((1 + 4 * voting * 0.7) / (1 + 4))
            assert model.accuracies[labeler] == pytest.approx((right + 1 + 4 * 0.7) / (4 + 4))
        assert model.estimated_class_balance.tolist() == [0.75, 0.25]
        mixture = AdaptiveLabelModel(windows=[4])
        mixture.label_stream(votes)
        mixture.feedback([0, 1, 2, 3], [0, 0, 1, 0])
        assert mixture.accuracies == pytest.approx(model.accuracies)
        assert mixture.estimated_class_balance.tolist() == pytest.approx([0.75, 0.25])

    def test_one_against_two(self):
        """Two labelers that err together look best, until somebody says who is right."""
        votes = np.array([[1, 0, 0], [0, 0, 0], [1, 1, 1], [0, 1, 1]] * 16)
        model = AdaptiveLabelModel(windows=[64])
        model.label_stream(votes)
        before = model.accuracies
        assert before[0] < before[1]
        assert model.predict([[1, 0, 0]]).tolist() == [0]
        rows = np.arange(40)
        model.feedback(rows, votes[rows, 0])
        assert model.accuracies[0] > 0.9 > model.accuracies[1]
        assert model.predict([[1, 0, 0], [0, 1, 1]]).tolist() == [1, 0]

    def test_verified_rows_come_out_verified(self):
        model = AdaptiveLabelModel(classes=["no", "yes"])
        out = model.label_stream([["no", "no", "no"]] * 3, verified=[None, "yes", np.nan])
        assert out.labels.tolist() == ["no", "yes", "no"]
        assert out.proba[1].tolist() == [0.0, 1.0]
        assert model.update(["no", "yes", None], verified="yes").probability == 1.0
        assert model.verified == {1: "yes", 3: "yes"}
        assert out.proba[2, 0] < 1.0


@pytest.mark.parametrize("seed", range(6))
def test_against_the_definition(seed):
    rng = np.random.default_rng(seed)
    k = 2 + seed % 2
    votes = random_stream(seed, 64, 4, k, 0.3)
    votes[:, 3] = np.where(rng.random(64) < 0.8, votes[:, 2], votes[:, 3])  # one that copies
    truth = np.where(rng.random(64) < (0.03, 0.4, 0.1)[seed % 3], rng.integers(k, size=64), -1)
    model = AdaptiveLabelModel(n_classes=k, windows=[64])
    model.label_stream(votes)
    model.feedback(np.flatnonzero(truth >= 0), truth[truth >= 0])
    found = naive.fit_mixture(votes, k, truth=truth.tolist())
    proba = model.predict_proba(votes)
    fit = model._stream.engine.current().fits
    for m, member in enumerate(found.members):
        if not member.kind.pooled:
            assert fit.theta[0, m - 2] == pytest.approx(member.theta, abs=1e-9)
        assert fit.balance[0, m] == pytest.approx(member.balance, abs=1e-9)
    assert fit.weights[0] == pytest.approx(found.weights, abs=1e-9)
    assert model.accuracies == pytest.approx(found.accuracy, abs=1e-9)
    expected = [naive.label_by_mixture(found, row, k)[1] for row in votes.tolist()]
    assert proba == pytest.approx(np.array(expected), abs=1e-9)


class TestAnyTime:
    def test_many_are_one_by_one(self):
        rows = [149, 90, 120]
        one, many, named, late = (fed()[0] for _ in range(4))
        for row in rows:
            one.feedback(row, int(TRUTH[row]))
        many.feedback(np.array(rows), pd.Series(TRUTH[rows]))
        named.feedback({row: TRUTH[row] for row in rows})
        late.feedback(rows, [(TRUTH[row] + 1) % 3 for row in rows])
        late.predict(VOTES)
        late.feedback(tuple(rows), TRUTH[rows], replace=True)
        assert same_state(one, many)
        assert same_state(one, named)
        assert same_state(one, late)
        assert one.verified == {row: TRUTH[row] for row in sorted(rows)}

    def test_it_counts_from_the_next_row_and_looking_changes_nothing(self):
        plain, told, asked = (fed()[0] for _ in range(3))
        for model in (told, asked):
            model.feedback(range(100, 150), TRUTH[100:150])
        assert (asked.predict_proba(VOTES) != plain.predict_proba(VOTES)).any()
        assert (asked.accuracies != plain.accuracies).any()
        assert (told.update(VOTES[0]).proba != plain.update(VOTES[0]).proba).any()
        asked.update(VOTES[0])
        assert same_state(told, asked)

    @pytest.mark.parametrize("seed", range(3))
    def test_chunks_and_files_do_not_matter(self, seed, tmp_path):
        votes, moments = random_stream(seed, 150, 4, 3, 0.2), (40, 41, 97, 130)
        verified = np.where(np.random.default_rng(seed).random(150) < 0.1, TRUTH, -1)
        results = []
        for cut in ("rows", "chunks", "files"):
            model = AdaptiveLabelModel(n_classes=3, **SMALL)
            borders = {0, 150, *moments, *(part.start for part in random_chunks(seed, 150))}
            parts = sorted(range(151) if cut == "rows" else borders)
            proba = []
            for begin, end in zip(parts, parts[1:], strict=False):
                ids = [f"row {row}" for row in range(begin, end)]
                proba.append(model.label_stream(votes[begin:end], ids=ids, verified=verified[begin:end]).proba)
                if end in moments:
                    model.feedback(f"row {end - 3}", TRUTH[end], replace=True)
                if cut == "files":
                    model.save(tmp_path / "state.npz")
                    model = AdaptiveLabelModel.load(tmp_path / "state.npz")
            results.append((np.concatenate(proba), model))
        for proba, model in results[1:]:
            assert np.array_equal(proba, results[0][0])
            assert same_state(model, results[0][1])
            assert model.verified == results[0][1].verified

    def test_what_is_long_past_is_forgotten(self):
        plain, told = fed()[0], fed()[0]
        told.feedback(range(100, 150), TRUTH[100:150])
        for model in (plain, told):
            model.label_stream(random_stream(6, 128, 4, 3, 0.2))
        assert told.verified == {}
        assert same_state(plain, told)

    def test_newcomers_leave_it_in_place(self):
        model = AdaptiveLabelModel(**SMALL)
        model.label_stream([{"a": 1, "b": 0, "c": 1}] * 20, ids=range(20))
        model.feedback(19, 0, by="id")
        model.update({"a": 1, "b": 0, "c": 1, "d": 0})
        model.feedback(18, 0, by="id")
        assert model.verified == {18: 0, 19: 0}

    def test_learning_alone_takes_them_too(self):
        labeled, learned = AdaptiveLabelModel(n_classes=3, **SMALL), AdaptiveLabelModel(n_classes=3, **SMALL)
        labeled.label_stream(VOTES, verified=np.where(TRUTH > 0, TRUTH, -1))
        learned.partial_fit(VOTES, verified=np.where(TRUTH > 0, TRUTH, -1))
        assert same_state(labeled, learned)
        assert same_state(labeled, learned.fit(VOTES, verified=np.where(TRUTH > 0, TRUTH, -1)))


class TestDoors:
    NAMES = ("ann", "bob", "cat")

    @pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "arrow"])
    def test_columns_of_a_wide_frame(self, make):
        columns = {name: [1, 0, 1, 0] for name in self.NAMES}
        model = AdaptiveLabelModel()
        frame = make(columns | {"mail": ["p", "q", "r", None], "gold": [None, 1, None, 0]})
        out = model.label_stream(frame, ids="mail", verified="gold")
        assert model.labelers == self.NAMES
        assert out.labels.tolist() == [1, 1, 1, 0]
        model.feedback({"p": 0, 2: 0})
        assert model.verified == {0: 0, 1: 1, 2: 0, 3: 0}

    def test_keys_of_dicts(self):
        rows = [{"ann": 1, "bob": 0, "cat": 1, "id": "x", "gold": None}, {"ann": 1, "bob": 1, "cat": 1, "gold": 0}]
        model = AdaptiveLabelModel()
        assert model.label_stream(rows, ids="id", verified="gold").labels.tolist()[1] == 0
        assert model.labelers == self.NAMES
        assert rows[0]["id"] == "x"
        model.feedback("x", 1)
        assert model.verified == {0: 1, 1: 0}

    def test_tasks_of_a_long_frame_are_ids(self, tmp_path):
        lines = [(task, who, 1, when) for when, task in enumerate([7, 8, 9]) for who in self.NAMES]
        frame = pd.DataFrame(lines, columns=["task", "worker", "label", "time"])
        frame["gold"] = [None, 0, None, None, None, None, None, None, None]
        keys = {"task": "task", "labeler": "worker", "label": "label", "time": "time"}
        model = AdaptiveLabelModel()
        assert model.label_stream(frame, **keys, verified="gold").labels.tolist() == [0, 1, 1]
        with pytest.raises(FeedbackError, match="8 may be a row number or an id, .* pass by='row' or by='id'"):
            model.feedback(8, 1)
        model.save(tmp_path / "state.npz")
        model = AdaptiveLabelModel.load(tmp_path / "state.npz")
        model.feedback(8, 0, by="id")
        model.feedback(2, 1, by="row")
        assert model.verified == {0: 0, 1: 0, 2: 1}
        # Models that do not learn from verified labels still take long frames.
        assert len(MajorityLabelModel().label_stream(frame, **keys)) == 3

    def test_chunks_from_an_iterator(self):
        frames = (pd.DataFrame({name: [1, 0] for name in "abc"} | {"id": [f"{n}-0", f"{n}-1"]}) for n in range(3))
        model = AdaptiveLabelModel()
        assert sum(len(out) for out in model.label_stream(frames, ids="id")) == 6
        model.feedback("2-1", 1)
        assert model.verified == {5: 1}


class TestIds:
    def test_a_book_is_bounded_by_the_window(self):
        model = AdaptiveLabelModel(**SMALL)
        sizes = []
        for begin in range(0, 400, 50):
            model.label_stream(VOTES[:50] % 2, ids=[f"mail {row}" for row in range(begin, begin + 50)])
            sizes.append((len(model._stream.ids), len(model._stream.ids.rows)))
        assert sizes == [(50, 50)] + [(64, 64)] * 7
        assert model.state_nbytes > model._stream.ids.nbytes > 64 * 8

    def test_an_id_that_comes_again(self):
        model = AdaptiveLabelModel(**SMALL)
        model.label_stream(VOTES[:10] % 2, ids=["twice", *"abcdefgh", "twice"])
        with pytest.raises(FeedbackError, match="id 'twice' is ambiguous: rows 0 and 9 both have it; verify by row"):
            model.feedback("twice", 1)
        model.label_stream(VOTES[:60] % 2)
        model.feedback("twice", 1)  # row 0 is forgotten
        assert model.verified == {9: 1}

    def test_any_text_survives_a_file(self):
        book = FeedbackBook()
        book.add(3, ["", "ä\u0000", None, 12, "12", "\ud800"])
        again = FeedbackBook.from_arrays(book.to_arrays(), 9)
        assert (again.by_row, again.rows, again.n_numbers) == (book.by_row, book.rows, 1)
        assert again.rows["12"] == [6, 7]
        damaged = book.to_arrays() | {"id_ends": book.to_arrays()["id_ends"][::-1]}
        with pytest.raises(ValueError, match="ids cannot be read"):
            FeedbackBook.from_arrays(damaged, 9)


REFUSED = [
    # what, rows, labels, more, message
    ("a class that is none", 140, 3, {}, r"row 140 cannot be verified as 3: it is not a class; the classes are 0, 1, 2"),
    ("an abstention", 140, -1, {}, "row 140 cannot be verified as -1: it is the abstention"),
    ("nothing", 140, None, {}, "cannot be verified as None: it is not a class"),
    ("not yet", 150, 1, {}, "row 150 is not there yet: 150 rows have been seen, the last one is row 149"),
    ("long past", 85, 1, {}, "row 85 is too old: the largest window is 64 rows, so rows before 86 are forgotten"),
    ("from the end", -1, 1, {}, "row -1: rows are counted from 0"),
    ("verified, the same", 149, 2, {}, "row 149 is verified already, as 2; pass replace=True"),
    ("verified, another", 149, 1, {}, "row 149 is verified already, as 2; pass replace=True"),
    ("twice at once", [140, 141, 140], [1, 1, 1], {"replace": True}, "row 140 is verified twice in this call"),
    ("row and its id", [148, "last but one"], [1, 1], {}, "row 148 is verified twice in this call"),
    ("the last of many", [140, 141, 150], [1, 1, 1], {}, "row 150 is not there yet"),
    ("the last label of many", {140: 1, 141: "x"}, None, {}, "row 141 cannot be verified as 'x'"),
    ("an unknown id", "nobody", 1, {}, "id 'nobody' is unknown: of the last 64 rows, which are remembered, none has it"),
    ("half a row", 140.5, 1, {"by": "row"}, "rows are whole numbers from 0, not 140.5"),
    ("a missing row", None, 1, {}, "None is neither a row number nor an id"),
    ("too few labels", [140, 141], [1], {}, "2 rows need as many labels, not 1"),
    ("one label for many", [140, 141], 1, {}, "2 rows need as many labels in a list, not 1"),
    ("labels beside a dict", {140: 1}, [1], {}, "a dict holds rows and labels already"),
    ("another way", 140, 1, {"by": "name"}, "by must be 'row' or 'id', not 'name'"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "labels", "more", "message"), [case[1:] for case in REFUSED], ids=[c[0] for c in REFUSED]
)
def test_refused_and_nothing_has_changed(rows, labels, more, message):
    model, _ = fed()
    model._stream.ids.add(148, ["last but one"])
    model.feedback(149, 2)
    before = model.copy()
    with pytest.raises(FeedbackError, match=message):
        model.feedback(rows, labels, **more)
    assert same_state(model, before)
    assert model.verified == {149: 2}


REFUSED_WITH_ROWS = [
    ("a class that is none", {"verified": [None, 2]}, "row 1 of this batch .*: the verified label 2 is not one of the classes 0, 1;"),
    ("too few", {"verified": [1]}, "verified= holds 1 values for 2 rows"),
    ("too many ids", {"ids": "abc"[:1] and ["a", "b", "c"]}, "ids= holds 3 values for 2 rows"),
    ("a column of an array", {"ids": "mail"}, "ids='mail' names a column, but the rows have no named columns"),
    ("one value for all", {"verified": 1}, "one value per row is needed"),
]  # fmt: skip


@pytest.mark.parametrize(("more", "message"), [c[1:] for c in REFUSED_WITH_ROWS], ids=[c[0] for c in REFUSED_WITH_ROWS])
def test_refused_with_the_rows(more, message):
    model = AdaptiveLabelModel()
    with pytest.raises(VoteError, match=message):
        model.label_stream([[1, 0, 1], [1, 1, 1]], **more)
    assert model.n_rows == 0


def test_refused_of_chunks():
    model = AdaptiveLabelModel()
    for act in (model.label_stream, model.partial_fit):
        with pytest.raises(VoteError, match="verified= of an iterator of chunks must name a column"):
            act(iter([[[1, 0, 1]], [[1, 1, 1]]]), verified=[1])
    assert model.n_rows == 0


def test_refused_of_frames():
    long = pd.DataFrame({"t": [1, 1, 1], "w": list("abc"), "l": [1, 1, 0], "s": [0, 1, 2], "gold": [1, 0, None]})
    keys = {"task": "t", "labeler": "w", "label": "l", "time": "s"}
    for more, message in [
        ({"verified": "gold"}, "row 1 of this batch .*: task 1 is verified as 0, but as 1 on an earlier line"),
        ({"verified": [1]}, "verified= of a long frame must name a column"),
        ({"ids": ["a"]}, "the tasks of a long frame are its ids"),
        ({"verified": "truth"}, "verified='truth': the frame has no such column; it has t, w, l, s, gold"),
    ]:
        with pytest.raises(VoteError, match=message):
            AdaptiveLabelModel().label_stream(long, **keys, **more)


@pytest.mark.parametrize(
    "model",
    [MajorityLabelModel(), FixedWindowLabelModel(window=10), AdaptiveLabelModel.paper(), AdaptiveLabelModel(estimator="triplet")],
    ids=["majority", "fixed", "paper", "triplet"],
)  # fmt: skip
def test_models_that_do_not_learn_from_it_say_so(model):
    model.label_stream([[1, 0, 1]])
    for act in (
        lambda: model.feedback(0, 1),
        lambda: model.update([1, 0, 1], verified=1),
        lambda: model.label_stream([[1, 0, 1]], ids=["a"]),
        lambda: model.partial_fit([[1, 0, 1]], verified=[1]),
    ):
        with pytest.raises(FeedbackError, match=r"does not learn from verified labels; use .*estimator='mixture'"):
            act()
    assert model.n_rows == 1
    assert model.verified == {}


def test_before_the_first_row():
    with pytest.raises(FeedbackError, match="the model has seen no rows"):
        AdaptiveLabelModel().feedback(0, 1)


DELAY = 100
"""A row is verified when at least so many more have come."""


def accuracy_with_verified(stream, share, pick):
    """Accuracy of the labels as they came out, before their rows were verified; in per cent."""
    model = AdaptiveLabelModel(n_classes=stream.n_classes, votes="snorkel")
    # The rows of a smaller share are among those of a larger one: more is really more.
    picked = np.random.default_rng([pick, 11]).random(len(stream.truth)) < share
    codes = []
    for begin in range(0, len(stream.truth), DELAY):
        codes.append(model.label_stream(stream.votes[begin : begin + DELAY]).codes)
        first = max(0, begin - DELAY, model.n_rows - model.windows.grid[-1])
        rows = np.flatnonzero(picked[first:begin]) + first
        if len(rows):
            model.feedback(rows, stream.truth[rows])
    of_majority = credit_majority(stream.votes, stream.truth, stream.n_classes)
    return 100 * credit_labels(np.concatenate(codes), stream.truth, of_majority).mean()


@needs_data
@pytest.mark.slow
class TestStreams:
    def test_sensors_are_labeled_better_with_five_per_cent(self):
        stream = load(str(DATA), "gas_sensor_lf16_b1")
        without = accuracy_with_verified(stream, 0.0, 0)
        assert np.mean([accuracy_with_verified(stream, 0.05, pick) for pick in (0, 1, 2)]) > without + 2.0

    @pytest.mark.parametrize("name", ["tennis", "wrench_youtube", "gas_sensor_lf16_b1"])
    def test_more_do_not_hurt(self, name):
        stream = load(str(DATA), name)
        found = [
            np.mean([accuracy_with_verified(stream, share, pick) for pick in range(8)])
            for share in (0.0, 0.01, 0.05, 0.1)
        ]
        # Eight picks of a few rows leave a standard error of about 0.4 on the shortest stream.
        assert all(now >= before - 0.5 for before, now in zip(found, found[1:], strict=False))
        if name.startswith("gas"):
            assert found[-1] > found[0] + 8
