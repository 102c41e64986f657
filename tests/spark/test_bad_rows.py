"""Rows that cannot be labeled: the job ends with our message, or the rows have the message in a column."""

from __future__ import annotations

import pytest

from driftvote import AdaptiveLabelModel
from driftvote.spark import label
from driftvote.spark.columns import make_job

from same_labels import LABELERS, assert_same, table

SMALL = AdaptiveLabelModel(windows=[4, 16, 64])

BAD = {
    "vote": (
        "IF(at = 500 AND camera = 'cam-0', 7, b) AS b",
        "camera 'cam-0', at 500, column 'b': 7 is neither a class",
    ),
    "key": (
        "IF(at = 500, NULL, camera) AS camera",
        "key column 'camera' is null (camera null, at 500); every row needs",
    ),
    "time": ("IF(at = 500, NULL, at) AS at", "time column 'at' is null"),
    "twice": ("IF(at = 500, 510, at) AS at", "at 510: two rows have this time, so their order is not defined"),
}
WAY_OUT = {"vote": "pass n_classes=8", "key": "fill it in", "time": "remove such rows", "twice": "order=[...]"}


def job_of(frame, model):
    return make_job(frame, key=None, time="at", labelers=["a", "b", "c"], model=model)


def spoiled(frame, what):
    change = BAD[what][0]
    name = change.rpartition(" ")[2]
    return frame.selectExpr(*(change if column == name else column for column in frame.columns))


@pytest.fixture(scope="module")
def frame(spark):
    return spark.createDataFrame(table([200, 200])).cache()


@pytest.mark.parametrize("key", ["camera", None])
@pytest.mark.parametrize("what", BAD)
def test_the_job_ends_with_a_sentence(frame, key, what):
    if key is None:
        if what == "key":
            pytest.skip("there is no key")
        frame = frame.where("camera = 'cam-0'")
    out = label(spoiled(frame, what), key=key, time="at", labelers=LABELERS, model=SMALL, blocks=None if key else 2)
    with pytest.raises(Exception, match="Error: ") as caught:
        out.collect()
    message = str(caught.value)
    sentence = BAD[what][1] if key else BAD[what][1].replace("camera 'cam-0', ", "").replace(" (camera null", "")
    assert sentence in message
    assert WAY_OUT[what] in message
    assert "rejected='reason'" in message


@pytest.mark.parametrize("blocks", [None, 3])
def test_all_bad_rows_set_apart(spark, blocks):
    """Of many streams, and of one stream in blocks, where rows must be counted without them."""
    votes = table([900])
    good = votes[~votes["at"].isin([0, 500, 4000])]
    frame = spark.createDataFrame(votes).selectExpr(
        "camera",
        "CASE at WHEN 500 THEN NULL WHEN 4000 THEN double('NaN') ELSE double(at) END AS at",
        "IF(at = 0, 3, a) AS a", *LABELERS[1:], "at AS number",
    )  # fmt: skip
    again = frame.where("number IN (10, 3000, 6000)").withColumn("number", -frame.number)
    once = {} if blocks is None else {"blocks": blocks}
    out = label(
        frame.unionAll(again), key=None if blocks else "camera", time="at", labelers=LABELERS, model=SMALL,
        keep=["number"], rejected="why", **once,
    ).toPandas()  # fmt: skip
    labeled, rest = out[out["why"].isna()], out[out["why"].notna()]
    assert len(labeled) == len(good)
    assert_same(labeled.drop(columns="number"), good, SMALL)
    reasons = sorted(rest["why"])
    assert len(reasons) == 6
    assert sum("two rows have this time" in why for why in reasons) == 3
    assert sum("column 'a': 3 is neither a class" in why for why in reasons) == 1
    assert sum("time column 'at' is n" in why for why in reasons) == 2
    assert rest[["label", "probability", "proba", "window", "n_votes"]].isna().all().all()
    assert sorted(abs(rest["number"])) == [0, 10, 500, 3000, 4000, 6000]


def test_blocks_count_the_rows_that_will_be_labeled(spark):
    """A block with more or fewer good rows than were counted ends the job."""
    values = "-2, -1, 0, 1, 2, 0.5, 1.0, double('NaN'), NULL, 1e300"
    frame = spark.sql(f"SELECT pos AS at, col AS a, col AS b, 0 AS c FROM posexplode(array({values}))")
    for model in (
        AdaptiveLabelModel(windows=[2, 4]),
        AdaptiveLabelModel(votes="signed", windows=[2, 4]),
        AdaptiveLabelModel(classes=[0, 0.5, 2], abstain=-2, windows=[2, 4]),
    ):
        out = label(frame, key=None, time="at", labelers=["a", "b", "c"], model=model, rejected="why", blocks=2)
        codes = job_of(frame, model).form.encode(frame.toPandas()["a"].to_numpy())
        missing = 2  # NaN and null
        assert out.where("why IS NULL").count() == (codes > -2).sum() + missing
        assert out.count() == 10
    words = spark.sql("SELECT pos AS at, col AS a, col AS b, 'x' AS c FROM posexplode(array('x', 'y', 'X', '', NULL))")
    model = AdaptiveLabelModel(classes=["x", "y"], abstain="", windows=[2, 4])
    out = label(words, key=None, time="at", labelers=["a", "b", "c"], model=model, rejected="why", blocks=2)
    assert out.where("why IS NULL").count() == 4


def test_signed_votes_that_nobody_declared(spark):
    """The whole task is the first batch: a stream that begins without class 0 is fine, a table without any is not."""
    frame = spark.createDataFrame(table([400])).selectExpr(
        "camera", "at", *(f"IF({n} = 1, 1, -1) AS {n}" for n in LABELERS)
    )
    for key in ("camera", None):
        with pytest.raises(Exception, match="pass votes='signed' if -1 is the negative class"):
            label(frame, key=key, time="at", labelers=LABELERS).collect()
    late = frame.selectExpr("camera", "at", "IF(at = 3000, 0, a) AS a", *LABELERS[1:])
    assert label(late, key="camera", time="at", labelers=LABELERS).count() == 400
