"""One long stream: cut by time into blocks that are labeled in parallel, each given the rows before it (its halo).

A label depends on the last `memory_rows` rows and on the row's number, so a block gets the labels that it has in the
whole stream. Row numbers come from exact counts: the times are cut into ranges, the rows of every range are counted,
and a block is a run of ranges. A row is sent to its own block and to every block whose halo contains it. A block that
receives another number of rows than was counted is refused.

The halo costs `memory_rows` rows a block, which are sent, sorted and learned from, but not labeled.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from driftvote.arrays import Codes
from driftvote.errors import DriftvoteError
from driftvote.models import LabelModel
from driftvote.spark.columns import LabelJob, column
from driftvote.spark.tasks import FormatCheck, RowReader

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

RANGES_A_CORE = 8
MAX_RANGES = 2000
MAX_BLOCKS = 512

HALO_SHARE = 0.05
BLOCKS_A_CORE = 4
"""Up to so many blocks a core, for balance and cheap retries, while all halos stay below this share of the rows."""

PART = "__driftvote_part"
"""Column that is sent with a row: twice the number of the block, and one more unless the row is in its halo."""


@dataclass(frozen=True)
class TimeRange:
    """Rows up to the time `last`, which is in the form that the driver holds (see `_for_driver`)."""

    last: Any
    n_rows: int


@dataclass(frozen=True)
class StreamBlock:
    """Ranges that are labeled together, and the ranges before them that are their halo."""

    first: int  # range
    end: int
    halo: int  # the first range of the halo
    row: int  # rows of the stream before the block
    n_halo: int
    n_rows: int


@dataclass(frozen=True)
class BlockPlan:
    """The ranges of a stream and its blocks."""

    ranges: list[TimeRange]
    blocks: list[StreamBlock]


def plan_blocks(frame: DataFrame, job: LabelJob, blocks: int | None) -> BlockPlan:
    """Blocks of the stream, as many as requested or as pay off. Counts the rows, unless one block is certain."""
    memory_rows = job.new_model().memory_rows
    if memory_rows is None or blocks == 1:
        return BlockPlan([], [])
    cores = _count_cores(frame.sparkSession)
    ranges = count_ranges(frame, job, max(cores, blocks or 0))
    return BlockPlan(ranges, cut_blocks(ranges, memory_rows, blocks or cores, exactly=blocks is not None))


def label_blocks(frame: DataFrame, job: LabelJob, plan: BlockPlan) -> DataFrame:
    """Labels of all rows, each block in one task."""
    from pyspark.sql import functions

    n_blocks = len(plan.blocks)
    copies = functions.explode(_copies(frame, job, plan)).alias("copy")
    rows = frame.select(*job.sent(), copies).select(*job.aliases(job.read), "copy.part", "copy.slot")
    rows = rows.repartition(n_blocks, "slot").drop("slot").sortWithinPartitions("part", *job.aliases(job.sorting))

    def task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return label_block_rows(job.received(batches, PART), job, plan.blocks)

    return rows.mapInArrow(task, job.schema(frame))


def _count_cores(spark: SparkSession) -> int:
    """Cores of the cluster. Spark Connect does not tell; a wrong guess costs a few halos at most."""
    try:
        return int(spark.sparkContext.defaultParallelism)
    except Exception:
        return 16


# -- ranges and blocks -------------------------------------------------------------------------


def count_ranges(frame: DataFrame, job: LabelJob, cores: int) -> list[TimeRange]:
    """Ranges of time with about equally many rows, and the exact number of rows that will be labeled in each.

    Rows of one time are in one range, so the counts depend on the rows alone, not on how Spark chose the ranges.
    """
    from pyspark.sql import functions

    time = job.aliases([job.time])[0]
    if job.rejected is None:
        rows = frame.where(column(job.time).isNotNull()).select(*job.sent()[: len(job.place)])
    else:
        rows = _good_rows(frame, job)
    n_ranges = min(MAX_RANGES, max(32, RANGES_A_CORE * cores))
    rows = rows.repartitionByRange(n_ranges, time).withColumn(PART, functions.spark_partition_id())
    # Of rows at the same place, all but the first will be rejected.
    distinct = job.rejected is not None and job.duplicates == "error"
    n_rows = functions.count_distinct(functions.struct(*job.aliases(job.place))) if distinct else functions.count("*")
    counted = rows.groupBy(PART).agg(functions.max(time).alias("last"), n_rows.alias("n_rows")).orderBy("last")
    kind = frame.schema[job.time].dataType.simpleString()
    counted = counted.select(_for_driver(functions.col("last"), kind).alias("last"), "n_rows")
    return [TimeRange(row["last"], row["n_rows"]) for row in counted.collect()]


def _good_rows(frame: DataFrame, job: LabelJob) -> DataFrame:
    """Stream, time and order of the rows that can be labeled; the encoder decides, in Python."""
    from pyspark.sql.types import StructField, StructType

    names = job.aliases(job.place)
    kinds = [frame.schema[name].dataType for name in job.place]
    schema = StructType([StructField(name, kind, True) for name, kind in zip(names, kinds, strict=True)])

    def task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        reader = RowReader(job)
        for batch in job.received(batches):
            good = pa.array(reader.find_good(batch))
            yield pa.RecordBatch.from_arrays([batch.column(name).filter(good) for name in job.place], names=names)

    return frame.select(*job.sent()).mapInArrow(task, schema)


def _for_driver(time: Column, kind: str) -> Column:
    """A time as a value that the driver can hold and send back; a local time of day is ambiguous when clocks change."""
    from pyspark.sql import functions

    if kind == "timestamp":
        return functions.unix_micros(time)
    return time.cast("string") if kind == "timestamp_ntz" else time


def _is_up_to(frame: DataFrame, name: str, border: Any) -> Column:
    """Whether a time is at or before a border that the driver holds."""
    from pyspark.sql import functions

    kind = frame.schema[name].dataType.simpleString()
    if kind == "timestamp":
        return functions.unix_micros(column(name)) <= functions.lit(border)
    return column(name) <= functions.lit(border).cast(kind)


def cut_blocks(ranges: Sequence[TimeRange], memory_rows: int, wanted: int, exactly: bool = False) -> list[StreamBlock]:
    """Runs of ranges, each with the ranges before it that hold the last `memory_rows` rows.

    As many blocks as there are cores, or more while the halos stay a small share; fewer where a block would be
    shorter than its halo, because then most of the work would be done twice.

    >>> ranges = [TimeRange(t, 10) for t in range(8)]
    >>> [(block.row, block.n_rows, block.n_halo) for block in cut_blocks(ranges, memory_rows=15, wanted=2)]
    [(0, 40, 0), (40, 40, 20)]
    >>> len(cut_blocks(ranges, memory_rows=100, wanted=2))
    1
    """
    before = list(accumulate((one.n_rows for one in ranges), initial=0))
    total, memory_rows = before[-1], max(1, memory_rows)
    if not total:
        return []
    n_blocks = wanted
    if not exactly:
        cheap = int(HALO_SHARE * total / memory_rows)
        n_blocks = max(1, min(max(wanted, min(cheap, BLOCKS_A_CORE * wanted)), total // memory_rows, MAX_BLOCKS))
    targets = [total * block / n_blocks for block in range(n_blocks)]
    firsts = np.unique(np.searchsorted(before, targets)).tolist()  # the first range that begins at the target or later
    firsts = [first for first in firsts if first < len(ranges)]
    blocks = []
    for first, end in pairwise([*firsts, len(ranges)]):
        halo = first
        while halo and before[first] - before[halo] < memory_rows:
            halo -= 1
        row, n_halo = before[first], before[first] - before[halo]
        blocks.append(StreamBlock(first, end, halo, row, n_halo, before[end] - row))
    return blocks


# -- sending rows to blocks --------------------------------------------------------------------


def _copies(frame: DataFrame, job: LabelJob, plan: BlockPlan) -> Column:
    """The copies of a row that are sent: an array of structs of part and slot (see `PART`, `_find_slots`)."""
    from pyspark.sql import functions

    slots = _find_slots(frame.sparkSession, len(plan.blocks))
    parts = [
        [2 * number + (at >= block.first) for number, block in enumerate(plan.blocks) if block.halo <= at < block.end]
        for at in range(len(plan.ranges))
    ]
    edges = [at for at in range(1, len(parts)) if parts[at] != parts[at - 1]]

    def copies(parts: Sequence[int]) -> Column:
        pairs = [(functions.lit(part), functions.lit(slots[part // 2]).cast("bigint")) for part in parts]
        return functions.array(*(functions.struct(part.alias("part"), slot.alias("slot")) for part, slot in pairs))

    def search(first: int, last: int) -> Column:
        """A binary search among the edges first .. last - 1, so that a row is compared a few times only."""
        if first == last:
            return copies(parts[edges[first - 1] if first else 0])
        middle = (first + last) // 2
        is_early = _is_up_to(frame, job.time, plan.ranges[edges[middle] - 1].last)
        return functions.when(is_early, search(first, middle)).otherwise(search(middle + 1, last))

    # Rows without a time cannot be labeled; the first block rejects them.
    return functions.when(column(job.time).isNull(), copies([1])).otherwise(search(0, len(edges)))


def _find_slots(spark: SparkSession, count: int) -> list[int]:
    """For each of `count` partitions a number that Spark's hash sends there, so that no two blocks share a task."""
    slots: dict[int, int] = {}
    n_tried = 64
    while len(slots) < count:
        n_tried *= 4
        tried = spark.range(n_tried).selectExpr("id", f"pmod(hash(id), {count}) AS place").groupBy("place").min("id")
        slots = {row["place"]: row["min(id)"] for row in tried.collect()}
    return [slots[place] for place in range(count)]


