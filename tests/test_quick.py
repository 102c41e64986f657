"""The short way for single rows: taken when nothing is unusual, and never to be seen in the results."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from driftvote import AdaptiveLabelModel, FixedWindowLabelModel, MajorityLabelModel
from driftvote.errors import DriftvoteError
from driftvote.models.quick import QuickRows

from streams_for_tests import PAPERS_RULE, random_stream

NAMES = ("label", "code", "window", "n_votes", "probability")
TABLES = ("proba", "accuracies", "diluted_accuracies", "weights", "coverage")
MODELS = [
    AdaptiveLabelModel(windows=[1, 2, 4, 8, 16, 32], delta=0.9, **PAPERS_RULE),
    AdaptiveLabelModel(n_classes=3, windows=[3, 7, 20], tie_break_policy="random", seed=4, **PAPERS_RULE),
    AdaptiveLabelModel(votes="signed", windows=[1, 2, 4, 8], **PAPERS_RULE),
    AdaptiveLabelModel(classes=[10, 30, 20], abstain=-7, windows=[2, 5, 9], **PAPERS_RULE),
    AdaptiveLabelModel.paper(3, windows=[1, 2, 4, 8]),
    FixedWindowLabelModel(window=5),
    FixedWindowLabelModel(window=None),
]


@pytest.fixture
def short_ways(monkeypatch):
    """Counts the rows that went the short way."""
    taken = []
    label = QuickRows.label

    def counting(self, row):
        step = label(self, row)
        taken.append(step is not None)
        return step

    monkeypatch.setattr(QuickRows, "label", counting)
    return taken


def written(model, codes):
    """Codes as the model's own values."""
    return np.array([*model.classes, model._form.abstain])[codes]


@pytest.mark.parametrize("abstain", [0.0, 0.3])
@pytest.mark.parametrize("model", MODELS, ids=lambda m: repr(m)[:60])
def test_both_ways_say_the_same(model, abstain, short_ways):
    votes = written(model, random_stream(5, 300, 4, len(model.classes), abstain, blocks=4))
    quick, batch = model.clone(), model.clone().label_stream(votes)
    for row, expected in zip(votes, batch, strict=True):
        step = quick.update(row)
        for name in NAMES:
            assert getattr(step, name) == getattr(expected, name), name
        for name in TABLES:
            assert np.array_equal(getattr(step, name), getattr(expected, name)), name
        assert step.to_dict() == expected.to_dict()
    assert len(short_ways) == 299
    filled = abstain and model.abstentions == "random"  # a row with random votes in it takes the long way
    assert sum(short_ways) == 299 or (filled and 20 < sum(short_ways) < 299)


@pytest.mark.parametrize("kind", [np.int8, np.int16, np.int32, np.int64, ">i4", list, tuple])
def test_rows_of_whole_numbers_take_the_short_way(kind, short_ways):
    votes = random_stream(6, 50, 4, 2, 0.2)
    expected = AdaptiveLabelModel(**PAPERS_RULE).label_stream(votes)
    model = AdaptiveLabelModel(**PAPERS_RULE)
    made = (lambda row: kind(row.tolist())) if kind in (list, tuple) else (lambda row: row.astype(kind))
    assert [model.update(made(row)).code for row in votes] == expected.codes.tolist()
    assert short_ways == [True] * 49


@pytest.mark.parametrize(
    "row",
    [
        np.array([1, 0, 1, 0], np.uint8),
        np.array([1.0, 0.0, 1.0, 0.0]),
        np.array([True, False, True, False]),
        np.ma.masked_array([1, 0, 1, 0], mask=[0, 0, 0, 0]),
        [1, 0, 1, 0.0],
        [1, 0, 1, np.int64(0)],
        {"labeler_0": 1, "labeler_1": 0, "labeler_2": 1, "labeler_3": 0},
    ],
    ids=lambda row: type(row).__name__ + str(getattr(row, "dtype", "")),
)
def test_what_is_unusual_takes_the_long_way_to_the_same_place(row, short_ways):
    votes = random_stream(7, 40, 4)
    left, right = AdaptiveLabelModel(**PAPERS_RULE).fit(votes), AdaptiveLabelModel(**PAPERS_RULE).fit(votes)
    left.update([1, 1, 0, 0])
    right.update([1, 1, 0, 0])
    assert left.update(row).to_dict() == right.update([1, 0, 1, 0]).to_dict()
    assert short_ways == [False, True]


