"""NPY and NPZ: arrays of votes, read a piece at a time (inside an NPZ too, which cannot be mapped)."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.lib.format as npy

from driftvote.files.table import BATCH, Table

VOTES, LABELERS, CLASSES = "votes", "labelers", "classes"
"""Arrays of an NPZ: rows x labelers; the labelers' names; the class values that codes stand for."""


class ArraysTable(Table):
    """Rows x labelers; in an NPZ, one-dimensional arrays of the same length are further columns."""

    def __init__(self, path: str | Path, kind: str, names: Sequence[str] = (), shown: str | None = None) -> None:
        super().__init__(path, shown)
        self.kind = kind
        self.classes: list[Any] | None = None
        self._columns: dict[str, tuple[str, int | None]] = {}
        self._read = 0
        try:
            self._look(list(names))
        except (zipfile.BadZipFile, zlib.error, ValueError, EOFError, OSError) as problem:
            if isinstance(problem, OSError) and problem.filename is not None:
                raise
            if isinstance(problem, type(self.error(""))):
                raise
            raise self.error(self._damaged(problem)) from None
        self.names = list(self._columns)
        self.refuse_repeated()

    def _look(self, given: list[str]) -> None:
        shapes = {}
        for name in self._members():
            with self._open(name) as file:
                shapes[name] = self._header(name, file)[:2]
        tables = [name for name, (shape, _) in shapes.items() if len(shape) == 2]
        main = VOTES if VOTES in tables else tables[0] if len(tables) == 1 else None
        if main is None:
            found = ", ".join(f"{name!r} {shape}" for name, (shape, _) in shapes.items()) or "nothing"
            raise self.error(f"there is no array of rows x labelers named {VOTES!r} in it; it holds {found}")
        self.n_rows, width = shapes[main][0]
        if not self.n_rows or not width:
            raise self.error(f"there are no votes to read: the array has shape {shapes[main][0]}")
        if not given and LABELERS in shapes:
            given = [str(name) for name in self._whole(LABELERS)]
        if given and len(given) != width:
            raise self.error(f"{len(given)} labelers are named, but the array has {width} columns; name each column")
        if CLASSES in shapes:
            self.classes = self._whole(CLASSES).tolist()
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

        members = list(dict.fromkeys(self._columns[name][0] for name in columns))
        streams = {name: self._pieces(name) for name in members}
        self._read = 0
        try:
            for start in range(0, self.n_rows or 0, BATCH):
                pieces = {name: next(stream) for name, stream in streams.items()}
                arrays = []
                for name in columns:
                    member, place = self._columns[name]
                    values = pieces[member] if place is None else pieces[member][:, place]
                    arrays.append(_arrow(values) if place is None else self._votes(values))
                self._read = start + len(next(iter(pieces.values())))
                yield pa.RecordBatch.from_arrays(arrays, names=list(columns))
        except (zipfile.BadZipFile, zlib.error, ValueError, EOFError, OSError) as problem:
            raise self.error(self._damaged(problem)) from None

    def in_classes(self, array: Any) -> Any:
        """A column of true classes, which are codes where the votes are."""
        import pyarrow as pa

        return self._votes(array.to_numpy()) if pa.types.is_integer(array.type) else array

    def _votes(self, values: Any) -> Any:
        """Votes; codes are turned into the class values that the file brings along."""
        import pyarrow as pa

        if self.classes is None or values.dtype.kind not in "iu" or self.classes == list(range(len(self.classes))):
            return _arrow(values)
        codes = values.astype(np.int64)
        wrong = codes >= len(self.classes)
        if wrong.any():
            raise self.error(
                f"a vote is code {int(codes[wrong][0])}, but {CLASSES!r} names {len(self.classes)} classes"
            )
        return pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes < 0), pa.array(self.classes))

    def done(self) -> float | None:
        return self._read / self.n_rows if self.n_rows else None

    def _members(self) -> list[str]:
        if self.kind == "npy":
            return [VOTES]
        with zipfile.ZipFile(self.path) as archive:
            return [name.removesuffix(".npy") for name in archive.namelist()]

    @contextmanager
    def _open(self, member: str) -> Iterator[Any]:
        if self.kind == "npy":
            with open(self.path, "rb") as file:
                yield file
            return
        with zipfile.ZipFile(self.path) as archive, archive.open(f"{member}.npy") as part:
            yield part

    def _header(self, member: str, file: Any) -> tuple[tuple[int, ...], np.dtype[Any], bool]:
        version = npy.read_magic(file)
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, fortran, dtype = read(file)
        if dtype.hasobject:
            raise self.error(f"the array {member!r} holds Python objects, which are not read; save numbers or text")
        return shape, dtype, fortran

    def _whole(self, member: str) -> Any:
        with self._open(member) as file:
            return npy.read_array(io.BytesIO(file.read()), allow_pickle=False)

    def _pieces(self, member: str) -> Iterator[Any]:
        with self._open(member) as file:
            shape, dtype, fortran = self._header(member, file)
            if fortran and len(shape) == 2 and shape[1] > 1:
                whole = np.load(self.path, mmap_mode="r") if self.kind == "npy" else self._whole(member)
                yield from (whole[start : start + BATCH] for start in range(0, shape[0], BATCH))
                return
            width = int(np.prod(shape[1:], dtype=np.int64))
            for start in range(0, shape[0], BATCH):
                rows = min(BATCH, shape[0] - start)
                data = file.read(rows * width * dtype.itemsize)
                yield np.frombuffer(data, dtype).reshape(rows, *shape[1:])

    def _damaged(self, problem: object) -> str:
        if self.path.stat().st_size == 0:
            return "the file is empty; there are no votes to read"
        return (
            f"not a whole {self.kind} file; it was cut short or is of another kind ({str(problem)[:80]}); make it anew"
        )


def _arrow(values: Any) -> Any:
    import pyarrow as pa

    if values.dtype.kind in "US":
        return pa.array(values.tolist(), pa.string())
    if not values.dtype.isnative:
        values = values.astype(values.dtype.newbyteorder("="))
    if values.dtype.kind == "f" and values.dtype.itemsize not in (2, 4, 8):
        values = values.astype(np.float64)
    return pa.array(np.ascontiguousarray(values))
