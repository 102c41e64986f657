"""Votes in memory to a `Batch` of class codes, and results back to frames.

Arrays, nested lists, dicts, wide frames (a column for each labeler) and long frames (one vote per line) all become the
same `Batch`. Reading checks everything and changes nothing, so a batch that is refused leaves a model as it was.
Frames of pandas, Polars and Arrow are read through narwhals, which is imported only when a frame comes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from driftvote.arrays import Codes, Ints
from driftvote.errors import LabelerError, OrderError, SettingError, VoteError
from driftvote.settings import COLUMN_HINTS, unknown_keyword
from driftvote.times import LastTime, TextTimes, Times, read_one, read_times
from driftvote.votes import BAD, EncodedColumn, Roster, VoteFormat, is_missing, unique_names

if TYPE_CHECKING:
    import narwhals as nw

Id = str | int
"""Text, or a whole number. Any other id (a UUID, a date) is kept as its text."""

BACKENDS = ("pandas", "polars", "pyarrow")


@dataclass(frozen=True)
class Origin:
    """The shape of the input, so that results can have it too."""

    layout: str = "array"  # array, records, wide or long
    backend: Any = None  # narwhals' name of the frame library
    index: Any = None  # the pandas index of a wide frame
    tasks: Any = None  # task ids of a long frame, in the order of the rows
    task_column: str = "task"


ARRAY, RECORDS = Origin(), Origin("records")


@dataclass(slots=True)  # not frozen: one is made for every `update`, and a frozen one takes four times as long
class Batch:
    """Encoded rows in time order. `names` is None when columns are known only by their places."""

    names: tuple[str, ...] | None
    codes: Codes
    literal: bool  # some abstention was written out, not left empty
    times: Times | None = None
    origin: Origin = ARRAY
    first_rows: tuple[int, ...] = ()  # the row in which each name first appears; empty: all are there from the start
    members: tuple[str, ...] | None = None  # the labelers behind the names, where those are groups
    ids: Sequence[Id | None] | None = None
    verified: Ints | None = None  # class codes, -1 where the row is not verified


def is_iterator_of_chunks(data: object) -> bool:
    """Whether data is a source of chunks; a list or an array is one chunk."""
    return isinstance(data, Iterator) or type(data).__name__ == "RecordBatchReader"


def is_empty_chunk(chunk: Any) -> bool:
    """Whether a chunk has no rows, which is harmless in the middle of a stream."""
    return not isinstance(chunk, Mapping) and hasattr(chunk, "__len__") and len(chunk) == 0


def refuse_values_for_chunks(ids: Any = None, verified: Any = None, **_: Any) -> None:
    """Refuse one value per row for an iterator of chunks: every chunk would get the same values."""
    for key, value in (("ids", ids), ("verified", verified)):
        if value is not None and not isinstance(value, str):
            raise VoteError(f"{key}= of an iterator of chunks must name a column; or loop over the chunks yourself")


# -- one row -----------------------------------------------------------------------------------


def read_row(
    row: Any,
    form: VoteFormat,
    roster: Roster,
    *,
    id: Any = None,
    verified: Any = None,
    time: Any = None,
    time_format: str | None = None,
) -> Batch:
    """A batch of one row: a sequence of votes, a dict {labeler: vote}, or a row of a frame."""
    values: Any = None
    if type(row) is np.ndarray and row.ndim == 1:
        values = row.tolist()
    elif type(row) is dict:
        values = row.values()
    elif type(row) is list or type(row) is tuple:
        values = row
    codes = None if values is None else _encode_values(values, form)
    literal = codes is not None and not form.declared and -1 in values  # matters only for a format that is assumed
    if codes is None:
        batch = _read_other_row(row, form, roster)
    elif type(row) is dict:
        names = tuple(row)
        if names != roster.names:
            names = unique_names(names)
            if roster.closed:
                roster.joined_by(names)  # refuses an unknown name
        batch = Batch(names, np.array([codes], form.dtype), literal, None, RECORDS)
    else:
        if len(codes) != len(roster.names):
            roster.for_width(len(codes))  # refuses a width that does not fit
        batch = Batch(None, np.array([codes], form.dtype), literal)
    if time is not None:
        kind, value, written = read_one(time, time_format)
        batch.times = Times(kind, [value], form=written)
    if id is not None or verified is not None:
        batch.ids = [plain_id(id)]
        batch.verified = _encode_verified([verified], form)
    return batch


def _encode_values(values: Iterable[Any], form: VoteFormat) -> list[int] | None:
    """Codes of values, or None if there are none or if some value has no meaning."""
    try:
        if form.name == "signed":  # True and 1 are one key of a dict, but True has no meaning among signed votes
            codes = [form.code_of(value) for value in values]
        else:
            code_of = form.codes.get
            codes = [code_of(value, BAD) for value in values]
    except TypeError:  # unhashable
        return None
    return codes if codes and BAD not in codes else None


def _read_other_row(row: Any, form: VoteFormat, roster: Roster) -> Batch:
    if isinstance(row, (list, tuple)) and row and all(isinstance(value, (list, tuple, np.ndarray)) for value in row):
        raise VoteError(
            f"one row of votes is needed, such as [1, 0, -1], not a list of {len(row)} rows; use label_stream for them"
        )
    if len(getattr(row, "shape", ())) == 2 and hasattr(row, "columns"):
        raise VoteError("one row of votes is needed, such as [1, 0, -1], not a frame; use label_stream for it")
    if isinstance(row, Mapping) and row and all(isinstance(value, (list, np.ndarray)) for value in row.values()):
        raise VoteError("one row of votes is needed, such as {'a': 1, 'b': 0}, not columns; use label_stream for them")
    if hasattr(row, "to_dict") and hasattr(row, "index"):
        row = row.to_dict()
        if list(row) == list(range(len(row))):  # numbered, not named
            row = [None if is_missing(value) else value for value in row.values()]
    if isinstance(row, Mapping):
        return _read_records([row], form, roster)
    votes = row if isinstance(row, np.ndarray) else _as_array([row])[0]
    if np.ndim(votes) != 1 or not len(votes):
        raise VoteError(
            f"one row of votes is needed, such as [1, 0, -1], not an array of shape {np.shape(votes)};"
            " use label_stream for several rows"
        )
    return _read_array(votes[None, :], form, roster)


# -- many rows ---------------------------------------------------------------------------------


def read_batch(
    data: Any,
    form: VoteFormat,
    roster: Roster,
    *,
    time: str | None = None,
    time_format: str | None = None,
    task: str | None = None,
    labeler: str | None = None,
    label: str | None = None,
    ids: Any = None,
    verified: Any = None,
    **unknown: Any,
) -> Batch:
    """A batch from an array, a list of rows or dicts, or a frame.

    A declared roster selects the columns of a wide frame. `time` names a column of a frame, whose text `time_format`
    describes; `task`, `labeler` and `label` name those of a long frame. `ids` and `verified` name a column of a frame
    or a key of dicts, or hold one value per row. The tasks of a long frame are its ids.
    """
    for name in unknown:
        known = ("time", "time_format", "task", "labeler", "label", "ids", "verified")
        raise unknown_keyword("this call", name, known, COLUMN_HINTS)
    if is_iterator_of_chunks(data):
        raise VoteError("one batch of rows is needed here, not an iterator; loop over its chunks")
    if isinstance(data, Mapping):
        data = _read_columns(data) if _holds_columns(data) else [data]
    keys = {"time": time, "task": task, "labeler": labeler, "label": label}
    columns = {key: value for key, value in (("ids", ids), ("verified", verified)) if isinstance(value, str)}
    if isinstance(data, (list, tuple)):
        _refuse_keys(keys, "a list of rows")
        if not data:
            raise VoteError("there are no votes to read: the list of rows is empty")
        if all(isinstance(row, Mapping) for row in data):
            batch = _read_records(data, form, roster, set(columns.values()))
            values = {name: [row.get(name) for row in data] for name in columns.values()}
            return _with_row_info(batch, form, ids, verified, values)
        data = _as_array(data)
    if isinstance(data, np.ndarray):
        _refuse_keys(keys, "an array")
        for key, name in columns.items():
            raise VoteError(
                f"{key}={name!r} names a column, but the rows have no named columns; pass one value per row, or a frame"
            )
        return _with_row_info(_read_array(data, form, roster), form, ids, verified, {})
    frame = _open_frame(data)
    keys = {key: None if name is None else str(name) for key, name in keys.items()}
    _require(frame, keys | columns)
    if not len(frame):
        raise VoteError("there are no votes to read: the frame has no rows")
    if any(keys[key] is not None for key in ("task", "labeler", "label")):
        return _read_long(frame, form, keys, time_format, ids, verified)
    times = None if keys["time"] is None else _read_frame_times(frame, keys["time"], time_format)
    batch = _read_wide(frame, form, roster, keys["time"], set(columns.values()))
    batch.times = times
    return _with_row_info(batch, form, ids, verified, {name: frame[name].to_list() for name in columns.values()})


def _holds_columns(data: Mapping[Any, Any]) -> bool:
    """Whether a dict holds a column for each labeler, not a vote."""
    return bool(data) and all(isinstance(v, (list, np.ndarray)) or hasattr(v, "to_list") for v in data.values())


def _read_columns(data: Mapping[Any, Any]) -> Any:
    """A dict of columns as a frame."""
    import pyarrow as pa

    columns = {name: to_list(values) for name, values in zip(unique_names(data), data.values(), strict=True)}
    lengths = {name: len(values) for name, values in columns.items()}
    for name, length in lengths.items():
        if length != next(iter(lengths.values())):
            raise VoteError(
                f"column {name!r} holds {length} votes, but {next(iter(lengths))!r} holds"
                f" {next(iter(lengths.values()))}; every labeler needs a vote or an abstention in every row"
            )
        if len({isinstance(one, np.datetime64) for one in columns[name] if isinstance(one, np.generic)}) > 1:
            raise VoteError(  # pyarrow crashes on them
                f"a dict of lists holds votes of one type in each list (column {name!r} holds dates and numbers); pass"
                " a list of rows"
            )
    try:
        return pa.table({name: pa.array(values, from_pandas=True) for name, values in columns.items()})
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as problem:
        raise VoteError(
            f"a dict of lists holds votes of one type in each list ({problem}); pass a list of rows"
        ) from None


def _refuse_keys(keys: Mapping[str, str | None], what: str) -> None:
    for key, value in keys.items():
        if value is not None:
            raise VoteError(f"{key}={value!r} names a column, but {what} has no named columns; pass a data frame")


def _read_array(values: npt.NDArray[Any], form: VoteFormat, roster: Roster) -> Batch:
    """Rows x labelers."""
    if values.ndim != 2:
        raise VoteError(
            f"votes must be a table of rows x labelers, not an array of shape {values.shape};"
            " use update for a single row"
        )
    if not values.size:
        raise VoteError(f"there are no votes to read: the table has shape {values.shape}")
    names = roster.for_width(values.shape[1]).names
    # Kernels run along rows, so rows must lie one after the other whatever the memory order of the input is.
    codes = np.ascontiguousarray(form.encode(np.asarray(values)))
    if values.dtype != object and not isinstance(values, np.ma.MaskedArray):
        lowest = codes.min()  # BAD < -1, so one pass finds both abstentions and values without a meaning
        if lowest > BAD:
            return Batch(None, codes, literal=bool(lowest == -1))
    empty = _find_empty(values)
    codes[empty] = -1
    if (codes == BAD).any():
        row, column = np.argwhere(codes == BAD)[0]
        value = values[row, column]
        raise form.refuse(int(row), names[column], value.item() if isinstance(value, np.generic) else value)
    return Batch(None, codes, literal=bool(((codes == -1) & ~empty).any()))


def _find_empty(values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Where cells are empty: None in a table of objects, and what a masked array masks."""
    empty = np.ma.getmaskarray(values)
    if values.dtype == object:
        empty = empty | np.array([value is None for value in values.ravel()]).reshape(values.shape)
    return np.asarray(empty, bool)


