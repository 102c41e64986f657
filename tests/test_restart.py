"""After a drift event that says that labelers changed, no window holds rows from before the change."""

from __future__ import annotations

import math

import numpy as np
import pytest

import driftvote
from driftvote import AdaptiveLabelModel, Confusion, OneCoin, SettingError, WindowRule
from driftvote.core.engine import Floor, estimate_rows
from driftvote.drift.detector import DriftDetector
from driftvote.drift.events import LABELER_KINDS
from test_windows import half_range, naive_tests, row_values, rule_for, unexplained

import naive
from streams_for_tests import COMPILED, random_chunks, rows_for

compiled = pytest.mark.skipif(not COMPILED, reason="long streams")
FIELDS = ("codes", "proba", "windows", "accuracies", "coverage", "weights")
OFTEN = 1e-4
"""False events per row: events come soon after a change."""
GRID = [2**k for k in range(11)]
MODELS = {
    "default": {},
    "odd refresh": {"estimator": Confusion(refresh=7)},
    "rare refresh": {"estimator": OneCoin(refresh=100)},
    "triplet": {"estimator": "triplet"},
    "bernstein": {"bound": "bernstein"},
    "large first window": {"windows": [700, 1500]},
    "random abstentions": {"abstentions": "random", "tie_break_policy": "random"},
}


def falls(seed: int, n_rows: int, at: int, n: int = 6, high: float = 0.85, low: float = 0.4) -> np.ndarray:
    """Votes of labelers that are right with probability `high`; from row `at` on, the first one with `low`."""
    rng = np.random.default_rng(seed)
    truth, accuracy = rng.integers(0, 2, (n_rows, 1)), np.full((n_rows, n), high)
    accuracy[at:, 0] = low
    return np.where(rng.random((n_rows, n)) < accuracy, truth, 1 - truth).astype(np.int8)


