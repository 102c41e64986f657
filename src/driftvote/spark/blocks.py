"""One long stream: cut by time into blocks that are labeled side by side, each given the rows before it (its halo).

By the finite-memory rule a block comes out exactly as in the whole stream, given the last `reach` rows before it and
its row number. Row numbers come from exact counts: the times are cut into ranges, every range is counted, and a block
is a run of ranges. So a row is sent once to its own block and once to every block whose halo it is in, sorted there,
and its number is a matter of counting. A block whose rows are not as many as were counted is refused.

The halo costs `reach` rows a block, which are moved, sorted and counted like others but not labeled.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from driftvote.spark.columns import Plan, column, columns, output_schema
from driftvote.spark.travel import aliases, named_again, travelling
from driftvote.spark.validity import is_good

RANGES_A_CORE = 8
MOST_RANGES = 2000
MOST_BLOCKS = 512

HALO_SHARE = 0.05
BLOCKS_A_CORE = 4
"""So many blocks a core, for balance and cheap retries, as long as all halos stay below this share of the rows."""

PART = "__driftvote_part"


@dataclass(frozen=True)
class Range:
    """Rows between two times: up to `last`, which is a time as the driver holds it."""

    last: Any
    n_rows: int


@dataclass(frozen=True)
class Block:
    """Ranges that are labeled together, and those before them that are their halo."""

    first: int  # range
    end: int
    halo: int  # the first range of the halo
    row: int  # rows of the stream before the block
    n_halo: int
    n_rows: int


def label_blocks(frame: Any, plan: Plan, blocks: int | None) -> Any:
    """One stream in blocks. The rows are counted by a job of its own, which runs at once."""
    reach = plan.model.new().reach
    cores = _cores(frame.sparkSession)
    good = frame if plan.rejected is None else frame.where(is_good(frame, plan))
    cut: list[Block] = []
    ranges: list[Range] = []
    if reach is not None and blocks != 1:
        ranges = counted_ranges(good, plan, max(cores, blocks or 0))
        cut = cut_blocks(ranges, reach, cores if blocks is None else blocks, exactly=blocks is not None)
    labeled = _in_one(good, plan) if len(cut) < 2 else _side_by_side(good, plan, ranges, cut)
    if plan.rejected is None:
        return labeled
    return labeled.unionAll(_set_apart(frame.where(~is_good(frame, plan)), plan))


def _cores(spark: Any) -> int:
    """Cores of the cluster; behind Spark Connect nobody says, and a guess costs a few halos at most."""
    try:
        return int(spark.sparkContext.defaultParallelism)
    except Exception:
        return 16


def _in_one(frame: Any, plan: Plan) -> Any:
    """All rows in one task: fewer than a halo is worth."""
    schema = output_schema(frame, plan)
    rows = frame.select(*travelling(plan)).repartition(1).sortWithinPartitions(*aliases(plan, plan.sorting))

    def task(batches: Iterable[Any]) -> Iterator[Any]:
        from driftvote.spark.tasks import label_sorted

        return label_sorted(named_again(batches, plan), plan)

    return rows.mapInArrow(task, schema)


def _side_by_side(frame: Any, plan: Plan, ranges: Sequence[Range], cut: Sequence[Block]) -> Any:
    from pyspark.sql import functions

    schema = output_schema(frame, plan)
    slots = _slots(frame.sparkSession, len(cut))
    copies = functions.explode(_copies(frame, plan, ranges, cut, slots)).alias("copy")
    rows = frame.select(*travelling(plan), copies)
    rows = rows.select(*aliases(plan, plan.read), "copy.part", "copy.slot").repartition(len(cut), "slot").drop("slot")
    rows = rows.sortWithinPartitions("part", *aliases(plan, plan.sorting))

    def task(batches: Iterable[Any]) -> Iterator[Any]:
        from driftvote.spark.block_tasks import label_block_rows

        return label_block_rows(named_again(batches, plan, PART), plan, cut)

    return rows.mapInArrow(task, schema)


def _set_apart(frame: Any, plan: Plan) -> Any:
    """Rows that cannot be labeled, with the reason."""
    schema = output_schema(frame, plan)

    def task(batches: Iterable[Any]) -> Iterator[Any]:
        from driftvote.spark.block_tasks import reasons_only

        return reasons_only(named_again(batches, plan), plan)

    return frame.select(*travelling(plan)).mapInArrow(task, schema)


# -- ranges ------------------------------------------------------------------------------------


def _carried(frame: Any, name: str) -> Any:
    """A time as a value that the driver can hold. A timestamp is a moment, and as a date and time of day it would
    depend on clocks that are put back."""
    from pyspark.sql import functions

    kind = frame.schema[name].dataType.simpleString()
    if kind == "timestamp":
        return functions.unix_micros(column(name))
    return column(name).cast("string") if kind == "timestamp_ntz" else column(name)


def _is_up_to(frame: Any, name: str, border: Any) -> Any:
    """Whether a time is at or before one that the driver held."""
    from pyspark.sql import functions

    kind = frame.schema[name].dataType.simpleString()
    if kind == "timestamp":
        return functions.unix_micros(column(name)) <= functions.lit(border)
    return column(name) <= functions.lit(border).cast(kind)


def counted_ranges(frame: Any, plan: Plan, cores: int) -> list[Range]:
    """The times cut into ranges of about equal size, with the exact number of rows in each.

    Rows of one time are in one range, so the counts depend on the rows alone, not on how Spark found the ranges.
    """
    from pyspark.sql import functions

    n_ranges = min(MOST_RANGES, max(32, RANGES_A_CORE * cores))
    place = columns(plan.place)
    rows = frame.where(column(plan.time).isNotNull()).select(*place)
    rows = rows.repartitionByRange(n_ranges, column(plan.time)).withColumn(PART, functions.spark_partition_id())
    drops = plan.rejected is not None and plan.duplicates == "error"
    count = functions.count_distinct(functions.struct(*place)) if drops else functions.count("*")
    last = functions.max(column(plan.time)).alias(plan.time)
    found = rows.groupBy(PART).agg(last, count.alias("n_rows"))
    found = found.select(_carried(found, plan.time).alias("last"), "n_rows", column(plan.time).alias("sorting"))
    told = found.orderBy("sorting").select("last", "n_rows").collect()
    return [Range(row["last"], row["n_rows"]) for row in told]


def cut_blocks(ranges: Sequence[Range], reach: int, wanted: int, exactly: bool = False) -> list[Block]:
    """Runs of ranges, with the ranges before each that hold the last `reach` rows.

    As many blocks as there are cores, or more while the halos stay a small share; fewer where a block would be
    shorter than its halo, because then most of the work would be done twice.

    >>> [(b.row, b.n_rows, b.n_halo) for b in cut_blocks([Range(t, 10) for t in range(8)], reach=15, wanted=2)]
    [(0, 40, 0), (40, 40, 20)]
    >>> len(cut_blocks([Range(t, 10) for t in range(8)], reach=100, wanted=2))
    1
    """
    total = sum(one.n_rows for one in ranges)
    if not total:
        return []
    if exactly:
        n_blocks = max(1, wanted)
    else:
        cheap = int(HALO_SHARE * total / max(1, reach))
        n_blocks = max(1, min(max(wanted, min(cheap, BLOCKS_A_CORE * wanted)), total // max(1, reach), MOST_BLOCKS))
    before = [0]
    for one in ranges:
        before.append(before[-1] + one.n_rows)
    firsts: list[int] = []
    for block in range(n_blocks):
        at = next((place for place in range(len(ranges)) if before[place] >= total * block / n_blocks), len(ranges))
        if at < len(ranges) and (not firsts or at > firsts[-1]):
            firsts.append(at)
    cut = []
    for first, end in zip(firsts, [*firsts[1:], len(ranges)], strict=True):
        halo = first
        while halo and before[first] - before[halo] < reach:
            halo -= 1
        cut.append(Block(first, end, halo, before[first], before[first] - before[halo], before[end] - before[first]))
    return cut


# -- where a row goes --------------------------------------------------------------------------


def _copies(frame: Any, plan: Plan, ranges: Sequence[Range], cut: Sequence[Block], slots: Sequence[int]) -> Any:
    """The blocks that a row goes to, as a column: twice the block's number, and one more in its own block."""
    from pyspark.sql import functions

    goes = [[2 * b + (at >= block.first) for b, block in enumerate(cut) if block.halo <= at < block.end]
            for at in range(len(ranges))]  # fmt: skip
    edges = [at for at in range(1, len(ranges)) if goes[at] != goes[at - 1]]

    def sent_to(parts: Sequence[int]) -> Any:
        both = [
            functions.struct(functions.lit(slots[p // 2]).cast("bigint").alias("slot"), functions.lit(p).alias("part"))
            for p in parts
        ]
        return functions.array(*both)

    def among(first: int, last: int) -> Any:
        """Edges first .. last - 1 are still open: a tree, so that a row is compared a few times only."""
        if first == last:
            return sent_to(goes[edges[first - 1] if first else 0])
        middle = (first + last) // 2
        early = _is_up_to(frame, plan.time, ranges[edges[middle] - 1].last)
        return functions.when(early, among(first, middle)).otherwise(among(middle + 1, last))

    return functions.when(column(plan.time).isNull(), sent_to([1])).otherwise(among(0, len(edges)))


def _slots(spark: Any, count: int) -> list[int]:
    """A number for each of so many partitions that Spark's hash puts there: blocks side by side, never two in one."""
    found: dict[int, int] = {}
    tried = 64
    while len(found) < count:
        tried *= 4
        told = spark.range(tried).selectExpr("id", f"pmod(hash(id), {count}) AS place").groupBy("place").min("id")
        found = {row["place"]: row["min(id)"] for row in told.collect()}
    return [found[place] for place in range(count)]
