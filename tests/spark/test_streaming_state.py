"""The state of streams, under Spark's tester of stateful processors: no JVM, half a second."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from tws import NAMES, Query, frame, plan_for, table

from driftvote import AdaptiveLabelModel, CommitteeLabelModel, FixedWindowLabelModel, MajorityLabelModel
from driftvote.errors import OrderError, StateError, VoteError
from driftvote.spark import chunked_state
from driftvote.spark.columns import OUTPUTS
from driftvote.spark.keyed import Policy
from driftvote.spark.seeds import make_seed

from streams_for_tests import random_stream

GRID = [2**k for k in range(11)]

MODELS = {
    "default": AdaptiveLabelModel(windows=GRID),
    "paper": AdaptiveLabelModel.paper(windows=GRID),
    "triplet": AdaptiveLabelModel(windows=[3, 50, 700], estimator="triplet"),
    "all past": FixedWindowLabelModel(window=None),
    "fixed": FixedWindowLabelModel(window=900),
    "committee": CommitteeLabelModel(windows=[4, 16, 64, 256], refresh=40),
    "majority": MajorityLabelModel(abstentions="random"),
    "groups": AdaptiveLabelModel(windows=[2, 64], groups=[["a", "b"]], labelers=[*NAMES]),
}


@pytest.fixture
def small_chunks(monkeypatch):
    """Chunks of 64 rows, so that a short stream has many."""
    monkeypatch.setattr(chunked_state, "CHUNK_BYTES", 256)


def in_one_process(model, votes):
    whole = type(model)(**(model.get_params() | {"labelers": NAMES}))
    return whole.label_stream(votes)


def check_equal(said: pa.Table, whole, places) -> None:
    """Every output, to the last bit; `places` are the rows of the whole in time order."""
    assert said["label"].to_pylist() == whole.labels[places].tolist()
    for name, values in {"probability": whole.probability, "window": whole.windows, "n_votes": whole.n_votes}.items():
        assert np.array_equal(said[name].to_numpy(), values[places]), name
    for name in ("proba", "accuracies", "weights", "coverage"):
        assert np.array_equal(np.array(said[name].to_pylist()), getattr(whole, name)[places]), name


@pytest.mark.parametrize("name", MODELS)
def test_equal_to_one_process(name, small_chunks):
    """Three streams of different lengths, random micro-batches, rows in any order inside them."""
    rng = np.random.default_rng(4)
    votes = {"x": random_stream(1, 2500, 4, abstain=0.2), "y": random_stream(2, 300, 4), "z": random_stream(3, 40, 4)}
    query = Query(plan_for(MODELS[name], outputs=OUTPUTS))
    done, said = dict.fromkeys(votes, 0), {key: [] for key in votes}
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
                said[key].append(out.filter(pa.compute.equal(out["stream"], key)))
    for key, rows in votes.items():
        found = pa.concat_tables(said[key])
        assert found["t"].to_pylist() == list(range(len(rows)))
        check_equal(found, in_one_process(MODELS[name], rows), slice(None))


@pytest.mark.parametrize("name", ["default", "paper"])
def test_start_from_a_saved_model_and_keep_to_the_bounds(name, tmp_path):
    """A full ring of 524,288 rows: hundred rows write less than 64 KB, and the state is about the ring."""
    six = ["a", "b", "c", "d", "e", "f"]
    votes = random_stream(9, 560_000, 6, abstain=0.1)
    model = AdaptiveLabelModel(labelers=six) if name == "default" else AdaptiveLabelModel.paper(labelers=six)
    model.partial_fit(votes[:559_000])
    model.save(tmp_path / "model.npz")
    plan = plan_for(model.clone(), frame(e="tinyint", f="tinyint"), labelers=six, outputs=OUTPUTS)
    query = Query(plan, Policy(seeds={None: make_seed(plan, AdaptiveLabelModel.load(tmp_path / "model.npz"))}))
    whole = model.label_stream(votes[559_000:])
    ring = len(model._engine.arrays()["rows"]) * 6
    sums = 20 * (15 + 6) * 8
    for step in range(10):
        part = votes[559_000 + step * 100 :][:100]
        more = {n: pa.array(part[:, at]) for n, at in (("e", 4), ("f", 5))}
        said = query.micro_batch(table(["x"] * 100, np.arange(100) + 100 * step, part[:, :4], **more))
        check_equal(said, whole, slice(step * 100, step * 100 + 100))
        if step:
            assert query.written() < 64_000
            assert query.chunks.read < 600_000
    assert ring < query.size('["x"]') < 1.5 * (ring + sums)


def test_verified_rows_of_a_saved_model_count(small_chunks):
    model = AdaptiveLabelModel(labelers=NAMES, windows=GRID)
    votes = random_stream(13, 900, 4, abstain=0.1)
    model.label_stream(votes[:600], verified=[int(row % 2) if row % 7 == 0 else None for row in range(600)])
    plan = plan_for(model.clone(), outputs=OUTPUTS)
    query = Query(plan, Policy(seeds={None: make_seed(plan, model.copy())}))
    said = [
        query.micro_batch(table(["x"] * 60, np.arange(at, at + 60), votes[at : at + 60])) for at in range(600, 900, 60)
    ]
    check_equal(pa.concat_tables(said), model.label_stream(votes[600:]), slice(None))


def test_small_streams_write_little_and_keep_little():
    query = Query(plan_for(AdaptiveLabelModel()))
    votes = random_stream(5, 3000, 4)
    for first in range(0, 3000, 100):
        query.micro_batch(table(["x"] * 100, np.arange(first, first + 100), votes[first : first + 100]))
        assert query.written() < 64_000
    assert query.size('["x"]') < 3000 * 4 + 20 * 40 * 8


def test_late_rows_stop_the_query_or_are_dropped_and_counted():
    votes = random_stream(6, 60, 4)
    rows = table(["x"] * 60, np.arange(60), votes)
    early, late, rest = rows.slice(0, 30), rows.slice(20, 5), rows.slice(30)
    query = Query(plan_for(AdaptiveLabelModel()))
    query.micro_batch(early)
    with pytest.raises(OrderError, match=r"stream 'x', t 20: this row is older than the last one of its stream, 29;"):
        query.micro_batch(pa.concat_tables([rest, late]))
    query = Query(plan_for(AdaptiveLabelModel(), outputs=OUTPUTS), Policy(late="drop"))
    query.micro_batch(early)
    assert query.micro_batch(late) is None
    said = query.micro_batch(pa.concat_tables([rest, late]))
    check_equal(said, in_one_process(AdaptiveLabelModel(), votes), slice(30, None))
    assert set(said["late_rows"].to_pylist()) == {10}
    query = Query(plan_for(AdaptiveLabelModel(), rejected="reason"), Policy(late="drop"))
    query.micro_batch(early)
    said = query.micro_batch(pa.concat_tables([rest, late]))
    assert said.num_rows == 35
    assert [reason is not None for reason in said["reason"].to_pylist()] == [True] * 5 + [False] * 30
    assert "older than the last one" in said["reason"][0].as_py()


def test_the_same_time_twice():
    votes = random_stream(7, 8, 4)
    rows = table(["x"] * 8, [0, 1, 2, 3, 3, 4, 5, 6], votes)
    with pytest.raises(OrderError, match="stream 'x', t 3: two rows have this time"):
        Query(plan_for(AdaptiveLabelModel())).micro_batch(rows)
    query = Query(plan_for(AdaptiveLabelModel()))
    query.micro_batch(rows.slice(0, 4))
    with pytest.raises(OrderError, match="stream 'x', t 3: two rows have this time"):
        query.micro_batch(rows.slice(4))
    query = Query(plan_for(AdaptiveLabelModel(), duplicates="sort"))
    assert query.micro_batch(rows.slice(0, 4)).num_rows == 4
    assert query.micro_batch(rows.slice(4)).num_rows == 4
    query = Query(plan_for(AdaptiveLabelModel(), rejected="reason"))
    said = query.micro_batch(rows)
    assert [reason is None for reason in said["reason"].to_pylist()] == [True] * 4 + [False] + [True] * 3
    ordered = rows.append_column("n", pa.array(range(8)))
    query = Query(plan_for(AdaptiveLabelModel(), frame(n="bigint"), order=["n"]))
    query.micro_batch(ordered.slice(0, 4))
    assert query.micro_batch(ordered.slice(4)).num_rows == 4
    with pytest.raises(OrderError, match="older than the last one"):
        query.micro_batch(ordered.slice(7).set_column(6, "n", pa.array([3])))


def test_rows_of_one_time_come_in_the_same_order_however_they_arrive():
    votes = random_stream(8, 400, 4)
    rows = table(["x"] * 400, np.arange(400) // 4, votes)
    shuffled = rows.take(np.random.default_rng(1).permutation(400))
    one = Query(plan_for(AdaptiveLabelModel(), duplicates="sort")).micro_batch(rows)
    two = Query(plan_for(AdaptiveLabelModel(), duplicates="sort")).micro_batch(shuffled, cut=50)
    assert one.equals(two)


def test_bad_votes_and_missing_keys_and_times():
    votes = random_stream(9, 40, 4).astype(np.int8)
    bad = votes.copy()
    bad[20, 2] = 7
    query = Query(plan_for(AdaptiveLabelModel()))
    query.micro_batch(table(["x"] * 20, np.arange(20), votes[:20]))
    before = query.tester.peekValueState("stream", '["x"]')
    with pytest.raises(VoteError, match="stream 'x', t 20, column 'c': 7 is neither a class"):
        query.micro_batch(table(["x"] * 20, np.arange(20, 40), bad[20:]))
    assert query.tester.peekValueState("stream", '["x"]') == before
    for keys, times, what in (
        ([None, "x"], [20, 21], "key column 'stream' is null"),
        (["x", "x"], [None, 21], "time column 't' is null"),
    ):
        with pytest.raises(OrderError, match=what):
            query.micro_batch(table(keys, times, votes[20:22]))
    query = Query(plan_for(AdaptiveLabelModel(), rejected="reason", outputs=OUTPUTS))
    keys, times = ["x"] * 40, list(range(40))
    keys[3], times[5] = None, None
    said = query.micro_batch(table(keys, times, bad))
    good = said.filter(pa.compute.is_null(said["reason"])).sort_by("t")
    assert said.num_rows == 40
    places = [place for place in range(40) if place not in (3, 5, 20)]
    assert good["t"].to_pylist() == places
    check_equal(good, in_one_process(AdaptiveLabelModel(), votes[places]), slice(None))


def test_a_silent_stream_is_forgotten_and_begins_anew():
    votes = random_stream(10, 90, 4)
    query = Query(plan_for(AdaptiveLabelModel(), outputs=OUTPUTS), Policy(ttl=1000))
    fresh = in_one_process(AdaptiveLabelModel(), votes[30:60])
    tester = query.tester
    query.micro_batch(table(["x"] * 30, np.arange(30), votes[:30]))
    query.now = 900
    query.micro_batch(table(["x"], [30], votes[30:31]))
    tester.setWatermark(1100)  # the timer rings, and is set again: a row came at 900
    assert tester.peekValueState("stream", '["x"]') is not None
    tester.setWatermark(1950)
    assert tester.peekValueState("stream", '["x"]') is None
    assert tester.peekMapState("rows", '["x"]') == {}
    query.now = 2000
    said = query.micro_batch(table(["x"] * 30, np.arange(30), votes[30:60]))
    check_equal(said, fresh, slice(None))
    # No timer rang in between, because no micro-batch came: silent for too long all the same.
    query.now = 9000
    said = query.micro_batch(table(["x"] * 30, np.arange(30), votes[30:60]))
    check_equal(said, fresh, slice(None))
    tester.setWatermark(9001)
    assert tester.peekValueState("stream", '["x"]') is not None
    assert list(tester.handle.listTimers()) == [10_000]


def test_state_that_does_not_fit_is_refused_by_name():
    votes = random_stream(11, 20, 4)
    query = Query(plan_for(AdaptiveLabelModel(beta=0.1)))
    query.micro_batch(table(["x"] * 20, np.arange(20), votes))
    again = table(["x"], [20], votes[:1])
    for model, said in (
        (AdaptiveLabelModel(beta=0.2), "made with beta 0.1, and the query now says 0.2"),
        (MajorityLabelModel(), "made with model 'AdaptiveLabelModel', and the query now says 'MajorityLabelModel'"),
    ):
        query.plan = plan_for(model)
        with pytest.raises(StateError, match=said):
            query.micro_batch(again)
    query.plan = plan_for(AdaptiveLabelModel(), labelers=["b", "a", "c", "d"])
    with pytest.raises(StateError, match="made with labelers"):
        query.micro_batch(again)
    query.plan = plan_for(AdaptiveLabelModel())
    raw = query.tester.peekValueState("stream", '["x"]')[0]
    query.tester.updateValueState("stream", '["x"]', (raw[:4] + b"\x09\x00" + raw[6:],))
    with pytest.raises(StateError, match=r"stream \[\"x\"\]: the checkpoint holds state of version 9"):
        query.micro_batch(again)


def test_a_chunk_that_is_not_the_right_one_is_refused(small_chunks):
    votes = random_stream(12, 1200, 4)
    query = Query(plan_for(FixedWindowLabelModel(window=900)))
    query.micro_batch(table(["x"] * 1100, np.arange(1100), votes[:1100]))
    chunks = query.tester.peekMapState("rows", '["x"]')
    query.tester.updateMapState("rows", '["x"]', dict.fromkeys(chunks, chunks[0,]))
    with pytest.raises(StateError, match=r"holds chunk \d+ of 64 rows where chunk 3 should be"):
        query.micro_batch(table(["x"] * 5, np.arange(1100, 1105), votes[1100:1105]))
