"""Tables of history: many streams side by side, or one long stream."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from driftvote.errors import SettingError
from driftvote.models import LabelModel
from driftvote.spark.blocks import label_blocks
from driftvote.spark.columns import USUAL, Plan, make_plan, output_schema
from driftvote.spark.travel import aliases, named_again, travelling


def label(
    frame: Any,
    *,
    key: str | Sequence[str] | None,
    time: str,
    labelers: Sequence[str] | None = None,
    model: LabelModel | None = None,
    keep: Sequence[str] = (),
    order: Sequence[str] = (),
    outputs: Sequence[str] = USUAL,
    prefix: str = "",
    rejected: str | None = None,
    duplicates: str = "error",
    partitions: int | None = None,
    blocks: int | None = None,
) -> Any:
    """Label the rows of a Spark DataFrame: what `label_stream` gives for every stream, bit for bit.

    Parameters
    ----------
    frame
        A DataFrame with a row for each item and a column for each labeler; null abstains. In any order.
    key
        Column, or columns, that tell streams apart; every stream has its own model and begins with nothing known.
        None: one long stream, which is cut by time into blocks; the rows are then counted at once, by a job of its own.
    time
        Column to sort by: numbers, dates, timestamps, or text that sorts.
    labelers
        Columns with votes; may be left out if the model declares its labelers.
    model
        A model that has seen nothing; its settings are sent, never itself. Default: `AdaptiveLabelModel()`.
    keep
        Columns that pass through, besides key and time.
    order
        Columns that say what comes first among rows of one time.
    outputs
        Some of label, probability, proba (of each class), window, n_votes, accuracies, diluted_accuracies, weights,
        coverage (of each labeler), and error_bound of committees; the words of `LabeledStream`.
    prefix
        Put before the names of the outputs.
    rejected
        None: a row that cannot be labeled ends the job with a sentence about it. A name: such rows come out with null
        outputs and the sentence in a column of this name, which is null for all other rows.
    duplicates
        Two rows of a stream with equal time and order: "error" refuses them (with `rejected`, all but the first),
        "sort" orders them by their votes.
    partitions
        Number of partitions of many streams; default: Spark's own.
    blocks
        Number of blocks of one stream; default: by the number of cores and the cost of the rows before a block.

    Returns
    -------
    DataFrame with key, time, the kept columns and the outputs.
    """
    if getattr(frame, "isStreaming", False):
        raise SettingError("this DataFrame is a stream, which has no end; use driftvote.spark.label_stream")
    plan = make_plan(
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
    if plan.key:
        if blocks is not None:
            raise SettingError("blocks= cuts one long stream; streams of a key are labeled whole, see partitions=")
        return label_streams(frame, plan, _count("partitions", partitions))
    if partitions is not None:
        raise SettingError("partitions= is for many streams; one stream (key=None) is cut by blocks=")
    return label_blocks(frame, plan, _count("blocks", blocks))


def _count(name: str, value: int | None) -> int | None:
    if value is not None and (type(value) is not int or value < 1):
        raise SettingError(f"{name} must be a whole number, at least 1, not {value!r}")
    return value


def label_streams(frame: Any, plan: Plan, partitions: int | None) -> Any:
    """Many streams: a stream is in one partition, one after the other, each in the order of its times."""
    schema = output_schema(frame, plan)
    keys = aliases(plan, plan.key)
    rows = frame.select(*travelling(plan))
    rows = rows.repartition(*keys) if partitions is None else rows.repartition(partitions, *keys)
    rows = rows.sortWithinPartitions(*aliases(plan, plan.sorting))

    def task(batches: Iterable[Any]) -> Iterator[Any]:
        from driftvote.spark.tasks import label_sorted

        return label_sorted(named_again(batches, plan), plan)

    return rows.mapInArrow(task, schema)
