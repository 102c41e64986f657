"""Tables to files, record batch by record batch. To add a format, write a `Writer` and add one line to `WRITERS`."""

from __future__ import annotations

import csv
import io
import json
import shutil
import tempfile
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.lib.format as npy

from driftvote.errors import DriftvoteError
from driftvote.files.atomic import whole_file
from driftvote.files.rows import plain_column
from driftvote.files.table import format_of


class Writer(ABC):
    """Takes record batches of one schema; `close` ends the file properly."""

    typed = True  # numbers stay numbers in the file

    def __init__(self, file: BinaryIO) -> None:
        self.file = file

    @abstractmethod
    def write(self, batch: Any) -> None:
        """Add a batch."""

    def close(self) -> None:  # noqa: B027 - text needs no end
        """Write the end of the file."""

    def abandon(self) -> None:  # noqa: B027
        """Forget the file, which is gone already."""


class CsvWriter(Writer):
    """Cells are quoted only in batches where some cell needs it."""

    typed = False
    delimiter = ","
    safe = False  # whether text that a spreadsheet takes for a formula is kept from being one

    def __init__(self, file: BinaryIO) -> None:
        super().__init__(file)
        self._started = False

    def write(self, batch: Any) -> None:
        import pyarrow as pa

        batch = _plain_batch(batch)
        if self.safe:
            columns = [_without_formulas(array) for array in batch.columns]
            names = _without_formulas(pa.array(batch.schema.names, pa.string())).to_pylist()
            batch = pa.RecordBatch.from_arrays(columns, names=names)
        if not self._started:
            header = io.StringIO()
            csv.writer(header, delimiter=self.delimiter, lineterminator="\n").writerow(batch.schema.names)
            self.file.write(header.getvalue().encode())
            self._started = True
        try:
            text = self._format(batch, "none")
        except pa.ArrowInvalid:
            text = self._format(batch, "needed")
        self.file.write(text)

    def _format(self, batch: Any, quotes: str) -> Any:
        import pyarrow as pa
        import pyarrow.csv as arrow_csv

        sink = pa.BufferOutputStream()
        options = arrow_csv.WriteOptions(include_header=False, delimiter=self.delimiter, quoting_style=quotes)
        arrow_csv.write_csv(batch, sink, options)
        return memoryview(sink.getvalue())


class TsvWriter(CsvWriter):
    """CSV with tabs."""

    delimiter = "\t"


class JsonLinesWriter(Writer):
    """An object a line, put together by columns."""

    def write(self, batch: Any) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

        pieces: list[Any] = []
        for place, (name, array) in enumerate(zip(batch.schema.names, batch.columns, strict=True)):
            pieces += [("{" if place == 0 else ", ") + json.dumps(name, ensure_ascii=False) + ": ", _as_json(array)]
        lines = pc.binary_join_element_wise(*pieces, "}\n", "").cast(pa.large_string())
        if len(lines):
            ends = memoryview(lines.buffers()[1]).cast("q")
            first, last = lines.offset, lines.offset + len(lines)
            self.file.write(memoryview(lines.buffers()[2])[ends[first] : ends[last]])


class ParquetWriter(Writer):
    """Repeated values by dictionary; probabilities as they are, since hardly one comes twice."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__(file)
        self._writer: Any = None

    def write(self, batch: Any) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

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
            self._writer.is_open = False  # otherwise it would end the file once more when it is collected


class ArrowWriter(Writer):
    """Arrow's file format, which is Feather's; dictionaries are written out, they may differ from batch to batch."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__(file)
        self._writer: Any = None

    def write(self, batch: Any) -> None:
        import pyarrow as pa

        batch = _plain_batch(batch)
        if self._writer is None:
            self._writer = pa.ipc.new_file(self.file, batch.schema)
        self._writer.write_batch(batch)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


# -- NumPy -------------------------------------------------------------------------------------


class GrowingArray:
    """An array whose rows go to a temporary file: an NPY begins with the number of rows, which is known at the end."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(prefix="driftvote-")  # noqa: SIM115 - closed by copy_to
        self._rows = 0
        self._like: Any = None

    def add(self, values: Any) -> None:
        values = np.ascontiguousarray(values)
        self._like = values[:0] if self._like is None else self._like
        self._file.write(memoryview(values).cast("B") if values.size else b"")
        self._rows += len(values)

    def __del__(self) -> None:
        with suppress(OSError):  # a full disk
            self._file.close()

    def copy_to(self, file: Any) -> None:
        """Write the array as NPY."""
        shape = (self._rows, *self._like.shape[1:])
        header = {"descr": npy.dtype_to_descr(self._like.dtype), "fortran_order": False, "shape": shape}
        npy.write_array_header_2_0(file, header)
        self._file.seek(0)
        shutil.copyfileobj(self._file, file, 1 << 20)
        self._file.close()


class NpzWriter(Writer):
    """An array for each column.

    Text has a fixed width in NumPy, so only columns of few values (classes) can be text.
    """

    def __init__(self, file: BinaryIO) -> None:
        super().__init__(file)
        self._arrays: dict[str, GrowingArray] = {}
        self._whole: dict[str, Any] = {}

    def write(self, batch: Any) -> None:
        for name, array in zip(batch.schema.names, batch.columns, strict=True):
            self.add_rows(name, _as_numpy(name, array))

    def add_rows(self, name: str, values: Any) -> None:
        """Add rows of an array of any shape."""
        if name not in self._arrays:
            self._arrays[name] = GrowingArray()
        self._arrays[name].add(values)

    def add_whole(self, name: str, values: Sequence[Any]) -> None:
        """Add a small array that is known at once."""
        self._whole[name] = np.array(list(values))

    def close(self) -> None:
        with zipfile.ZipFile(self.file, "w", zipfile.ZIP_STORED) as archive:
            for name, growing in self._arrays.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                    growing.copy_to(file)
            for name, values in self._whole.items():
                with archive.open(f"{name}.npy", "w") as file:
                    npy.write_array(file, values, allow_pickle=False)


class NpyWriter(Writer):
    """One array of rows x labelers."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__(file)
        self._votes = GrowingArray()

    def write(self, batch: Any) -> None:
        raise NotImplementedError("an NPY holds codes, not columns")

    def add_rows(self, _: str, values: Any) -> None:
        """Add rows of votes."""
        self._votes.add(values)

    def add_whole(self, name: str, values: Sequence[Any]) -> None:
        """Ignore the names: an NPY has no place for them."""

    def close(self) -> None:
        self._votes.copy_to(self.file)