@pytest.mark.parametrize(
    "row", [[1, 0, 2, 1], [1, 0, -2, 1], [1, 0, 2**40, 1], [1, 0, 2**70, 1], [1, 0, 1], [[1, 0, 1, 1]]]
)
def test_a_bad_row_is_refused_as_ever_and_leaves_no_trace(row):
    votes = random_stream(8, 40, 4)
    fresh, used = AdaptiveLabelModel(**PAPERS_RULE), AdaptiveLabelModel(**PAPERS_RULE).fit(votes)
    fresh.update([1, 0, 1, 1])
    used.update([1, 0, 1, 1])
    used.update([1, 0, 1, 1])
    before = [part.copy() for part in used._engine.state.memory]
    with pytest.raises(DriftvoteError) as long_way:
        AdaptiveLabelModel(labelers=used.labelers, **PAPERS_RULE).update(row)
    with pytest.raises(DriftvoteError) as short_way:
        used.update(row)
    assert type(short_way.value) is type(long_way.value)
    assert str(short_way.value) == str(long_way.value)
    assert all(np.array_equal(a, b) for a, b in zip(before, used._engine.state.memory, strict=True))


def test_copies_are_independent():
    votes = random_stream(9, 60, 4)
    model = AdaptiveLabelModel(**PAPERS_RULE)
    for row in votes[:30]:
        model.update(row)
    expected = model.accuracies.tolist()
    for twin in (model.copy(), pickle.loads(pickle.dumps(model))):
        for row in votes[30:]:
            twin.update(row)
        assert twin.n_rows == 60
        assert twin.accuracies.tolist() == AdaptiveLabelModel(**PAPERS_RULE).fit(votes).accuracies.tolist()
    assert model.n_rows == 30
    assert model.accuracies.tolist() == expected


def test_everything_that_changes_the_engine_is_noticed(short_ways):
    votes = random_stream(10, 700, 4)
    model, expected = AdaptiveLabelModel(**PAPERS_RULE), AdaptiveLabelModel(**PAPERS_RULE)
    model.update(votes[0])
    model.label_stream(votes[1:300])
    model.update(votes[300])
    model.partial_fit(votes[301:650])
    assert model.update(votes[650]).to_dict() == expected.fit(votes[:650]).update(votes[650]).to_dict()
    model.update({"new": 1})  # a labeler joins: another engine
    expected.update({"new": 1})
    wide = [1, 0, 1, 1, 0]
    assert model.update(wide).to_dict() == expected.update(wide).to_dict()
    model.reset()
    assert model.update([1, 1, 0]).labelers == ("labeler_0", "labeler_1", "labeler_2")
    assert model.update([1, 1, 0]).window == 2
    assert short_ways.count(True) >= 4


def test_a_step_outlives_the_rows_after_it():
    model = AdaptiveLabelModel(windows=[1, 2, 4], **PAPERS_RULE)
    steps = [model.update(row) for row in ([1, 1, 0], [0, 0, 0], [1, 0, 1])]
    batch = AdaptiveLabelModel(windows=[1, 2, 4], **PAPERS_RULE).label_stream([[1, 1, 0], [0, 0, 0], [1, 0, 1]])
    assert [step.to_dict() for step in steps] == [step.to_dict() for step in batch]


def test_models_without_a_short_way_do_without():
    text = AdaptiveLabelModel(classes=["no", "yes"], **PAPERS_RULE)
    assert [text.update(["no", "yes", "yes"]).label for _ in range(3)] == ["yes"] * 3
    plain = MajorityLabelModel()
    assert [plain.update([0, 1, 1]).label for _ in range(3)] == [1, 1, 1]
    far = AdaptiveLabelModel(classes=[0, 10**9], **PAPERS_RULE)
    assert [far.update([0, 10**9, 10**9]).label for _ in range(3)] == [10**9] * 3
