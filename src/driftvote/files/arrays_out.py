"""NPZ output: an array for each column, or one of votes with the names that belong to it.

The number of rows stands at the beginning of an NPY and is known at the end, so arrays grow in temporary files.
"""

from __future__ import annotations

import shutil
import tempfile
import zipfile
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, BinaryIO

import numpy as np
import numpy.lib.format as npy
import pyarrow as pa

from driftvote.errors import DriftvoteError
from driftvote.files.writers import Writer


class GrowingArray:
    """The rows of an array in a temporary file."""

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
        """Write it as NPY."""
        shape = (self._rows, *self._like.shape[1:])
        header = {"descr": npy.dtype_to_descr(self._like.dtype), "fortran_order": False, "shape": shape}
        npy.write_array_header_2_0(file, header)
        self._file.seek(0)
        shutil.copyfileobj(self._file, file, 1 << 20)
        self._file.close()


class NpzWriter(Writer):
    """An array for each column. Text has a fixed width in NumPy, so only columns of few values (classes) can be
    text."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__(file)
        self._arrays: dict[str, GrowingArray] = {}
        self._whole: dict[str, Any] = {}

    def write(self, batch: Any) -> None:
        for name, array in zip(batch.schema.names, batch.columns, strict=True):
            self.add_rows(name, _as_numpy(name, array))

    def add_rows(self, name: str, values: Any) -> None:
        """Rows of an array of any shape."""
        if name not in self._arrays:
            self._arrays[name] = GrowingArray()
        self._arrays[name].add(values)

    def add_whole(self, name: str, values: Sequence[Any]) -> None:
        """A small array that is known at once."""
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
        """Rows of votes."""
        self._votes.add(values)

    def add_whole(self, name: str, values: Sequence[Any]) -> None:
        """Names have no place here."""

    def close(self) -> None:
        self._votes.copy_to(self.file)


def _as_numpy(name: str, array: Any) -> Any:
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
