"""Drift events by every door of the models, with times, callbacks, states and reports."""

from __future__ import annotations

import datetime
import json

import numpy as np
import pandas as pd
import pytest

import driftvote
from driftvote import (
    AdaptiveLabelModel,
    DriftEvent,
    FixedWindowLabelModel,
    MajorityLabelModel,
    OrderError,
    SettingError,
)
from driftvote.drift.events import KINDS
from driftvote.report import from_arrays, report_from_json, report_to_json
from driftvote.report.page import render

from streams_for_tests import COMPILED

pytestmark = pytest.mark.skipif(
    not COMPILED, reason="drift takes thousands of rows; the detector itself is tested without"
)
MODELS = {
    "default": AdaptiveLabelModel,
    "paper": AdaptiveLabelModel.paper,
    "triplet": lambda **more: AdaptiveLabelModel(estimator="triplet", **more),
    "small": lambda **more: AdaptiveLabelModel.paper(windows=[4, 16, 48], **more),
    "one coin": lambda **more: AdaptiveLabelModel(estimator="one_coin", **more),
    "fixed": lambda **more: FixedWindowLabelModel(window=64, **more),
    "all the past": lambda **more: FixedWindowLabelModel(window=None, **more),
    "majority": MajorityLabelModel,
}


def stream(coverage=1.0, n_classes=2, seed=0):
    """Five labelers, 2,400 rows: the first one falls from 0.9 to 0.4 at row 800, the second rises at row 1,700."""
    rng = np.random.default_rng(seed)
    accuracy = np.tile([0.9, 0.6, 0.85, 0.85, 0.85], (2400, 1))
    accuracy[800:, 0], accuracy[1700:, 1] = 0.4, 0.97
    truth = rng.integers(0, n_classes, (2400, 1))
    wrong = (truth + rng.integers(1, n_classes, accuracy.shape)) % n_classes
    votes = np.where(rng.random(accuracy.shape) < accuracy, truth, wrong)
    votes[rng.random(accuracy.shape) >= coverage] = -1
    return votes


VOTES = stream()


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(("coverage", "n_classes"), [(1.0, 2), (0.8, 3)])
def test_events_do_not_depend_on_how_rows_come(name, coverage, n_classes, tmp_path):
    votes = stream(coverage, n_classes)
    told = []
    out = MODELS[name](n_classes=n_classes, on_event=told.append).label_stream(votes)
    assert [event.names for event in out.events] == [("labeler_0",), ("labeler_1",)]
    assert told == out.events
    one = MODELS[name](n_classes=n_classes)
    steps = [one.update(row) for row in votes]
    assert {place: step.event for place, step in enumerate(steps) if step.event} == {e.row: e for e in out.events}
    assert [step.event for step in out if step.event] == out.events
    assert one.events == out.events
    model, rng, begin, found = MODELS[name](n_classes=n_classes, n_jobs=2), np.random.default_rng(5), 0, 0
    while begin < len(votes):
        part = votes[begin : begin + int(rng.integers(1, 400))]
        begin += len(part)
        way = rng.integers(4)
        if way == 0:
            model.partial_fit(part)
        elif way == 1:
            found += sum(model.update(row).event is not None for row in part[:50])
            model.label_stream(part[50:]) if len(part) > 50 else None
        else:
            model.save(tmp_path / "state.npz")
            model = driftvote.load(tmp_path / "state.npz") if way == 2 else model.copy()
            model.label_stream(part)
    assert model.events == out.events
    assert model.n_events == len(out.events) == 2
    assert json.dumps(model.events[0].to_dict()) == json.dumps(out.events[0].to_dict())


