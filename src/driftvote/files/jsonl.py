"""JSON lines: an object a line. Read in blocks of whole lines, so that an error can name the line."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

from driftvote.files.table import LONGEST_LINE, TOO_LONG, FileOptions, Table

BLOCK = 1 << 23
"""Bytes parsed at a time."""


NULL_LINE = re.compile(rb"^[ \t\r]*null[ \t\r]*$", re.MULTILINE)


class JsonLinesTable(Table):
    """Objects with the same keys, more or less: a key that is missing is an empty cell.

    Objects inside objects become columns of their own: {"votes": {"a": 1}} is the column "votes.a". Its labeler is "a",
    as for `driftvote watch`, which reads the same lines.
    """

    word = "line"

    def __init__(
        self, path: str | Path, options: FileOptions, shown: str | None = None, compression: str | None = None
    ) -> None:
        super().__init__(path, options, shown, compression)
        self._types: dict[str, Any] = {}
        first = next(self._tables(), None)
        if first is None:
            raise self.error("the file is empty; there are no votes to read")
        self._add_names(first)

    def _add_names(self, table: Any) -> None:
        import pyarrow as pa

        for field in table.schema:
            if pa.types.is_null(self._types.get(field.name, pa.null())):
                # Dates stay the text they are: whether Arrow takes a string for a time depends on its block.
                self._types[field.name] = pa.string() if pa.types.is_timestamp(field.type) else field.type
        self.names = list(self._types)

    def complete(self) -> None:
        """Find the keys that come late in the file."""
        for table in self._tables():
            self._add_names(table)

    def labeler_of(self, column: str) -> str:
        return column.removeprefix("votes.")

    def type_of(self, column: str) -> Any:
        return self._types[column]

    def batches(self, columns: Sequence[str], votes: Collection[str] = ()) -> Iterator[Any]:
        import pyarrow as pa

        start = 0
        for table in self._tables():
            arrays = [self._column(table, name, name in votes, start) for name in columns]
            start += table.num_rows
            yield from self._cut(pa.RecordBatch.from_arrays(arrays, names=list(columns)))

    def place(self, row: int) -> str:
        """Blank lines are no rows, so lines are counted in the file itself."""
        count = -1
        for number, line in enumerate(self._lines(), 1):
            count += bool(line.strip())
            if count == row:
                return f"line {number:,}"
        return f"row {row + 1:,}"

    def _column(self, table: Any, name: str, vote: bool, start: int) -> Any:
        import pyarrow as pa

        if name not in table.column_names:
            return pa.nulls(table.num_rows, pa.string() if pa.types.is_null(self._types[name]) else self._types[name])
        array = table[name].combine_chunks()
        if isinstance(array, pa.ChunkedArray):
            array = array.chunk(0)
        if pa.types.is_list(array.type):
            return pa.array([None if cell is None else json.dumps(cell) for cell in array.to_pylist()], pa.string())
        if vote:
            return array.dictionary_encode() if pa.types.is_string(array.type) else array
        kind = self._types[name]
        kind = pa.string() if pa.types.is_null(kind) or pa.types.is_list(kind) else kind
        try:
            return array.cast(kind)
        except pa.ArrowInvalid:
            raise self.error(
                f"column {name!r} holds {kind} at first and {array.type} in {self.place(start)} or after it;"
                f" write one type, or leave the column out with --drop {name}"
            ) from None

    def _tables(self) -> Iterator[Any]:
        """Blocks of whole lines as Arrow tables."""
        import pyarrow as pa
        import pyarrow.json as arrow_json

        start = 0
        text = [
            pa.field(name, kind) for name, kind in self._types.items() if pa.types.is_string(kind) and "." not in name
        ]
        options = arrow_json.ParseOptions(explicit_schema=pa.schema(text), newlines_in_values=False)
        for block in self._blocks():
            if not block.strip():
                continue
            if NULL_LINE.search(block):  # to Arrow a row without votes; if there is nothing else, it crashes
                raise self.error(self._explain("a line is null", start))
            try:
                block.decode()  # Arrow does not look whether text is UTF-8
                table = arrow_json.read_json(io.BytesIO(block), parse_options=options)
                while any(pa.types.is_struct(kind) for kind in table.schema.types):
                    table = table.flatten()
            except (pa.ArrowException, UnicodeDecodeError, KeyError) as problem:
                raise self.error(self._explain(str(problem), start)) from None
            start += table.num_rows
            yield table

    def _blocks(self) -> Iterator[bytes]:
        """Pieces of the file that end where a line ends."""
        rest = b""
        with self._open_bytes() as stream:
            while True:
                try:
                    block = stream.read(BLOCK)
                except OSError as problem:
                    raise self.error(f"the file cannot be unpacked to its end ({problem}); fetch it again") from None
                if not block:
                    break
                whole, end, rest = (rest + block).rpartition(b"\n")
                yield whole + end
                if len(rest) > LONGEST_LINE:
                    raise self.error(TOO_LONG)
        yield rest

    def _lines(self) -> Iterator[bytes]:
        for block in self._blocks():
            yield from block.splitlines()

    def _explain(self, problem: str, start: int) -> str:
        for number, line in enumerate(self._lines(), 1):
            if not line.strip():
                continue
            try:
                value = json.loads(line)
            except UnicodeDecodeError:
                return f"line {number:,} is not UTF-8; save the file as UTF-8"
            except ValueError as trouble:
                return f'line {number:,} is not JSON ({trouble}); each line must be one object such as {{"a": 1}}'
            if not isinstance(value, dict):
                return (
                    f'line {number:,} is not an object; each line must be one object such as {{"a": 1}}'
                    " (an array of objects in one file is not JSON lines)"
                )
        message = re.search(r"(.*) in row (\d+)", problem.replace("JSON parse error: ", "").replace("\n", " "))
        if message is None:
            return f"cannot be read ({problem[:120]})"
        place = self.place(start + int(message[2]))
        column = re.search(r"Column\(/(.*?)\) changed from (\w+) to (\w+)", message[1])
        if column is None:
            return f"{place}: {message[1]}"
        return (
            f"{place}, column {column[1]!r}: a {column[3]}, but a {column[2]} before; write all votes of a column in"
            " one way"
        )