def _as_array(rows: Sequence[Any]) -> npt.NDArray[Any]:
    """Nested lists as an array in which numbers stay numbers; ragged rows are refused."""
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
    if all(isinstance(value, (int, float, np.number, np.bool_)) for row in rows for value in row):
        return np.array(rows)
    # NumPy alone would turn [1, 'a'] into text and refuse [1, [0]] with an error of its own.
    table = np.empty((len(rows), lengths[0]), object)
    for row, values in enumerate(rows):
        for place, value in enumerate(values):
            table[row, place] = value
    return table


def _read_records(
    records: Sequence[Mapping[Any, Any]], form: VoteFormat, roster: Roster, skip: set[str] | None = None
) -> Batch:
    """One dict {labeler: vote} a row; a labeler that is not named abstains, and so do None and NaN."""
    keys = tuple(dict.fromkeys(key for record in records for key in record if not skip or key not in skip))
    names = unique_names(keys)
    if roster.closed:
        roster.joined_by(names)  # refuses an unknown name, which explains more than the value it came with
    if not names and not roster.names:
        raise VoteError("row 0 (counting from 0) names no labeler; a row is a dict such as {'a': 1, 'b': 0, 'c': 1}")
    place = {key: i for i, key in enumerate(keys)}
    codes = np.full((len(records), len(names)), -1, form.dtype)
    literal = False
    first_rows: dict[Any, int] = {}
    for row, record in enumerate(records):
        for key, value in record.items():
            if key not in place:
                continue
            first_rows.setdefault(key, row)
            if is_missing(value):
                continue
            code = form.code_of(value)
            if code == BAD:
                raise form.refuse(row, str(key), value)
            codes[row, place[key]] = code
            literal |= code == -1
    return Batch(names, codes, literal, None, RECORDS, tuple(first_rows[key] for key in keys))