# -- opening and closing -----------------------------------------------------------------------

WRITERS: dict[str, type[Writer]] = {
    "csv": CsvWriter,
    "tsv": TsvWriter,
    "jsonl": JsonLinesWriter,
    "parquet": ParquetWriter,
    "arrow": ArrowWriter,
    "npz": NpzWriter,
}


def open_writer(kind: str, file: BinaryIO, path: object = "output", safe: bool = False) -> Writer:
    """The writer of a format; `safe`: text in a CSV is kept from being a formula."""
    if kind not in WRITERS:
        raise DriftvoteError(f"{path}: a table cannot be written as {kind}; name it .{', .'.join(WRITERS)}")
    writer = WRITERS[kind](file)
    if safe and not isinstance(writer, CsvWriter):
        raise DriftvoteError(f"{path}: --safe-csv is about .csv and .tsv; text in {kind} files is never a formula")
    if isinstance(writer, CsvWriter):
        writer.safe = safe
    return writer


@contextmanager
def closing_writer(writer: Any, path: object) -> Iterator[None]:
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


def write_table(path: str | Path, table: Any) -> None:
    """Write an Arrow table, whole or not at all, in the format that the name of the file asks for."""
    kind, _ = format_of(path, None, "--to")
    with whole_file(path) as file:
        writer = open_writer(kind, file, path)
        with closing_writer(writer, path):
            for batch in table.to_batches():
                writer.write(batch)


# -- columns -----------------------------------------------------------------------------------


def _plain_batch(batch: Any) -> Any:
    """The batch without dictionaries."""
    import pyarrow as pa

    return pa.RecordBatch.from_arrays([plain_column(array) for array in batch.columns], names=batch.schema.names)


def _without_formulas(array: Any) -> Any:
    """A column in which text that begins as a formula does, and is no number, has an apostrophe before it."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not (pa.types.is_string(array.type) or pa.types.is_large_string(array.type)):
        return array
    number = pc.match_substring_regex(array, r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$")
    formula = pc.and_not(pc.match_substring_regex(array, r"^\s*[=+\-@\t\r]"), number)
    return pc.if_else(
        formula, pc.binary_join_element_wise(pa.scalar("'", array.type), array, pa.scalar("", array.type)), array
    )


def _as_json(array: Any) -> Any:
    """A column as JSON text, cell by cell in Python only where text needs escapes."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = array.type
    if pa.types.is_dictionary(kind):
        values = [json.dumps(value, ensure_ascii=False) for value in array.dictionary.to_pylist()]
        text = pa.array(values, pa.string()).take(array.indices)
    elif pa.types.is_boolean(kind) or pa.types.is_integer(kind):
        text = array.cast(pa.string())
    elif pa.types.is_floating(kind):
        text = pc.if_else(pc.is_finite(array), array, pa.scalar(None, kind)).cast(pa.string())
    elif pa.types.is_null(kind):
        text = pa.nulls(len(array), pa.string())
    elif (
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_temporal(kind)
        or pa.types.is_decimal(kind)
    ):
        text = _quote(array.cast(pa.string()))
    else:
        text = _dump_cells(array)
    return pc.fill_null(text, "null")


def _quote(array: Any) -> Any:
    import pyarrow.compute as pc

    special = pc.match_substring_regex(array, r'["\\\x00-\x1f]')
    if pc.any(special).as_py():
        return _dump_cells(array)
    return pc.binary_join_element_wise('"', array, '"', "")


def _dump_cells(array: Any) -> Any:
    import pyarrow as pa

    cells = [None if cell is None else json.dumps(cell, ensure_ascii=False, default=str) for cell in array.to_pylist()]
    return pa.array(cells, pa.string())


def _as_numpy(name: str, array: Any) -> Any:
    import pyarrow as pa

    kind = array.type
    if pa.types.is_dictionary(kind):
        values = array.dictionary.to_pylist()
        table = np.array([*map(str, values), ""])
        return table[array.indices.fill_null(len(values)).to_numpy(zero_copy_only=False)]
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return array.cast(pa.timestamp("us")).to_numpy(zero_copy_only=False)
    if pa.types.is_integer(kind) and array.null_count:
        return array.cast(pa.float64()).to_numpy(zero_copy_only=False)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
        return array.to_numpy(zero_copy_only=False)
    raise DriftvoteError(f"column {name!r} ({kind}) has no place in an NPZ file; leave it out with --drop {name}")
