"""Record batches to files, one after the other; the format goes by the name."""

from __future__ import annotations

import csv
import io
import json
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq

from driftvote.errors import DriftvoteError

OUTPUTS = ("csv", "tsv", "jsonl", "parquet", "arrow", "npz")


class Writer(ABC):
    """Takes record batches of one schema; `close` ends the file properly."""

    typed = True  # numbers stay numbers in it

    def __init__(self, file: BinaryIO) -> None:
        self.file = file

    @abstractmethod
    def write(self, batch: Any) -> None:
        """Add a batch."""

    def close(self) -> None:  # noqa: B027 - text needs no end
        """Write what belongs at the end."""

    def abandon(self) -> None:  # noqa: B027
        """Forget the file; it is gone already."""


class CsvWriter(Writer):
    """Cells are quoted only in batches where some must be."""

    typed = False

    def __init__(self, file: BinaryIO, delimiter: str = ",") -> None:
        super().__init__(file)
        self.delimiter = delimiter
        self._started = False

    def write(self, batch: Any) -> None:
        if not self._started:
            header = io.StringIO()
            csv.writer(header, delimiter=self.delimiter, lineterminator="\n").writerow(batch.schema.names)
            self.file.write(header.getvalue().encode())
            self._started = True
        batch = _plain_batch(batch)
        try:
            text = self._text(batch, "none")
        except pa.ArrowInvalid:
            text = self._text(batch, "needed")
        self.file.write(text)

    def _text(self, batch: Any, quotes: str) -> Any:
        sink = pa.BufferOutputStream()
        options = arrow_csv.WriteOptions(include_header=False, delimiter=self.delimiter, quoting_style=quotes)
        arrow_csv.write_csv(batch, sink, options)
        return memoryview(sink.getvalue())


class JsonLinesWriter(Writer):
    """An object a line, put together by columns."""

    def write(self, batch: Any) -> None:
        pieces: list[Any] = []
        for place, (name, array) in enumerate(zip(batch.schema.names, batch.columns, strict=True)):
            pieces += [("{" if place == 0 else ", ") + json.dumps(name, ensure_ascii=False) + ": ", _as_json(array)]
        lines = pc.binary_join_element_wise(*pieces, "}\n", "")
        lines = lines.cast(pa.large_string())
        first, last = lines.offset, lines.offset + len(lines)
        if len(lines):
            offsets = lines.buffers()[1]
            ends = memoryview(offsets).cast("q")
            self.file.write(memoryview(lines.buffers()[2])[ends[first] : ends[last]])


class ParquetWriter(Writer):
    """Repeated values by dictionary; probabilities as they are, since hardly one comes twice."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__(file)
        self._writer: Any = None

    def write(self, batch: Any) -> None:
        if self._writer is None:
            repeated = [field.name for field in batch.schema if not pa.types.is_floating(field.type)]
            self._writer = pq.ParquetWriter(
                self.file,
                batch.schema,
                use_dictionary=repeated,
                compression={name: "SNAPPY" if name in repeated else "NONE" for name in batch.schema.names},
                write_statistics=repeated,
            )
        self._writer.write_batch(batch)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()

    def abandon(self) -> None:
        if self._writer is not None:
            self._writer.is_open = False  # else it would end the file once more when it is collected


class ArrowWriter(Writer):
    """Arrow's file format, which is Feather's; dictionaries are written out, they may differ from batch to batch."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__(file)
        self._writer: Any = None

    def write(self, batch: Any) -> None:
        batch = _plain_batch(batch)
        if self._writer is None:
            self._writer = pa.ipc.new_file(self.file, batch.schema)
        self._writer.write_batch(batch)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


@contextmanager
def ended(writer: Any, path: object) -> Iterator[None]:
    """End the file when everything went well, forget it otherwise; an error of the system names the file."""
    try:
        yield
        if writer is not None:
            writer.close()
    except BaseException as problem:
        if writer is not None:
            writer.abandon()
        if isinstance(problem, OSError) and problem.errno is not None and problem.filename is None and path != "-":
            raise type(problem)(problem.errno, problem.strerror, str(path)) from None
        raise


def writer_for(kind: str, file: BinaryIO, path: object = "output") -> Writer:
    """The writer of a format."""
    if kind == "csv":
        return CsvWriter(file)
    if kind == "tsv":
        return CsvWriter(file, "\t")
    if kind == "jsonl":
        return JsonLinesWriter(file)
    if kind == "parquet":
        return ParquetWriter(file)
    if kind == "arrow":
        return ArrowWriter(file)
    if kind == "npz":
        from driftvote.files.arrays_out import NpzWriter

        return NpzWriter(file)
    raise DriftvoteError(f"{path}: a table cannot be written as {kind}; name it .{', .'.join(OUTPUTS)}")


def _plain_batch(batch: Any) -> Any:
    """The batch without dictionaries."""
    if not any(pa.types.is_dictionary(kind) for kind in batch.schema.types):
        return batch
    arrays = [a.cast(a.type.value_type) if pa.types.is_dictionary(a.type) else a for a in batch.columns]
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


def _as_json(array: Any) -> Any:
    """A column as JSON text, cell by cell in Python only where text needs escapes."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        written = pa.array(
            [json.dumps(value, ensure_ascii=False) for value in array.dictionary.to_pylist()], pa.string()
        )
        text = written.take(array.indices)
    elif pa.types.is_boolean(kind) or pa.types.is_integer(kind):
        text = array.cast(pa.string())
    elif pa.types.is_floating(kind):
        finite = pc.if_else(pc.is_finite(array), array, pa.scalar(None, kind))
        text = finite.cast(pa.string())
    elif pa.types.is_null(kind):
        text = pa.nulls(len(array), pa.string())
    elif (
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_temporal(kind)
        or pa.types.is_decimal(kind)
    ):
        text = _quoted(array.cast(pa.string()))
    else:
        cells = [
            None if cell is None else json.dumps(cell, ensure_ascii=False, default=str) for cell in array.to_pylist()
        ]
        text = pa.array(cells, pa.string())
    return pc.fill_null(text, "null")


def _quoted(array: Any) -> Any:
    special = pc.match_substring_regex(array, r'["\\\x00-\x1f]')
    if pc.any(special).as_py():
        cells = [None if cell is None else json.dumps(cell, ensure_ascii=False) for cell in array.to_pylist()]
        return pa.array(cells, pa.string())
    return pc.binary_join_element_wise('"', array, '"', "")
