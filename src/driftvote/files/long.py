"""Rows in time order: sorting, and long files with one vote per line.

Few rows are sorted in memory; more are sorted by DuckDB on disk, in bounded memory. The lines of a task of a long file
may stand anywhere in it, so all lines are sorted first, by the time at which their task is complete.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from driftvote.arrays import Ints
from driftvote.errors import MissingExtraError, OrderError, VoteError
from driftvote.files.rows import (
    KeptColumns,
    Roles,
    TimeColumn,
    VoteRows,
    encode_cells,
    make_record_batch,
    plain_column,
)
from driftvote.files.table import BATCH, Table
from driftvote.inputs import find_repeated_vote
from driftvote.times import Times
from driftvote.votes import VoteFormat

IN_MEMORY = 1 << 20
"""Rows up to which no disk is needed."""

MEMORY = "150MB"
"""What DuckDB may hold; the rest goes to the folder for temporary files."""


# -- sorting -----------------------------------------------------------------------------------


def sort_rows(batches: Iterator[VoteRows], by_stream: bool) -> Iterator[VoteRows]:
    """All rows by time, those of one time in the order of the file; with `by_stream`, one stream after the other."""
    first = next(batches)
    order = ["streams", "times", "rows"] if by_stream else ["times", "rows"]
    flat = (flatten(rows) for rows in chain([first], batches))
    for batch in sort_batches(flat, order, f"SELECT * FROM lines ORDER BY {_quote(order)}"):
        yield unflatten(batch, first)


def _quote(names: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def flatten(rows: VoteRows) -> Any:
    """Rows as a record batch of plain columns: one for each field, or several for a field of many columns."""
    columns: dict[str, Any] = {"literal": pa.array(np.full(len(rows), rows.literal))}
    for name, value in rows.by_row().items():
        if isinstance(value, Times):
            columns[name] = pa.array(value.values)
        elif isinstance(value, pa.RecordBatch):
            columns |= {f"{name}_{place}": _as_number(column) for place, column in enumerate(value.columns)}
        elif isinstance(value, np.ndarray) and value.ndim == 2:
            columns |= {f"{name}_{place}": pa.array(value[:, place].copy()) for place in range(value.shape[1])}
        else:
            columns[name] = pa.array(value) if isinstance(value, np.ndarray) else _as_number(value)
    return pa.RecordBatch.from_pydict(columns)


def unflatten(batch: Any, like: VoteRows) -> VoteRows:
    """The rows that `flatten` made a record batch of; `like` are any rows of the same file."""
    changes: dict[str, Any] = {"literal": pc.any(batch.column("literal")).as_py()}
    for name, value in like.by_row().items():
        if isinstance(value, Times):
            changes[name] = replace(value, values=batch.column(name).to_numpy(zero_copy_only=False))
        elif isinstance(value, pa.RecordBatch):
            kinds = enumerate(value.schema.types)
            arrays = [_from_number(batch.column(f"{name}_{place}"), kind) for place, kind in kinds]
            changes[name] = make_record_batch(arrays, value.schema.names, batch.num_rows)
        elif isinstance(value, np.ndarray) and value.ndim == 2:
            table = np.empty((batch.num_rows, value.shape[1]), value.dtype)
            for place in range(value.shape[1]):
                table[:, place] = batch.column(f"{name}_{place}").to_numpy()
            changes[name] = table
        elif isinstance(value, np.ndarray):
            changes[name] = batch.column(name).to_numpy()
        else:
            changes[name] = _from_number(batch.column(name), value.type)
    return replace(like, **changes)


def _as_number(array: Any) -> Any:
    """Dates and times as the integers they are: DuckDB must not convert zones and units."""
    kind = array.type
    if pa.types.is_temporal(kind):
        return array.view(pa.int64() if kind.bit_width == 64 else pa.int32())
    return array


def _from_number(array: Any, kind: Any) -> Any:
    """The column that `_as_number` converted."""
    if pa.types.is_temporal(kind):
        return array.view(kind)
    return array if array.type == kind else array.cast(kind)


def sort_batches(
    source: Iterator[Any], order: Sequence[str], query: str, prepare: Callable[[Any], Any] | None = None
) -> Iterator[Any]:
    """Record batches sorted by columns.

    A small table is sorted in memory, after `prepare` has added its columns; a large one by `query`, in which it is
    called lines.
    """
    batches, count = [], 0
    for batch in source:
        batches.append(batch)
        count += batch.num_rows
        if count > IN_MEMORY:
            yield from _sort_by_duckdb(chain(batches, source), batches[0].schema, query)
            return
    table = pa.Table.from_batches(batches)
    table = table if prepare is None else prepare(table)
    places = pc.sort_indices(table, [(name, "ascending") for name in order])
    yield from table.take(places).combine_chunks().to_batches(max_chunksize=BATCH)


def _sort_by_duckdb(batches: Iterator[Any], schema: Any, query: str) -> Iterator[Any]:
    try:
        import duckdb
    except ImportError:
        raise MissingExtraError(
            f"sorting more than {IN_MEMORY:,} rows needs DuckDB; install it with pip install 'driftvote[sort]'"
        ) from None
    errors: list[BaseException] = []

    def remember_errors() -> Iterator[Any]:
        try:
            yield from batches
        except BaseException as problem:  # DuckDB would wrap it in an error of its own
            errors.append(problem)
            raise

    with tempfile.TemporaryDirectory(prefix="driftvote-sort-") as folder:
        settings: Any = {
            "memory_limit": MEMORY,
            "temp_directory": folder,
            "threads": 2,
            "preserve_insertion_order": False,
        }
        with duckdb.connect(":memory:", config=settings) as connection:
            lines = pa.RecordBatchReader.from_batches(schema, remember_errors())
            connection.register("lines", lines)
            try:
                result: Any = connection.sql(query)
                read = getattr(result, "to_arrow_reader", None) or result.fetch_arrow_reader  # its older name
                yield from read(BATCH)
            except (duckdb.Error, pa.ArrowException) as problem:
                if errors:
                    raise errors[0] from None
                text = str(problem)
                is_full = "No space left" in text or "max_temp_directory_size" in text
                raise OSError(
                    28 if is_full else 5, "the rows cannot be sorted there", tempfile.gettempdir()
                ) from problem


# -- long files --------------------------------------------------------------------------------

QUERY = """
SELECT *, max("time") OVER w AS "done", min("line") OVER w AS "first" FROM lines
WINDOW w AS (PARTITION BY {keys}) ORDER BY "done", "first", "line"
"""


class LongReader:
    """Reads long files: a task becomes a row at the time of its last vote."""

    def __init__(self, table: Table, roles: Roles, form: VoteFormat, typed: bool = False) -> None:
        if roles.time is None and not roles.in_order:
            raise OrderError(
                f"{table.shown}: one vote per line needs --time, the column that says when each vote was cast; if the"
                " lines are in time order already, pass --in-order"
            )
        self.table = table
        self.roles = roles
        self.form = form
        self.labelers: dict[str, int] = {}  # complete once all lines are read
        self._time_column = None if roles.time is None else TimeColumn(table, roles.time, roles.time_format)
        self._task = KeptColumns(table, replace(roles, kept=(roles.task,)), typed)
        self._typed = typed or not table.textual
        self._times: Times | None = None  # of the first batch
        self._types: dict[str, Any] = {}
        self._literal = False
        truth = {"gold": roles.gold, "verified": roles.verified}
        self._truth = {role: name for role, name in truth.items() if name is not None}

    def __iter__(self) -> Iterator[VoteRows]:
        keys = ["stream", "task"] if self.roles.stream else ["task"]
        query = QUERY.format(keys=_quote(keys))
        waiting = None  # lines of a task whose end is not read yet
        for batch in sort_batches(self._lines(), ["done", "first", "line"], query, _with_ends(keys)):
            table = pa.Table.from_batches([batch] if waiting is None else [waiting, batch]).combine_chunks()
            batch = table.to_batches()[0]
            last = _starts(batch)[-1]
            if last:
                yield self._join(batch.slice(0, last))
            waiting = batch.slice(last)
        yield self._join(waiting)

    def _lines(self) -> Iterator[Any]:
        """Votes as plain columns: line, task, labeler, code, time; and shown_time, stream, gold and verified."""
        roles = self.roles
        votes = [name for name in (roles.labeler, roles.label, roles.gold, roles.verified) if name]
        others = [name for name in (roles.task, roles.time, roles.stream) if name]
        first = 0
        for batch in self.table.batches(list(dict.fromkeys([*votes, *others])), set(votes)):
            if batch.num_rows:
                yield self._flatten(batch, first)
            first += batch.num_rows
        if not first:
            raise self.table.error("there are no rows after the header; there is nothing to label")

    def _flatten(self, batch: Any, first: int) -> Any:
        roles = self.roles
        rows = np.arange(first, first + batch.num_rows)
        codes, literal = encode_cells(self.table, self.form, [batch.column(roles.label)], [roles.label], rows)
        self._literal |= literal
        times, time_column = Times("number", rows), pa.array(rows)
        if self._time_column is not None:
            times, time_column = self._time_column.read(batch.column(roles.time), first)
        self._times = self._times or times
        task = self._task.read(batch, time_column, first).column(roles.task)
        columns = {
            "line": pa.array(rows),
            "task": self._pack("task", self._filled(task, roles.task, first)),
            "labeler": self._number_labelers(batch.column(roles.labeler), first),
            "code": pa.array(codes[:, 0].copy()),
            "time": pa.array(times.values),
        }
        if roles.time:
            columns["shown_time"] = self._pack("shown_time", time_column if self._typed else batch.column(roles.time))
        if roles.stream:
            stream = self._filled(plain_column(batch.column(roles.stream)), roles.stream, first)
            columns["stream"] = self._pack("stream", stream)
        for role, name in self._truth.items():
            known, _ = encode_cells(self.table, self.form, [batch.column(name)], [name], rows)
            columns[role] = pa.array(known[:, 0].copy())
            columns[f"shown_{role}"] = self._pack(f"shown_{role}", plain_column(batch.column(name)))
        return pa.RecordBatch.from_pydict(columns)

    def _pack(self, name: str, array: Any) -> Any:
        self._types.setdefault(name, array.type)
        return _as_number(array)

    def _unpack(self, name: str, lines: Any, places: Any) -> Any:
        return _from_number(lines.column(name), self._types[name]).take(pa.array(places))

    def _filled(self, array: Any, name: str, first: int) -> Any:
        """The column, refused if a cell is empty."""
        empty = array.is_null().to_numpy(zero_copy_only=False)
        if pa.types.is_string(array.type):
            empty = empty | pc.fill_null(pc.equal(array, ""), False).to_numpy(zero_copy_only=False)
        if empty.any():
            place = self.table.place(first + int(np.argmax(empty)))
            raise VoteError(f"{self.table.shown}: {place}, column {name!r} is empty; every vote needs it")
        return array

    def _number_labelers(self, array: Any, first: int) -> Any:
        """Labelers by number, in the order in which they first appear in the file."""
        array = self._filled(plain_column(array), self.roles.labeler, first).dictionary_encode()
        names = [str(value).strip() if self.table.textual else str(value) for value in array.dictionary.to_pylist()]
        numbers = np.array([self.labelers.setdefault(name, len(self.labelers)) for name in names], np.int32)
        return pa.array(numbers[array.indices.to_numpy()])

    def _join(self, lines: Any) -> VoteRows:
        """Lines of whole tasks as rows."""
        starts = _starts(lines)
        row_of = np.repeat(np.arange(len(starts)), np.diff(starts, append=lines.num_rows))
        labeler_of = lines.column("labeler").to_numpy()
        cast = np.arange(lines.num_rows)  # the lines whose votes count
        repeated = find_repeated_vote(row_of, labeler_of)
        if repeated is not None:
            if self.roles.duplicates == "error":
                raise self._repeated_vote(lines, *repeated)
            cast = np.argsort(lines.column("time").to_numpy(zero_copy_only=False), kind="stable")
            cast = cast[::-1] if self.roles.duplicates == "first" else cast  # of equal cells, the last one stays
        codes = np.full((len(starts), len(self.labelers)), -1, self.form.dtype)
        codes[row_of[cast], labeler_of[cast]] = lines.column("code").to_numpy()[cast]
        done = lines.column("done").take(pa.array(starts)).to_numpy(zero_copy_only=False)
        assert self._times is not None
        roles = self.roles
        columns = {roles.task: self._unpack("task", lines, starts)}
        if roles.time:
            latest = np.flatnonzero(lines.column("time").to_numpy(zero_copy_only=False) == done[row_of])
            latest = latest[np.unique(row_of[latest], return_index=True)[1]]
            columns[roles.time] = self._unpack("shown_time", lines, latest)
        if roles.stream:
            columns[roles.stream] = self._unpack("stream", lines, starts)
        known = {}
        for role, name in self._truth.items():
            places = self._known_lines(lines, row_of, starts, role)
            known[role] = lines.column(role).to_numpy()[places]
            columns[name] = self._unpack(f"shown_{role}", lines, places)
        return VoteRows(
            rows=lines.column("line").to_numpy()[starts],
            labelers=tuple(self.labelers),
            codes=codes,
            literal=self._literal,
            kept=make_record_batch([columns[name] for name in roles.kept], roles.kept, len(starts)),
            times=replace(self._times, values=done) if roles.time else None,
            streams=columns[roles.stream] if roles.stream else None,
            **known,
        )

    def _known_lines(self, lines: Any, row_of: Ints, starts: Ints, role: str) -> Ints:
        """The line of each task that holds its true class, the first one if none does; any line of the task may.

        Lines that contradict each other are refused.
        """
        codes = lines.column(role).to_numpy()
        found = np.flatnonzero(codes >= 0)
        tasks, first = np.unique(row_of[found], return_index=True)
        places = starts.copy()
        places[tasks] = found[first]
        wrong = found[codes[found] != codes[places[row_of[found]]]]
        if len(wrong):
            here, before = int(wrong[0]), int(places[row_of[wrong[0]]])
            values = [self.form.decode_one(int(codes[line])) for line in (here, before)]
            where, earlier = (self.table.place(lines.column("line")[line].as_py()) for line in (here, before))
            raise VoteError(
                f"{self.table.shown}: {where}, column {self._truth[role]!r}: task"
                f" {self._unpack('task', lines, [here])[0].as_py()!r} is {values[0]!r} here, and {values[1]!r} in"
                f" {earlier}; keep one of them"
            )
        return places

    def _repeated_vote(self, lines: Any, again: int, before: int) -> VoteError:
        again_at, before_at = (self.table.place(lines.column("line")[line].as_py()) for line in (again, before))
        labeler = list(self.labelers)[lines.column("labeler")[again].as_py()]
        return VoteError(
            f"{self.table.shown}: {again_at}: labeler {labeler!r} votes again on task"
            f" {self._unpack('task', lines, [again])[0].as_py()!r} (first in {before_at}); keep one vote of each"
            " labeler on a task, or pass --duplicates first or last"
        )


def _starts(lines: Any) -> Ints:
    """The first line of each task, in lines that are sorted by task."""
    first = lines.column("first").to_numpy()
    return np.flatnonzero(np.r_[True, first[1:] != first[:-1]])


def _with_ends(keys: list[str]) -> Callable[[Any], Any]:
    """A function that adds to a table in memory the columns that `QUERY` adds."""

    def add_ends(table: Any) -> Any:
        groups = pa.TableGroupBy(table.append_column("place", pa.array(np.arange(table.num_rows))), keys)
        tasks = groups.aggregate([("time", "max"), ("line", "min"), ("place", "list")])
        lists = tasks["place_list"].combine_chunks()
        task_of = np.empty(table.num_rows, np.int64)
        task_of[lists.flatten().to_numpy()] = np.repeat(np.arange(len(lists)), pc.list_value_length(lists).to_numpy())
        done, first = (tasks[name].take(pa.array(task_of)) for name in ("time_max", "line_min"))
        return table.append_column("done", done).append_column("first", first)

    return add_ends
