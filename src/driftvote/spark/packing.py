"""Rows on their way to a keyed state and back: packed by stream as Arrow, so that pandas never touches a value.

Spark hands a keyed state its rows through pandas, one by one, and takes results back the same way. On that way large
whole numbers next to nulls lose digits, and hours that a clock change repeats become one. So rows go packed: an Arrow
batch is cut by stream, and each part travels as the bytes that Arrow writes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from driftvote.kernels.layout import Ints
from driftvote.spark.columns import Plan

KEY, ROWS = "stream", "rows"

MOST = 20_000
"""Rows that travel in one piece."""


def pack(batches: Iterable[Any], plan: Plan) -> Iterator[Any]:
    """Arrow batches of rows to batches of streams: a text that is the key, and the stream's rows."""
    for batch in batches:
        if not batch.num_rows:
            continue
        groups, texts = streams_of([batch.column(name) for name in plan.key], batch.num_rows)
        ordered = batch.take(pa.array(np.argsort(groups, kind="stable")))
        ends = np.cumsum(np.bincount(groups, minlength=len(texts)))
        keys, rows = [], []
        for text, begin, end in zip(texts, [0, *ends[:-1].tolist()], ends.tolist(), strict=True):
            for first in range(begin, end, MOST):
                keys.append(text)
                rows.append(to_bytes(ordered.slice(first, min(MOST, end - first))))
        yield pa.RecordBatch.from_arrays([pa.array(keys, pa.string()), pa.array(rows, pa.binary())], names=[KEY, ROWS])


def unpack(batches: Iterable[Any]) -> Iterator[Any]:
    """The other way: what the streams came out as, row by row."""
    for batch in batches:
        if batch.num_rows:
            tables = [pa.ipc.open_stream(cell.as_buffer()).read_all() for cell in batch.column(0)]
            yield from pa.concat_tables(tables).combine_chunks().to_batches()


def streams_of(keys: list[Any], n_rows: int) -> tuple[Ints, list[str]]:
    """For each row the number of its stream, and the text of each stream."""
    if not keys:
        return np.zeros(n_rows, np.int64), ["[]"]
    coded = [array.dictionary_encode() for array in keys]
    values = [[*map(plain, array.dictionary), None] for array in coded]
    places = [
        array.indices.fill_null(len(found) - 1).to_numpy(zero_copy_only=False)
        for array, found in zip(coded, values, strict=True)
    ]
    different, groups = np.unique(np.stack(places, axis=1), axis=0, return_inverse=True)
    texts = [json.dumps([found[at] for found, at in zip(values, row, strict=True)]) for row in different.tolist()]
    # Different values may have one text: 0.0 and -0.0 are the same stream, as Spark has it.
    names = list(dict.fromkeys(texts))
    number = {text: at for at, text in enumerate(names)}
    return np.array([number[text] for text in texts])[np.asarray(groups).ravel()], names


def plain(value: Any) -> Any:
    """A key's value as JSON has it, the same whatever the session's time zone."""
    kind = value.type
    if pa.types.is_temporal(kind):
        return value.value
    if pa.types.is_floating(kind):
        return value.as_py() + 0.0
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return value.as_py().hex()
    return str(value.as_py()) if pa.types.is_decimal(kind) else value.as_py()


def to_bytes(batch: Any) -> bytes:
    """A batch with its schema."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def from_bytes(raw: bytes) -> Any:
    """The batch that these are the bytes of."""
    return pa.ipc.open_stream(raw).read_next_batch()
