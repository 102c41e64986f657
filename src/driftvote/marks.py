"""What is known of rows beside their votes: ids to find them by later, and classes that somebody has verified.

Like the doors this only reads and checks; it never touches a model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from driftvote.doors import Batch
from driftvote.errors import VoteError
from driftvote.kernels.layout import Ints
from driftvote.votes import BAD, VoteFormat, is_missing

Id = str | int
"""Text, or a whole number; anything else (a UUID, a date) goes by how it is written."""


@dataclass(frozen=True)
class Marks:
    """Of each row its id and its verified class code, -1 where nobody has said; None: of no row."""

    ids: Sequence[Id | None] | None = None
    verified: Ints | None = None

    def __getitem__(self, part: slice) -> Marks:
        ids = None if self.ids is None else self.ids[part]
        return Marks(ids, None if self.verified is None else self.verified[part])


def plain_id(value: Any) -> Id | None:
    """The id as it is remembered.

    >>> [plain_id(value) for value in ("a", np.int64(7), 7.0, None, 2.5)]
    ['a', 7, 7, None, '2.5']
    """
    if is_missing(value):
        return None
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return int(value)
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return int(value)
    return str(value)


def verified_codes(values: Sequence[Any], form: VoteFormat) -> Ints:
    """Class codes of verified labels, -1 where there is none: missing, or the abstention."""
    found = [-1 if is_missing(value) else form.code_of(value) for value in values]
    if BAD in found:
        row = found.index(BAD)
        raise VoteError(
            f"row {row} of this batch (counting from 0): the verified label {values[row]!r} is not one of the classes"
            f" {form.show_classes()}; leave it missing where nobody has verified the row"
        )
    return np.array(found, np.int64)


def marks_of_row(row_id: Any, verified: Any, form: VoteFormat) -> Marks | None:
    """The marks of a single row."""
    if is_missing(row_id) and is_missing(verified):
        return None
    return Marks([plain_id(row_id)], verified_codes([verified], form))


def refuse_values_for_chunks(ids: Any = None, verified: Any = None, **_: Any) -> None:
    """One value a row makes no sense of chunks that are still to come: each would be given the same ones."""
    for key, value in (("ids", ids), ("verified", verified)):
        if value is not None and not isinstance(value, str):
            raise VoteError(f"{key}= of an iterator of chunks must name a column; or loop over the chunks yourself")


def read_marked(
    data: Any, form: VoteFormat, read: Callable[..., Batch], ids: Any, verified: Any, **keys: str | None
) -> tuple[Batch, Marks | None]:
    """A batch as `read` reads it, and its marks.

    `ids` and `verified` are columns of a frame (keys of dicts), or hold one value a row. Tasks of a long frame are its
    ids.
    """
    named = {key: value for key, value in (("ids", ids), ("verified", verified)) if isinstance(value, str)}
    votes, columns = _without(data, named, keys) if named else (data, {})
    batch = read(votes, **keys)
    if batch.origin.door == "long":
        return batch, _marks_of_tasks(batch, data, form, ids, verified, str(keys["task"]), columns)
    if ids is None and verified is None:
        return batch, None
    found = {
        key: _one_a_row(key, columns.get(key, value), len(batch.codes))
        for key, value in (("ids", ids), ("verified", verified))
        if value is not None
    }
    return batch, Marks(
        [plain_id(value) for value in found["ids"]] if "ids" in found else None,
        verified_codes(found["verified"], form) if "verified" in found else None,
    )


def _one_a_row(key: str, values: Any, n_rows: int) -> list[Any]:
    values = listed(values)
    if len(values) != n_rows:
        raise VoteError(
            f"{key}= holds {len(values)} values for {n_rows} rows; give one a row, missing where none is known"
        )
    return values


def listed(values: Any) -> list[Any]:
    """The values of an array, a column of any library or a list, as plain Python values."""
    for name in ("to_pylist", "tolist", "to_list"):
        if hasattr(values, name):
            values = getattr(values, name)()
            break
    if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
        raise VoteError(f"one value a row is needed, such as a list or an array, not {values!r}")
    return list(values)


def _without(data: Any, named: Mapping[str, str], keys: Mapping[str, Any]) -> tuple[Any, dict[str, list[Any]]]:
    """The data without the columns that are no votes, and these columns."""
    if isinstance(data, Mapping):
        data = [data]
    if isinstance(data, (list, tuple)) and data and all(isinstance(row, Mapping) for row in data):
        taken = set(named.values())
        columns = {key: [row.get(name) for row in data] for key, name in named.items()}
        return [{name: vote for name, vote in row.items() if name not in taken} for row in data], columns
    key, column = next(iter(named.items()))
    if isinstance(data, (np.ndarray, list, tuple)):
        raise VoteError(
            f"{key}={column!r} names a column, but these rows have no named columns; pass one value a row, or a frame"
        )
    from driftvote.frames import open_frame

    frame = open_frame(data)
    for key, column in named.items():
        if column not in frame.columns:
            raise VoteError(f"{key}={column!r}: the frame has no such column; it has {', '.join(frame.columns)}")
    columns = {key: frame[column].to_list() for key, column in named.items()}
    return frame.drop([name for name in set(named.values()) if name not in keys.values()]).to_native(), columns


def _marks_of_tasks(
    batch: Batch, data: Any, form: VoteFormat, ids: Any, verified: Any, task: str, columns: Mapping[str, list[Any]]
) -> Marks:
    """A task's verified label stands on any of its lines; lines that contradict each other are refused."""
    tasks = batch.origin.tasks
    known = [plain_id(value) for value in tasks]
    if ids is not None:
        raise VoteError("the tasks of a long frame are its ids; leave ids= out")
    if verified is None:
        return Marks(known)
    if "verified" not in columns:
        raise VoteError("verified= of a long frame must name a column: its tasks become rows in the order of time")
    from driftvote.frames import open_frame

    codes = verified_codes(columns["verified"], form)
    said: dict[Any, int] = {}
    for line, (of, code) in enumerate(zip(open_frame(data)[task].to_list(), codes.tolist(), strict=True)):
        if code >= 0 and said.setdefault(of, code) != code:
            raise VoteError(
                f"row {line} of this batch (counting from 0): task {of!r} is verified as {form.decode_one(code)!r},"
                f" but as {form.decode_one(said[of])!r} on an earlier line; keep one of them"
            )
    return Marks(known, np.array([said.get(of, -1) for of in tasks], np.int64))
