"""Verified labels: which row an id or a number means, and the class that it gets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from driftvote.arrays import Arrays
from driftvote.core.engine import Engine
from driftvote.core.state import check_array
from driftvote.errors import FeedbackError, StateError
from driftvote.inputs import Id, plain_id, to_list
from driftvote.votes import VoteFormat, is_missing

BYTES_AN_ID = 200
"""Two entries of a dict, a text and a list, beside the letters: a rough figure for `state_nbytes`."""


class FeedbackBook:
    """The ids of the rows that are remembered. An id may occur more than once; a number and its text are one id."""

    def __init__(self) -> None:
        self.by_row: dict[int, Id] = {}  # rows in increasing order, so the oldest is always first
        self.rows: dict[str, list[int]] = {}
        self.n_numbers = 0
        self.n_letters = 0

    def __len__(self) -> int:
        return len(self.by_row)

    @property
    def nbytes(self) -> int:
        """Bytes, roughly."""
        return BYTES_AN_ID * len(self) + self.n_letters

    def add(self, first_row: int, ids: Sequence[Id | None]) -> None:
        """Add the ids of rows from `first_row` on; None is no id."""
        for row, value in enumerate(ids, first_row):
            if value is not None:
                text = str(value)
                self.by_row[row] = value
                self.rows.setdefault(text, []).append(row)
                self.n_numbers += isinstance(value, int)
                self.n_letters += len(text)

    def forget(self, before: int, dropped: dict[int, Id]) -> None:
        """Move rows that are no longer remembered to `dropped`."""
        while self.by_row and (row := next(iter(self.by_row))) < before:
            dropped[row] = value = self.by_row[row]
            del self.by_row[row]
            text = str(value)
            self.rows[text].remove(row)
            if not self.rows[text]:
                del self.rows[text]
            self.n_numbers -= isinstance(value, int)
            self.n_letters -= len(text)

    def before(self, first_row: int, dropped: dict[int, Id]) -> FeedbackBook:
        """Return the book as before `first_row`, with what was dropped since; this one may be changed half-way."""
        book = FeedbackBook()
        for row, value in sorted((dropped | self.by_row).items()):
            if row < first_row:
                book.add(row, [value])
        return book

    def verify(
        self, row_or_id: Any, label: Any, by: str | None, replace: bool, engine: Engine, form: VoteFormat
    ) -> None:
        """Check everything, then set the classes of the rows; `LabelModel.feedback` has the parameters."""
        if by not in (None, "row", "id"):
            raise FeedbackError(f"by must be 'row' or 'id', not {by!r}")
        keys, labels = _pair_up(row_or_id, label)
        rows = [self._find_row(key, by, engine) for key in keys]
        codes = [_class_code(value, row, form) for value, row in zip(labels, rows, strict=True)]
        _check_new(rows, engine, replace, form)
        if rows:
            engine.verify(np.array(rows, np.int64), np.array(codes, np.int64))

    def _find_row(self, key: Any, by: str | None, engine: Engine) -> int:
        """Return the number of a remembered row."""
        if is_missing(key):
            raise FeedbackError(f"{key!r} is neither a row number nor an id")
        value = plain_id(key)
        assert value is not None
        if by == "row" and not isinstance(value, int):
            raise FeedbackError(f"rows are whole numbers from 0, not {key!r}; pass by='id' if it is an id")
        if by == "id" or not isinstance(value, int):
            return self._find_id(value, engine)
        if by is None and self.n_numbers:
            raise FeedbackError(
                f"{value} may be a row number or an id, because ids here are numbers; pass by='row' or by='id'"
            )
        n_rows, memory = engine.n_rows, engine.largest_window
        if value < 0:
            raise FeedbackError(f"row {value}: rows are counted from 0, the first row of the stream")
        if value >= n_rows:
            raise FeedbackError(
                f"row {value} is not there yet: {n_rows} rows have been seen, the last one is row {n_rows - 1}"
            )
        if value < n_rows - memory:
            raise FeedbackError(
                f"row {value} is too old: the largest window is {memory} rows, so rows before"
                f" {n_rows - memory} are forgotten"
            )
        return value

    def _find_id(self, value: Id, engine: Engine) -> int:
        rows = [row for row in self.rows.get(str(value), []) if row >= engine.n_rows - engine.largest_window]
        if not rows:
            why = "no row has come with an id; pass ids= (or id=) with the rows"
            if len(self):
                remembered = min(engine.n_rows, engine.largest_window)
                why = f"of the last {remembered} rows, which are remembered, none has it"
            raise FeedbackError(f"id {value!r} is unknown: {why}")
        if len(rows) > 1:
            raise FeedbackError(
                f"id {value!r} is ambiguous: rows {rows[-2]} and {rows[-1]} both have it; verify by row number"
            )
        return rows[0]

    def to_arrays(self) -> Arrays:
        """Return the ids as arrays: all letters in one, because a column as wide as the longest id could be huge."""
        texts = [str(value).encode("utf-8", "surrogatepass") for value in self.by_row.values()]
        return {
            "id_rows": np.array(list(self.by_row), np.int64),
            "id_numbers": np.array([isinstance(value, int) for value in self.by_row.values()], np.bool_),
            "id_ends": np.cumsum([len(text) for text in texts], dtype=np.int64),
            "id_letters": np.frombuffer(b"".join(texts), np.uint8),
        }

    @classmethod
    def from_arrays(cls, arrays: Arrays, n_rows: int) -> FeedbackBook:
        """Return the book of saved arrays, or raise an error if they cannot be ids of so many rows."""
        try:
            rows, numbers, ends, letters = (arrays[name] for name in ("id_rows", "id_numbers", "id_ends", "id_letters"))
            kinds = {"rows": np.int64, "numbers": np.bool_, "ends": np.int64}
            for name, kind in kinds.items():
                check_array(arrays, f"id_{name}", kind, (len(rows),))
            check_array(arrays, "id_letters", np.uint8, (len(letters),))
            book, begin = cls(), 0
            whole = letters.tobytes()
            in_order = (np.diff(rows) > 0).all() and (np.diff(ends, prepend=0) >= 0).all()
            last = ends[-1] if len(ends) else 0
            if not in_order or last != len(whole) or (len(rows) and not (rows[0] >= 0 and rows[-1] < n_rows)):
                raise ValueError("rows or letters out of order")
            for row, number, end in zip(rows.tolist(), numbers.tolist(), ends.tolist(), strict=True):
                text = whole[begin:end].decode("utf-8", "surrogatepass")
                book.add(row, [int(text) if number else text])
                begin = end
        except (KeyError, ValueError, TypeError) as problem:
            raise StateError(f"the state's ids cannot be read ({problem})") from problem
        return book


def _pair_up(row_or_id: Any, label: Any) -> tuple[list[Any], list[Any]]:
    """Return keys and labels side by side, whether one was given or many."""
    if isinstance(row_or_id, Mapping):
        if label is not None:
            raise FeedbackError("a dict holds rows and labels already; leave the second argument out")
        return list(row_or_id), list(row_or_id.values())
    if isinstance(row_or_id, (str, bytes, int, float, np.generic)) or not hasattr(row_or_id, "__iter__"):
        return [row_or_id], [label]
    keys = to_list(row_or_id)
    if isinstance(label, (str, bytes)) or not hasattr(label, "__iter__"):
        raise FeedbackError(f"{len(keys)} rows need as many labels in a list, not {label!r}")
    labels = to_list(label)
    if len(labels) != len(keys):
        raise FeedbackError(f"{len(keys)} rows need as many labels, not {len(labels)}")
    return keys, labels


def _class_code(value: Any, row: int, form: VoteFormat) -> int:
    code = -1 if is_missing(value) else form.code_of(value)
    if code < 0:
        what = "the abstention" if code == -1 and not is_missing(value) else "not a class"
        raise FeedbackError(
            f"row {row} cannot be verified as {value!r}: it is {what}; the classes are {form.show_classes()}"
        )
    return code


def _check_new(rows: list[int], engine: Engine, replace: bool, form: VoteFormat) -> None:
    """Refuse a row that is named twice, and one that is verified already without `replace`."""
    seen: set[int] = set()
    for row in rows:
        if row in seen:
            raise FeedbackError(f"row {row} is verified twice in this call; keep one of them")
        seen.add(row)
        code = engine.verified_class(row)
        if code >= 0 and not replace:
            raise FeedbackError(
                f"row {row} is verified already, as {form.decode_one(code)!r}; pass replace=True to correct it"
            )