# -- ids and verified labels -------------------------------------------------------------------


def _with_row_info(batch: Batch, form: VoteFormat, ids: Any, verified: Any, columns: Mapping[str, list[Any]]) -> Batch:
    """The batch with its ids and verified labels: columns by name, or one value per row."""

    def one_a_row(key: str, given: Any) -> list[Any]:
        values = columns[given] if isinstance(given, str) else to_list(given)
        if len(values) != len(batch.codes):
            raise VoteError(
                f"{key}= holds {len(values)} values for {len(batch.codes)} rows; pass one per row, missing where"
                " none is known"
            )
        return values

    if ids is not None:
        batch.ids = [plain_id(value) for value in one_a_row("ids", ids)]
    if verified is not None:
        batch.verified = _encode_verified(one_a_row("verified", verified), form)
    return batch


def to_list(values: Any) -> list[Any]:
    """The values of an array, a column of any library or a list, as plain Python values."""
    for name in ("to_pylist", "tolist", "to_list"):
        if hasattr(values, name):
            values = getattr(values, name)()
            break
    if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
        raise VoteError(f"one value per row is needed, such as a list or an array, not {values!r}")
    return list(values)


def plain_id(value: Any) -> Id | None:
    """The id as it is kept.

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


def _encode_verified(values: list[Any], form: VoteFormat) -> Ints:
    """Class codes of verified labels, -1 where the row is not verified: missing, or the abstention."""
    column = form.encode_column(values)
    if column.has_bad:
        row = column.first_bad()
        raise VoteError(
            f"row {row} of this batch (counting from 0): the verified label {values[row]!r} is not one of the classes"
            f" {form.show_classes()}; leave it missing where the row is not verified"
        )
    return column.codes.astype(np.int64)


# -- frames ------------------------------------------------------------------------------------


def _open_frame(data: Any) -> nw.DataFrame[Any]:
    """The frame behind narwhals' interface, or an error that says what can be read."""
    import narwhals as nw

    if type(data).__name__ == "RecordBatch":
        import pyarrow as pa

        data = pa.Table.from_batches([data])
    lazy = " (collect() a lazy frame first)" if "Lazy" in type(data).__name__ else ""
    try:
        if not lazy:
            unique_names(getattr(data, "column_names", getattr(data, "columns", ())))
        if nw.dependencies.is_pandas_dataframe(data) and not all(isinstance(name, str) for name in data.columns):
            data = data.set_axis([str(name) for name in data.columns], axis=1)  # columns numbered 0, 1 ...
        return nw.from_native(data, eager_only=True)
    except TypeError:
        raise VoteError(
            f"cannot read votes from {type(data).__name__}{lazy}; pass an array, a list of rows or dicts,"
            " a pandas, Polars or Arrow frame, or an iterator of those"
        ) from None


