"""The doors: arrays, frames, long frames and dicts, all turned into one batch of encoded rows.

A door reads and checks; it never touches a model. So a batch that is refused leaves everything as it
was, and what comes back can have the shape of what went in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from driftvote.errors import VoteError
from driftvote.kernels.layout import Codes, code_dtype
from driftvote.votes import BAD, Roster, VoteFormat, is_missing, unique_names


@dataclass(frozen=True)
class Origin:
    """The shape of what went in, so that what comes back can have it too."""

    door: str = "array"  # array, records, wide or long
    backend: Any = None  # narwhals' name of the frame library
    index: Any = None  # the pandas index of a wide frame
    tasks: Any = None  # task ids of a long frame, in the order of the rows
    task_column: str = "task"


@dataclass(frozen=True)
class Times:
    """A declared time column: numbers that increase with it, and how to show one in a message."""

    kind: str  # number, datetime or text
    values: Sequence[Any]
    at: Callable[[int], Any] | None = None  # the time of any row, where `values` are only the first and the last

    def show(self, value: Any) -> str:
        return str(np.datetime64(int(value) // 1000, "us")) if self.kind == "datetime" else repr(value)


@dataclass(frozen=True)
class Batch:
    """Rows in time order, encoded; `names` is None when columns have only their places."""

    names: tuple[str, ...] | None
    codes: Codes
    literal: bool  # some abstention was written out, not left away
    times: Times | None = None
    origin: Origin = field(default_factory=Origin)
    first_rows: tuple[int, ...] = ()  # where each name first appears; empty: all are there from the start
    members: tuple[str, ...] | None = None  # labelers behind the names, where those are families


def is_iterator_of_chunks(data: object) -> bool:
    """An iterator is a source of chunks; a list or array is one chunk."""
    return isinstance(data, Iterator) or type(data).__name__ == "RecordBatchReader"


def read_batch(data: Any, form: VoteFormat, roster: Roster, **keys: str | None) -> Batch:
    """Whatever holds rows of votes, as a batch.

    A declared roster selects the columns of a wide frame; `keys` name the columns of a frame that
    are not votes: time, and task, labeler, label of a long frame.
    """
    for key in keys:
        if key not in ("time", "task", "labeler", "label"):
            raise TypeError(f"unexpected keyword {key!r}; columns are named by time, task, labeler and label")
    if is_iterator_of_chunks(data):
        raise VoteError("one batch of rows is needed here, not an iterator; loop over its chunks")
    if isinstance(data, Mapping):
        data = [data]
    if isinstance(data, np.ndarray):
        _refuse_keys(keys, "an array")
        return read_array(data, form, roster)
    if isinstance(data, (list, tuple)):
        _refuse_keys(keys, "a list of rows")
        if not data:
            raise VoteError("there are no votes to read: the list of rows is empty")
        if all(isinstance(row, Mapping) for row in data):
            return read_records(data, form, roster)
        return read_array(_as_array(data), form, roster)
    from driftvote import frames

    return frames.read_frame(data, form, roster.names if roster.closed else (), **keys)


def read_row(row: Any, form: VoteFormat, roster: Roster) -> Batch:
    """One row: a sequence of votes, a dict of them, or a row of a frame."""
    if hasattr(row, "to_dict") and hasattr(row, "index"):
        row = row.to_dict()
        if list(row) == list(range(len(row))):  # numbered, not named
            row = [None if is_missing(value) else value for value in row.values()]
    if isinstance(row, Mapping):
        return read_records([row], form, roster)
    votes = row if isinstance(row, np.ndarray) else _as_array([row])[0]
    if np.ndim(votes) != 1 or not len(votes):
        raise VoteError(
            f"one row of votes is needed, such as [1, 0, -1], not an array of shape {np.shape(votes)};"
            " use label_stream for several rows"
        )
    return read_array(votes[None, :], form, roster)


def is_empty_chunk(chunk: Any) -> bool:
    """A chunk without rows: harmless in the middle of a stream."""
    return not isinstance(chunk, Mapping) and hasattr(chunk, "__len__") and len(chunk) == 0


def read_array(values: npt.NDArray[Any], form: VoteFormat, roster: Roster) -> Batch:
    """Rows x labelers."""
    if values.ndim != 2:
        raise VoteError(
            f"votes must be a table of rows x labelers, not an array of shape {values.shape};"
            " use update for a single row"
        )
    if not values.size:
        raise VoteError(f"there are no votes to read: the table has shape {values.shape}")
    names = roster.for_width(values.shape[1]).names
    # Rows must lie one after the other whatever the caller's memory order: kernels run along them.
    codes = np.ascontiguousarray(form.encode(np.asarray(values)))
    if values.dtype != object and not isinstance(values, np.ma.MaskedArray):
        lowest = codes.min()  # BAD < -1: one look tells whether anybody abstains, and whether all values have a meaning
        if lowest > BAD:
            return Batch(None, codes, literal=bool(lowest == -1))
    unsaid = _unsaid(values)
    codes[unsaid] = -1
    if (codes == BAD).any():
        row, column = np.argwhere(codes == BAD)[0]
        value = values[row, column]
        raise form.refuse(int(row), names[column], value.item() if isinstance(value, np.generic) else value)
    return Batch(None, codes, literal=bool(((codes == -1) & ~unsaid).any()))


def _unsaid(values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Cells that say nothing: None in a table of objects, and what a masked array masks."""
    unsaid = np.ma.getmaskarray(values)
    if values.dtype == object:
        unsaid = unsaid | np.array([value is None for value in values.ravel()]).reshape(values.shape)
    return np.asarray(unsaid, bool)


