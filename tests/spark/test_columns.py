"""Mistakes that are refused before a job starts, and the memory of a task."""

from __future__ import annotations

import pyarrow as pa
import pytest

import driftvote
from driftvote import AdaptiveLabelModel
from driftvote.spark import label
from driftvote.spark.columns import make_job
from driftvote.spark.tasks import RowReader, label_sorted

from same_labels import LABELERS, assert_same, table

WRONG = [
    ({"key": "camra"}, "key='camra': the DataFrame has no such column; it has a, b, c, d, e, camera, at"),
    ({"time": "when"}, "time='when': the DataFrame has no such column"),
    ({"labelers": ["a", "b", "z"]}, "labelers='z': the DataFrame has no such column"),
    ({"keep": ["z"]}, "keep='z': the DataFrame has no such column"),
    ({"order": ["z"]}, "order='z': the DataFrame has no such column"),
    ({"labelers": ["a", "b", "camera"]}, "'camera' is the key and a labeler; take it out of labelers"),
    ({"labelers": ["a", "b"]}, "at least 3"),
    ({"labelers": None}, "labelers= must name the columns with votes"),
    (
        {"key": None, "labelers": ["a", "b", "camera"]},
        "column 'camera' is a string, but the votes are declared as classes 0, 1",
    ),
    (
        {"model": AdaptiveLabelModel(classes=["x", "y"])},
        "column 'a' is a int, but the votes are declared as classes 'x', 'y'",
    ),
    ({"model": AdaptiveLabelModel(classes=["x", 1])}, "cannot share one Spark column"),
    ({"model": AdaptiveLabelModel(labelers=["a", "b", "d"])}, "and the model's labelers="),
    ({"model": "adaptive"}, "model must be a label model such as AdaptiveLabelModel(), not str"),
    ({"time": "camera"}, "'camera' is the key and the time; name two columns"),
    ({"key": []}, "key must be a column name or a list of them"),
    ({"key": 3}, "key must be a column name or a list of them, not 3"),
    ({"outputs": ["labels"]}, "outputs has 'labels', but the outputs of AdaptiveLabelModel are label, prob"),
    ({"outputs": ["error_bound"]}, "outputs has 'error_bound', but the outputs of AdaptiveLabelModel are"),
    ({"duplicates": "drop"}, "duplicates must be 'error' or 'sort', not 'drop'"),
    ({"rejected": "label"}, "'label' would be the name of two columns"),
    ({"rejected": "Camera"}, "'camera' would be the name of two columns"),
    ({"prefix": "at", "outputs": ["label"], "keep": ["a"], "rejected": "A"}, "'a' would be the name of two columns"),
    ({"partitions": 0}, "partitions must be a whole number, at least 1, not 0"),
    ({"blocks": 3}, "blocks= cuts one long stream"),
    ({"key": None, "partitions": 3}, "partitions= is for many streams"),
    ({"key": None, "blocks": -1}, "blocks must be a whole number"),
]


@pytest.fixture(scope="module")
def frame(spark):
    return spark.createDataFrame(table([20]))


@pytest.mark.parametrize(("given", "sentence"), WRONG, ids=[str(n) for n in range(len(WRONG))])
def test_refused_before_a_job_begins(frame, given, sentence):
    with pytest.raises(driftvote.DriftvoteError) as caught:
        label(frame, **({"key": "camera", "time": "at", "labelers": LABELERS} | given))
    assert sentence in str(caught.value)


def test_types_that_cannot_be_a_key_or_a_time(frame):
    lists = frame.selectExpr("*", "array(1) AS list", "camera COLLATE UTF8_LCASE AS folded", "1 AS A_", "2 AS a_")
    with pytest.raises(driftvote.VoteError, match="has column 'a_' twice"):
        label(lists, key="camera", time="at", labelers=LABELERS)
    lists = lists.drop("A_")
    with pytest.raises(driftvote.VoteError, match="time='list' is a array<int>; it must be a tinyint"):
        label(lists, key="camera", time="list", labelers=LABELERS)
    with pytest.raises(driftvote.VoteError, match="treats unequal text as equal; cast it to string"):
        label(lists, key="folded", time="at", labelers=LABELERS)


def test_a_model_that_has_learned_is_refused(frame):
    model = AdaptiveLabelModel(labelers=LABELERS)
    model.update([0, 1, 0, 1, 0])
    with pytest.raises(driftvote.SettingError, match="has learned from 1 rows.*pass model.clone()"):
        label(frame, key="camera", time="at", model=model)
    assert label(frame, key="camera", time="at", model=model.clone()).count() == 20


def test_a_stream_without_end_is_refused(spark, tmp_path):
    frame = spark.readStream.schema("camera string, at long, a int, b int, c int").parquet(str(tmp_path))
    with pytest.raises(driftvote.SettingError, match="use driftvote.spark.label_stream"):
        label(frame, key="camera", time="at", labelers=["a", "b", "c"])


class TestTask:
    """A task without Spark: what goes in as Arrow comes out as Arrow."""

    @pytest.fixture
    def job(self, frame):
        return make_job(frame, key="camera", time="at", labelers=LABELERS, model=AdaptiveLabelModel())

    @pytest.fixture
    def rows(self):
        return table([300, 50, 1, 120]).sort_values(["camera", "at"])

    def batches(self, rows, job, size):
        return pa.Table.from_pandas(rows[list(job.read)], preserve_index=False).to_batches(max_chunksize=size)

    @pytest.mark.parametrize("size", [1, 7, 100, 1000])
    def test_it_does_not_matter_where_batches_are_cut(self, rows, job, size):
        results = pa.Table.from_batches(list(label_sorted(self.batches(rows, job, size), job))).to_pandas()
        assert_same(results, rows, AdaptiveLabelModel(), "camera")

    def test_a_task_holds_one_batch_at_a_time(self, rows, job):
        asked = []

        def source():
            for place, batch in enumerate(self.batches(rows, job, 10)):
                asked.append(place)
                yield batch

        for place, results in enumerate(label_sorted(source(), job)):
            assert asked[-1] == place
            assert results.num_rows <= 10

    def test_rows_lie_one_after_the_other(self, rows, job):
        """Kernels run along rows; in another order sums of floats could differ in their last bits."""
        assert RowReader(job).read(self.batches(rows, job, 100)[0]).codes.flags.c_contiguous

    def test_a_job_is_sent_without_a_model(self, job):
        import pickle

        assert len(pickle.dumps(job)) < 5000