def _require(frame: nw.DataFrame[Any], columns: Mapping[str, str | None]) -> None:
    for key, column in columns.items():
        if column is not None and column not in frame.columns:
            raise VoteError(f"{key}={column!r}: the frame has no such column; it has {', '.join(frame.columns)}")


def _to_arrow(series: nw.Series[Any]) -> Any:
    """The column as an Arrow array, or as a list if it holds Python objects that no Arrow array holds."""
    import narwhals as nw
    import pyarrow as pa

    if series.dtype == nw.Object:  # pyarrow can crash on some of them
        return series.to_list()
    try:
        column = series.to_arrow()
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        return column if not column.type.num_fields else series.to_list()  # lists and structs are no votes
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return series.to_list()


def _encode_series(series: nw.Series[Any], form: VoteFormat) -> EncodedColumn:
    import pyarrow as pa

    if series.dtype.is_float():
        values = np.ascontiguousarray(series.to_numpy())  # pandas may hold all columns as one table of rows
        if values.dtype.kind == "f":  # not so for nullable columns of pandas
            return form.encode_column(values)
    try:
        return form.encode_column(_to_arrow(series))
    except pa.ArrowException:  # a type that Arrow cannot tell the distinct values of
        return form.encode_column(series.to_list())


def _read_frame_times(frame: nw.DataFrame[Any], name: str, time_format: str | None) -> Times:
    import narwhals as nw

    def refuse(row: int | None, rest: str) -> OrderError:
        where = "" if row is None else f"row {row} of this batch (counting from 0), "
        return OrderError(f"{where}column {name!r}{rest}")

    series = frame[name]
    if isinstance(series.dtype, (nw.Categorical, nw.Enum)):  # their order need not be that of their text
        raise refuse(None, f" ({series.dtype}) cannot be read as time; use numbers, dates or times, or text that sorts")
    return read_times(_to_arrow(series), refuse, TextTimes(time_format))


