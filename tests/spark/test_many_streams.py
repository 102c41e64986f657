"""Many streams side by side: the labels of one process, whatever the keys, their sizes and the partitions."""

from __future__ import annotations

import datetime
import decimal

import numpy as np
import pytest

import driftvote
from driftvote import AdaptiveLabelModel, CommitteeLabelModel, FixedWindowLabelModel, MajorityLabelModel
from driftvote.spark import label
from driftvote.spark.columns import ERROR_BOUND, OUTPUTS

from same_labels import LABELERS, assert_same, table

MODELS = {
    "default": AdaptiveLabelModel(),
    "paper": AdaptiveLabelModel.paper(seed=3),
    "triplet": AdaptiveLabelModel(estimator="triplet", windows=[8, 32, 128]),
    "window": FixedWindowLabelModel(window=50),
    "all past": FixedWindowLabelModel(window=None),
    "majority": MajorityLabelModel(tie_break_policy="random"),
    "committee": CommitteeLabelModel(search_every=100),
}


def wanted(name):
    return (*OUTPUTS, ERROR_BOUND) if name == "committee" else OUTPUTS


@pytest.fixture(scope="module")
def skewed():
    """Three streams, of which one has nearly all rows."""
    return table([4000, 300, 7])


@pytest.fixture(scope="module")
def small_batches(spark):
    """So that streams begin and end anywhere in a batch, and go on over many."""
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "700")
    yield
    spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("name", MODELS)
def test_three_streams_of_unequal_size(spark, skewed, name):
    frame = spark.createDataFrame(skewed)
    out = label(frame, key="camera", time="at", labelers=LABELERS, model=MODELS[name], outputs=wanted(name))
    assert_same(out.toPandas(), skewed, MODELS[name], "camera")


@pytest.mark.parametrize("partitions", [1, 2, 13])
def test_any_number_of_partitions(spark, skewed, partitions):
    frame = spark.createDataFrame(skewed).repartition(5)
    out = label(frame, key="camera", time="at", labelers=LABELERS, partitions=partitions, outputs=OUTPUTS)
    assert out.rdd.getNumPartitions() == partitions
    assert_same(out.toPandas(), skewed, AdaptiveLabelModel(), "camera")


def test_one_stream(spark):
    votes = table([1500])
    out = label(spark.createDataFrame(votes), key="camera", time="at", labelers=LABELERS, outputs=OUTPUTS)
    assert_same(out.toPandas(), votes, AdaptiveLabelModel(), "camera")


@pytest.mark.usefixtures("small_batches")
def test_five_hundred_streams(spark):
    """Most of them short, so that hundreds begin and end in a batch."""
    rng = np.random.default_rng(1)
    votes = table([*rng.integers(1, 12, 495).tolist(), 100, 200, 400, 800, 1600])
    out = label(spark.createDataFrame(votes), key="camera", time="at", labelers=LABELERS, outputs=OUTPUTS)
    assert_same(out.toPandas(), votes, AdaptiveLabelModel(), "camera")


def test_text_classes_and_columns_that_pass_through(spark):
    model = AdaptiveLabelModel(classes=["ham", "spam"])
    votes = table([200, 100])
    words = votes.copy()
    for name in LABELERS:
        words[name] = votes[name].map({0: "ham", 1: "spam", -1: None})
    frame = spark.createDataFrame(words).selectExpr("*", "array(at, 1) AS `a.list`", "struct(a, at) AS pair")
    out = label(frame, key="camera", time="at", labelers=LABELERS, model=model, keep=["a.list", "pair", "a"])
    assert out.columns[:5] == ["camera", "at", "a.list", "pair", "a"]
    assert dict(out.dtypes)["label"] == "string"
    assert_same(out.toPandas(), words, model, "camera")
    for row in out.collect():
        assert (row.pair.a, row.pair["at"], row["a.list"]) == (row.a, row["at"], [row["at"], 1])


