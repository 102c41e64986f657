"""Votes from a file, batch by batch: codes, what passes through, times, streams and gold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from driftvote.errors import DriftvoteError, OrderError, VoteError
from driftvote.files.arrays_in import ArraysTable
from driftvote.files.roles import Roles
from driftvote.files.table import Table
from driftvote.kernels.layout import Codes
from driftvote.times import LastTime, TextTimes, Times, read_times
from driftvote.votes import VoteFormat, parse_number


@dataclass(frozen=True)
class VoteRows:
    """A batch of rows as they are labeled."""

    rows: npt.NDArray[np.int64]  # their numbers in the file, counting from 0
    labelers: tuple[str, ...]
    codes: Codes
    literal: bool  # some abstention was written out
    kept: Any  # Arrow record batch of the columns that pass through
    times: Times | None = None
    streams: Any = None  # Arrow array
    gold: Codes | None = None
    verified: Codes | None = None

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, places: npt.NDArray[np.int64]) -> VoteRows:
        """Some of the rows, in another order."""
        return replace(
            self,
            rows=self.rows[places],
            codes=np.ascontiguousarray(self.codes[places]),
            kept=self.kept.take(places),
            times=None if self.times is None else self.times[places],
            streams=None if self.streams is None else self.streams.take(places),
            gold=None if self.gold is None else self.gold[places],
            verified=None if self.verified is None else self.verified[places],
        )

    def votes_only(self, places: npt.NDArray[np.int64]) -> VoteRows:
        """Rows in another order, without what passes through: enough to be labeled and cut into slices."""
        return replace(
            self,
            rows=self.rows[places],
            codes=np.ascontiguousarray(self.codes[places]),
            kept=None,
            times=None if self.times is None else self.times[places],
            streams=None,
            gold=None,
            verified=None if self.verified is None else self.verified[places],
        )

    def __getitem__(self, part: slice) -> VoteRows:
        """Some of the rows that `votes_only` gave."""
        times = None if self.times is None else self.times[part]
        verified = None if self.verified is None else self.verified[part]
        return replace(self, rows=self.rows[part], codes=self.codes[part], times=times, verified=verified)


class KeptColumns:
    """What passes through. Cells of CSV are text; a typed output gets numbers where the first batch holds only
    those."""

    def __init__(self, table: Table, roles: Roles, typed: bool, as_text: Sequence[str]) -> None:
        self.table = table
        self.names = roles.kept
        self.time = roles.time
        self._infer = typed and table.textual
        self._as_text = set(as_text)
        self._types: dict[str, Any] = {}

    def read(self, batch: Any, time_column: Any, first_row: int) -> Any:
        """The columns as a record batch; `time_column` is the time column with its type."""
        import pyarrow as pa

        arrays = []
        for name in self.names:
            array = batch.column(name)
            if pa.types.is_dictionary(array.type):
                array = array.cast(array.type.value_type)
            if self._infer and name == self.time and time_column is not None:
                array = time_column
            elif self._infer and name not in self._as_text:
                array = self._number(name, array, first_row)
            arrays.append(array)
        if not self.names:
            return pa.RecordBatch.from_pydict({"": pa.nulls(batch.num_rows)}).select([])
        return pa.RecordBatch.from_arrays(arrays, names=list(self.names))

    def _number(self, name: str, array: Any, first_row: int) -> Any:
        import pyarrow as pa
        import pyarrow.compute as pc

        cells = pc.if_else(pc.equal(array, ""), pa.scalar(None, pa.string()), array)
        if name not in self._types:
            self._types[name] = _number_type(cells)
        kind = self._types[name]
        if pa.types.is_string(kind):
            return array
        try:
            numbers = cells.cast(kind)
            if (
                pa.types.is_integer(kind)
                and not pc.all(pc.equal(numbers.cast(pa.string()), cells), min_count=0).as_py()
            ):
                raise pa.ArrowInvalid("not written as a number")
        except pa.ArrowInvalid:
            row = next(i for i, cell in enumerate(cells.to_pylist()) if cell is not None and not _is_number(cell, kind))
            raise self.table.error(
                f"{self.table.place(first_row + row)}, column {name!r}: {cells[row].as_py()!r} is not a number"
                " like those before;"
                f" pass --text {name} to keep the column as text"
            ) from None
        return numbers


def _number_type(cells: Any) -> Any:
    """Whole numbers that are written as such (007 is none), other numbers, or text."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if cells.null_count == len(cells):
        return pa.string()
    try:
        whole = cells.cast(pa.int64())
        if pc.all(pc.equal(whole.cast(pa.string()), cells), min_count=0).as_py():
            return pa.int64()
        return pa.string()
    except pa.ArrowInvalid:
        pass
    try:
        cells.cast(pa.float64())
    except pa.ArrowInvalid:
        return pa.string()
    return pa.float64()


def _is_number(cell: str, kind: Any) -> bool:
    import pyarrow as pa

    number = parse_number(cell)
    return number is not None and (pa.types.is_floating(kind) or str(number) == cell)