def _read_wide(frame: nw.DataFrame[Any], form: VoteFormat, roster: Roster, time: str | None, skip: set[str]) -> Batch:
    """A column for each labeler; `skip` names further columns that are no votes."""
    import narwhals as nw

    declared = roster.names if roster.closed else ()
    for name in declared:
        if name not in frame.columns:
            raise LabelerError(
                f"the frame has no column for labeler {name!r}, which labelers= declares; it has"
                f" {', '.join(frame.columns)} (a labeler that is silent needs an empty column)"
            )
    names = declared or tuple(name for name in frame.columns if name != time and name not in skip)
    if {"task", "worker", "label"} <= set(names):
        raise VoteError(
            "columns task, worker and label look like a long frame, one vote per line; pass task='task',"
            " labeler='worker', label='label', time=..., or name the labelers with labelers=[...]"
        )
    if not names:
        raise VoteError("there are no votes to read: the frame has no columns of votes")
    codes = np.empty((len(frame), len(names)), form.dtype)
    literal = False
    for place, name in enumerate(names):
        column = _encode_series(frame[name], form)
        codes[:, place] = column.codes
        literal |= column.literal
    if (codes == BAD).any():
        row, place = (int(x) for x in np.argwhere(codes == BAD)[0])
        raise form.refuse(row, names[place], frame[names[place]].to_list()[row])
    origin = Origin("wide", frame.implementation, getattr(nw.to_native(frame), "index", None))
    numbered = not declared and names == tuple(str(place) for place in range(len(names)))
    return Batch(None if numbered else names, codes, literal, None, origin)


