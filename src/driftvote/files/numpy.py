"""NPY and NPZ: arrays of votes, read a piece at a time (inside an NPZ too, which cannot be mapped)."""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.lib.format as npy

from driftvote.files.table import FileError, FileOptions, Table

VOTES, LABELERS, CLASSES = "votes", "labelers", "classes"
"""Arrays of an NPZ: rows x labelers; the labelers' names; the class values that codes stand for."""
MOST_COLUMNS = 100_000


class NpyTable(Table):
    """One array of rows x labelers."""

    kind = "npy"

    def __init__(
        self, path: str | Path, options: FileOptions, shown: str | None = None, compression: str | None = None
    ) -> None:
        super().__init__(path, options, shown, compression)
        self._columns: dict[str, tuple[str, int | None]] = {}  # the array and the place in it
        self._read = 0
        with self._explain_errors():
            self._read_headers(list(options.labelers))
        self.names = list(self._columns)
        self.refuse_repeated()

    def _read_headers(self, given: list[str]) -> None:
        shapes = {}
        for name, size in self._members().items():
            with self._open(name) as file:
                shape, dtype, _ = self._read_header(name, file)
                if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize > size - file.tell():
                    raise ValueError(f"the array {name!r} has shape {shape}, and not as many bytes")
                shapes[name] = shape, dtype
        tables = [name for name, (shape, _) in shapes.items() if len(shape) == 2]
        main = VOTES if VOTES in tables else tables[0] if len(tables) == 1 else None
        if main is None:
            content = ", ".join(f"{name!r} {shape}" for name, (shape, _) in shapes.items()) or "nothing"
            raise self.error(f"there is no array of rows x labelers named {VOTES!r} in it; it holds {content}")
        self.n_rows, width = shapes[main][0]
        if not self.n_rows or not width:
            raise self.error(f"there are no votes to read: the array has shape {shapes[main][0]}")
        if width > MOST_COLUMNS:
            raise self.error(
                f"the array has {width:,} columns; votes are rows x labelers, up to {MOST_COLUMNS:,} of them"
            )
        if not given and LABELERS in shapes:
            given = [str(name) for name in self._read_whole(LABELERS)]
        if given and len(given) != width:
            raise self.error(f"{len(given)} labelers are named, but the array has {width} columns; name each column")
        if CLASSES in shapes:
            self.classes = self._read_whole(CLASSES).tolist()
        for place in range(width):
            self._columns[given[place] if given else f"labeler_{place}"] = (main, place)
        self.labelers = list(self._columns)
        for name, (shape, dtype) in shapes.items():
            if len(shape) == 1 and shape[0] == self.n_rows and name not in (main, LABELERS, CLASSES):
                if dtype.kind not in "biufUSM":
                    raise self.error(f"the array {name!r} holds {dtype}; use numbers, text or dates")
                self._columns[name] = (name, None)

    def batches(self, columns: Sequence[str], votes: Collection[str] = ()) -> Iterator[Any]:
        import pyarrow as pa

        pieces = {name: self._pieces(name) for name in dict.fromkeys(self._columns[name][0] for name in columns)}
        self._read = 0
        with self._explain_errors():
            for _ in range(0, self.n_rows or 0, self.batch_rows):
                members = {name: next(stream) for name, stream in pieces.items()}
                arrays = []
                for name in columns:
                    member, place = self._columns[name]
                    values = members[member]
                    arrays.append(_to_arrow(values) if place is None else self._decode(values[:, place]))
                self._read += len(values)
                yield pa.RecordBatch.from_arrays(arrays, names=list(columns))

    def decode_classes(self, column: Any) -> Any:
        import pyarrow as pa

        return self._decode(column.to_numpy()) if pa.types.is_integer(column.type) else column

    def _decode(self, values: Any) -> Any:
        """Votes; codes become the class values that the file brings along."""
        import pyarrow as pa

        if self.classes is None or values.dtype.kind not in "iu" or self.classes == list(range(len(self.classes))):
            return _to_arrow(values)
        codes = values.astype(np.int64)
        wrong = codes >= len(self.classes)
        if wrong.any():
            raise self.error(
                f"a vote is code {int(codes[wrong][0])}, but {CLASSES!r} names {len(self.classes)} classes"
            )
        return pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes < 0), pa.array(self.classes))

    def done(self) -> float | None:
        return self._read / self.n_rows if self.n_rows else None

    def _members(self) -> dict[str, int]:
        """The arrays in the file, and their bytes."""
        return {VOTES: self.path.stat().st_size}

    @contextmanager
    def _open(self, member: str) -> Iterator[Any]:
        with open(self.path, "rb") as file:
            yield file

    def _read_fortran(self, member: str) -> Any:
        """An array whose columns lie one after the other, so that rows cannot be read one after the other."""
        return np.load(self.path, mmap_mode="r")

    def _read_whole(self, member: str) -> Any:
        with self._open(member) as file:
            return npy.read_array(io.BytesIO(file.read()), allow_pickle=False)

    def _read_header(self, member: str, file: Any) -> tuple[tuple[int, ...], np.dtype[Any], bool]:
        version = npy.read_magic(file)
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, fortran, dtype = read(file)
        if dtype.hasobject:
            raise self.error(f"the array {member!r} holds Python objects, which are not read; save numbers or text")
        return shape, dtype, fortran

    def _pieces(self, member: str) -> Iterator[Any]:
        with self._open(member) as file:
            shape, dtype, fortran = self._read_header(member, file)
            starts = range(0, shape[0], self.batch_rows)
            if fortran and len(shape) == 2 and shape[1] > 1:
                whole = self._read_fortran(member)
                yield from (whole[start : start + self.batch_rows] for start in starts)
                return
            width = int(np.prod(shape[1:], dtype=np.int64))
            for start in starts:
                rows = min(self.batch_rows, shape[0] - start)
                data = file.read(rows * width * dtype.itemsize)
                yield np.frombuffer(data, dtype).reshape(rows, *shape[1:])

    @contextmanager
    def _explain_errors(self) -> Iterator[None]:
        """Errors of reading become sentences that name the file."""
        try:
            yield
        except (FileError, MemoryError):
            raise
        except Exception as problem:  # whatever a damaged header or archive makes its readers say
            if isinstance(problem, OSError) and problem.filename is not None:
                raise
            if self.path.stat().st_size == 0:
                raise self.error("the file is empty; there are no votes to read") from None
            raise self.error(
                f"not a whole {self.kind} file; it was cut short or is of another kind ({str(problem)[:80]}); make it"
                " again"
            ) from None


class NpzTable(NpyTable):
    """Several arrays: rows x labelers, and one-dimensional arrays of the same length as further columns."""

    kind = "npz"

    def _members(self) -> dict[str, int]:
        with zipfile.ZipFile(self.path) as archive:
            return {member.filename.removesuffix(".npy"): member.file_size for member in archive.infolist()}

    @contextmanager
    def _open(self, member: str) -> Iterator[Any]:
        with zipfile.ZipFile(self.path) as archive, archive.open(f"{member}.npy") as part:
            yield part

    def _read_fortran(self, member: str) -> Any:
        return self._read_whole(member)


def _to_arrow(values: Any) -> Any:
    import pyarrow as pa

    if values.dtype.kind in "US":
        return pa.array(values.tolist(), pa.string())
    if not values.dtype.isnative:
        values = values.astype(values.dtype.newbyteorder("="))
    if values.dtype.kind == "f" and values.dtype.itemsize not in (2, 4, 8):
        values = values.astype(np.float64)
    return pa.array(np.ascontiguousarray(values))
