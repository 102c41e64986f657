"""CSV and TSV: every cell is read as text, so nothing is guessed and nothing is lost.

Arrow parses; where it refuses, the file is walked through once more with Python's reader, which knows the line.
"""

from __future__ import annotations

import csv
import io
import zlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from driftvote.files.table import BATCH, Table, shown_names

BLOCK = 1 << 22
"""Bytes parsed at a time."""

_OTHERS = {";": "';'", "\t": "'\\t' (or the ending .tsv)", "|": "'|'", ",": "','"}


class CsvTable(Table):
    """Lines of cells with a header."""

    textual = True
    word = "line"

    def __init__(
        self, path: str | Path, delimiter: str, squeezed: str | None, encoding: str, shown: str | None = None
    ) -> None:
        super().__init__(path, shown)
        self.delimiter = delimiter
        self.squeezed = squeezed
        self.encoding = encoding
        self._raw: Any = None
        self.names, self._header_lines = self._header()
        self._refuse_other_delimiter()
        for place, name in enumerate(self.names):
            if not name:  # as pandas writes an index
                self.names[place] = f"column_{place + 1}"
        self.refuse_repeated()

    def _header(self) -> tuple[list[str], int]:
        with self._troubles(), self._lines() as lines:
            reader = csv.reader(lines, delimiter=self.delimiter)
            for cells in reader:
                if cells:
                    return [cell.strip("\ufeff \t") for cell in cells], reader.line_num
        raise self.error("the file is empty; there is no header to read")

    def _refuse_other_delimiter(self) -> None:
        if len(self.names) > 1:
            return
        for other, written in _OTHERS.items():
            if other != self.delimiter and other in self.names[0]:
                raise self.error(
                    f"the header is one column, {self.names[0][:60]!r}, with the delimiter {self.delimiter!r};"
                    f" pass --delimiter {written}"
                )

    def batches(self, columns: Sequence[str], votes: Collection[str] = ()) -> Iterator[Any]:
        import pyarrow as pa
        import pyarrow.csv as arrow_csv

        text, few = pa.string(), pa.dictionary(pa.int32(), pa.string())
        read = arrow_csv.ReadOptions(
            column_names=self.names, skip_rows=self._header_lines, block_size=BLOCK, encoding=self.encoding
        )
        parse = arrow_csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True)
        convert = arrow_csv.ConvertOptions(
            column_types={name: few if name in votes else text for name in columns},
            include_columns=list(columns),
            strings_can_be_null=False,
        )
        try:
            with self._troubles(), self._stream() as stream:
                for batch in arrow_csv.open_csv(stream, read, parse, convert):
                    for start in range(0, batch.num_rows, BATCH):
                        yield batch.slice(start, BATCH)
        except pa.ArrowInvalid as problem:
            if "Empty CSV" in str(problem):
                return  # a header and nothing else
            raise self.error(self._explained(str(problem))) from None

    def done(self) -> float | None:
        try:
            return self._raw.tell() / self._raw.size()
        except (AttributeError, ValueError, ZeroDivisionError):  # not begun, or the reading thread has just closed it
            return None

    def place(self, row: int) -> str:
        found = 0
        for count, (line, _) in enumerate(self._records()):
            found = line
            if count == row + 1:
                break
        return f"line {found:,}"

    @contextmanager
    def _stream(self) -> Iterator[Any]:
        import pyarrow as pa

        with pa.OSFile(str(self.path)) as raw:
            self._raw = raw
            stream = pa.CompressedInputStream(raw, self.squeezed) if self.squeezed else raw
            yield stream

    @contextmanager
    def _lines(self, errors: str = "strict") -> Iterator[Any]:
        """The file as text, for Python's reader."""
        import pyarrow as pa

        encoding = "utf-8-sig" if self.encoding.lower().replace("-", "") == "utf8" else self.encoding
        with pa.input_stream(str(self.path), compression=self.squeezed, buffer_size=1 << 16) as stream:
            yield io.TextIOWrapper(stream, encoding=encoding, errors=errors, newline="")

    @contextmanager
    def _troubles(self) -> Iterator[None]:
        """Errors of decoding and unpacking, in words."""
        try:
            yield
        except LookupError:
            raise self.error(f"--encoding {self.encoding}: there is no such encoding") from None
        except UnicodeError:
            raise self.error(self._not_text()) from None
        except csv.Error as problem:
            raise self.error(f"not a table of text ({problem}); say what it is with --from") from None
        except (OSError, zlib.error) as problem:
            if isinstance(problem, OSError) and problem.errno is not None and problem.filename is not None:
                raise
            raise self.error(f"the file cannot be unpacked to its end ({_short(problem)}); fetch it anew") from None

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        """First line and cells of every record, the header included."""
        with self._troubles(), self._lines("replace") as lines:
            reader = csv.reader(lines, delimiter=self.delimiter)
            line = 1
            for cells in reader:
                if cells:
                    yield line, cells
                line = reader.line_num + 1

    def _explained(self, problem: str) -> str:
        if "UTF8" in problem or "UTF-8" in problem:
            return self._not_text()
        if "columns" in problem or "parse error" in problem:
            for line, cells in self._records():
                if len(cells) != len(self.names):
                    return (
                        f"line {line:,} has {len(cells)} fields, the header has {len(self.names)}"
                        f" ({shown_names(self.names, 6)}); complete the line, or quote the fields that hold a"
                        f" {self.delimiter!r} or a line break"
                    )
        return f"cannot be read ({_short(problem)})"

    def _not_text(self) -> str:
        way_out = "save it as UTF-8, or name its encoding, such as --encoding latin-1"
        import pyarrow as pa

        if self.encoding.lower().replace("-", "") == "utf8":
            with pa.input_stream(str(self.path), compression=self.squeezed) as stream:
                for number, line in enumerate(io.BufferedReader(stream), 1):
                    if line.decode(errors="ignore").encode() != line:
                        return f"line {number:,} is not UTF-8; {way_out}"
        return f"the file is not {self.encoding}; {way_out}"


def _short(problem: object) -> str:
    text = " ".join(str(problem).split())
    return text if len(text) <= 120 else f"{text[:117]}..."
