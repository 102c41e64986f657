"""One engine behind every path: single rows, chunks, threads, far windows and copies give the same bits."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import driftvote
from driftvote import AdaptiveLabelModel, Confusion, FixedWindowLabelModel, MajorityLabelModel, OneCoin, WindowRule
from driftvote.core import engine, state
from driftvote.core.engine import Engine, Floor
from driftvote.core.state import vote_of
from driftvote.errors import DriftvoteError
from driftvote.streams import simulate

import naive
from streams_for_tests import COMPILED, PAPERS_RULE, random_chunks, random_stream, rows_for

SIZES = [1, 2, 4, 8, 16, 32, 64, 128, 256]
MODELS = [
    AdaptiveLabelModel(windows=SIZES, delta=0.9, beta=0.02, **PAPERS_RULE),
    AdaptiveLabelModel(windows=[3, 10, 44, 150, 400], delta=0.9, beta=0.02, **PAPERS_RULE),
    AdaptiveLabelModel(n_classes=3, windows=[2, 4, 16, 128, 512], tie_break_policy="random", seed=4, **PAPERS_RULE),
    AdaptiveLabelModel.paper(6, windows=SIZES),
    AdaptiveLabelModel(windows=WindowRule(SIZES, beta=0.02, delta=0.9)),
    AdaptiveLabelModel(n_classes=3, windows=[50, 200, 700], estimator=Confusion(refresh=5), tie_break_policy="random"),
    AdaptiveLabelModel(n_classes=3, windows=SIZES, estimator=OneCoin(refresh=3), bound="bernstein"),
    FixedWindowLabelModel(window=90),
    FixedWindowLabelModel(window=1),
    FixedWindowLabelModel(window=256, estimator="confusion"),
    FixedWindowLabelModel(window=None),
]
NAMES = ("codes", "proba", "windows", "accuracies", "diluted_accuracies", "weights", "coverage")
every_model = pytest.mark.parametrize("model", MODELS, ids=[repr(model)[:70] for model in MODELS])


def same(left, right):
    for name in NAMES:
        assert np.array_equal(getattr(left, name), getattr(right, name)), name


def same_parts(parts, whole):
    for name in NAMES:
        assert np.array_equal(np.concatenate([getattr(part, name) for part in parts]), getattr(whole, name)), name


# Chunks, threads, memory.


@pytest.mark.parametrize("abstain", [0.0, 0.4])
@every_model
def test_chunks_say_what_the_whole_says(model, abstain):
    votes = random_stream(6, rows_for(6000, 500), 5, len(model.classes), abstain, blocks=6)
    whole = model.clone().label_stream(votes)
    chunked = model.clone()
    same_parts([chunked.label_stream(votes[part]) for part in random_chunks(3, len(votes), 1500)], whole)
    learned = model.clone().fit(votes)
    assert np.array_equal(learned.accuracies, whole.accuracies[-1])
    assert np.array_equal(learned.predict_proba(votes[:50]), chunked.predict_proba(votes[:50]))


@pytest.mark.parametrize("abstain", [0.0, 0.3])
@every_model
def test_windows_too_large_for_stored_totals_are_followed_from_the_rows(model, abstain, monkeypatch, tmp_path):
    """With little memory for running totals most windows, or all of them, are far."""
    votes = random_stream(7, rows_for(3000, 400), 6, len(model.classes), abstain, blocks=5)
    whole = model.clone().label_stream(votes)
    n_far = set()
    for memory in (0, 1 << 12, 1 << 14, 1 << 16):
        monkeypatch.setattr(state, "TOTALS_BYTES", memory)
        far = model.clone()
        same_parts([far.label_stream(votes[part]) for part in random_chunks(memory, len(votes), 900)], whole)
        n_far.add(len(far._stream.engine._state.lags))
        saved = model.clone().partial_fit(votes[:300])
        saved.save(tmp_path / "state.npz")
        same(driftvote.load(tmp_path / "state.npz").label_stream(votes[300:]), whole[300:])
    if model.memory_rows is not None and model.memory_rows > 50:
        assert len(n_far) > 1
        assert max(n_far) == len(far._stream.engine._state.sizes)


@every_model
def test_newcomers_and_far_windows(model, monkeypatch):
    """A labeler that joins sees the same past, wherever the totals of a window come from."""
    votes = random_stream(8, rows_for(900, 300), 5, len(model.classes), 0.2, blocks=3)
    rows = [
        {f"j{i}": int(v) for i, v in enumerate(row) if v >= 0 and (i < 4 or t >= 201)} for t, row in enumerate(votes)
    ]
    rows[0] |= {f"j{i}": 1 for i in range(4)}
    if model.abstentions == "random" and model.memory_rows is None:
        pytest.skip("all the past cannot be made up for a newcomer")
    whole = model.clone().label_stream(rows)
    assert whole.labelers[-1] == "j4"
    monkeypatch.setattr(state, "TOTALS_BYTES", 1 << 13)
    chunked = model.clone()
    codes = [chunked.label_stream(rows[begin : begin + 100]).codes for begin in range(0, len(rows), 100)]
    assert np.array_equal(np.concatenate(codes), whole.codes)
    single = model.clone()
    assert [single.update(row).window for row in rows] == whole.windows.tolist()
    assert np.array_equal(single.accuracies, whole.accuracies[-1])


@every_model
def test_a_model_that_starts_in_the_middle_with_far_windows(model, monkeypatch):
    votes = random_stream(8, rows_for(1200, 300), 5, len(model.classes), 0.2, blocks=3)
    settings = {"labelers": list("abcde"), "false_event_rate": None}  # events before the start would not be known
    model = type(model)(**model.get_params(deep=False) | settings)
    whole = model.clone().label_stream(votes)
    for memory in (0, 1 << 13):
        monkeypatch.setattr(state, "TOTALS_BYTES", memory)
        for row in (1, 90, 91, len(votes) // 2, len(votes) - 150):
            late = model.clone()
            late.start_at(
                row, votes[:row] if model.memory_rows is None else votes[max(0, row - model.memory_rows) : row]
            )
            same(late.label_stream(votes[row:]), whole[row:])


def test_a_stream_that_begins_to_abstain():
    votes = random_stream(8, 2000, 4, 2, 0.0)
    votes[1100:, 1] = -1
    model = AdaptiveLabelModel(windows=[1, 2, 4, 8, 16, 32, 64], delta=0.9, **PAPERS_RULE)
    again = random_stream(9, 1000, 4, 2, 0.0)
    whole = model.clone().label_stream(np.vstack([votes, again]))
    parts = [model.label_stream(votes[at : at + 500]) for at in range(0, 2000, 500)]
    same_parts([*parts, model.label_stream(again)], whole)
    # When the abstentions have left every window, nothing of them is left.
    assert whole.coverage[1999].tolist() == [1.0, 0.0, 1.0, 1.0]
    assert whole.coverage[-1].tolist() == [1.0] * 4
    fresh = model.clone().label_stream(again)
    assert np.array_equal(whole.proba[2100:], fresh.proba[100:])


@every_model
def test_updates_between_chunks(model):
    votes = random_stream(10, rows_for(1500, 400), 5, len(model.classes), 0.1)
    whole, middle = model.clone().label_stream(votes), len(votes) // 2
    model = model.clone()
    found = [model.label_stream(votes[: middle - 60]).proba]
    found += [model.update(row).proba[None] for row in votes[middle - 60 : middle]]
    found.append(model.label_stream(votes[middle : middle + 100]).proba)
    found.append(model.copy().label_stream(votes[middle + 100 :]).proba)
    assert np.array_equal(np.concatenate(found), whole.proba)


@pytest.mark.parametrize("settings", [{}, PAPERS_RULE], ids=["default", "paper's rule"])
@pytest.mark.parametrize("n_jobs", [2, 3])
def test_threads_do_not_show(n_jobs, settings):
    votes = random_stream(11, rows_for(40_000, 900), 6, 2, 0.2, blocks=5)
    one, many = AdaptiveLabelModel(**settings), AdaptiveLabelModel(n_jobs=n_jobs, **settings)
    first, second = one.label_stream(votes), many.label_stream(votes)
    same(first, second)
    assert first.events == second.events
    assert len(first.events) >= rows_for(3, 0)
    same(one.label_stream(votes[:300]), many.label_stream(votes[:300]))
    same(one.label_stream(votes[:700]), many.label_stream(votes[:700]))
    assert one.events == many.events


@pytest.mark.parametrize("estimator", ["mixture", "confusion", "wawa"])
@pytest.mark.parametrize("n_jobs", [2, 3])
def test_threads_share_a_long_batch_without_a_trace(monkeypatch, n_jobs, estimator):
    monkeypatch.setattr(engine, "THREAD_ROWS", rows_for(2000, 100))
    votes = random_stream(12, rows_for(12_000, 500), 6, 2, 0.2, blocks=4)
    verified = np.where(np.arange(len(votes)) % 97 == 5, votes[:, 0], -1)
    settings = {"estimator": estimator, "windows": [64, 256, 1024] if len(votes) > 1000 else [16, 64]}
    one, many = AdaptiveLabelModel(**settings), AdaptiveLabelModel(n_jobs=n_jobs, **settings)
    used: list[int] = []
    label_pieces = engine.Engine._label_pieces
    monkeypatch.setattr(
        engine.Engine,
        "_label_pieces",
        lambda self, *rest: used.append(len(rest[-1])) or label_pieces(self, *rest),
    )
    same(one.label_stream(votes[:37]), many.label_stream(votes[:37]))
    first, second = (model.label_stream(votes[37:], verified=verified[37:]) for model in (one, many))
    same(first, second)
    assert used == [n_jobs - 1]
    assert first.events == second.events
    same(one.label_stream(votes[:500]), many.label_stream(votes[:500]))


@pytest.mark.skipif(not COMPILED, reason="longer than is labeled without the compiler")
def test_threads_leave_the_verified_rows_of_the_next_batch(monkeypatch):
    """A stretch of verified rows ends in the first piece of a batch; the next batch must not know them."""
    monkeypatch.setattr(engine, "THREAD_ROWS", 512)
    votes = random_stream(3, 4096, 6, 2, 0.2)
    known = engine.Known(0, 1500, np.array([10]), np.zeros((1, 6), np.int64), np.eye(6)[:1], np.array([1]))
    models = [AdaptiveLabelModel(windows=[64, 256], n_jobs=n_jobs) for n_jobs in (1, 2)]
    for model in models:
        model._stream.known = [known]
    for part in (votes[:2048], votes[2048:]):
        same(*(model.label_stream(part) for model in models))


@pytest.mark.skipif(not COMPILED, reason="longer than is labeled without the compiler")
def test_many_certain_votes_are_no_overflow():
    """Each of 48 votes is worth millions to one: their product is no number any more, unless it is kept in range."""
    found = engine.estimate_rows(OneCoin(), np.full((20_000, 48), 3, np.int16), 290)
    assert found.accuracies.min() > 0.99


@pytest.mark.skipif(not COMPILED, reason="without the compiler, kernels are plain functions")
def test_python_cannot_call_an_inner_kernel():
    with pytest.raises(TypeError, match="called by kernels only"):
        vote_of(3)


def test_n_jobs_is_checked():
    for bad in (0, -1, 1.5, True, 10**6):
        with pytest.raises(ValueError, match="n_jobs"):
            AdaptiveLabelModel(n_jobs=bad)


@pytest.mark.slow
def test_a_real_length_of_stream_against_the_definition():
    """Hundreds of thousands of rows, so that the largest windows of the default grid fill, slide and wrap around."""
    accuracies = np.repeat(np.random.default_rng(1).uniform(0.55, 0.9, size=(3, 4)), 250_000, axis=0)
    votes = simulate(accuracies, 5).votes
    model = AdaptiveLabelModel(**PAPERS_RULE)
    whole = model.clone().label_stream(votes)
    assert np.array_equal(whole.windows, naive.windows_of_stream(votes, naive.Settings()))
    assert len(np.unique(whole.windows)) > 15
    chunked = model.clone()
    borders = [0, 1, 100_003, 524_287, 524_288, 524_290, 700_000, len(votes)]
    parts = [chunked.label_stream(votes[a:b]) for a, b in zip(borders, borders[1:], strict=False)]
    for name in ("codes", "proba", "windows"):
        assert np.array_equal(np.concatenate([getattr(part, name) for part in parts]), getattr(whole, name)), name
    wide = simulate(np.tile(np.linspace(0.6, 0.8, 14), (600_000, 1)), 6).votes
    out = model.clone()
    windows = out.label_stream(wide).windows
    assert len(out._stream.engine._state.lags) > 3  # windows beyond the stored totals
    assert np.array_equal(windows, naive.windows_of_stream(wide, naive.Settings()))


@pytest.mark.slow
def test_very_many_labelers_go_by_sums_of_logs():
    """Products of 300 odds would overflow; the labels are then made from sums of weights."""
    votes = random_stream(12, 60, 300, 2, 0.2)
    out = AdaptiveLabelModel(windows=[1, 4, 16], **PAPERS_RULE).label_stream(votes)
    assert np.isfinite(out.proba).all()
    score = (out.weights * np.where(votes == 1, 1, -1)).sum(axis=1)
    clear = np.abs(score) > 1e-6
    assert clear.sum() > 30
    assert np.array_equal(out.codes[clear], (score > 0)[clear])
    np.testing.assert_allclose(out.proba[clear, 1], 1 / (1 + np.exp(-score[clear])), rtol=0, atol=1e-12)
    assert AdaptiveLabelModel(windows=[1, 4, 16], **PAPERS_RULE).fit(votes).predict(votes[:5]).shape == (5,)


# Single rows.

STEP_MODELS = [
    *MODELS[:1],
    *MODELS[2:7],
    AdaptiveLabelModel(votes="signed", windows=[1, 2, 4, 8], **PAPERS_RULE),
    AdaptiveLabelModel(classes=[10, 30, 20], abstain=-7, windows=[2, 5, 9], **PAPERS_RULE),
    AdaptiveLabelModel(classes=[10, 30, 20], abstain=-7),
    FixedWindowLabelModel(window=5),
    FixedWindowLabelModel(window=None),
    MajorityLabelModel(n_classes=3),
]


@pytest.mark.parametrize("abstain", [0.0, 0.3])
@pytest.mark.parametrize("model", STEP_MODELS, ids=[repr(model)[:70] for model in STEP_MODELS])
def test_a_step_is_a_row_of_the_stream(model, abstain):
    values = np.array([*model.classes, model.vote_format.abstain])
    votes = values[random_stream(5, rows_for(300, 120), 4, len(model.classes), abstain, blocks=4)]
    single, stream = model.clone(), model.clone().label_stream(votes)
    for row, expected in zip(votes, stream, strict=True):
        step = single.update(row)
        for name in ("label", "code", "window", "n_votes", "probability"):
            assert getattr(step, name) == getattr(expected, name), name
        for name in ("proba", "accuracies", "diluted_accuracies", "weights", "coverage"):
            assert np.array_equal(getattr(step, name), getattr(expected, name)), name
        assert step.to_dict() == expected.to_dict()


@pytest.mark.parametrize("kind", [np.int8, np.int16, np.int32, np.int64, ">i4", list, tuple])
def test_rows_of_whole_numbers(kind):
    votes = random_stream(6, 50, 4, 2, 0.2)
    expected = AdaptiveLabelModel(**PAPERS_RULE).label_stream(votes)
    model = AdaptiveLabelModel(**PAPERS_RULE)
    make = (lambda row: kind(row.tolist())) if kind in (list, tuple) else (lambda row: row.astype(kind))
    assert [model.update(make(row)).code for row in votes] == expected.codes.tolist()


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
def test_rows_of_any_kind_come_to_the_same(row):
    votes = random_stream(7, 40, 4)
    left, right = AdaptiveLabelModel(**PAPERS_RULE).fit(votes), AdaptiveLabelModel(**PAPERS_RULE).fit(votes)
    assert left.update(row).to_dict() == right.update([1, 0, 1, 0]).to_dict()


@pytest.mark.parametrize(
    "row", [[1, 0, 2, 1], [1, 0, -2, 1], [1, 0, 2**40, 1], [1, 0, 2**70, 1], [1, 0, 1], [[1, 0, 1, 1]]]
)
@pytest.mark.parametrize("settings", [{}, PAPERS_RULE], ids=["default", "paper's rule"])
def test_a_bad_row_is_refused_and_leaves_no_trace(row, settings):
    model = AdaptiveLabelModel(**settings).fit(random_stream(8, 40, 4))
    before = {name: part.copy() for name, part in model.to_state()[1].items()}
    with pytest.raises(DriftvoteError) as first:
        AdaptiveLabelModel(labelers=model.labelers, **settings).update(row)
    with pytest.raises(DriftvoteError) as later:
        model.update(row)
    assert type(later.value) is type(first.value)
    assert str(later.value) == str(first.value)
    after = model.to_state()[1]
    assert before.keys() == after.keys()
    assert all(np.array_equal(part, after[name]) for name, part in before.items())


@every_model
def test_copies_are_independent(model):
    votes = random_stream(9, 60, 4, len(model.classes))
    model = model.clone()
    for row in votes[:30]:
        model.update(row)
    expected = model.accuracies.tolist()
    for twin in (model.copy(), pickle.loads(pickle.dumps(model))):
        for row in votes[30:]:
            twin.update(row)
        assert twin.n_rows == 60
        assert twin.accuracies.tolist() == model.clone().fit(votes).accuracies.tolist()
    assert model.n_rows == 30
    assert model.accuracies.tolist() == expected


@pytest.mark.parametrize("settings", [{}, PAPERS_RULE], ids=["default", "paper's rule"])
def test_every_way_to_learn_continues_the_same_stream(settings):
    votes = random_stream(10, 700, 4)
    model, expected = AdaptiveLabelModel(**settings), AdaptiveLabelModel(**settings)
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


@every_model
def test_a_step_outlives_the_rows_after_it(model):
    votes = random_stream(3, 80, 4, len(model.classes), 0.1)
    single = model.clone()
    steps = [single.update(row) for row in votes]
    assert [step.to_dict() for step in steps] == [step.to_dict() for step in model.clone().label_stream(votes)]


def test_classes_of_any_kind():
    text = AdaptiveLabelModel(classes=["no", "yes"], **PAPERS_RULE)
    assert [text.update(["no", "yes", "yes"]).label for _ in range(3)] == ["yes"] * 3
    plain = MajorityLabelModel()
    assert [plain.update([0, 1, 1]).label for _ in range(3)] == [1, 1, 1]
    far = AdaptiveLabelModel(classes=[0, 10**9], **PAPERS_RULE)
    assert [far.update([0, 10**9, 10**9]).label for _ in range(3)] == [10**9] * 3


# Repeated rows are labeled once for each fit.


@pytest.mark.parametrize("n_labelers", [3, 5, 9])  # few distinct rows, and too many for a table
@pytest.mark.parametrize(
    "settings", [{}, {"estimator": "one_coin"}, {"tie_break_policy": "random", "seed": 3}], ids=str
)
def test_repeated_rows_get_the_label_of_their_own_fit(settings, n_labelers):
    votes = random_stream(2, rows_for(8000, 300), n_labelers, 2, 0.1, blocks=4)
    whole = AdaptiveLabelModel(**settings).label_stream(votes)
    chunked = AdaptiveLabelModel(**settings)  # chunks too short for a table of repeated rows
    same_parts([chunked.label_stream(votes[at : at + 20]) for at in range(0, len(votes), 20)], whole)


# Labelers that join.


@pytest.mark.parametrize("estimator", ["mixture", "confusion", "one_coin", "wawa", "triplet"])
def test_labelers_that_join_again_and_again_were_silent_before(estimator):
    """Also where fits are rare and a floor was set between them: the fit in force is that of the last row that is due."""
    n = rows_for(1500, 300)
    joins = [row for row in (7, 31, 32, 33, 100, 385, 386, 700, 1201) if row < n]
    rows = random_stream(4, n, 4 + len(joins), abstain=0.3, blocks=3)
    for place, row in enumerate(joins, 4):
        rows[:row, place] = -1
    label_model = driftvote.core.label_models.ESTIMATORS[estimator]()
    for floors in ([], [(200, 150), (650, 600)]):

        def add_floors(engine, end, floors=floors):
            engine.add_floors([Floor(*floor) for floor in floors if engine.n_rows <= floor[0] < end])

        whole = Engine(label_model, WindowRule(), rows.shape[1], 2, False)
        joined = Engine(label_model, WindowRule(), 4, 2, False)
        for begin, end in zip([0, *joins], [*joins, n], strict=True):
            add_floors(whole, end)
            expected = whole.label(rows[begin:end], np.zeros(0))
            if begin:
                joined = joined.with_labelers(np.full((joined.remembered_rows, 1), -1, rows.dtype))
            add_floors(joined, end)
            known = joined.n_labelers
            found = joined.label(np.ascontiguousarray(rows[begin:end, :known]), np.zeros(0))
            if begin == joins[-1]:
                np.testing.assert_array_equal(found.proba, expected.proba)
                np.testing.assert_array_equal(found.estimates.windows, expected.estimates.windows)


def test_a_labeler_that_joins_costs_few_rows(monkeypatch):
    """Only rows since the last fit of all windows are labeled again, not all since the last one of a long stream."""
    n, again = rows_for(2000, 400), []
    model = AdaptiveLabelModel().fit(random_stream(4, n, 4))
    monkeypatch.setattr(Engine, "label", lambda self, rows, *more: again.append(len(rows)) or label(self, rows, *more))
    model.update({"labeler_0": 1, "labeler_1": 1, "new": 0})
    assert again[-1] == 1
    assert sum(again) < n / 5


label = Engine.label