def restless(seed: int, n_rows: int, n: int = 5, n_classes: int = 2, abstain: float = 0.1) -> np.ndarray:
    """Votes of labelers of which one changes every 500 rows."""
    rng = np.random.default_rng(seed)
    accuracy = np.repeat(np.full((n_rows // 500 + 1, n), 0.85), 500, axis=0)[:n_rows]
    for begin in range(0, n_rows, 500):
        accuracy[begin : begin + 500, begin // 500 % n] = 0.35
    truth = rng.integers(n_classes, size=(n_rows, 1))
    wrong = (truth + rng.integers(1, n_classes, accuracy.shape)) % n_classes
    votes = np.where(rng.random(accuracy.shape) < accuracy, truth, wrong)
    votes[rng.random(votes.shape) < abstain] = -1
    return votes.astype(np.int8)


def floors_of(events):
    """What the events say, by definition: from the row after an event on, nothing from before the change.

    Rows count from the first block of 64 that holds nothing older on, and those of the last block in any case.
    """
    named = [event for event in events if event.kind in LABELER_KINDS]
    return [(event.row + 1, min(math.ceil(event.since[1] / 64) * 64, event.row - 63)) for event in named]


def model_of(name: str, **more) -> AdaptiveLabelModel:
    return AdaptiveLabelModel(**({"windows": GRID, "false_event_rate": OFTEN} | MODELS[name] | more))


def assert_no_row_from_before(out, first_row=0):
    floors = floors_of(out.events)
    for place, window in enumerate(out.windows.tolist()):
        row = first_row + place
        floor = max((first for begin, first in floors if begin <= row), default=0)
        assert row + 1 - window >= floor, (row, window, floor)


@compiled
@pytest.mark.parametrize("seed", range(8))
def test_one_of_six_falls_and_no_window_reaches_across(seed):
    votes = falls(seed, 4600, at=2500)
    out = AdaptiveLabelModel().label_stream(votes)
    event = next(event for event in out.events if event.row >= 2500)
    after = np.arange(event.row + 1, len(votes))
    assert (after + 1 - out.windows[after] >= min(2500, event.since[1])).all()
    assert_no_row_from_before(out)
    assert abs(out.accuracies[event.row + 1, 0] - 0.4) < 0.2  # fitted at once


@compiled
def test_without_restarts_windows_reach_across():
    """So that the test above can fail."""
    reached = 0
    for seed in range(8):
        out = AdaptiveLabelModel(windows=WindowRule(restart=False)).label_stream(falls(seed, 4600, at=2500))
        after = np.arange(next(event.row for event in out.events if event.row >= 2500) + 1, 4600)
        reached += int((after + 1 - out.windows[after] < 2500).sum())
    assert reached > 1000


@compiled
def test_accuracies_after_a_change_are_better():
    errors = {}
    for restart in (False, True):
        found = []
        for seed in range(12):
            out = AdaptiveLabelModel(windows=WindowRule(restart=restart)).label_stream(falls(seed, 3300, at=2500))
            found.append(np.abs(out.accuracies[2700:3300:100, 0] - 0.4).mean())
        errors[restart] = np.mean(found)
    assert errors[True] < 0.7 * errors[False]


@pytest.mark.parametrize(("seed", "windows"), [(1, tuple(GRID)), (2, (3, 7, 20, 61, 150, 333)), (3, (200, 500))])
def test_windows_and_triplets_equal_the_definition(seed, windows):
    """The paper's rule, told to begin anew at events; the definition is told of the events."""
    votes = restless(seed, rows_for(2500, 700))
    rule = WindowRule(windows, bound="mcdiarmid", beta=0.02, restart=True)
    model = AdaptiveLabelModel(windows=rule, estimator="triplet", false_event_rate=OFTEN)
    out = model.label_stream(votes)
    floors = floors_of(out.events)
    assert len(floors) >= rows_for(3, 1)
    rows = naive.adaptive(votes, votes, naive.Settings(windows=windows, beta=0.02), floors)
    assert out.windows.tolist() == [row.window for row in rows]
    np.testing.assert_allclose(out.accuracies, [row.accuracies for row in rows], rtol=0, atol=1e-12)
    np.testing.assert_allclose(out.coverage, [row.coverage for row in rows], rtol=0, atol=1e-12)
    assert out.windows.tolist() != [row.window for row in naive.adaptive(votes, votes, naive.Settings(windows=windows))]


@pytest.mark.parametrize(("seed", "sizes"), [(1, GRID), (2, [3, 7, 20, 61, 150, 333]), (3, [200, 500, 2000])])
def test_the_window_after_an_event_by_definition(seed, sizes):
    """Under the normal bound the next window that does not fit is compared, too, cut to the rows since the event."""
    beta, delta = 0.02, 0.9
    votes = restless(seed, rows_for(2500, 700))
    model = AdaptiveLabelModel(windows=WindowRule(sizes, beta=beta, delta=delta), estimator="triplet")
    model.set_params(false_event_rate=OFTEN)
    out = model.label_stream(votes)
    floors = floors_of(out.events)
    assert len(floors) >= rows_for(3, 1)
    values = np.array([row_values(row, 2) for row in votes])
    by_class = np.array([[(row == 0).sum(), (row == 1).sum()] for row in votes])
    rule = rule_for("normal", values.shape[1], len(sizes), beta, delta)
    cut, seen = 0, 0
    for t in range(1, len(votes) + 1):
        first = max((first for row, first in floors if row < t), default=0)
        count, grid = t - first, list(sizes)
        following = next((size for size in sizes if size > count), None)
        if first and following is not None and count > sizes[0]:  # the next window holds what there is
            grid = [size for size in sizes if size < count] + [count]
        window, explained = grid[0], 0
        for r, big in zip(grid, grid[1:], strict=False):
            if big > count:
                break
            ((_, _, changes, limits),) = naive_tests(values[:t], [r, big], half_range(2), rule | {"m": len(sizes)})
            if (np.array(changes) > limits).any():
                left = unexplained(values[:t], by_class[:t], r, big, min(sizes[-1], count), 1, t)
                refused = (np.minimum(changes, left) > limits).any()
                explained += not refused
                if refused:
                    break
            window = big
        assert out.windows[t - 1] == min(window, count), t
        cut += window not in sizes
        seen += explained
    assert cut >= rows_for(200, 1)
    assert seen >= rows_for(10, 0)  # changes that the votes for the classes explain


@compiled
@pytest.mark.parametrize("name", [name for name in MODELS if name != "random abstentions"])
def test_a_fit_is_that_of_the_rows_of_its_window(name):
    votes = restless(4, 3000)
    model = model_of(name)
    out = model.label_stream(votes)
    assert len(floors_of(out.events)) >= 3
    assert_no_row_from_before(out)
    begins = np.flatnonzero(
        np.r_[True, (np.diff(out.windows) != 0) | (np.diff(out.accuracies, axis=0) != 0).any(axis=1)]
    )
    rows_of_floors = {row for row, _ in floors_of(out.events) if row < len(votes)}
    assert rows_of_floors <= set(begins.tolist())  # fitted anew at each of them
    for row in begins.tolist():
        # Where a floor takes effect, the model is fitted before the row is seen; a fit may be due at that row, too.
        ends = (row, row + 1) if row in rows_of_floors else (row + 1,)
        found = [estimate_rows(model.estimator, votes[end - out.windows[row] : end], 2) for end in ends]
        assert any(np.array_equal(one.accuracies[0], out.accuracies[row]) for one in found), row


@pytest.mark.parametrize("name", MODELS)
def test_neither_chunks_nor_saving_nor_copies_show(name, tmp_path):
    votes = restless(5, rows_for(3000, 700))
    whole = model_of(name).label_stream(votes)
    assert len(floors_of(whole.events)) >= rows_for(3, 1)
    for seed in range(rows_for(3, 1)):
        model, found, rng = model_of(name), [], np.random.default_rng(seed)
        for part in random_chunks(seed, len(votes), 300):
            found.append(model.label_stream(votes[part]))
            if rng.random() < 0.3:  # also between an event and the row at which it takes effect
                model.save(tmp_path / "state.npz")
                model = driftvote.load(tmp_path / "state.npz")
            elif rng.random() < 0.2:
                model = model.copy()
            elif rng.random() < 0.2:
                model.predict(votes[:3])
        for field in FIELDS:
            assert np.array_equal(np.concatenate([getattr(part, field) for part in found]), getattr(whole, field)), (
                field
            )
        assert model.events == whole.events
    model = model_of(name)
    steps = [model.update(row) for row in votes]
    assert [step.window for step in steps] == whole.windows.tolist()
    assert np.array_equal([step.proba for step in steps], whole.proba)


@pytest.mark.parametrize("name", MODELS)
def test_between_an_event_and_the_next_row(name, tmp_path):
    """What the model says now is of the time since the change, and saving does not change it."""
    votes = restless(6, rows_for(1500, 700))
    patient = {"beta": 2.0}  # which notices next to nothing by itself
    whole = model_of(name, **patient).label_stream(votes)
    row, first = floors_of(whole.events)[0]
    model = model_of(name, **patient)
    model.label_stream(votes[:row])
    copied, window = model.copy(), model.window
    assert window <= row - first < whole.windows[row - 1]
    model.save(tmp_path / "state.npz")
    loaded = driftvote.load(tmp_path / "state.npz")
    assert np.array_equal(loaded.accuracies, model.accuracies)
    assert loaded.window == window
    assert model.why_window() == copied.why_window() == loaded.why_window()
    assert [step.next_window for step in model.why_window() if step.next_window > row - first] == []
    assert np.array_equal(model.agreements, copied.agreements)
    ends = [one.label_stream(votes[row:]) for one in (model, copied, loaded)]
    for field in FIELDS:
        assert all(np.array_equal(getattr(end, field), getattr(whole, field)[row:]) for end in ends), field


@compiled
@pytest.mark.parametrize("name", ["default", "rare refresh", "triplet", "random abstentions"])
def test_labelers_join_after_an_event(name):
    """As if they had been there: what counts no more counts no more for the wider panel either."""
    votes = restless(7, 2200, n=4, abstain=0.0)
    names = ["a", "b", "c", "d"]
    rows = [dict(zip(names, row, strict=True)) for row in votes.tolist()]
    events = model_of(name).label_stream(rows).events
    row, first = floors_of(events)[1]
    for begin in (row - 1, row, row + 1, row + 40, row + 130):
        late = [one | ({"e": one["b"]} if place >= begin else {}) for place, one in enumerate(rows)]
        always = model_of(name, labelers=[*names, "e"])
        joined = model_of(name)
        whole, found = always.label_stream(late), joined.label_stream(late)
        assert floors_of(whole.events)[:2] == floors_of(found.events)[:2] == floors_of(events)[:2]
        upto = begin + 200  # events after that may come a block earlier or later for a wider panel
        assert np.array_equal(whole.windows[begin:upto], found.windows[begin:upto])
        assert np.array_equal(whole.proba[begin:upto], found.proba[begin:upto])
        assert begin < row or begin + 1 - found.windows[begin] >= first


def test_which_rules_restart():
    assert WindowRule().restarts
    assert WindowRule(bound="bernstein").restarts
    assert not WindowRule(bound="mcdiarmid").restarts
    assert WindowRule(bound="mcdiarmid", restart=True).restarts
    assert not WindowRule(restart=False).restarts
    assert not AdaptiveLabelModel.paper().windows.restarts
    assert WindowRule(**WindowRule(restart=False).to_dict()) == WindowRule(restart=False)
    with pytest.raises(SettingError, match="restart must be True, False or None, not 1"):
        WindowRule(restart=1)


@compiled
def test_the_guarantee_does_not_cover_restarts():
    votes = falls(0, 600, at=300)
    for restart, proved in [(None, True), (False, True), (True, False)]:
        model = AdaptiveLabelModel(windows=WindowRule(bound="mcdiarmid", restart=restart), estimator="triplet")
        model.label_stream(votes)
        assert model.guarantee().proved is proved


@compiled
def test_the_papers_rule_and_fixed_windows_go_on_as_before():
    votes = restless(8, 2500)
    for make in (
        lambda rate: AdaptiveLabelModel.paper(false_event_rate=rate),
        lambda rate: driftvote.FixedWindowLabelModel(window=300, false_event_rate=rate),
        lambda rate: driftvote.MajorityLabelModel(false_event_rate=rate),
    ):
        with_events, without = make(OFTEN).label_stream(votes), make(None).label_stream(votes)
        assert len(floors_of(with_events.events)) >= 3
        for field in FIELDS:
            assert np.array_equal(getattr(with_events, field), getattr(without, field)), field


@compiled
def test_a_change_of_the_class_balance_keeps_the_window():
    rng = np.random.default_rng(0)
    truth = (rng.random((6000, 1)) < np.where(np.arange(6000) < 3000, 0.5, 0.8)[:, None]).astype(int)
    votes = np.where(rng.random((6000, 6)) < 0.85, truth, 1 - truth)
    out = AdaptiveLabelModel().label_stream(votes)
    assert [event.kind for event in out.events] == ["class balance"]
    assert np.array_equal(
        out.windows, AdaptiveLabelModel(windows=WindowRule(restart=False)).label_stream(votes).windows
    )


@compiled
def test_a_detector_that_fails_leaves_the_model_as_it_was(monkeypatch):
    votes = restless(9, 2000)
    whole = model_of("default").label_stream(votes)
    model = model_of("default")
    model.label_stream(votes[:300])

    def out_of_memory(self, block):
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr(DriftDetector, "_diagnose", out_of_memory)
        with pytest.raises(MemoryError):
            model.label_stream(votes[300:])
    assert (model.n_rows, model.n_events) == (300, 0)
    out = model.label_stream(votes[300:])
    assert np.array_equal(out.proba, whole.proba[300:])
    assert out.events == whole.events


@compiled
def test_floors_that_no_fit_needs_are_dropped():
    votes = restless(10, 20_000)
    model = model_of("default")
    out = model.label_stream(votes)
    assert len(floors_of(out.events)) >= 20
    _, arrays = model.to_state()
    spare = 64  # rows that a fit of 1,024 rows may be old
    assert [Floor(*floor) for floor in arrays["floors"].tolist()][-1] == Floor(*floors_of(out.events)[-1])
    assert (arrays["floors"][1:, 0] >= len(votes) - spare).all()


@compiled
def test_wide_panels_without_stored_totals(monkeypatch):
    """Windows too large for stored totals are followed by counting; the first one may be cut by a floor."""
    from driftvote.core import state

    votes = restless(11, 1500)
    rule = WindowRule(
        [600, 1024], bound="bernstein"
    )  # under the normal bound such windows are not cut, see `steps_to_cut`
    settings = {"windows": rule, "estimator": "triplet", "false_event_rate": OFTEN}
    whole = AdaptiveLabelModel(**settings).label_stream(votes)
    assert (whole.windows[floors_of(whole.events)[0][0] :] < 600).any()
    monkeypatch.setattr(state, "TOTALS_BYTES", 0)
    out = AdaptiveLabelModel(**settings).label_stream(votes)
    for field in FIELDS:
        assert np.array_equal(getattr(out, field), getattr(whole, field)), field
