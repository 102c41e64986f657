"""Streaming queries in a real Spark: what it takes through its own doors, and how it fails."""

from __future__ import annotations

import os
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from driftvote import AdaptiveLabelModel
from driftvote.errors import MissingExtraError, SettingError, StateError, VoteError
from driftvote.spark import label_stream, write_batches
from driftvote.spark.sink import Files

from streams_for_tests import random_stream

NAMES = ["a", "b", "c"]
SCHEMA = "k bigint, t timestamp, note bigint, a string, b string, c string"


def write(folder, number, votes, times, keys):
    """One file, one micro-batch."""
    words = np.array(["no", "yes", None], object)
    columns = {"k": pa.array(keys), "t": pa.array(times, pa.timestamp("us", "UTC"))}
    columns["note"] = pa.array([None if t % 3 else 2**60 + t for t in times], pa.int64())
    columns |= {name: pa.array(words[votes[:, at]]) for at, name in enumerate(NAMES)}
    folder.mkdir(exist_ok=True)
    pq.write_table(pa.table(columns), folder / f"{number}.parquet")
    os.utime(folder / f"{number}.parquet", (1_600_000_000 + number,) * 2)


@pytest.fixture
def stream(spark, tmp_path):
    (tmp_path / "in").mkdir()
    return spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in"))


def test_a_query_from_a_saved_model_then_a_bad_vote(spark, stream, tmp_path):
    """Odd types pass unharmed; a stream begins with its file; our sentence is in Spark's error; nothing is half-written."""
    model = AdaptiveLabelModel(classes=["no", "yes"], labelers=NAMES)
    seen = 400_000  # more than Spark sends to its workers without a broadcast variable
    votes = random_stream(1, seen + 100, 3, abstain=0.1)
    words = np.array(["no", "yes", None], object)[votes]
    model.partial_fit(words[:seen])
    model.save(tmp_path / "seven.npz")
    write(tmp_path / "in", 0, votes[seen:], -62_000_000_000_000_000 + np.arange(100) * 3, [7] * 100)
    with_ttl = {"late": "drop", "ttl": 3600, "start": {7: tmp_path / "seven.npz"}}
    said = label_stream(stream, key="k", time="t", keep=["note"], **with_ttl)
    to = {"checkpoint": tmp_path / "checkpoint", "trigger": {"availableNow": True}}
    write_batches(said, tmp_path / "out", **to).awaitTermination()
    found = pq.read_table(tmp_path / "out" / "batch_id=0").sort_by("note")
    assert found["note"].to_pylist() == sorted(
        (None if t % 3 else 2**60 + t for t in -62_000_000_000_000_000 + np.arange(100) * 3), key=lambda n: n or 0
    )
    whole = model.label_stream(words[seen:])
    assert found["label"].to_pylist() == whole.labels.tolist()
    assert np.array_equal(np.array(found["proba"].to_pylist()), whole.proba)
    assert set(found["late_rows"].to_pylist()) == {0}
    # The second file holds a vote that nobody declared.
    table = pq.read_table(tmp_path / "in" / "0.parquet")
    later = pa.compute.add(table["t"].cast(pa.int64()), 10**9).cast(table["t"].type)
    bad = table.set_column(1, "t", later).set_column(4, "b", pa.array(["maybe"] * 100))
    pq.write_table(bad, tmp_path / "in" / "1.parquet")
    query = write_batches(said, tmp_path / "out", **to)
    with pytest.raises(Exception, match="column 'b': 'maybe' is neither a class"):
        query.awaitTermination()
    # Batch 1 was empty: after rows Spark looks once more whether the clock lets something expire.
    assert sorted(path.name for path in (tmp_path / "out").glob("batch*")) == ["batch_id=0", "batch_id=1"]
    assert not list((tmp_path / "out").glob(".unfinished*/*.parquet"))
    assert pq.read_table(tmp_path / "out").num_rows == 100
    # Another query may not write there: it would overwrite batch 0.
    with pytest.raises(SettingError, match=f"holds the batches of query {query.id}, and this one is another"):
        Files(spark, str(tmp_path / "out")).claim("another")


def test_what_is_refused_before_a_query_starts(spark, stream, tmp_path, monkeypatch):
    good = {"key": "k", "time": "t", "labelers": NAMES, "model": AdaptiveLabelModel(classes=["no", "yes"])}
    for wrong, kind, what in (
        ({"time": "when"}, VoteError, "time='when': the DataFrame has no such column"),
        ({"model": AdaptiveLabelModel()}, VoteError, "column 'a' is a string"),
        ({"late": "ignore"}, SettingError, "late must be 'error' or 'drop'"),
        ({"ttl": 0}, SettingError, "ttl must be a timedelta, or seconds above 0"),
        ({"start": tmp_path / "nothing.npz"}, StateError, "there is no such state file"),
    ):
        with pytest.raises(kind, match=what):
            label_stream(stream, **(good | wrong))
    other = AdaptiveLabelModel(classes=["no", "yes"], labelers=NAMES, beta=0.5)
    other.save(tmp_path / "other.npz")
    with pytest.raises(StateError, match="start: the saved model is"):
        label_stream(stream, start=tmp_path / "other.npz", **good)
    with pytest.raises(SettingError, match="start names the stream 'x', which key=\\['k'\\] cannot hold"):
        label_stream(stream, start={"x": tmp_path / "other.npz"}, **(good | {"model": None}))
    with pytest.raises(SettingError, match="is not a stream"):
        label_stream(spark.createDataFrame([], SCHEMA), **good)
    with pytest.raises(SettingError, match="is not a stream"):
        write_batches(spark.createDataFrame([], SCHEMA), tmp_path / "out", checkpoint=tmp_path / "checkpoint")
    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, "google.protobuf", None)
        with pytest.raises(MissingExtraError, match=r"need google.protobuf, .* pip install 'driftvote\[spark\]'"):
            label_stream(stream, **good)
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", "org.example.Other")
    try:
        with pytest.raises(SettingError, match="providerClass is 'org.example.Other', but labeling streams needs"):
            label_stream(stream, **good)
    finally:
        spark.conf.unset("spark.sql.streaming.stateStore.providerClass")