def _read_long(
    frame: nw.DataFrame[Any],
    form: VoteFormat,
    keys: Mapping[str, str | None],
    time_format: str | None,
    ids: Any,
    verified: Any,
) -> Batch:
    """One vote per line. A task becomes a row at the time of its last vote: only then is it complete."""
    for key in ("task", "labeler", "label"):
        if keys[key] is None:
            raise VoteError(f"a long frame needs task=, labeler= and label=; {key}= is missing")
    if ids is not None:
        raise VoteError("the tasks of a long frame are its ids; leave ids= out")
    task, labeler, label = (str(keys[key]) for key in ("task", "labeler", "label"))
    for name in (task, labeler):
        if frame[name].is_null().any():
            row = frame[name].is_null().to_list().index(True)
            raise VoteError(f"row {row} of this batch (counting from 0), column {name!r} is empty; every vote needs it")
    tasks, task_of = _factorize(frame[task].to_list())
    labelers, labeler_of = _factorize(frame[labeler].to_list())
    repeated = find_repeated_vote(task_of, labeler_of)
    if repeated is not None:
        row, earlier = repeated
        raise VoteError(
            f"row {row} of this batch (counting from 0): labeler {labelers[labeler_of[row]]!r} votes again on task"
            f" {tasks[task_of[row]]!r} (first in row {earlier}); keep one vote of each labeler on a task"
        )
    votes = _encode_series(frame[label], form)
    if votes.has_bad:
        row = votes.first_bad()
        raise form.refuse(row, label, frame[label].to_list()[row])
    codes = np.full((len(tasks), len(labelers)), -1, form.dtype)
    codes[task_of, labeler_of] = votes.codes
    times, order = None, np.arange(len(tasks))
    if keys["time"] is not None:
        lines = _read_frame_times(frame, keys["time"], time_format)
        by_time = np.argsort(lines.values, kind="stable")
        last_line = np.empty(len(tasks), np.int64)
        last_line[task_of[by_time]] = by_time  # of a task's lines, the latest is assigned last
        order = np.argsort(lines.values[last_line], kind="stable")  # ties keep the order of the frame
        times = lines[last_line[order]]
    tasks = [tasks[place] for place in order.tolist()]
    origin = Origin("long", frame.implementation, tasks=tasks, task_column=task)
    batch = Batch(unique_names(labelers), np.ascontiguousarray(codes[order]), votes.literal, times, origin)
    batch.ids = [plain_id(value) for value in tasks]
    if verified is not None:
        batch.verified = _verified_tasks(frame, form, verified, task_of, tasks, order)
    return batch


def _verified_tasks(
    frame: nw.DataFrame[Any], form: VoteFormat, verified: Any, task_of: Ints, tasks: list[Any], order: Ints
) -> Ints:
    """Verified classes of tasks. Any line of a task may hold it; lines that contradict each other are refused."""
    if not isinstance(verified, str):
        raise VoteError("verified= of a long frame must name a column: its tasks become rows in the order of time")
    lines = _encode_verified(frame[verified].to_list(), form)
    codes = np.full(len(tasks), -1, np.int64)
    for line in np.flatnonzero(lines >= 0).tolist():
        before, code = int(codes[task_of[line]]), int(lines[line])
        if before not in (-1, code):
            task = tasks[int(np.flatnonzero(order == task_of[line])[0])]
            raise VoteError(
                f"row {line} of this batch (counting from 0): task {task!r} is verified as {form.decode_one(code)!r},"
                f" but as {form.decode_one(before)!r} on an earlier line; keep one of them"
            )
        codes[task_of[line]] = code
    return codes[order]


def _factorize(values: list[Any]) -> tuple[list[Any], Ints]:
    """Distinct values in order of appearance, and the place of each value among them."""
    places: dict[Any, int] = {}
    try:
        codes = [places.setdefault(value, len(places)) for value in values]
    except TypeError:
        raise VoteError("tasks and labelers must be text or numbers, not lists or other containers") from None
    return list(places), np.array(codes, np.int64)


def find_repeated_vote(task_of: Ints, labeler_of: Ints) -> tuple[int, int] | None:
    """The line of a vote that a labeler has cast on the same task before, and the line of the earlier vote."""
    cells = task_of.astype(np.int64) * (int(labeler_of.max(initial=0)) + 1) + labeler_of
    _, first = np.unique(cells, return_index=True)
    if len(first) == len(cells):
        return None
    again = int(np.setdiff1d(np.arange(len(cells)), first)[0])
    return again, int(np.argmax(cells == cells[again]))


# -- a batch and the labelers of a model -------------------------------------------------------


def split_by_roster(roster: Roster, batch: Batch) -> list[tuple[slice, Roster]]:
    """The parts of a batch between rows where new labelers join, each with the roster that it needs.

    So it does not matter how a stream is cut into batches. A frame names its labelers for all its rows; each dict
    names its own.
    """
    n_rows = len(batch.codes)
    if batch.names is None:
        return [(slice(0, n_rows), roster.for_width(batch.codes.shape[1]))]
    if not batch.first_rows:
        return [(slice(0, n_rows), roster.joined_by(batch.names))]
    known = set(roster.names)
    joins = {first for name, first in zip(batch.names, batch.first_rows, strict=True) if name not in known}
    borders = sorted({0, *joins})
    parts = []
    for begin, end in zip(borders, [*borders[1:], n_rows], strict=True):
        named = [name for name, first in zip(batch.names, batch.first_rows, strict=True) if first <= begin]
        roster = roster.joined_by(named)
        parts.append((slice(begin, end), roster))
    return parts


