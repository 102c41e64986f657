"""A call that fails, or that Ctrl-C ends, leaves the model as it was; and one model may be used by many threads."""

from __future__ import annotations

import copy
import pickle
import signal
import sys
import threading
import time
import warnings

import numpy as np
import pytest

import driftvote
from driftvote import AdaptiveLabelModel, CommitteeLabelModel, DriftvoteError, FixedWindowLabelModel
from driftvote.core import engine as engines
from driftvote.models.questions import known_stretches

from streams_for_tests import COMPILED

MODELS = {
    "default": lambda **more: AdaptiveLabelModel(windows=[16, 64, 256], false_event_rate=1e-4, **more),
    "triplet": lambda **more: AdaptiveLabelModel(estimator="triplet", windows=[16, 64], false_event_rate=1e-4, **more),
    "all the past": lambda **more: FixedWindowLabelModel(window=None, **more),
    "random": lambda **more: AdaptiveLabelModel.paper(windows=[16, 64], **more),
    "committee": lambda **more: CommitteeLabelModel(windows=[16, 64], search_every=100, **more),
    "no events": lambda **more: AdaptiveLabelModel(windows=[16, 64], false_event_rate=None, **more),
}


def votes_of(seed: int, n_rows: int, n: int = 4, at: int | None = None) -> np.ndarray:
    """Votes of labelers that are right 85 times in 100; from row `at` on, the first one is right 20 times."""
    rng = np.random.default_rng(seed)
    truth, accuracy = rng.integers(0, 2, (n_rows, 1)), np.full((n_rows, n), 0.85)
    accuracy[n_rows if at is None else at :, 0] = 0.2
    return np.where(rng.random((n_rows, n)) < accuracy, truth, 1 - truth).astype(np.int8)


def same(one, other) -> bool:
    """Whether two models have the same state, to the bit."""
    (header, arrays), (header_2, arrays_2) = one.to_state(), other.to_state()
    return (
        header == header_2
        and arrays.keys() == arrays_2.keys()
        and all(arrays[name].tobytes() == arrays_2[name].tobytes() for name in arrays)
    )


class Interrupt:
    """Raises KeyboardInterrupt at the n-th call or return inside the package, where a signal handler could."""

    def __init__(self, at: int, again: str | None = None) -> None:
        self.at, self.again, self.count = at, again, 0

    def __call__(self, frame, event, argument) -> None:
        if "driftvote" in frame.f_code.co_filename and "tests" not in frame.f_code.co_filename:
            self.count += 1
            if self.count == self.at:
                raise KeyboardInterrupt
            if self.count > self.at and self.again == frame.f_code.co_name:
                self.again = None
                raise KeyboardInterrupt

    def during(self, call) -> bool:
        """Whether the call was interrupted."""
        sys.setprofile(self)
        try:
            call()
        except KeyboardInterrupt:
            return True
        finally:
            sys.setprofile(None)
        return False


def calls_of(name: str):
    """Ways to go on with a stream of 250 rows: in one chunk over several blocks, row by row, with somebody who joins."""
    rows = votes_of(2, 400, at=100)
    names = [f"labeler_{place}" for place in range(4)]
    joins = [dict(zip(names, row, strict=True)) | ({"new": 1} if t > 40 else {}) for t, row in enumerate(rows.tolist())]
    ids = {"ids": [f"row {t % 150}" for t in range(len(rows))]} if name in ("default", "no events") else {}
    one_id = {"id": 7} if ids else {}
    ways = {
        "chunk": lambda model: model.label_stream(rows, **ids),
        "fit": lambda model: model.partial_fit(rows, **ids),
        "row": lambda model: model.update(rows[0], **one_id),
    }
    return ways if name in ("committee", "all the past") else ways | {"join": lambda model: model.label_stream(joins)}


@pytest.mark.parametrize("name", MODELS)
def test_ctrl_c_leaves_the_state_as_before_or_as_after(name):
    start = MODELS[name]()
    more = {"ids": [f"early {t}" for t in range(249)]} if name in ("default", "no events") else {}
    start.label_stream(votes_of(1, 249), **more)  # a block ends within the next rows
    rng = np.random.default_rng(3)
    for way in calls_of(name).values():
        after = start.copy()
        way(after)
        counter = Interrupt(at=sys.maxsize)
        assert not counter.during(lambda way=way: way(start.copy()))
        begun = 0
        for at in {*rng.integers(1, counter.count + 1, (8 if name == "committee" else 30) if COMPILED else 5).tolist()}:
            model = start.copy()
            interrupted = Interrupt(at).during(lambda way=way, model=model: way(model))
            assert same(model, start) or same(model, after), f"interrupted at event {at} of {counter.count}"
            begun += interrupted and same(model, start)
            if same(model, start):
                way(model)
                assert same(model, after)
        assert begun


