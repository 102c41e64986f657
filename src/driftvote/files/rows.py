"""Rows of votes from a file, batch by batch: the role of each column, and the codes, times and other columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from driftvote.arrays import Codes, Ints
from driftvote.errors import DriftvoteError, OrderError, VoteError
from driftvote.files.table import FileOptions, Table, quote_names
from driftvote.times import LastTime, TextTimes, Times, read_times
from driftvote.votes import VoteFormat, parse_number

TRUTH_WORDS = frozenset(["gold", "truth", "ground_truth", "y_true", "gold_label", "true_label"])
"""Names of columns that hold the truth: learning from one by mistake would make every result look perfect."""


# -- the roles of columns ----------------------------------------------------------------------


@dataclass(frozen=True)
class Roles:
    """What each column is; `kept` pass through to the output, in the order of the file."""

    labelers: tuple[str, ...]
    kept: tuple[str, ...]
    time: str | None = None
    time_format: str | None = None
    id: str | None = None
    stream: str | None = None
    gold: str | None = None
    verified: str | None = None
    task: str = ""  # of a long file, as the next two
    labeler: str = ""
    label: str = ""
    duplicates: str = "error"
    in_order: bool = False  # the lines of a long file are in time order already
    text: tuple[str, ...] = ()  # columns that stay text in a typed output

    @property
    def long(self) -> bool:
        return bool(self.task)


def find_roles(table: Table, options: FileOptions, least: int = 3) -> Roles:
    """The roles of the columns of a table, or an error that names the column.

    `least` is the smallest number of labelers that the model can work with.
    """
    if options.long:
        return _find_long_roles(table, options)
    if not options.labelers:
        table.complete()
    named = [options.id, options.time, options.stream, options.gold, options.verified, *options.keep, *options.drop]
    table.require([*named, *options.text])
    labelers = _find_labelers(table, options, {name for name in named if name})
    both = next((name for name in labelers if name in named), None)
    if both:
        raise table.error(f"column {both!r} is named as a labeler and as something else; give it one role")
    if len(labelers) < least:
        raise table.error(
            f"at least {least} labelers are needed, and there are {len(labelers)} ({quote_names(labelers) or 'none'});"
            f" its columns are {quote_names(table.names)}; for one vote per line pass --task, --labeler and --label"
        )
    _refuse_containers(table, [*labelers, options.gold, options.verified])
    return Roles(
        labelers=tuple(labelers),
        kept=tuple(name for name in table.names if name not in labelers and name not in options.drop),
        time=options.time,
        time_format=options.time_format,
        id=options.id,
        stream=options.stream,
        gold=options.gold,
        verified=options.verified,
        text=tuple(options.text),
    )


def _find_labelers(table: Table, options: FileOptions, other_roles: set[str]) -> list[str]:
    if table.labelers is not None:  # the names of the options were given to its columns
        return [name for name in table.labelers if options.labelers or name not in other_roles]
    if not options.labelers:
        names = [name for name in table.names if name not in other_roles]
        for name in names:
            if name.lower() in TRUTH_WORDS:
                raise table.error(
                    f"column {name!r} looks like the truth, not like a labeler; pass --gold {name}, or name the"
                    " labelers with --labelers"
                )
        return names
    names = []
    for pattern in options.labelers:
        matches = [pattern] if pattern in table.names else [name for name in table.names if fnmatchcase(name, pattern)]
        if not matches:
            table.require([pattern])
        names += [name for name in matches if name not in names]
    return names


def _find_long_roles(table: Table, options: FileOptions) -> Roles:
    for option, name in (("--task", options.task), ("--labeler", options.labeler), ("--label", options.label)):
        if name is None:
            raise table.error(f"one vote per line needs --task, --labeler and --label; {option} is missing")
    if options.labelers:
        raise table.error(
            "--labelers names the columns of a wide file; with one vote per line they are the values of --labeler"
        )
    columns = [options.task, options.labeler, options.label, options.time, options.stream]
    truth = [options.gold, options.verified]
    table.require([*columns, *truth, *options.text])
    _refuse_containers(table, [options.task, options.labeler, options.label, *truth])
    names = [name for name in columns if name is not None] + sorted({name for name in truth if name is not None})
    twice = next((name for place, name in enumerate(names) if name in names[:place]), None)
    if twice:
        raise table.error(f"column {twice!r} is named twice; give it one role")
    kept = dict.fromkeys((options.stream, options.task, options.time, *truth))
    return Roles(
        labelers=(),
        kept=tuple(name for name in kept if name and name not in options.drop),
        time=options.time,
        time_format=options.time_format,
        id=options.task,
        stream=options.stream,
        gold=options.gold,
        verified=options.verified,
        task=str(options.task),
        labeler=str(options.labeler),
        label=str(options.label),
        in_order=options.in_order,
        duplicates=options.duplicates,
        text=tuple(options.text),
    )


def _refuse_containers(table: Table, columns: Sequence[str | None]) -> None:
    """Refuse columns whose cells are no single values."""
    import pyarrow as pa

    for name in columns:
        kind = None if name is None else table.type_of(name)
        if kind is not None and (
            pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
        ):
            raise table.error(f"column {name!r} holds {kind}, not votes; leave it out with --drop {name}")


# -- rows --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class VoteRows:
    """A batch of rows of a file. Every field but `labelers` and `literal` has an entry for each row, or is None."""

    rows: Ints  # row numbers in the file, counting from 0
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

    def by_row(self) -> dict[str, Any]:
        """The fields that have an entry for each row."""
        names = [field.name for field in fields(self) if field.name not in ("labelers", "literal")]
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}

    def take(self, places: Ints) -> VoteRows:
        """Some of the rows, in the given order."""
        return replace(self, **{name: _take(value, places) for name, value in self.by_row().items()})

    def votes_only(self) -> VoteRows:
        """The rows without the columns that pass through: what a model needs."""
        return replace(self, kept=None, streams=None, gold=None)

    def __getitem__(self, part: slice) -> VoteRows:
        """Consecutive rows of what `votes_only` gave."""
        return replace(self, **{name: value[part] for name, value in self.by_row().items()})


def _take(value: Any, places: Ints) -> Any:
    if isinstance(value, np.ndarray):
        return np.ascontiguousarray(value[places])
    return value[places] if isinstance(value, Times) else value.take(places)


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


# -- columns -----------------------------------------------------------------------------------


def encode_cells(
    table: Table, form: VoteFormat, columns: Sequence[Any], names: Sequence[str], rows: Ints
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


def plain_column(column: Any) -> Any:
    """A column without a dictionary."""
    import pyarrow as pa

    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


class TimeColumn:
    """The time column of a file."""

    def __init__(self, table: Table, name: str, time_format: str | None = None) -> None:
        self.table = table
        self.name = name
        self._text = TextTimes(time_format, "--time-format", self._whole_column)

    def read(self, column: Any, first_row: int) -> tuple[Times, Any]:
        """The times of a batch that begins at this row of the file, and the column; text cells get a type."""

        def refuse(row: int | None, rest: str) -> OrderError:
            return self._refuse(None if row is None else first_row + row, rest)

        column = plain_column(column)
        if self.table.textual:
            return self._text.read(column, refuse)
        return read_times(column, refuse, self._text), column

    def _whole_column(self) -> Iterator[Any]:
        import pyarrow.compute as pc

        for batch in self.table.batches([self.name]):
            yield pc.utf8_trim_whitespace(plain_column(batch.column(0)))

    def check_order(self, times: Times, rows: Ints, latest: LastTime, where: str = "") -> None:
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


class KeptColumns:
    """The columns that pass through.

    Cells of CSV are text. A typed output gets numbers where the first batch holds only numbers.
    """

    def __init__(self, table: Table, roles: Roles, typed: bool) -> None:
        self.table = table
        self.roles = roles
        self._infer = typed and table.textual
        self._types: dict[str, Any] = {}

    def read(self, batch: Any, time_column: Any, first_row: int) -> Any:
        """The columns as a record batch; `time_column` is the time column with its type."""
        arrays = []
        for name in self.roles.kept:
            array = plain_column(batch.column(name))
            if self._infer and name == self.roles.time and time_column is not None:
                array = time_column
            elif self._infer and name not in self.roles.text:
                array = self._to_numbers(name, array, first_row)
            arrays.append(array)
        return make_record_batch(arrays, self.roles.kept, batch.num_rows)

    def _to_numbers(self, name: str, array: Any, first_row: int) -> Any:
        import pyarrow as pa
        import pyarrow.compute as pc

        cells = pc.if_else(pc.equal(array, ""), pa.scalar(None, pa.string()), array)
        if name not in self._types:
            self._types[name] = _infer_type(cells)
        kind = self._types[name]
        if pa.types.is_string(kind):
            return array
        numbers = _cast_exactly(cells, kind)
        if numbers is None:
            row = next(row for row in range(len(cells)) if _cast_exactly(cells.slice(row, 1), kind) is None)
            raise self.table.error(
                f"{self.table.place(first_row + row)}, column {name!r}: {cells[row].as_py()!r} is not a number"
                f" like those before; pass --text {name} to keep the column as text"
            )
        return numbers


def _infer_type(cells: Any) -> Any:
    """Whole numbers that are written as such (007 is none), other numbers, or text."""
    import pyarrow as pa

    if cells.null_count < len(cells):
        if _cast_exactly(cells, pa.int64()) is not None:
            return pa.int64()
        try:
            cells.cast(pa.int64())  # whole numbers with leading zeros or signs are text
        except pa.ArrowInvalid:
            if _cast_exactly(cells, pa.float64()) is not None:
                return pa.float64()
    return pa.string()


def _cast_exactly(cells: Any, kind: Any) -> Any:
    """Text cells as numbers, or None if some are not written as numbers of this type."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        numbers = cells.cast(kind)
    except pa.ArrowInvalid:
        return None
    if pa.types.is_integer(kind) and not pc.all(pc.equal(numbers.cast(pa.string()), cells), min_count=0).as_py():
        return None
    return numbers


