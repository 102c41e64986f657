"""Streaming queries in a real Spark: values that pass through it, and its errors."""

from __future__ import annotations

import os
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from driftvote import AdaptiveLabelModel
from driftvote.errors import MissingExtraError, SettingError, VoteError
from driftvote.spark import label_stream, write_batches
from driftvote.spark.sink import BatchFolder

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


def test_a_query_that_stops_at_a_bad_vote(spark, stream, tmp_path):
    """Values of odd types pass unharmed; Spark's error has our message; nothing is half-written."""
    votes = random_stream(1, 200, 3, abstain=0.1)
    times = -62_000_000_000_000_000 + np.arange(200) * 3
    for number in (0, 1):
        part = slice(100 * number, 100 * number + 100)
        write(tmp_path / "in", number, votes[part], times[part], [7] * 100)
    model = AdaptiveLabelModel(classes=["no", "yes"], labelers=NAMES)
    labeled = label_stream(stream, key="k", time="t", model=model, keep=["note"], late="drop", ttl=3600)
    to = {"checkpoint": tmp_path / "checkpoint", "trigger": {"availableNow": True}}
    write_batches(labeled, tmp_path / "out", **to).awaitTermination()
    found = pq.read_table(tmp_path / "out", coerce_int96_timestamp_unit="us").sort_by("t")
    assert found["note"].to_pylist() == [None if t % 3 else 2**60 + t for t in times]
    assert found["t"].cast(pa.timestamp("us")).cast(pa.int64()).to_pylist() == times.tolist()
    whole = model.label_stream(np.array(["no", "yes", None], object)[votes])
    assert found["label"].to_pylist() == whole.labels.tolist()
    assert np.array_equal(np.array(found["proba"].to_pylist()), whole.proba)
    assert set(found["late_rows"].to_pylist()) == {0}
    # The third file holds a vote that is not declared.
    table = pq.read_table(tmp_path / "in" / "1.parquet")
    later = pa.compute.add(table["t"].cast(pa.int64()), 10**9).cast(table["t"].type)
    bad = table.set_column(1, "t", later).set_column(4, "b", pa.array(["maybe"] * 100))
    pq.write_table(bad, tmp_path / "in" / "2.parquet")
    query = write_batches(labeled, tmp_path / "out", **to)
    with pytest.raises(Exception, match="column 'b': 'maybe' is neither a class"):
        query.awaitTermination()
    # Batch 2 is empty: after the last rows Spark adds a micro-batch, in which timers can expire.
    assert sorted(path.name for path in (tmp_path / "out").glob("batch*")) == [f"batch_id={n}" for n in range(3)]
    assert not list((tmp_path / "out").glob(".unfinished*/*.parquet"))
    assert pq.read_table(tmp_path / "out").num_rows == 200
    # Another query may not write there: it would overwrite batch 0.
    with pytest.raises(SettingError, match=f"holds the batches of query {query.id}, and this one is another"):
        BatchFolder(spark, str(tmp_path / "out")).claim("another")


def test_what_is_refused_before_a_query_starts(spark, stream, tmp_path, monkeypatch):
    good = {"key": "k", "time": "t", "labelers": NAMES, "model": AdaptiveLabelModel(classes=["no", "yes"])}
    for wrong, kind, what in (
        ({"time": "when"}, VoteError, "time='when': the DataFrame has no such column"),
        ({"model": AdaptiveLabelModel()}, VoteError, "column 'a' is a string"),
        ({"late": "ignore"}, SettingError, "late must be 'error' or 'drop'"),
        ({"ttl": 0}, SettingError, "ttl must be a timedelta, or seconds above 0"),
    ):
        with pytest.raises(kind, match=what):
            label_stream(stream, **(good | wrong))
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
