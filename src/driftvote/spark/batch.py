"""`label`: DataFrames of finite size, many streams or one long stream."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from driftvote.errors import SettingError
from driftvote.models import LabelModel
from driftvote.spark.blocks import label_blocks, plan_blocks
from driftvote.spark.columns import DEFAULT_OUTPUTS, make_job
from driftvote.spark.tasks import label_partitions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def label(
    frame: DataFrame,
    *,
    key: str | Sequence[str] | None,
    time: str,
    labelers: Sequence[str] | None = None,
    model: LabelModel | None = None,
    keep: Sequence[str] = (),
    order: Sequence[str] = (),
    outputs: Sequence[str] = DEFAULT_OUTPUTS,
    prefix: str = "",
    rejected: str | None = None,
    duplicates: str = "error",
    partitions: int | None = None,
    blocks: int | None = None,
) -> DataFrame:
    """A DataFrame with key, time, the kept columns and the outputs: what `label_stream` gives for every stream.

    The results are equal to those of one process to the last bit; for one long stream (`key=None`), to those of a model
    that does not look for drift events (`false_event_rate=None`).

    Parameters
    ----------
    frame
        A DataFrame with a row for each item and a column for each labeler, in any order; null abstains.
    key
        Column, or columns, that identify a stream; every stream has its own model, which starts empty.
        None: one long stream, which is cut by time into blocks; a Spark job counts the rows at once.
    time
        Column to sort by: numbers, dates, timestamps, or text that sorts.
    labelers
        Columns with votes; may be omitted if the model declares its labelers.
    model
        A model that has seen nothing; tasks receive its settings. Default: `AdaptiveLabelModel()`.
    keep
        Columns that pass through, besides key and time.
    order
        Columns that order rows of equal time.
    outputs
        Some of label, probability, proba (of each class), window, n_votes, accuracies, diluted_accuracies, weights,
        coverage (of each labeler), and error_bound of committees; the names of `LabeledStream`.
    prefix
        Put before the names of the outputs.
    rejected
        None: a row that cannot be labeled ends the job with a message about it. A name: such rows have null outputs
        and the message in a column of this name, which is null for all other rows.
    duplicates
        Two rows of a stream with equal time and order: "error" refuses them (with `rejected`, all but the first),
        "sort" orders them by their votes.
    partitions
        Number of partitions of many streams; default: chosen by Spark.
    blocks
        Number of blocks of one stream; default: by the number of cores and the cost of the rows before a block.
    """
    if getattr(frame, "isStreaming", False):
        raise SettingError("this DataFrame is a stream without an end; use driftvote.spark.label_stream")
    job = make_job(
        frame,
        key=key,
        time=time,
        labelers=labelers,
        model=model,
        keep=keep,
        order=order,
        outputs=outputs,
        prefix=prefix,
        rejected=rejected,
        duplicates=duplicates,
    )
    _check_count("partitions", partitions)
    _check_count("blocks", blocks)
    if job.key and blocks is not None:
        raise SettingError("blocks= cuts one long stream; streams of a key are labeled whole, see partitions=")
    if not job.key and partitions is not None:
        raise SettingError("partitions= is for many streams; one stream (key=None) is cut by blocks=")
    if job.key:
        return label_partitions(frame, job, partitions)
    plan = plan_blocks(frame, job, blocks)
    return label_partitions(frame, job, 1) if len(plan.blocks) < 2 else label_blocks(frame, job, plan)


def _check_count(name: str, value: int | None) -> None:
    if value is not None and (type(value) is not int or value < 1):
        raise SettingError(f"{name} must be a whole number, at least 1, not {value!r}")