def make_record_batch(arrays: list[Any], names: Sequence[str], n_rows: int) -> Any:
    """Columns as a record batch that knows its length, even without columns."""
    import pyarrow as pa

    if not names:
        return pa.RecordBatch.from_pydict({"": pa.nulls(n_rows)}).select([])
    return pa.RecordBatch.from_arrays(arrays, names=list(names))


class WideReader:
    """Reads files with a column for each labeler; `typed` is for outputs that know numbers from text."""

    def __init__(self, table: Table, roles: Roles, form: VoteFormat, typed: bool = False) -> None:
        self.table = table
        self.roles = roles
        self.form = form
        names = tuple(table.labeler_of(column) for column in roles.labelers)
        self.labelers = names if len(set(names)) == len(names) else roles.labelers
        self._time_column = None if roles.time is None else TimeColumn(table, roles.time, roles.time_format)
        self._kept = KeptColumns(table, roles, typed)

    def __iter__(self) -> Iterator[VoteRows]:
        roles = self.roles
        votes = [name for name in (*roles.labelers, roles.gold, roles.verified) if name is not None]
        others = [name for name in (*roles.kept, roles.time, roles.stream) if name is not None]
        first = 0
        for batch in self.table.batches(list(dict.fromkeys([*votes, *others])), set(votes)):
            if batch.num_rows:
                yield self._read(batch, first)
            first += batch.num_rows
        if not first:
            raise self.table.error("there are no rows after the header; there is nothing to label")

    def _read(self, batch: Any, first: int) -> VoteRows:
        roles = self.roles
        rows = np.arange(first, first + batch.num_rows)
        columns = [batch.column(name) for name in roles.labelers]
        codes, literal = encode_cells(self.table, self.form, columns, roles.labelers, rows)
        times, time_column = None, None
        if self._time_column is not None:
            times, time_column = self._time_column.read(batch.column(roles.time), first)
        return VoteRows(
            rows=rows,
            labelers=self.labelers,
            codes=codes,
            literal=literal,
            kept=self._kept.read(batch, time_column, first),
            times=times,
            streams=None if roles.stream is None else plain_column(batch.column(roles.stream)),
            gold=self._read_classes(batch, roles.gold, rows),
            verified=self._read_classes(batch, roles.verified, rows),
        )

    def _read_classes(self, batch: Any, name: str | None, rows: Ints) -> Codes | None:
        """A column of true classes, if one is named."""
        if name is None:
            return None
        column = self.table.decode_classes(batch.column(name))
        return encode_cells(self.table, self.form, [column], [name], rows)[0][:, 0]