def test_an_event_says_what_happened():
    model = AdaptiveLabelModel()
    out = model.label_stream(VOTES)
    first, second = out.events
    assert first.kind == "labeler worse"
    assert second.kind == "labeler better"
    assert first.kind in KINDS
    who = first.labelers[0]
    assert who.low_before < who.accuracy_before < who.high_before
    assert who.low_after < who.accuracy_after < who.high_after
    assert abs(who.accuracy_before - 0.9) < 0.06
    assert abs(who.accuracy_after - 0.4) < 0.25
    assert first.since[0] <= 800 <= first.since[1] < first.row == first.row // 64 * 64 + 63 < 1100
    assert all("labeler_0" in pair for pair in first.pairs)
    assert first.pairs
    assert (first.window_before, first.window_after) == (
        int(out.windows[first.since[0] // 64 * 64 - 1]),
        int(out.windows[first.row]),
    )
    assert first.sentence.startswith(f"since about row {first.about:,}, labeler_0 is right ")
    assert str(first) == first.sentence
    assert DriftEvent.from_dict(json.loads(json.dumps(first.to_dict()))) == first
    assert out[:1000].events == [first]
    assert out[1000:].events == [second]
    assert out[1000:].first_row == 1000
    assert model.n_events == 2
    again = AdaptiveLabelModel()
    again.label_stream(VOTES[: first.row + 1])
    assert again.events == [first]
    again.update(VOTES[first.row + 1])
    assert again.events == [first]
    assert again.reset().events == []


@pytest.mark.parametrize("name", ["default", "paper"])
def test_a_callback_that_fails_leaves_a_whole_model(name):
    def fail(event):
        raise RuntimeError(event.sentence)

    whole = MODELS[name]()
    whole.label_stream(VOTES)
    model = MODELS[name](on_event=fail)
    with pytest.raises(RuntimeError, match="labeler_0"):
        model.label_stream(VOTES[:1500])
    assert model.n_rows == 1500

    def failed(row):
        try:
            model.update(row)
        except RuntimeError:
            return True
        return False

    errors = sum(failed(row) for row in VOTES[1500:])
    assert (errors, model.events, model.n_rows) == (1, whole.events, 2400)
    model.on_event = None
    assert np.array_equal(model.label_stream(VOTES).proba, whole.label_stream(VOTES).proba)
    told = []
    model.on_event = told.append
    model.fit(VOTES)
    assert told == model.events[: len(told)]
    assert len(told) == 2
    assert model.clone().on_event is None
    assert model.copy().on_event is None


def test_settings():
    assert AdaptiveLabelModel(false_event_rate=None).label_stream(VOTES).events == []
    assert not AdaptiveLabelModel(false_event_rate=None).label_stream(VOTES[:5]).looked_for_events
    for model in (MajorityLabelModel(), FixedWindowLabelModel(window=64), FixedWindowLabelModel(window=None)):
        seen = []
        model.on_event = seen.append
        assert [event.names for event in model.label_stream(VOTES).events] == [("labeler_0",), ("labeler_1",)]
        assert model.events == seen
    assert "on_event" not in AdaptiveLabelModel(on_event=print).get_params()
    for wrong in (0, 0.1, -1, "often", True):
        with pytest.raises(SettingError, match="false_event_rate"):
            AdaptiveLabelModel(false_event_rate=wrong)
    with pytest.raises(SettingError, match="on_event must be a function"):
        AdaptiveLabelModel(on_event="print")


@pytest.mark.parametrize("name", ["default", "paper"])
def test_times(name):
    begin = datetime.datetime(2026, 3, 1)
    times = [begin + datetime.timedelta(minutes=minute) for minute in range(len(VOTES))]
    frame = pd.DataFrame(VOTES, columns=list("abcde")).assign(at=times)
    by_frame = MODELS[name]().label_stream(frame, time="at").events
    model = MODELS[name](labelers=list("abcde"))
    by_row = [model.update(row, time=time).event for row, time in zip(VOTES, times, strict=True)]
    assert [event for event in by_row if event] == by_frame
    event = by_frame[0]
    assert event.time == times[event.row].isoformat(timespec="microseconds")
    low, high = event.since_time
    assert low <= times[event.since[0]].isoformat(timespec="microseconds")
    assert high >= times[event.since[1]].isoformat(timespec="microseconds")
    assert event.sentence.startswith("since about 2026-03-01 ")
    with pytest.raises(OrderError, match="is before"):
        model.update(VOTES[0], time=begin)
    with pytest.raises(OrderError, match="keep to one kind"):
        model.update(VOTES[0], time="noon")
    assert model.n_rows == len(VOTES)
    numbers = MODELS[name]()
    for place, row in enumerate(VOTES[:1200]):
        numbers.update(row, time=float(place))
    assert numbers.events[0].time == float(numbers.events[0].row)
    text = MODELS[name]()
    text.update(VOTES[0], time=np.int64(3))
    with pytest.raises(OrderError, match="no time"):
        text.update(VOTES[0], time=float("nan"))


def test_why_a_row_got_its_label():
    model = AdaptiveLabelModel(classes=["no", "yes"])
    rows = [dict(zip("abcde", ["yes" if vote else "no" for vote in row], strict=True)) for row in VOTES[:300].tolist()]
    out = model.label_stream(rows)
    row = {"e": "yes", "a": "no", "f": "no"}
    before = model.explain(row)
    assert (before.row, before.window, {vote.labeler for vote in before.votes}) == (None, model.window, set("abcde"))
    step = model.update(row)
    told = step.explain()
    assert (told.label, told.window, told.row) == (step.label, step.window, 300)
    assert told.probability == step.probability
    assert sum(told.proba.values()) == pytest.approx(1)
    assert {vote.labeler: vote.vote for vote in told.votes} == dict.fromkeys("bcd") | row
    assert [vote.share for vote in told.votes if vote.vote is None] == [0.0] * 3
    assert told.overruled == (told.label != told.majority)
    assert told.majority == "no"
    assert "no vote: b, c, d" in str(told)
    assert json.dumps(told.to_dict())
    assert out.explain(7).label == out.labels[7]
    assert AdaptiveLabelModel().explain([1, 1, 0]).window == 0


def test_the_timeline_and_its_bands():
    out = AdaptiveLabelModel().label_stream(VOTES)
    table = out.timeline(every=700, backend="pandas")
    assert list(table) == ["t", "labeler", "accuracy", "low", "high", "coverage", "weight", "window"]
    assert table["t"].unique().tolist() == [0, 700, 1400, 2100, 2399]
    assert len(table) == 25
    assert ((table.low <= table.accuracy) & (table.accuracy <= table.high)).all()
    assert len(out.timeline(backend="pandas")) == 481 * 5  # every fifth row, and the last one
    low, high = out.bands("bound", tau=0.3)
    tight_low, tight_high = out.bands()
    assert ((low <= tight_low) & (tight_high <= high)).mean() > 0.9
    for wrong in ({"kind": "wide"}, {"kind": "bound", "tau": 0.9}):
        with pytest.raises(SettingError):
            out.bands(**wrong)
    with pytest.raises(SettingError, match="every"):
        out.timeline(every=0)
    assert np.array_equal(MajorityLabelModel().label_stream(VOTES[:3]).bands()[1], np.ones((3, 5)))


def test_near_copies_are_warned_of_once():
    votes = np.hstack([VOTES[:800], VOTES[:800, 2:3]])
    model = AdaptiveLabelModel()
    assert model.warnings == []
    model.label_stream(votes)
    copies = [one for one in model.warnings if one.kind == "near copies"]
    assert [one.labelers for one in copies] == [("labeler_2", "labeler_5")]
    assert "vote almost identically" in copies[0].sentence
    assert json.dumps(copies[0].to_dict())
    assert model.new_warnings()
    assert not model.new_warnings()
    assert MajorityLabelModel().new_warnings() == []


def test_the_report_tells_events():
    model = AdaptiveLabelModel()
    out = model.label_stream(VOTES)
    times = [f"2026-03-{1 + row // 100:02d}" for row in range(len(VOTES))]
    report = from_arrays(VOTES, out=out, times=times)
    assert [event.names for event in report.events] == [event.names for event in out.events]
    assert report.events[0].about_time.startswith("2026-03-0")
    assert "labeler_0" in report.verdict
    plain = json.loads(report_to_json(report))
    assert plain["events"][0]["sentence"] == report.events[0].sentence
    assert report_from_json(report_to_json(report)) == report
    page = render(report)
    assert "2 lasting changes" in page
    assert '<article class="event" id="event-2">' in page
    assert '"number":2' in page  # in the charts
    later = from_arrays(VOTES[1000:], out=out[1000:])
    assert [event.row for event in later.events] == [out.events[1].row - 1000]
    quiet = from_arrays(VOTES[:500])
    assert quiet.events == []
    assert quiet.verdict.startswith("No lasting change in 500 rows")
    unwatched = from_arrays(VOTES[:500], AdaptiveLabelModel(false_event_rate=None))
    assert unwatched.events is None
    assert unwatched.verdict.startswith("Drift events were not looked for")
    assert "lasting change<" not in render(unwatched)


def test_shares_of_classes_keep_the_order_of_the_classes(tmp_path):
    draw = np.random.default_rng(0)
    truth = draw.integers(0, 12, 4000)
    truth[2000:] = 10 * (draw.random(2000) < 0.9)
    votes = np.where(draw.random((4000, 5)) < 0.9, truth[:, None], draw.integers(0, 12, (4000, 5)))
    model = AdaptiveLabelModel(n_classes=12, estimator="one_coin")
    model.label_stream(votes)
    model.save(tmp_path / "s.npz")
    for event, again in zip(model.events, AdaptiveLabelModel.load(tmp_path / "s.npz").events, strict=True):
        assert list(again.balance_before) == list(event.balance_before) == sorted(event.balance_before, key=int)
        assert repr(again) == repr(event)
    assert model.events


@pytest.mark.parametrize("abstentions", ["zero", "random"])
def test_events_do_not_depend_on_the_chunk_that_brings_a_labeler(abstentions):
    draw, n, join = np.random.default_rng(1), 2400, 1580
    truth = draw.integers(0, 2, n)
    right = np.where(np.arange(n)[:, None] < 1500, 0.9, [0.4, 0.9, 0.9, 0.9, 0.9])
    votes = np.where(draw.random((n, 5)) < right, truth[:, None], 1 - truth[:, None]).astype(float)
    votes[draw.random((n, 5)) < 0.3] = np.nan
    votes[:join, 4] = np.nan
    frame, found = pd.DataFrame(votes, columns=list("abcde")), []
    for cuts in ([0, n], [0, join, n], [0, 700, 1100, n]):
        model = AdaptiveLabelModel(votes="snorkel", abstentions=abstentions, estimator="one_coin")
        for begin, end in zip(cuts, cuts[1:], strict=False):
            model.label_stream(frame[begin:end][list("abcde" if end > join else "abcd")])
        found.append(model.events)
    assert found[0]
    assert found[0] == found[1] == found[2]
