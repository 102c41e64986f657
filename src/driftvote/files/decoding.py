"""Columns of votes to class codes: a table lookup for each distinct value, never Python for each cell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from driftvote.errors import VoteError
from driftvote.files.table import Table
from driftvote.kernels.layout import Codes, code_dtype
from driftvote.votes import BAD, VoteFormat

EMPTY_WORDS = frozenset(["", "NA", "N/A", "<NA>", "NaN", "nan", "null", "NULL"])
"""How programs write an empty cell; one that is declared as a class is that class."""

NARROW = 4096
"""Widest range of whole numbers that a table by value is made for."""


def number_in(text: str) -> int | float | None:
    """The number that a text writes; 1.0 is 1, as pandas writes whole numbers beside empty cells.

    >>> number_in(" 1.0"), number_in("-2"), number_in("0.5"), number_in("1_000"), number_in("inf")
    (1, -2, 0.5, None, None)
    """
    if "_" in text:
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    if not math.isfinite(value):
        return None
    return int(value) if value.is_integer() else value


class Decoder:
    """Cells to codes, under one declared format."""

    def __init__(self, table: Table, form: VoteFormat) -> None:
        self.table = table
        self.form = form
        self.dtype = code_dtype(form.n_classes)
        # 1, "1" and "1.0" are the same class; which of them is written depends on the format of the file.
        self._by_text = {str(value): code for value, code in form.codes.items() if value is not None}

    def code_of(self, value: Any) -> int:
        """Code of one cell, `BAD` if it has none."""
        if isinstance(value, str):
            value = value.strip()
            if value in self._by_text:
                return self._by_text[value]
            if value in EMPTY_WORDS:
                return -1
            number = number_in(value)
            return BAD if number is None else self._by_text.get(str(number), BAD)
        if isinstance(value, bool):
            word = self._by_text.get(str(value).lower(), self._by_text.get(str(value), BAD))
            return int(value) if self.form.name == "snorkel" else word
        if value is None or value != value:
            return -1
        return self._by_text.get(str(number_in(str(value))), self._by_text.get(str(value), BAD))

    def codes(self, arrays: Sequence[Any], names: Sequence[str], rows: npt.NDArray[np.int64]) -> tuple[Codes, bool]:
        """Rows x columns, and whether some abstention was written out; `rows` are the rows' numbers in the file."""
        codes = np.empty((len(rows), len(arrays)), self.dtype)
        literal = False
        for place, array in enumerate(arrays):
            literal |= self._fill(codes[:, place], array, names[place], rows)
        return codes, literal

    def _fill(self, out: npt.NDArray[Any], array: Any, name: str, rows: npt.NDArray[np.int64]) -> bool:
        import pyarrow as pa

        kind = array.type
        if pa.types.is_integer(kind):
            return self._fill_whole(out, array, name, rows)
        if pa.types.is_null(kind):
            out[:] = -1
            return False
        if not pa.types.is_dictionary(kind):
            array = array.dictionary_encode()
        return self._look_up(out, array, name, rows)

    def _fill_whole(self, out: npt.NDArray[Any], array: Any, name: str, rows: npt.NDArray[np.int64]) -> bool:
        """Whole numbers in a narrow range: looked up by their own value."""
        empty = array.null_count
        values = (array.fill_null(0) if empty else array).to_numpy()
        low, high = (int(values.min()), int(values.max())) if len(values) else (0, 0)
        if high - low >= NARROW:
            return self._look_up(out, array.dictionary_encode(), name, rows)
        if self.form.name == "snorkel" and low >= -1 and high < self.form.n_classes:
            out[:] = values
            literal = low == -1
        else:
            table = np.array([self.code_of(value) for value in range(low, high + 1)], self.dtype)
            out[:] = table[values.astype(np.int64) - low]
            wrong = out == BAD
            if empty:
                wrong &= array.is_valid().to_numpy(zero_copy_only=False)
            if wrong.any():
                row = int(np.argmax(wrong))
                raise self.refuse(name, int(rows[row]), int(values[row]))
            literal = bool((out == -1).any())
        if empty:
            out[array.is_null().to_numpy(zero_copy_only=False)] = -1
        return literal

    def _look_up(self, out: npt.NDArray[Any], array: Any, name: str, rows: npt.NDArray[np.int64]) -> bool:
        """The code of every distinct value, then one gather; an empty cell takes the last place of the table."""
        distinct = array.dictionary.to_pylist()
        table = np.array([*(self.code_of(value) for value in distinct), -1], self.dtype)
        places = (array.indices.fill_null(len(distinct)) if array.indices.null_count else array.indices).to_numpy()
        out[:] = table[places]
        if (table == BAD).any():
            wrong = out == BAD
            if wrong.any():
                row = int(np.argmax(wrong))
                raise self.refuse(name, int(rows[row]), distinct[places[row]])
        said = [place for place, value in enumerate(distinct) if table[place] == -1 and self._says_so(value)]
        return bool(np.isin(places, said).any()) if said else False

    def _says_so(self, value: Any) -> bool:
        """Whether an abstention is written in the declared value, not left empty."""
        text = str(value).strip()
        return text in self._by_text or str(number_in(text)) in self._by_text

    def refuse(self, column: str, row: int, value: Any) -> VoteError:
        """The error for a cell without a meaning."""
        written = self.form.describe().rpartition(" (")[0].replace("missing", "an empty cell")
        if self.form.name == "snorkel" and type(number_in(str(value))) is int:
            way_out = "declare the classes, such as --classes 1,2,3"
        elif self.form.name == "signed":
            way_out = "declare the classes with --classes, or leave --votes out"
        else:
            way_out = "correct it, or declare it with --classes or --abstain"
        return VoteError(
            f"{self.table.shown}: {self.table.place(row)}, column {column!r}: {_shown(value)} is not a vote; read"
            f" as {written};"
            f" {way_out}; if {column!r} is no labeler, pass --keep {column}"
        )


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