@pytest.mark.parametrize("name", ["default", "committee"])
@pytest.mark.parametrize("function", ["_take_back", "rewind", "rebuild_state", "before"])
def test_a_second_ctrl_c_while_rows_are_taken_back(name, function):
    start = MODELS[name]()
    start.label_stream(votes_of(1, 249))
    rows = votes_of(2, 300, at=100)
    after = start.copy()
    after.label_stream(rows)
    model = start.copy()
    counter = Interrupt(at=sys.maxsize)
    counter.during(lambda: start.copy().label_stream(rows))
    interrupt = Interrupt(counter.count // 2, again=function)
    assert interrupt.during(lambda: model.label_stream(rows))
    assert same(model, start)  # the next use takes the rows back
    model.label_stream(rows)
    assert same(model, after)


@pytest.mark.parametrize("function", ["label_rows", "label_part"])
def test_a_failure_after_the_detector_has_seen_the_rows(monkeypatch, function):
    """The detector sees rows before the engine does: floors and detector must not stay ahead of the engine."""
    start = MODELS["default"]()
    start.label_stream(votes_of(1, 3000))
    rows, model = votes_of(2, 1500, at=200), start.copy()
    after = start.copy()
    after.label_stream(rows)
    assert after.n_events > start.n_events

    def fail(*arguments):
        if function == "label_part":
            engines_label_rows(*arguments)
        raise MemoryError("no room")

    engines_label_rows = engines.label_rows
    with monkeypatch.context() as patch:
        patch.setattr(engines, "label_rows", fail)
        with pytest.raises(MemoryError):
            model.label_stream(rows)
    assert same(model, start)
    model.label_stream(rows)
    assert same(model, after)


def test_verified_rows_of_stretches_are_taken_back_too(monkeypatch):
    """Rows that fail after a stretch with other verified rows has begun: the fits are those of the stretch before."""
    rng, rows = np.random.default_rng(5), votes_of(4, 1200)
    rows[rng.random(rows.shape) < 0.35] = 0
    first = AdaptiveLabelModel(windows=[64, 256]).label_stream(rows)
    disputed = np.flatnonzero(first.score(np.arange(len(rows))).disputed)
    assert disputed[0] < 520 < disputed[-1]
    known = known_stretches(disputed, first.score(disputed), rng.integers(0, 2, len(disputed)), [520])
    start = AdaptiveLabelModel(windows=[64, 256])
    start.know(known)
    start.label_stream(rows[:500])
    after = start.copy()
    after.label_stream(rows[500:])
    calls, real = [], engines.label_rows

    def fail(*arguments):
        calls.append(real(*arguments))
        if len(calls) == 2:  # the rows from 520 on
            raise MemoryError
        return calls[-1]

    model = start.copy()
    with monkeypatch.context() as patch:
        patch.setattr(engines, "label_rows", fail)
        with pytest.raises(MemoryError):
            model.label_stream(rows[500:])
    assert len(calls) == 2
    assert same(model, start)
    assert (model.predict(rows[:200], True)[1] == start.predict(rows[:200], True)[1]).all()
    out, expected = model.label_stream(rows[500:]), start.label_stream(rows[500:])
    assert (out.proba == expected.proba).all()
    assert same(model, after)


def test_the_look_at_the_vote_format_is_taken_back_too(monkeypatch):
    """Signed votes, row by row: the warning comes at the same row, whether or not a call failed before."""
    rows = np.where(votes_of(1, 40) > 0, 1, -1)

    def warned_at(model, rows, first=0):
        for number, row in enumerate(rows, first):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                model.update(row)
            if caught:
                return number
        return None

    start = AdaptiveLabelModel()
    expected = warned_at(start.copy(), rows)
    assert expected is not None
    assert warned_at(start, rows[:5]) is None
    with monkeypatch.context() as patch:
        patch.setattr(engines, "label_rows", lambda *_: (_ for _ in ()).throw(MemoryError))
        with pytest.raises(MemoryError):
            start.update(rows[5])
    assert warned_at(start, rows[5:], 5) == expected


def test_a_signal_while_rows_are_learned():
    """The real thing, once: a timer's signal raises in the middle of a long chunk."""
    start = AdaptiveLabelModel(windows=[64, 1024])
    start.label_stream(votes_of(1, 1000))
    rows = votes_of(2, 100_000 if COMPILED else 500)

    def interrupt(*_):
        raise KeyboardInterrupt

    old, hits = signal.signal(signal.SIGALRM, interrupt), 0
    try:
        begin = time.perf_counter()
        after = start.copy()
        after.label_stream(rows)
        whole = time.perf_counter() - begin
        for part in (0.2, 0.5, 0.8):
            model = start.copy()
            try:
                signal.setitimer(signal.ITIMER_REAL, part * whole)
                model.label_stream(rows)
            except KeyboardInterrupt:
                hits += 1
                assert same(model, start)
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
        model = start.copy()
        model.label_stream(rows)
        assert same(model, after)
    finally:
        signal.signal(signal.SIGALRM, old)
    assert hits or not COMPILED


# -- threads ---------------------------------------------------------------------------------------


def run_threads(functions) -> list[BaseException]:
    """Run all at the same time; what they raised."""
    raised: list[BaseException] = []
    ready = threading.Barrier(len(functions))

    def run(function):
        ready.wait()
        try:
            function()
        except BaseException as problem:
            raised.append(problem)

    threads = [threading.Thread(target=run, args=(function,)) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return raised


@pytest.mark.parametrize("name", ["default", "triplet", "committee"])
def test_threads_take_turns(name):
    """Rows of four threads, while a fifth looks: none is lost, and the state is that of some order of the rows."""
    kind = CommitteeLabelModel if name == "committee" else AdaptiveLabelModel
    settings = {"windows": [64, 2048], "labelers": ["a", "b", "c", "d"]} | (
        {} if name == "committee" else {"estimator": "mixture" if name == "default" else name}
    )
    model, rows, stop, raised = kind(**settings), votes_of(1, 1200 if COMPILED else 100), threading.Event(), []

    def look():
        while not stop.is_set():
            try:
                assert np.isfinite(model.accuracies).all()
                assert model.n_rows <= len(rows)
                model.predict(rows[:2]) if model.n_rows else None
                model.copy()
            except Exception as problem:  # noqa: PERF203
                raised.append(problem)

    watcher = threading.Thread(target=look)
    watcher.start()
    raised += run_threads([lambda part=part: [model.update(row) for row in part] for part in np.split(rows, 4)])
    stop.set()
    watcher.join()
    assert raised == []
    assert model.n_rows == len(rows)
    learned = model.to_state()[1]["rows"]
    assert sorted(map(tuple, learned.tolist())) == sorted(map(tuple, rows.tolist()))
    twin = kind(**settings)
    twin.label_stream(learned)
    assert same(model, twin)


def test_chunks_of_threads_are_whole():
    """Each thread's chunk is all of one class pattern, so that the ring shows chunks that were mixed."""
    model = AdaptiveLabelModel(windows=[8192], labelers=["a", "b", "c"])
    chunk = {0: np.zeros((64, 3), np.int8), 1: np.ones((64, 3), np.int8)}

    def learn(kind):
        for _ in range(20):
            model.label_stream(chunk[kind])

    assert run_threads([lambda: learn(0), lambda: learn(1), lambda: learn(0), lambda: learn(1)]) == []
    rows = model.to_state()[1]["rows"]
    assert len(rows) == 4 * 20 * 64
    assert all(len(np.unique(part)) == 1 for part in rows.reshape(-1, 64 * 3))
    twin = AdaptiveLabelModel(windows=[8192], labelers=["a", "b", "c"])
    twin.label_stream(rows)
    assert same(model, twin)  # as in some order of the calls


def test_an_event_may_use_the_model_and_wait_for_other_threads():
    seen = []

    def look(event):
        other = threading.Thread(target=lambda: seen.append(model.n_rows))
        other.start()
        other.join(timeout=20)
        seen.append(model.n_rows)

    model = AdaptiveLabelModel(false_event_rate=1e-4, on_event=look)
    model.label_stream(votes_of(1, 3000, at=1500))
    assert seen
    assert set(seen) == {3000}
    reset = AdaptiveLabelModel(false_event_rate=1e-4, on_event=lambda event: reset.reset())
    for row in votes_of(1, 2000, at=1500):
        reset.update(row)
    assert reset.n_rows < 2000


def test_copies_have_a_lock_of_their_own():
    model = AdaptiveLabelModel()
    model.label_stream(votes_of(1, 100))
    for twin in (model.copy(), copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert same(twin, model)
        with model._lock:  # a copy that shared it would wait for ever in another thread
            assert run_threads([lambda twin=twin: twin.update([1, 1, 0, 1])]) == []
        assert twin.n_rows == 101
        assert model.n_rows == 100
    fresh = driftvote.AdaptiveLabelModel()
    lock = fresh._lock
    assert fresh.set_params(seed=3)._lock is lock


def test_a_signal_handler_cannot_use_a_model_in_the_middle_of_a_call(monkeypatch):
    model = AdaptiveLabelModel()
    model.label_stream(votes_of(1, 100))
    before, real = model.copy(), engines.label_rows

    def look(*arguments):
        model.to_state()
        return real(*arguments)

    monkeypatch.setattr(engines, "label_rows", look)
    with pytest.raises(DriftvoteError, match="in the middle of a call"):
        model.update([1, 1, 0, 1])
    assert same(model, before)