# -- tasks -------------------------------------------------------------------------------------


class BlockLabeler:
    """Labels one block: its rows come in order, those of the halo first."""

    def __init__(self, job: LabelJob, block: StreamBlock) -> None:
        self.job = job
        self.block = block
        self.reader = RowReader(job)
        self.check = FormatCheck(job)
        self.model: LabelModel | None = None
        self._halo: list[Codes] = []
        self._n_labeled = 0

    def add_halo(self, batch: pa.RecordBatch) -> None:
        """Rows before the block."""
        self._halo.append(self.reader.read(batch).good_codes)

    def label(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Results of rows of the block."""
        if self.model is None:
            self.model = self._start()
        rows = self.reader.read(batch)
        if self.block.row == 0:
            self.check.add(rows)
        codes = rows.good_codes
        self._n_labeled += len(codes)
        return rows.results([self.model.label_stream(codes)] if len(codes) else [])

    def _start(self) -> LabelModel:
        model = self.job.new_model()
        n_halo = sum(map(len, self._halo))
        if n_halo != self.block.n_halo:
            raise _changed(self.block.row - self.block.n_halo, self.block.n_halo, n_halo)
        if n_halo:
            model.start_at(self.block.row, np.concatenate(self._halo))
        self._halo = []
        return model

    def finish(self) -> None:
        """Check that the block was complete."""
        if self._n_labeled != self.block.n_rows:
            raise _changed(self.block.row, self.block.n_rows, self._n_labeled)
        self.check.finish()


def label_block_rows(
    batches: Iterable[pa.RecordBatch], job: LabelJob, blocks: Sequence[StreamBlock]
) -> Iterator[pa.RecordBatch]:
    """Results for the batches of a partition, which are sorted by block, halo before block, and time."""
    labeler: BlockLabeler | None = None
    for batch in batches:
        parts = batch.column(PART).to_numpy()
        borders = sorted({0, *(np.flatnonzero(np.diff(parts)) + 1).tolist(), len(parts)})
        for first, last in pairwise(borders):
            block, is_own = blocks[parts[first] // 2], parts[first] % 2
            if labeler is None or labeler.block != block:
                if labeler is not None:
                    labeler.finish()
                labeler = BlockLabeler(job, block)
            rows = batch.slice(first, last - first)
            if is_own:
                yield labeler.label(rows)
            else:
                labeler.add_halo(rows)
    if labeler is not None:
        labeler.finish()


def _changed(row: int, counted: int, received: int) -> DriftvoteError:
    return DriftvoteError(
        f"from row {row} of the stream on {counted} rows were counted, but {received} came: the DataFrame differs from"
        " one reading to the next; write it to a file, or persist() it, and label that"
    )