class TimeColumn:
    """The time column of a file."""

    def __init__(self, table: Table, name: str) -> None:
        self.table = table
        self.name = name
        self._text = TextTimes()

    def read(self, column: Any, first_row: int) -> tuple[Times, Any]:
        """The times of a batch that begins at this row of the file, and the column with its type."""

        def refuse(row: int | None, rest: str) -> OrderError:
            return self._refuse(None if row is None else first_row + row, rest)

        column = plain_array(column)
        if self.table.textual:
            column = self._text.parse(column, refuse)
        return read_times(column, refuse), column

    def check_order(self, times: Times, rows: npt.NDArray[np.int64], latest: LastTime, where: str = "") -> None:
        """Refuse a time that is before an earlier one; `rows` are row numbers in the file."""
        decrease = times.find_decrease(latest)
        if decrease is not None:
            row, before = decrease
            raise self._refuse(
                int(rows[row]),
                f": time {times.show(row)} is before {before} of the row before it{where}; sort the rows, or pass"
                " --sort",
            )

    def _refuse(self, row: int | None, rest: str) -> OrderError:
        place = "" if row is None else f"{self.table.place(row)}, "
        return OrderError(f"{self.table.shown}: {place}column {self.name!r}{rest}")


class VoteReader:
    """Reads wide files: a column for each labeler."""

    def __init__(
        self, table: Table, roles: Roles, form: VoteFormat, typed: bool = False, as_text: Sequence[str] = ()
    ) -> None:
        self.table = table
        self.roles = roles
        self.form = form
        names = tuple(table.labeler(column) for column in roles.labelers)
        self.labelers = names if len(set(names)) == len(names) else roles.labelers
        self._times = None if roles.time is None else TimeColumn(table, roles.time)
        self._kept = KeptColumns(table, roles, typed, as_text)

    def __iter__(self) -> Iterator[VoteRows]:
        roles = self.roles
        others = [name for name in (*roles.kept, roles.time, roles.stream, roles.gold, roles.verified) if name]
        columns = list(dict.fromkeys([*roles.labelers, *others]))
        votes = {*roles.labelers, *(name for name in (roles.gold, roles.verified) if name)}
        first = 0
        for batch in self.table.batches(columns, votes):
            if batch.num_rows:
                yield self._rows(batch, first)
            first += batch.num_rows
        if not first:
            raise self.table.error("there are no rows after the header; there is nothing to label")

    def _rows(self, batch: Any, first: int) -> VoteRows:
        roles = self.roles
        rows = np.arange(first, first + batch.num_rows)
        arrays = [batch.column(name) for name in roles.labelers]
        codes, literal = encode_cells(self.table, self.form, arrays, roles.labelers, rows)
        times, time_column = None, None
        if self._times is not None:
            times, time_column = self._times.read(batch.column(roles.time), first)
        gold, verified = (self._classes(batch, name, rows) for name in (roles.gold, roles.verified))
        kept = self._kept.read(batch, time_column, first)
        streams = None if roles.stream is None else plain_array(batch.column(roles.stream))
        return VoteRows(rows, self.labelers, codes, literal, kept, times, streams, gold, verified)

    def _classes(self, batch: Any, name: str | None, rows: npt.NDArray[np.int64]) -> Codes | None:
        """A column of classes, where one is named."""
        if name is None:
            return None
        true = batch.column(name)
        true = self.table.in_classes(true) if isinstance(self.table, ArraysTable) else true
        return encode_cells(self.table, self.form, [true], [name], rows)[0][:, 0]


def encode_cells(
    table: Table, form: VoteFormat, columns: Sequence[Any], names: Sequence[str], rows: npt.NDArray[np.int64]
) -> tuple[Codes, bool]:
    """Codes of rows x columns, and whether some abstention was written out; `rows` are row numbers in the file."""
    codes = np.empty((len(rows), len(columns)), form.dtype)
    literal = False
    for place, column in enumerate(columns):
        encoded = form.encode_column(column, lenient=True)
        if encoded.has_bad:
            row = encoded.first_bad()
            raise _not_a_vote(table, form, names[place], int(rows[row]), column[row].as_py())
        codes[:, place] = encoded.codes
        literal |= encoded.literal
    return codes, literal


def _not_a_vote(table: Table, form: VoteFormat, column: str, row: int, value: Any) -> VoteError:
    """The error for a cell that has no meaning."""
    if form.name == "snorkel" and type(parse_number(str(value))) is int:
        remedy = "declare the classes, such as --classes 1,2,3"
    elif form.name == "signed":
        remedy = "declare the classes with --classes, or leave --votes out"
    else:
        remedy = "correct it, or declare it with --classes or --abstain"
    shown = repr(value) if len(repr(value)) <= 60 else f"{repr(value)[:57]}..."
    return VoteError(
        f"{table.shown}: {table.place(row)}, column {column!r}: {shown} is not a vote; read as"
        f" {form.describe_values('an empty cell')}; {remedy}; if {column!r} is no labeler, pass --keep {column}"
    )


def plain_array(array: Any) -> Any:
    """A column without a dictionary."""
    import pyarrow as pa

    return array.cast(array.type.value_type) if pa.types.is_dictionary(array.type) else array


def only_stream(batches: Iterator[VoteRows], value: str, table: Table) -> Iterator[VoteRows]:
    """The rows of one stream."""
    seen = False
    for batch in batches:
        texts = np.array([str(name) for name in batch.streams.to_pylist()], object)
        places = np.flatnonzero(texts == value)
        seen = seen or bool(len(places))
        if len(places):
            yield batch.take(places)
    if not seen:
        raise DriftvoteError(
            f"{table.shown}: there is no stream {value!r}; --only names one value of the --stream column"
        )
