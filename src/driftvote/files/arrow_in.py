"""Parquet, and Arrow's own files (Feather): typed columns, read a piece at a time."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from driftvote.files.table import BATCH, Table


class ParquetTable(Table):
    """A Parquet file; only the columns that are asked for are read."""

    def __init__(self, path: str | Path, shown: str | None = None) -> None:
        super().__init__(path, shown)
        with self._troubles(), self._opened() as file:
            self._schema = file.schema_arrow
            self._metadata = file.metadata
        self.n_rows = self._metadata.num_rows
        self.names = list(self._schema.names)
        self.refuse_repeated()
        self._read = 0

    @contextmanager
    def _opened(self, **options: Any) -> Iterator[Any]:
        import pyarrow.parquet as pq

        with open(self.path, "rb"):  # says whether it may be read, in the system's own words
            pass
        # Without buffering ahead, a row group of any size is read a piece at a time.
        with pq.ParquetFile(str(self.path), pre_buffer=False, buffer_size=1 << 20, memory_map=False, **options) as file:
            yield file

    @contextmanager
    def _troubles(self) -> Iterator[None]:
        import pyarrow as pa

        try:
            yield
        except pa.ArrowException as problem:
            raise self.error(_damaged("Parquet", self.path, problem)) from None
        except OSError as problem:
            if problem.filename is not None:
                raise
            raise self.error(_damaged("Parquet", self.path, problem)) from None

    def type_of(self, column: str) -> Any:
        return self._schema.field(column).type

    def batches(self, columns: Sequence[str], votes: Collection[str] = ()) -> Iterator[Any]:
        import pyarrow as pa

        texts = [name for name in columns if name in votes and _is_text(self.type_of(name))]
        self._read = 0
        names = list(columns)
        with self._troubles(), self._opened(read_dictionary=texts) as file:
            for batch in file.iter_batches(batch_size=BATCH, columns=names, use_threads=False):
                self._read += batch.num_rows
                if batch.schema.names != names:  # Parquet's own order
                    batch = pa.RecordBatch.from_arrays([batch.column(name) for name in names], names=names)
                yield batch

    def done(self) -> float | None:
        return self._read / self.n_rows if self.n_rows else None

    def limits(self, column: str) -> tuple[int, int] | None:
        """From the statistics that writers leave in every row group."""
        place = self._schema.get_field_index(column)
        lowest, highest = [], []
        for group in range(self._metadata.num_row_groups):
            found = self._metadata.row_group(group).column(place)
            stats = found.statistics if found.path_in_schema == column else None
            if stats is None or not stats.has_null_count:
                return None
            if stats.null_count == found.num_values:
                continue
            if not stats.has_min_max or not isinstance(stats.min, int):
                return None
            lowest.append(int(stats.min))
            highest.append(int(stats.max))
        return (min(lowest), max(highest)) if lowest else None


class ArrowTable(Table):
    """Arrow's file or stream format; Feather is the former."""

    def __init__(self, path: str | Path, shown: str | None = None) -> None:
        super().__init__(path, shown)
        with self._troubles(), self._opened() as reader:
            self._schema = reader.schema
        self.names = list(self._schema.names)
        self.refuse_repeated()
        self._share: float | None = None

    @contextmanager
    def _troubles(self) -> Iterator[None]:
        import pyarrow as pa

        try:
            yield
        except pa.ArrowException as problem:
            raise self.error(_damaged("Arrow", self.path, problem)) from None
        except OSError as problem:
            if problem.filename is not None:
                raise
            raise self.error(_damaged("Arrow", self.path, problem)) from None

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        import pyarrow as pa

        with open(self.path, "rb") as file:
            framed = file.read(6) == b"ARROW1"
        with pa.memory_map(str(self.path)) as source:
            yield (pa.ipc.open_file if framed else pa.ipc.open_stream)(source)

    def type_of(self, column: str) -> Any:
        return self._schema.field(column).type

    def batches(self, columns: Sequence[str], votes: Collection[str] = ()) -> Iterator[Any]:
        import pyarrow as pa

        names = list(columns)
        with self._troubles(), self._opened() as reader:
            count = getattr(reader, "num_record_batches", None)
            batches = iter(reader) if count is None else (reader.get_batch(place) for place in range(count))
            for place, batch in enumerate(batches):
                self._share = None if not count else (place + 1) / count
                arrays = [batch.column(name) for name in names]
                batch = pa.RecordBatch.from_arrays(arrays, names=names)
                for start in range(0, batch.num_rows, BATCH):
                    yield batch.slice(start, BATCH)

    def done(self) -> float | None:
        return self._share


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _damaged(what: str, path: Path, problem: object) -> str:
    if path.stat().st_size == 0:
        return "the file is empty; there are no votes to read"
    text = " ".join(str(problem).split())
    return f"not a whole {what} file; it was cut short, is damaged or of another kind ({text[:100]}); write it anew"
