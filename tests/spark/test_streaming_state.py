"""The state of streams, in Spark's tester of stateful processors: no JVM."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from tws import NAMES, Query, frame, job_for, table

from driftvote import AdaptiveLabelModel, CommitteeLabelModel, FixedWindowLabelModel, MajorityLabelModel
from driftvote.errors import OrderError, StateError, VoteError
from driftvote.spark.columns import OUTPUTS

from streams_for_tests import random_stream

GRID = [2**k for k in range(11)]

MODELS = {
    "default": AdaptiveLabelModel(windows=GRID),
    "paper": AdaptiveLabelModel.paper(windows=GRID),
    "triplet": AdaptiveLabelModel(windows=[3, 50, 700], estimator="triplet"),
    "all past": FixedWindowLabelModel(window=None),
    "fixed": FixedWindowLabelModel(window=900),
    "committee": CommitteeLabelModel(windows=[4, 16, 64, 256], search_every=40),
    "majority": MajorityLabelModel(abstentions="random"),
    "groups": AdaptiveLabelModel(windows=[2, 64], groups=[["a", "b"]], labelers=[*NAMES]),
}


def in_one_process(model, votes):
    whole = type(model)(**(model.get_params(deep=False) | {"labelers": NAMES}))
    return whole.label_stream(votes)


def check_equal(results: pa.Table, whole, places) -> None:
    """Every output, to the last bit; `places` are the rows of the whole in time order."""
    assert results["label"].to_pylist() == whole.labels[places].tolist()
    for name, values in {"probability": whole.probability, "window": whole.windows, "n_votes": whole.n_votes}.items():
        assert np.array_equal(results[name].to_numpy(), values[places]), name
    for name in ("proba", "accuracies", "weights", "coverage"):
        assert np.array_equal(np.array(results[name].to_pylist()), getattr(whole, name)[places]), name


@pytest.mark.parametrize("name", MODELS)
def test_equal_to_one_process(name):
    """Three streams of different lengths, random micro-batches, rows in any order inside them."""
    rng = np.random.default_rng(4)
    votes = {"x": random_stream(1, 2500, 4, abstain=0.2), "y": random_stream(2, 300, 4), "z": random_stream(3, 40, 4)}
    query = Query(job_for(MODELS[name], outputs=OUTPUTS))
    done, results = dict.fromkeys(votes, 0), {key: [] for key in votes}
    while any(done[key] < len(rows) for key, rows in votes.items()):
        parts = []
        for key, rows in votes.items():
            first, done[key] = done[key], min(len(rows), done[key] + int(rng.choice([0, 1, 30, 90, 300])))
            parts.append(table([key] * (done[key] - first), np.arange(first, done[key]), rows[first : done[key]]))
        batch = pa.concat_tables(parts)
        batch = batch.take(rng.permutation(batch.num_rows))
        out = query.micro_batch(batch, cut=int(rng.choice([7, 1000]))) if batch.num_rows else None
        for key in votes:
            if out is not None:
                results[key].append(out.filter(pa.compute.equal(out["stream"], key)))
    for key, rows in votes.items():
        found = pa.concat_tables(results[key])
        assert found["t"].to_pylist() == list(range(len(rows)))
        check_equal(found, in_one_process(MODELS[name], rows), slice(None))


def test_text_classes_and_ties():
    votes = random_stream(5, 90, 4, abstain=0.3)
    words = np.array(["no", "yes", None], object)[votes]
    rows = pa.table({"stream": ["x"] * 90, "t": range(90)} | {n: pa.array(words[:, at]) for at, n in enumerate(NAMES)})
    model = AdaptiveLabelModel(classes=["no", "yes"])
    query = Query(job_for(model, frame("string"), outputs=OUTPUTS))
    results = pa.concat_tables([query.micro_batch(rows.slice(first, 30)) for first in (0, 30, 60)])
    check_equal(results, in_one_process(model, words), slice(None))
    query.job = job_for(AdaptiveLabelModel(classes=["yes", "no"]), frame("string"))
    with pytest.raises(StateError, match=r"made with classes \['no', 'yes'\], but the query has \['yes', 'no'\]"):
        query.micro_batch(rows.slice(0, 1))


def test_the_value_is_bounded_by_the_largest_window():
    """After the ring is full, a value does not grow; nothing else is in the store."""
    votes = random_stream(5, 4000, 4)
    sizes = []
    query = Query(job_for(AdaptiveLabelModel(windows=GRID, false_event_rate=None)))
    for first in range(0, 4000, 500):
        query.micro_batch(table(["x"] * 500, np.arange(first, first + 500), votes[first : first + 500]))
        sizes.append(len(query.value('["x"]')))
    memory_rows = AdaptiveLabelModel(windows=GRID).memory_rows
    assert sizes[0] < sizes[1] < sizes[-1]
    assert max(sizes[-4:]) - min(sizes[-4:]) < 1000
    assert sizes[-1] < 16 * memory_rows + 20_000


def test_the_value_with_drift_events_is_bounded_too():
    votes = random_stream(5, 24_000, 4)
    sizes = []
    query = Query(job_for(AdaptiveLabelModel(windows=GRID)))
    for first in range(0, 24_000, 2000):
        query.micro_batch(table(["x"] * 2000, np.arange(first, first + 2000), votes[first : first + 2000]))
        sizes.append(len(query.value('["x"]')))
    assert max(sizes[-3:]) - min(sizes[-3:]) < 1000
    assert sizes[-1] < 4 * 16_384 + 80_000  # rows of the detector, its totals, and class shares


def test_late_rows_stop_the_query_or_are_dropped_and_counted():
    votes = random_stream(6, 60, 4)
    rows = table(["x"] * 60, np.arange(60), votes)
    early, late, rest = rows.slice(0, 30), rows.slice(20, 5), rows.slice(30)
    query = Query(job_for(AdaptiveLabelModel()))
    query.micro_batch(early)
    with pytest.raises(OrderError, match=r"stream 'x', t 20: this row is older than the last one of its stream, 29;"):
        query.micro_batch(pa.concat_tables([rest, late]))
    query = Query(job_for(AdaptiveLabelModel(), outputs=OUTPUTS), late="drop")
    query.micro_batch(early)
    assert query.micro_batch(late) is None
    results = query.micro_batch(pa.concat_tables([rest, late]))
    check_equal(results, in_one_process(AdaptiveLabelModel(), votes), slice(30, None))
    assert set(results["late_rows"].to_pylist()) == {10}
    query = Query(job_for(AdaptiveLabelModel(), rejected="reason"), late="drop")
    query.micro_batch(early)
    results = query.micro_batch(pa.concat_tables([rest, late]))
    assert results.num_rows == 35
    assert [reason is not None for reason in results["reason"].to_pylist()] == [True] * 5 + [False] * 30
    assert "older than the last one" in results["reason"][0].as_py()


def test_the_same_time_twice():
    votes = random_stream(7, 8, 4)
    rows = table(["x"] * 8, [0, 1, 2, 3, 3, 4, 5, 6], votes)
    with pytest.raises(OrderError, match="stream 'x', t 3: two rows have this time"):
        Query(job_for(AdaptiveLabelModel())).micro_batch(rows)
    query = Query(job_for(AdaptiveLabelModel()))
    query.micro_batch(rows.slice(0, 4))
    with pytest.raises(OrderError, match="stream 'x', t 3: two rows have this time"):
        query.micro_batch(rows.slice(4))
    query = Query(job_for(AdaptiveLabelModel(), duplicates="sort"))
    assert query.micro_batch(rows.slice(0, 4)).num_rows == 4
    assert query.micro_batch(rows.slice(4)).num_rows == 4
    query = Query(job_for(AdaptiveLabelModel(), rejected="reason"))
    results = query.micro_batch(rows)
    assert [reason is None for reason in results["reason"].to_pylist()] == [True] * 4 + [False] + [True] * 3
    ordered = rows.append_column("n", pa.array(range(8)))
    query = Query(job_for(AdaptiveLabelModel(), frame(n="bigint"), order=["n"]))
    query.micro_batch(ordered.slice(0, 4))
    assert query.micro_batch(ordered.slice(4)).num_rows == 4
    with pytest.raises(OrderError, match="older than the last one"):
        query.micro_batch(ordered.slice(7).set_column(6, "n", pa.array([3])))


def test_rows_of_one_time_come_in_the_same_order_however_they_arrive():
    votes = random_stream(8, 400, 4)
    rows = table(["x"] * 400, np.arange(400) // 4, votes)
    shuffled = rows.take(np.random.default_rng(1).permutation(400))
    one = Query(job_for(AdaptiveLabelModel(), duplicates="sort")).micro_batch(rows)
    two = Query(job_for(AdaptiveLabelModel(), duplicates="sort")).micro_batch(shuffled, cut=50)
    assert one.equals(two)


def test_bad_votes_and_missing_keys_and_times():
    votes = random_stream(9, 40, 4).astype(np.int8)
    bad = votes.copy()
    bad[20, 2] = 7
    query = Query(job_for(AdaptiveLabelModel()))
    query.micro_batch(table(["x"] * 20, np.arange(20), votes[:20]))
    before = query.value('["x"]')
    with pytest.raises(VoteError, match="stream 'x', t 20, column 'c': 7 is neither a class"):
        query.micro_batch(table(["x"] * 20, np.arange(20, 40), bad[20:]))
    assert query.value('["x"]') == before
    for keys, times, what in (
        ([None, "x"], [20, 21], "key column 'stream' is null"),
        (["x", "x"], [None, 21], "time column 't' is null"),
    ):
        with pytest.raises(OrderError, match=what):
            query.micro_batch(table(keys, times, votes[20:22]))
    query = Query(job_for(AdaptiveLabelModel(), rejected="reason", outputs=OUTPUTS))
    keys, times = ["x"] * 40, list(range(40))
    keys[3], times[5] = None, None
    results = query.micro_batch(table(keys, times, bad))
    good = results.filter(pa.compute.is_null(results["reason"])).sort_by("t")
    assert results.num_rows == 40
    places = [place for place in range(40) if place not in (3, 5, 20)]
    assert good["t"].to_pylist() == places
    check_equal(good, in_one_process(AdaptiveLabelModel(), votes[places]), slice(None))


def test_a_silent_stream_is_deleted_and_starts_again():
    votes = random_stream(10, 90, 4)
    query = Query(job_for(AdaptiveLabelModel(), outputs=OUTPUTS), ttl=1000)
    fresh = in_one_process(AdaptiveLabelModel(), votes[30:60])
    tester = query.tester
    query.micro_batch(table(["x"] * 30, np.arange(30), votes[:30]))
    query.now = 900
    query.micro_batch(table(["x"], [30], votes[30:31]))
    tester.setWatermark(1100)  # the timer expires and is set again: a row came at 900
    assert query.value('["x"]') is not None
    tester.setWatermark(1950)
    assert query.value('["x"]') is None
    query.now = 2000
    results = query.micro_batch(table(["x"] * 30, np.arange(30), votes[30:60]))
    check_equal(results, fresh, slice(None))
    # No timer expired in between, because no micro-batch came; the stream was silent for too long all the same.
    query.now = 9000
    results = query.micro_batch(table(["x"] * 30, np.arange(30), votes[30:60]))
    check_equal(results, fresh, slice(None))
    tester.setWatermark(9001)
    assert query.value('["x"]') is not None
    assert list(tester.handle.listTimers()) == [10_000]


def test_state_that_does_not_fit_is_refused_by_name():
    votes = random_stream(11, 20, 4)
    query = Query(job_for(AdaptiveLabelModel(beta=0.1)))
    query.micro_batch(table(["x"] * 20, np.arange(20), votes))
    again = table(["x"], [20], votes[:1])
    for model, results in (
        (AdaptiveLabelModel(beta=0.2), "made with windows__beta 0.1, but the query has 0.2"),
        (MajorityLabelModel(), "made with model 'AdaptiveLabelModel', but the query has 'MajorityLabelModel'"),
    ):
        query.job = job_for(model)
        with pytest.raises(StateError, match=results):
            query.micro_batch(again)
    query.job = job_for(AdaptiveLabelModel(), labelers=["b", "a", "c", "d"])
    with pytest.raises(StateError, match="made with labelers"):
        query.micro_batch(again)
    query.job = job_for(AdaptiveLabelModel())
    value = query.value('["x"]')
    query.tester.updateValueState("stream", '["x"]', (value[:-900],))
    with pytest.raises(StateError, match=r"stream \[\"x\"\]: not a whole state file.*needs a new checkpoint folder"):
        query.micro_batch(again)
