"""One long stream in blocks: the labels of one process, and the cost of the rows before a block."""

from __future__ import annotations

import datetime

import numpy as np
import pytest
from pyspark.sql import functions

from driftvote import AdaptiveLabelModel, CommitteeLabelModel, FixedWindowLabelModel, MajorityLabelModel
from driftvote.spark import blocks, label
from driftvote.spark.blocks import TimeRange, cut_blocks
from driftvote.spark.columns import ERROR_BOUND, OUTPUTS

from same_labels import LABELERS, assert_same, table

GRID = [1, 2, 4, 8, 16, 32, 64, 128, 256]
MODELS = {
    "default": AdaptiveLabelModel(windows=GRID),
    "paper": AdaptiveLabelModel.paper(windows=GRID, seed=3),
    "triplet": AdaptiveLabelModel(estimator="triplet", windows=GRID),
    "window": FixedWindowLabelModel(window=50),
    "majority": MajorityLabelModel(tie_break_policy="random"),
    "committee": CommitteeLabelModel(search_every=50, windows=GRID),
    "families": AdaptiveLabelModel(windows=GRID, groups={"a": "ab", "b": "ab"}, labelers=LABELERS),
}


def wanted(name):
    return (*OUTPUTS, ERROR_BOUND) if name == "committee" else OUTPUTS


@pytest.fixture(scope="module")
def votes():
    return table([5000])


@pytest.fixture(scope="module")
def frame(spark, votes):
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "333")
    yield spark.createDataFrame(votes).cache()
    spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")


@pytest.mark.parametrize("name", MODELS)
def test_blocks_are_the_whole(frame, votes, name):
    out = label(frame, key=None, time="at", labelers=LABELERS, model=MODELS[name], outputs=wanted(name), blocks=5)
    assert out.rdd.getNumPartitions() == 5
    assert_same(out.toPandas(), votes, MODELS[name])


@pytest.mark.parametrize("count", [None, 11])
def test_any_number_of_blocks(frame, votes, count):
    model = AdaptiveLabelModel(windows=GRID)
    out = label(frame, key=None, time="at", labelers=LABELERS, model=model, outputs=OUTPUTS, blocks=count)
    together = out.groupBy(functions.spark_partition_id()).count().collect()
    assert len(together) == out.rdd.getNumPartitions()  # side by side: never two blocks in one task
    assert_same(out.toPandas(), votes, model)


def test_fewer_rows_than_the_memory_are_one_block(frame, votes):
    out = label(frame, key=None, time="at", labelers=LABELERS)
    assert out.rdd.getNumPartitions() == 1
    assert_same(out.toPandas(), votes, AdaptiveLabelModel())


def test_all_the_past_is_one_block(frame, votes):
    model = FixedWindowLabelModel(window=None)
    out = label(frame, key=None, time="at", labelers=LABELERS, model=model)
    assert out.rdd.getNumPartitions() == 1
    assert_same(out.toPandas(), votes, model)


@pytest.mark.parametrize("kind", ["timestamp", "timestamp_ntz", "decimal(20,2)"])
def test_times_of_every_type(spark, kind):
    """With a night in it in which clocks are put back: an hour that there is twice must not be taken for one."""
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        votes = table([600])
        moment = {"decimal(20,2)": "at / 4"}
        text = "timestamp_seconds(1792886400 + at)" if kind == "timestamp" else (
            "TIMESTAMP_NTZ'2026-10-25 00:00:00' + make_interval(0, 0, 0, 0, 0, 0, at)"
        )  # fmt: skip
        frame = spark.createDataFrame(votes).selectExpr(
            "at AS number", f"CAST({moment.get(kind, text)} AS {kind}) AS at", *LABELERS
        )
        model = AdaptiveLabelModel(windows=[4, 16, 64])
        out = label(frame, key=None, time="at", labelers=LABELERS, model=model, keep=["number"], blocks=4)
        found = out.drop("at").withColumnRenamed("number", "at").toPandas()
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    assert_same(found, votes, model)
    assert datetime.datetime.fromtimestamp(1792886400, datetime.timezone.utc).hour == 0


def test_many_rows_of_one_time_stay_together(spark):
    votes = table([900])
    frame = spark.createDataFrame(votes).selectExpr("at AS place", "CAST(at / 3000 AS INT) AS at", *LABELERS)
    model = AdaptiveLabelModel(windows=[4, 16, 64])
    out = label(frame, key=None, time="at", labelers=LABELERS, model=model, order=["place"], keep=["place"], blocks=6)
    assert out.rdd.getNumPartitions() == 3
    assert_same(out.drop("at").withColumnRenamed("place", "at").toPandas(), votes, model)


def test_rows_that_change_between_two_reads_are_refused(spark, monkeypatch):
    real = blocks.count_ranges
    monkeypatch.setattr(blocks, "count_ranges", lambda *a: [*real(*a)[:-1], TimeRange(real(*a)[-1].last, 3)])
    frame = spark.createDataFrame(table([600]))
    model = AdaptiveLabelModel(windows=[4, 16])
    out = label(frame, key=None, time="at", labelers=LABELERS, model=model, blocks=2)
    with pytest.raises(Exception, match="rows were counted, but .* came: the DataFrame differs"):
        out.collect()


class TestCuttingBlocks:
    def test_halos_hold_the_memory_of_the_model(self):
        rng = np.random.default_rng(0)
        for _ in range(200):
            sizes = rng.integers(1, 50, rng.integers(1, 40)).tolist()
            memory_rows, wanted = int(rng.integers(1, 300)), int(rng.integers(1, 12))
            cut = cut_blocks(
                [TimeRange(place, size) for place, size in enumerate(sizes)], memory_rows, wanted, exactly=True
            )
            assert [block.first for block in cut[1:]] == [block.end for block in cut[:-1]]
            assert cut[0].first == 0
            assert cut[-1].end == len(sizes)
            for block in cut:
                assert block.row == sum(sizes[: block.first])
                assert block.n_rows == sum(sizes[block.first : block.end])
                assert block.n_halo == sum(sizes[block.halo : block.first])
                assert block.n_halo >= min(memory_rows, block.row)
                assert block.n_halo - sizes[block.halo] < memory_rows or block.halo == block.first

    def test_the_number_of_blocks_weighs_halos_against_cores(self):
        ranges = [TimeRange(place, 10_000) for place in range(1000)]  # ten million rows
        assert len(cut_blocks(ranges, memory_rows=557_056, wanted=2)) == 2
        assert len(cut_blocks(ranges, memory_rows=557_056, wanted=64)) == 17  # a block is no shorter than its halo
        assert len(cut_blocks(ranges, memory_rows=1000, wanted=8)) == 32  # halos are cheap: several blocks a core
        assert len(cut_blocks(ranges, memory_rows=20_000_000, wanted=8)) == 1