def align_rows(batch: Batch, roster: Roster) -> Codes:
    """The rows with a column for each labeler of the roster, in its order.

    A labeler that the batch does not name abstains; a name that is not on the roster is left out.
    """
    if batch.names is None or batch.names == roster.names:
        return batch.codes
    codes = np.full((len(batch.codes), len(roster)), -1, batch.codes.dtype)
    places = roster.places(batch.names)
    codes[:, places[places >= 0]] = batch.codes[:, places >= 0]
    return codes


def align_for_prediction(batch: Batch, roster: Roster) -> Codes:
    """The rows for a prediction: unknown names are left out, or refused if the labelers were declared."""
    if batch.names is None:
        roster.for_width(batch.codes.shape[1])  # refuses a width that does not fit
        return batch.codes
    if roster.closed:
        roster.joined_by(batch.names)  # refuses unknown names
    return align_rows(batch, roster if roster.names else Roster(batch.names))


def refuse_newcomers(roster: Roster, after: Roster) -> None:
    """Refuse labelers that join a window of every row so far with random abstentions."""
    if len(after) > len(roster):
        raise LabelerError(
            f"{after.names[len(roster)]!r} cannot join: with window=None and abstentions='random' its random past would"
            " need rows that are no longer kept; declare all labelers with labelers=[...]"
        )


def check_times(batch: Batch, latest: LastTime) -> LastTime:
    """The latest time after the batch; a row whose time is before an earlier one is refused."""
    if batch.times is not None:
        return batch.times.check_order(latest)
    if batch.origin.layout == "long":
        raise OrderError(
            "a long frame needs time=, the column that says when each vote was cast; if its lines are in time order"
            " already, add a column that counts them"
        )
    return latest


# -- results as frames -------------------------------------------------------------------------


def make_frame(columns: dict[str, Any], backend: Any, index: Any = None) -> Any:
    """Columns as a frame of the given library, with the index that a pandas frame came with."""
    import narwhals as nw

    columns = {_readable(name): _one_type(values) for name, values in columns.items()}
    native = nw.from_dict(columns, backend=_check_backend(backend)).to_native()
    if nw.dependencies.is_pandas_dataframe(native):
        for name, values in columns.items():
            if isinstance(values, list) and None in values and all(type(v) in (int, type(None)) for v in values):
                native[name] = native[name].astype("Int64")  # pandas would make floats of them
        if index is not None:
            native.index = index
    return native


def make_series(name: str, values: Any, backend: Any, index: Any = None) -> Any:
    """Values as a column of the given library, with the index that a pandas frame came with."""
    return make_frame({name: values}, backend, index)[name]


def _check_backend(backend: Any) -> Any:
    """The library, if it holds frames in memory and is installed."""
    import narwhals as nw

    name = backend if isinstance(backend, str) else str(getattr(backend, "value", backend))
    if isinstance(backend, str) and name not in BACKENDS:
        raise SettingError(f"backend must be {', '.join(map(repr, BACKENDS))}, not {backend!r}")
    try:
        nw.from_dict({"a": [0]}, backend=backend)
    except ImportError:
        raise SettingError(f"backend {name!r} is not installed; choose another of {', '.join(BACKENDS)}") from None
    return backend


def _one_type(values: Any) -> Any:
    """Values as they are, or as text if no column holds them: several types, numbers beyond 64 bits."""
    if not isinstance(values, list):
        return values
    types = {type(value) for value in values if value is not None}
    if len(types) > 1 or (types == {int} and any(value is not None and abs(value) >= 2**63 for value in values)):
        return [None if value is None else _readable(str(value)) for value in values]
    return [None if value is None else _readable(value) for value in values] if types == {str} else values


def _readable(text: str) -> str:
    r"""Text with half characters (lone surrogates), which no file and no frame holds, written as \udc80."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
