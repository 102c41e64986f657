"""The frame doors: pandas, Polars and Arrow alike, through narwhals; none of them is required."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from driftvote.doors import Batch, Origin, Times
from driftvote.errors import LabelerError, VoteError
from driftvote.kernels.layout import code_dtype
from driftvote.times import read_times
from driftvote.votes import BAD, EncodedColumn, VoteFormat, unique_names

Frame = nw.DataFrame[Any]


def read_frame(
    data: Any,
    form: VoteFormat,
    columns: Sequence[str] = (),
    time: str | None = None,
    task: str | None = None,
    labeler: str | None = None,
    label: str | None = None,
) -> Batch:
    """A frame of any library: long when `task` is named, otherwise wide."""
    frame = open_frame(data)
    time, task, labeler, label = (None if key is None else str(key) for key in (time, task, labeler, label))
    named = {"task": task, "labeler": labeler, "label": label}
    if any(value is not None for value in named.values()):
        missing = [key for key, value in named.items() if value is None]
        if missing:
            raise VoteError(f"a long frame needs task=, labeler= and label=; {missing[0]}= is missing")
        return _read_long(frame, form, str(task), str(labeler), str(label), time)
    return _read_wide(frame, form, columns, time)


def open_frame(data: Any) -> Frame:
    """The frame behind narwhals' interface, or an error that says what can be read."""
    if type(data).__name__ == "RecordBatch":
        import pyarrow as pa

        data = pa.Table.from_batches([data])
    lazy = " (collect() a lazy frame first)" if "Lazy" in type(data).__name__ else ""
    try:
        if not lazy:
            _refuse_repeated_columns(data)
        return nw.from_native(_with_text_columns(data), eager_only=True)
    except TypeError:
        raise VoteError(
            f"cannot read votes from {type(data).__name__}{lazy}; pass an array, a list of rows or dicts,"
            " a pandas, Polars or Arrow frame, or an iterator of those"
        ) from None


def _refuse_repeated_columns(data: Any) -> None:
    """Narwhals would refuse them too, but not in our words."""
    unique_names(getattr(data, "column_names", getattr(data, "columns", ())))


def _with_text_columns(data: Any) -> Any:
    """A pandas frame whose columns are numbered 0, 1 ... gets them as text, as labelers have it."""
    if nw.dependencies.is_pandas_dataframe(data) and not all(isinstance(name, str) for name in data.columns):
        return data.set_axis([str(name) for name in data.columns], axis=1)
    return data


def _read_wide(frame: Frame, form: VoteFormat, columns: Sequence[str], time: str | None) -> Batch:
    _require(frame, {"time": time})
    if not len(frame):
        raise VoteError("there are no votes to read: the frame has no rows")
    for name in columns:
        if name not in frame.columns:
            raise LabelerError(
                f"the frame has no column for labeler {name!r}, which labelers= declares; it has"
                f" {', '.join(frame.columns)} (a labeler that is silent needs an empty column)"
            )
    names = list(columns) or [column for column in frame.columns if column != time]
    if {"task", "worker", "label"} <= set(names):
        raise VoteError(
            "columns task, worker and label look like a long frame, one vote a line; pass task='task',"
            " labeler='worker', label='label', time=..., or name the labelers with labelers=[...]"
        )
    codes = np.empty((len(frame), len(names)), code_dtype(form.n_classes))
    literal = False
    for place, name in enumerate(names):
        column = _encode_column(frame[name], form)
        codes[:, place] = column.codes
        literal |= column.literal
    if (codes == BAD).any():
        row, place = (int(x) for x in np.argwhere(codes == BAD)[0])
        raise form.refuse(row, names[place], frame[names[place]].to_list()[row])
    times = None if time is None else read_times(frame, time)
    origin = Origin("wide", frame.implementation, getattr(nw.to_native(frame), "index", None))
    numbered = not columns and names == [str(place) for place in range(len(names))]
    return Batch(None if numbered else tuple(names), codes, literal, times, origin)


def _read_long(frame: Frame, form: VoteFormat, task: str, labeler: str, label: str, time: str | None) -> Batch:
    """One vote a line. A task becomes a row at the time of its last vote: only then is it complete."""
    _require(frame, {"task": task, "labeler": labeler, "label": label, "time": time})
    if not len(frame):
        raise VoteError("there are no votes to read: the frame has no rows")
    for column in (task, labeler):
        if frame[column].is_null().any():
            row = frame[column].is_null().to_list().index(True)
            raise VoteError(
                f"row {row} of this batch (counting from 0), column {column!r} is empty; every vote needs it"
            )
    task_ids, task_of = _factorize(frame[task].to_list())
    workers, worker_of = _factorize(frame[labeler].to_list())
    _refuse_repeated_votes(task_of * len(workers) + worker_of, frame, task, labeler)
    votes = _encode_column(frame[label], form)
    if votes.has_bad:
        row = votes.first_bad()
        raise form.refuse(row, label, frame[label].to_list()[row])
    codes = np.full((len(task_ids), len(workers)), -1, code_dtype(form.n_classes))
    codes[task_of, worker_of] = votes.codes
    times = None
    if time is not None:
        lines = read_times(frame, time)
        ends: list[Any] = [None] * len(task_ids)
        for place, value in zip(task_of.tolist(), lines.values, strict=True):
            if ends[place] is None or value > ends[place]:
                ends[place] = value
        order = sorted(range(len(task_ids)), key=ends.__getitem__)  # stable: ties keep the file's order
        codes = codes[order]
        task_ids = [task_ids[place] for place in order]
        times = Times(lines.kind, [ends[place] for place in order])
    origin = Origin("long", frame.implementation, tasks=task_ids, task_column=task)
    return Batch(unique_names(workers), np.ascontiguousarray(codes), votes.literal, times, origin)


def _require(frame: Frame, columns: dict[str, str | None]) -> None:
    for key, column in columns.items():
        if column is not None and column not in frame.columns:
            raise VoteError(f"{key}={column!r}: the frame has no such column; it has {', '.join(frame.columns)}")


def _encode_column(series: nw.Series[Any], form: VoteFormat) -> EncodedColumn:
    """Codes of a column; an empty cell abstains, and so does NaN."""
    try:
        column = series.to_arrow()
        if column.type.num_fields:  # lists and structs are no votes
            raise ValueError
        return form.encode_column(column)
    except (pa.ArrowException, ValueError, TypeError):  # a column of Python objects of several types
        return form.encode_column(series.to_list())


def _factorize(values: list[Any]) -> tuple[list[Any], npt.NDArray[np.int64]]:
    """Distinct values in order of appearance, and the place of each value among them."""
    places: dict[Any, int] = {}
    try:
        codes = [places.setdefault(value, len(places)) for value in values]
    except TypeError:
        raise VoteError("tasks and labelers must be text or numbers, not lists or other containers") from None
    return list(places), np.array(codes, np.int64)


def _refuse_repeated_votes(cells: npt.NDArray[np.int64], frame: Frame, task: str, labeler: str) -> None:
    _, first = np.unique(cells, return_index=True)
    if len(first) == len(cells):
        return
    row = int(np.setdiff1d(np.arange(len(cells)), first)[0])
    earlier = int(np.argmax(cells == cells[row]))
    raise VoteError(
        f"row {row} of this batch (counting from 0): labeler {frame[labeler].to_list()[row]!r} votes again on task"
        f" {frame[task].to_list()[row]!r} (first in row {earlier}); keep one vote of each labeler on a task"
    )
