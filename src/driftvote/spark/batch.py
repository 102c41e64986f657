"""Tables of history: many streams side by side, or one long stream."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from driftvote.errors import SettingError
from driftvote.models import LabelModel
from driftvote.spark.columns import USUAL, Plan, columns, make_plan, output_schema


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
) -> Any:
    """Label the rows of a Spark DataFrame, every stream from its beginning: what `label_stream` gives, bit for bit."""
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
    return label_streams(frame, plan, partitions)


def label_streams(frame: Any, plan: Plan, partitions: int | None) -> Any:
    """Many streams: a stream is in one partition, one after the other, each in the order of its times."""
    schema = output_schema(frame, plan)
    keys = columns(plan.key)
    rows = frame.select(*columns(plan.read))
    rows = rows.repartition(*keys) if partitions is None else rows.repartition(partitions, *keys)
    rows = rows.sortWithinPartitions(*columns(plan.sorting))

    def task(batches: Iterable[Any]) -> Iterator[Any]:
        from driftvote.spark.tasks import label_sorted

        return label_sorted(batches, plan)

    return rows.mapInArrow(task, schema)