def read_records(records: Sequence[Mapping[Any, Any]], form: VoteFormat, roster: Roster) -> Batch:
    """One dict {labeler: vote} a row; who is not named abstains, and so do None and NaN."""
    keys = tuple(dict.fromkeys(key for record in records for key in record))
    names = unique_names(keys)
    if roster.closed:
        roster.joined_by(names)  # a name that nobody declared explains more than the value it came with
    if not names and not roster.names:
        raise VoteError("row 0 (counting from 0) names no labeler; a row is a dict such as {'a': 1, 'b': 0, 'c': 1}")
    place = {key: i for i, key in enumerate(keys)}
    codes = np.full((len(records), len(names)), -1, code_dtype(form.n_classes))
    literal = False
    first_rows: dict[Any, int] = {}
    for row, record in enumerate(records):
        for key, value in record.items():
            first_rows.setdefault(key, row)
            if is_missing(value):
                continue
            code = form.code_of(value)
            if code == BAD:
                raise form.refuse(row, str(key), value)
            codes[row, place[key]] = code
            literal |= code == -1
    return Batch(names, codes, literal, origin=Origin("records"), first_rows=tuple(first_rows[key] for key in keys))


def _as_array(rows: Sequence[Any]) -> npt.NDArray[Any]:
    """Nested lists as an array that keeps numbers numbers; ragged rows are named."""
    lengths = [len(row) if hasattr(row, "__len__") and not isinstance(row, str) else None for row in rows]
    for row, length in enumerate(lengths):
        if length is None and lengths[0] is not None:
            raise VoteError(f"row {row} (counting from 0) is {rows[row]!r}, not a row of {lengths[0]} votes")
        if length != lengths[0]:
            raise VoteError(
                f"row {row} (counting from 0) holds {length} votes, but row 0 holds {lengths[0]};"
                " every labeler needs a vote or an abstention in every row"
            )
    if lengths[0] is None:
        return np.array(rows)
    cells = [value for row in rows for value in row]
    if all(isinstance(value, (int, float, np.number, np.bool_)) for value in cells):
        return np.array(rows)
    # Left to itself NumPy would turn [1, 'a'] into text and [1, [0]] into an error of its own.
    table = np.empty((len(rows), lengths[0]), object)
    for row, values in enumerate(rows):
        for place, value in enumerate(values):
            table[row, place] = value
    return table


def _refuse_keys(keys: Mapping[str, str | None], what: str) -> None:
    for key, value in keys.items():
        if value is not None:
            raise VoteError(f"{key}={value!r} names a column, but {what} has no named columns; pass a data frame")
