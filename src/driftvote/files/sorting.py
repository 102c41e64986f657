"""Rows in time order: in memory if they are few, otherwise by DuckDB, which sorts on disk in bounded memory."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from driftvote.errors import MissingExtraError
from driftvote.files.rows import VoteRows
from driftvote.files.table import BATCH

IN_MEMORY = 1 << 20
"""Rows up to which no disk is needed."""

MEMORY = "150MB"
"""What DuckDB may hold; the rest goes to the folder for temporary files."""


def sorted_rows(batches: Iterator[VoteRows], by_stream: bool) -> Iterator[VoteRows]:
    """All rows by time, those of one time in the file's order; with `by_stream`, one stream after the other."""
    first = next(batches)
    flat = Flat(first)
    order = ["s", "t", "r"] if by_stream else ["t", "r"]
    source = (flat.batch(rows) for rows in chain([first], batches))
    for batch in in_order(source, order, f"SELECT * FROM lines ORDER BY {', '.join(order)}"):
        yield flat.rows(batch)


def in_order(
    source: Iterator[Any], order: Sequence[str], query: str, prepared: Callable[[Any], Any] = lambda table: table
) -> Iterator[Any]:
    """Record batches sorted by columns: what `prepared` makes of a small table, or `query` of one called lines."""
    some, count = [], 0
    for batch in source:
        some.append(batch)
        count += batch.num_rows
        if count > IN_MEMORY:
            yield from _by_duckdb(chain(some, source), some[0].schema, query)
            return
    table = prepared(pa.Table.from_batches(some))
    places = pc.sort_indices(table, [(name, "ascending") for name in order])
    yield from table.take(places).combine_chunks().to_batches(max_chunksize=BATCH)


def _by_duckdb(batches: Iterator[Any], schema: Any, query: str) -> Iterator[Any]:
    try:
        import duckdb
    except ImportError:
        raise MissingExtraError(
            f"sorting more than {IN_MEMORY:,} rows needs DuckDB; install it with pip install 'driftvote[sort]'"
        ) from None
    trouble: list[BaseException] = []

    def guarded() -> Iterator[Any]:
        try:
            yield from batches
        except BaseException as problem:  # DuckDB would wrap it in an error of its own
            trouble.append(problem)
            raise

    with tempfile.TemporaryDirectory(prefix="driftvote-sort-") as folder:
        settings: Any = {
            "memory_limit": MEMORY,
            "temp_directory": folder,
            "threads": 2,
            "preserve_insertion_order": False,
        }
        with duckdb.connect(":memory:", config=settings) as connection:
            lines = pa.RecordBatchReader.from_batches(schema, guarded())
            connection.register("lines", lines)
            try:
                answer: Any = connection.sql(query)
                read = getattr(answer, "to_arrow_reader", None) or answer.fetch_arrow_reader  # its older name
                yield from read(BATCH)
            except (duckdb.Error, pa.ArrowException) as problem:
                if trouble:
                    raise trouble[0] from None
                text = str(problem)
                full = "No space left" in text or "max_temp_directory_size" in text
                raise OSError(28 if full else 5, "the rows cannot be sorted there", tempfile.gettempdir()) from problem


class Flat:
    """Batches of rows as plain Arrow columns and back: r row, t time, s stream, g gold, c0.. codes, k0.. kept."""

    def __init__(self, first: VoteRows) -> None:
        self.like = first
        self.types = list(first.kept.schema.types)

    def batch(self, rows: VoteRows) -> Any:
        columns: dict[str, Any] = {"r": pa.array(rows.rows)}
        if rows.times is not None:
            columns["t"] = pa.array(rows.times.values)
        if rows.streams is not None:
            columns["s"] = rows.streams
        if rows.gold is not None:
            columns["g"] = pa.array(rows.gold)
        columns |= {f"c{place}": pa.array(rows.codes[:, place].copy()) for place in range(rows.codes.shape[1])}
        columns["w"] = pa.array(np.full(len(rows), rows.literal))
        columns |= {f"k{place}": as_number(array) for place, array in enumerate(rows.kept.columns)}
        return pa.RecordBatch.from_pydict(columns)

    def rows(self, batch: Any) -> VoteRows:
        like = self.like
        width = like.codes.shape[1]
        codes = np.empty((batch.num_rows, width), like.codes.dtype)
        for place in range(width):
            codes[:, place] = batch.column(f"c{place}").to_numpy()
        kept = [from_number(batch.column(f"k{place}"), kind) for place, kind in enumerate(self.types)]
        times = None
        if like.times is not None:
            times = replace(like.times, values=batch.column("t").to_numpy(zero_copy_only=False))
        return VoteRows(
            batch.column("r").to_numpy(),
            like.labelers,
            codes,
            bool(batch.column("w").to_numpy(zero_copy_only=False).any()),
            kept_batch(kept, like.kept.schema.names, batch.num_rows),
            times,
            batch.column("s") if like.streams is not None else None,
            batch.column("g").to_numpy() if like.gold is not None else None,
        )


def kept_batch(arrays: list[Any], names: list[str], n_rows: int) -> Any:
    """Columns as a record batch that knows its length, even without columns."""
    if not names:
        return pa.RecordBatch.from_pydict({"": pa.nulls(n_rows)}).select([])
    return pa.RecordBatch.from_arrays(arrays, names=names)


def as_number(array: Any) -> Any:
    """Dates and times as the integers they are: another program's idea of zones and units must not touch them."""
    kind = array.type
    if pa.types.is_temporal(kind):
        return array.view(pa.int64() if kind.bit_width == 64 else pa.int32())
    return array


def from_number(array: Any, kind: Any) -> Any:
    """The way back."""
    if pa.types.is_temporal(kind):
        return array.view(kind)
    return array if array.type == kind else array.cast(kind)
