"""Parquet, and Arrow's own files (Feather): typed columns, read a piece at a time."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from driftvote.errors import DriftvoteError
from driftvote.files.table import FileOptions, Table


class _TypedTable(Table):
    """A file with a schema."""

    kind = ""

    def __init__(
        self, path: str | Path, options: FileOptions, shown: str | None = None, compression: str | None = None
    ) -> None:
        super().__init__(path, options, shown, compression)
        with self._open() as reader:
            self._schema = self._read_schema(reader)
            self.names = list(self._schema.names)
        self.refuse_repeated()
        self._share: float | None = None

    def _read_schema(self, reader: Any) -> Any:
        return reader.schema

    def _open_reader(self, **options: Any) -> Any:
        raise NotImplementedError

    @contextmanager
    def _open(self, **options: Any) -> Iterator[Any]:
        """The reader; errors become sentences that name the file."""
        with open(self.path, "rb"):  # refused in the words of the system if it may not be read
            pass
        with self._explain_errors(), self._open_reader(**options) as reader:
            yield reader

    @contextmanager
    def _explain_errors(self) -> Iterator[None]:
        """Arrow's errors, and those of Python about names and text that are none, become sentences."""
        try:
            yield
        except (DriftvoteError, MemoryError):
            raise
        except Exception as problem:
            if isinstance(problem, OSError) and problem.filename is not None:
                raise
            if self.path.stat().st_size == 0:
                raise self.error("the file is empty; there are no votes to read") from None
            text = " ".join(str(problem).split())[:100]
            raise self.error(
                f"not a whole {self.kind} file; it is cut short, damaged or of another kind ({text}); write it again"
            ) from None

    def type_of(self, column: str) -> Any:
        return self._schema.field(column).type

    def done(self) -> float | None:
        return self._share


class ParquetTable(_TypedTable):
    """A Parquet file; only the columns that are asked for are read."""

    kind = "Parquet"

    def _open_reader(self, **options: Any) -> Any:
        import pyarrow.parquet as pq

        # Without buffering ahead, a row group of any size is read a piece at a time.
        return pq.ParquetFile(str(self.path), pre_buffer=False, buffer_size=1 << 20, memory_map=False, **options)

    def _read_schema(self, reader: Any) -> Any:
        self.n_rows = reader.metadata.num_rows
        return reader.schema_arrow

    def batches(self, columns: Sequence[str], votes: Collection[str] = ()) -> Iterator[Any]:
        names, read = list(columns), 0
        texts = [name for name in names if name in votes and _is_text(self.type_of(name))]
        with self._open(read_dictionary=texts) as file:
            for batch in file.iter_batches(batch_size=self.batch_rows, columns=names, use_threads=False):
                batch.validate(full=True)
                read += batch.num_rows
                self._share = read / self.n_rows if self.n_rows else None
                yield batch.select(names)  # Parquet has an order of its own


class ArrowTable(_TypedTable):
    """Arrow's file or stream format; Feather is the former."""

    kind = "Arrow"

    @contextmanager
    def _open_reader(self, **options: Any) -> Iterator[Any]:
        import pyarrow as pa

        with open(self.path, "rb") as file:
            is_file = file.read(6) == b"ARROW1"
        with pa.memory_map(str(self.path)) as source:
            yield pa.ipc.open_file(source) if is_file else pa.ipc.open_stream(source)

    def batches(self, columns: Sequence[str], votes: Collection[str] = ()) -> Iterator[Any]:
        with self._open() as reader:
            count = getattr(reader, "num_record_batches", None)
            batches = iter(reader) if count is None else (reader.get_batch(number) for number in range(count))
            for number, batch in enumerate(batches):
                batch.validate(full=True)  # offsets and indices that point outside would crash the process
                self._share = None if not count else (number + 1) / count
                yield from self._cut(batch.select(list(columns)))


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