def test_several_key_columns_families_and_a_prefix(spark):
    model = AdaptiveLabelModel(groups={"a": "ab", "b": "ab"})
    votes = table([150, 90])
    frame = spark.createDataFrame(votes).selectExpr("*", "1 AS site", "7 AS label")
    out = label(
        frame, key=["site", "camera"], time="at", labelers=LABELERS, model=model, keep=["label"], prefix="our_",
        outputs=["label", "accuracies"],
    )  # fmt: skip
    assert out.columns == ["site", "camera", "at", "label", "our_label", "our_accuracies"]
    named = type(model)(**(model.get_params(deep=False) | {"labelers": LABELERS}))
    assert_same(out.toPandas(), votes, named, "camera", prefix="our_")


@pytest.mark.parametrize(
    "written",
    [
        "CAST({} AS double)",
        "CAST({} AS decimal(12,3))",
        "CAST({} AS tinyint)",
        "NULLIF({}, -1)",
        "IF({0} = -1, double('NaN'), {0})",
        "{} = 1",
    ],
)
def test_how_votes_are_written(spark, written):
    votes = table([300], abstain=0.0 if written == "{} = 1" else 0.2)
    frame = spark.createDataFrame(votes)
    frame = frame.selectExpr("camera", "at", *(f"{written.format(name)} AS {name}" for name in LABELERS))
    out = label(frame, key="camera", time="at", labelers=LABELERS, outputs=OUTPUTS)
    assert_same(out.toPandas(), votes, AdaptiveLabelModel(), "camera")


@pytest.mark.parametrize(
    ("kind", "first"),
    [
        ("timestamp", datetime.datetime(2026, 1, 1)),
        ("timestamp_ntz", datetime.datetime(2026, 1, 1)),
        ("string", "2026-01-01 00:00:00"),
        ("decimal(20,2)", decimal.Decimal("0.00")),
    ],
)
def test_types_of_time(spark, kind, first):
    votes = table([60])
    moment = {"decimal(20,2)": "at"}
    text = "TIMESTAMP_NTZ'2026-01-01' + make_interval(0, 0, 0, 0, 0, 0, at)"
    frame = spark.createDataFrame(votes).selectExpr(
        "camera", "at AS number", f"CAST({moment.get(kind, text)} AS {kind}) AS at", *LABELERS
    )
    out = label(frame, key="camera", time="at", labelers=LABELERS, keep=["number"]).toPandas()
    assert out["at"].min() == first
    assert_same(out.drop(columns="at").rename(columns={"number": "at"}), votes, AdaptiveLabelModel(), "camera")


def test_rows_of_one_time_in_a_declared_order(spark):
    votes = table([400])
    frame = spark.createDataFrame(votes).selectExpr("camera", "at AS place", "0 AS at", *LABELERS)
    out = label(frame, key="camera", time="at", labelers=LABELERS, order=["place"], keep=["place"]).toPandas()
    found = out.drop(columns="at").rename(columns={"place": "at"})
    assert_same(found, votes, AdaptiveLabelModel(), "camera")


def test_rows_of_one_time_sorted_by_their_votes(spark):
    votes = table([400])
    frame = spark.createDataFrame(votes).selectExpr("camera", "at div 100 AS at", *LABELERS)
    runs = [
        label(frame.repartition(n), key="camera", time="at", labelers=LABELERS, duplicates="sort", keep=LABELERS)
        .sort("at", *LABELERS, "window")
        .collect()
        for n in (1, 3)
    ]
    assert runs[0] == runs[1]
    rows = votes.assign(at=votes["at"] // 100).sort_values(["at", *LABELERS])
    whole = driftvote.AdaptiveLabelModel().label_stream(rows[LABELERS].to_numpy())
    assert sorted(row.probability for row in runs[0]) == sorted(whole.probability.tolist())


def test_nothing_in_nothing_out(spark):
    frame = spark.createDataFrame(table([10])).where("at < 0")
    for key in ("camera", None):
        out = label(frame, key=key, time="at", labelers=LABELERS)
        assert out.count() == 0
        assert out.columns[-5:] == ["label", "probability", "proba", "window", "n_votes"]
