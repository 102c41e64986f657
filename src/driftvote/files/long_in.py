"""Long files, one vote a line: a task becomes a row at the time of its last vote.

Lines of a task may stand anywhere in the file, so all lines are put in order first: by the time their task is complete.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from driftvote.errors import OrderError, VoteError
from driftvote.files.roles import Roles
from driftvote.files.rows import KeptColumns, TimeColumn, VoteRows, encode_cells, plain_array
from driftvote.files.sorting import as_number, from_number, in_order, kept_batch
from driftvote.files.table import Table
from driftvote.kernels.layout import code_dtype
from driftvote.times import Times
from driftvote.votes import VoteFormat

QUERY = """
SELECT *, max(t) OVER w AS done, min(r) OVER w AS first FROM lines
WINDOW w AS (PARTITION BY {keys}) ORDER BY done, first, r
"""


class LongReader:
    """Reads long files; `labelers` is complete once the first batch is out."""

    def __init__(
        self, table: Table, roles: Roles, form: VoteFormat, typed: bool = False, as_text: Sequence[str] = ()
    ) -> None:
        if roles.time is None:
            raise OrderError(
                f"{table.shown}: one vote a line needs --time, the column that says when each vote was cast; if"
                " the lines are"
                " in time order already, pass --in-order"
            )
        self.table = table
        self.roles = roles
        self.form = form
        self.in_order = roles.time == ""
        self._time_column = TimeColumn(table, roles.time)
        self.labelers: dict[str, int] = {}
        self._kept = KeptColumns(table, replace(roles, kept=(roles.task,)), typed, as_text)
        self._times: Times | None = None  # of the first batch
        self._types: dict[str, Any] = {}
        self._typed = typed or not table.textual
        self._literal = False

    def __iter__(self) -> Iterator[VoteRows]:
        keys = ["s", "k"] if self.roles.stream else ["k"]
        lines = in_order(self._lines(), ["done", "first", "r"], QUERY.format(keys=", ".join(keys)), _with_ends(keys))
        waiting = None  # lines of a task whose end is not in sight
        for batch in lines:
            table = pa.Table.from_batches([batch] if waiting is None else [waiting, batch]).combine_chunks()
            batch = table.to_batches()[0]
            first = batch.column("first").to_numpy()
            last = 0 if first[0] == first[-1] else _last_start(first)
            if last:
                yield self._rows(batch.slice(0, last))
            waiting = batch.slice(last)
        if waiting is None:
            raise self.table.error("there are no rows after the header; there is nothing to label")
        yield self._rows(waiting)

    def _lines(self) -> Iterator[Any]:
        """Votes as plain columns: r line, k task, l labeler, c code, t time, s stream, g gold."""
        roles = self.roles
        names = [roles.task, roles.labeler, roles.label, *(n for n in (roles.time, roles.stream, roles.gold) if n)]
        votes = {roles.labeler, roles.label, *([roles.gold] if roles.gold else [])}
        first = 0
        for batch in self.table.batches(names, votes):
            if batch.num_rows:
                yield self._flat(batch, first)
            first += batch.num_rows
        if not first:
            raise self.table.error("there are no rows after the header; there is nothing to label")

    def _flat(self, batch: Any, first: int) -> Any:
        roles = self.roles
        rows = np.arange(first, first + batch.num_rows)
        codes, literal = encode_cells(self.table, self.form, [batch.column(roles.label)], [roles.label], rows)
        self._literal |= literal
        times, time_column = self._read_times(batch, first, rows)
        task = self._filled(self._kept.read(batch, time_column, first).column(roles.task), roles.task, first)
        columns = {
            "r": pa.array(rows),
            "k": self._remember("k", plain_array(task)),
            "l": self._numbered(batch.column(roles.labeler), first),
            "c": pa.array(codes[:, 0].copy()),
            "t": pa.array(times.values),
            "x": self._remember("x", time_column if self._typed or self.in_order else batch.column(roles.time)),
        }
        if roles.stream:
            columns["s"] = self._remember(
                "s", self._filled(plain_array(batch.column(roles.stream)), roles.stream, first)
            )
        if roles.gold:
            gold = encode_cells(self.table, self.form, [batch.column(roles.gold)], [roles.gold], rows)[0][:, 0]
            columns["g"] = pa.array(gold)
            columns["h"] = self._remember("h", plain_array(batch.column(roles.gold)))
        return pa.RecordBatch.from_pydict(columns)

    def _read_times(self, batch: Any, first: int, rows: Any) -> tuple[Times, Any]:
        if self.in_order:
            times, column = Times("number", rows), pa.array(rows)
        else:
            times, column = self._time_column.read(batch.column(self.roles.time), first)
        self._times = self._times or times
        return times, column

    def _remember(self, name: str, array: Any) -> Any:
        self._types.setdefault(name, array.type)
        return as_number(array)

    def _filled(self, array: Any, name: str, first: int) -> Any:
        empty = array.is_null().to_numpy(zero_copy_only=False)
        if pa.types.is_string(array.type):
            empty = empty | pc.fill_null(pc.equal(array, ""), False).to_numpy(zero_copy_only=False)
        if empty.any():
            place = self.table.place(first + int(np.argmax(empty)))
            raise VoteError(f"{self.table.shown}: {place}, column {name!r} is empty; every vote needs it")
        return array

    def _numbered(self, array: Any, first: int) -> Any:
        """Labelers by number, in the order in which they first appear in the file."""
        array = self._filled(plain_array(array), self.roles.labeler, first).dictionary_encode()
        names = [str(value).strip() if self.table.textual else str(value) for value in array.dictionary.to_pylist()]
        numbers = np.array([self.labelers.setdefault(name, len(self.labelers)) for name in names], np.int32)
        return pa.array(numbers[array.indices.to_numpy()])

    def _rows(self, lines: Any) -> VoteRows:
        """Whole tasks as rows."""
        first = lines.column("first").to_numpy()
        starts = np.flatnonzero(np.r_[True, first[1:] != first[:-1]])
        row_of = np.cumsum(np.r_[True, first[1:] != first[:-1]]) - 1
        who = lines.column("l").to_numpy()
        self._refuse_repeated(row_of, who, lines)
        codes = np.full((len(starts), len(self.labelers)), -1, code_dtype(self.form.n_classes))
        codes[row_of, who] = lines.column("c").to_numpy()
        assert self._times is not None
        done = lines.column("done").take(starts).to_numpy(zero_copy_only=False)
        latest = np.flatnonzero(lines.column("t").to_numpy(zero_copy_only=False) == done[row_of])
        latest = latest[np.unique(row_of[latest], return_index=True)[1]]
        kept = {self.roles.task: self._back("k", lines, starts), self.roles.time: self._back("x", lines, latest)}
        streams = self._back("s", lines, starts) if self.roles.stream else None
        gold = lines.column("g").to_numpy()[starts] if self.roles.gold else None
        if self.roles.stream:
            kept[self.roles.stream] = streams
        if self.roles.gold:
            kept[self.roles.gold] = self._back("h", lines, starts)
        return VoteRows(
            lines.column("r").to_numpy()[starts],
            tuple(self.labelers),
            codes,
            self._literal,
            kept_batch([kept[name] for name in self.roles.kept], list(self.roles.kept), len(starts)),
            replace(self._times, values=done),
            streams,
            gold,
        )

    def _back(self, name: str, lines: Any, starts: Any) -> Any:
        return from_number(lines.column(name), self._types[name]).take(pa.array(starts))

    def _refuse_repeated(self, row_of: Any, who: Any, lines: Any) -> None:
        cells = row_of.astype(np.int64) * max(1, len(self.labelers)) + who
        _, kept = np.unique(cells, return_index=True)
        if len(kept) == len(cells):
            return
        again = int(np.setdiff1d(np.arange(len(cells)), kept)[0])
        before = int(np.argmax(cells == cells[again]))
        rows = lines.column("r").to_numpy()
        task = self._back("k", lines, [again])[0].as_py()
        raise VoteError(
            f"{self.table.shown}: {self.table.place(int(rows[again]))}: labeler"
            f" {list(self.labelers)[who[again]]!r} votes again on"
            f" task {task!r} (first in {self.table.place(int(rows[before]))}); keep one vote of each labeler on a task"
        )


def _last_start(first: Any) -> int:
    """Where the last task begins."""
    return int(np.flatnonzero(first[1:] != first[:-1])[-1]) + 1


def _with_ends(keys: list[str]) -> Any:
    def ends(table: Any) -> Any:
        """The columns that the query makes, for a table in memory."""
        groups = pa.TableGroupBy(table.append_column("i", pa.array(np.arange(table.num_rows))), keys)
        found = groups.aggregate([("t", "max"), ("r", "min"), ("i", "list")])
        lists = found["i_list"].combine_chunks()
        members = lists.flatten().to_numpy()
        lengths = pc.list_value_length(lists).to_numpy()
        back = np.empty(table.num_rows, np.int64)
        back[members] = np.repeat(np.arange(len(lists)), lengths)
        places = pa.array(back)
        return table.append_column("done", found["t_max"].take(places)).append_column(
            "first", found["r_min"].take(places)
        )

    return ends
