"""Ids of the rows that are remembered, so that a verification can name a row by its id."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from driftvote.errors import StateError
from driftvote.inputs import Batch, Id
from driftvote.kernels.layout import Ints

Arrays = dict[str, npt.NDArray[Any]]

BYTES_AN_ID = 200
"""Two entries of a dict, a text and a list, beside the letters: a rough figure for `state_nbytes`."""


@dataclass(frozen=True)
class Marks:
    """The ids and verified class codes of rows, -1 where a row is not verified; None: of no row."""

    ids: Sequence[Id | None] | None = None
    verified: Ints | None = None

    @classmethod
    def of(cls, batch: Batch) -> Marks | None:
        """The marks of a batch, or None if it has none."""
        return None if batch.ids is None and batch.verified is None else cls(batch.ids, batch.verified)

    def __getitem__(self, part: slice) -> Marks:
        ids = None if self.ids is None else self.ids[part]
        return Marks(ids, None if self.verified is None else self.verified[part])


class IdBook:
    """Row -> id and back. An id may occur again and again; a number and its text are the same id."""

    def __init__(self) -> None:
        self.by_row: dict[int, Id] = {}  # rows in increasing order, so the oldest is always first
        self.rows: dict[str, list[int]] = {}
        self.n_numbers = 0
        self.letters = 0

    def __len__(self) -> int:
        return len(self.by_row)

    @property
    def nbytes(self) -> int:
        return BYTES_AN_ID * len(self) + self.letters

    def add(self, first_row: int, ids: Sequence[Id | None]) -> None:
        """The ids of rows from `first_row` on; None has none."""
        for row, value in enumerate(ids, first_row):
            if value is not None:
                text = str(value)
                self.by_row[row] = value
                self.rows.setdefault(text, []).append(row)
                self.n_numbers += isinstance(value, int)
                self.letters += len(text)

    def forget(self, before: int) -> None:
        """Rows that are no longer remembered."""
        while self.by_row and (row := next(iter(self.by_row))) < before:
            value = self.by_row.pop(row)
            text = str(value)
            self.rows[text].remove(row)
            if not self.rows[text]:
                del self.rows[text]
            self.n_numbers -= isinstance(value, int)
            self.letters -= len(text)

    def find(self, value: Id) -> list[int]:
        """The remembered rows of an id, oldest first."""
        return self.rows.get(str(value), [])

    def arrays(self) -> Arrays:
        """As plain arrays: all letters in one, because a column as wide as the longest id could be huge."""
        texts = [str(value).encode("utf-8", "surrogatepass") for value in self.by_row.values()]
        return {
            "id_rows": np.array(list(self.by_row), np.int64),
            "id_numbers": np.array([isinstance(value, int) for value in self.by_row.values()], np.bool_),
            "id_ends": np.cumsum([len(text) for text in texts], dtype=np.int64),
            "id_letters": np.frombuffer(b"".join(texts), np.uint8),
        }

    @classmethod
    def restored(cls, arrays: Arrays, n_rows: int) -> IdBook:
        """From saved arrays, or an error if they cannot be a book of so many rows."""
        try:
            rows, numbers, ends, letters = (arrays[name] for name in ("id_rows", "id_numbers", "id_ends", "id_letters"))
            book, begin = cls(), 0
            whole = letters.tobytes()
            in_order = (np.diff(rows) > 0).all() and (np.diff(ends, prepend=0) >= 0).all()
            if len(rows) and not (in_order and rows[0] >= 0 and rows[-1] < n_rows and ends[-1] == len(whole)):
                raise ValueError("rows or letters out of order")
            for row, number, end in zip(rows.tolist(), numbers.tolist(), ends.tolist(), strict=True):
                text = whole[begin:end].decode("utf-8", "surrogatepass")
                book.add(row, [int(text) if number else text])
                begin = end
        except (KeyError, ValueError, TypeError) as problem:
            raise StateError(f"the state's ids cannot be read ({problem})") from problem
        return book
