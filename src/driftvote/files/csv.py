"""CSV and TSV: every cell is read as text, so nothing is guessed and nothing is lost.

Arrow parses. Where it refuses, Python's reader goes through the file once more to find the line.
"""

from __future__ import annotations

import csv
import io
import zlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from driftvote.errors import DriftvoteError
from driftvote.files.table import LONGEST_LINE, TOO_LONG, FileOptions, Table, quote_names

BLOCK = 1 << 22
"""Bytes parsed at a time."""

_FIRST_LINES = 50  # that show which delimiter a file has

_DELIMITERS = {";": "';'", "\t": "'\\t' (or the ending .tsv)", "|": "'|'", ",": "','"}


class CsvTable(Table):
    """Lines of cells with a header."""

    textual = True
    word = "line"
    default_delimiter = ","

    def __init__(
        self, path: str | Path, options: FileOptions, shown: str | None = None, compression: str | None = None
    ) -> None:
        super().__init__(path, options, shown, compression)
        delimiter = options.delimiter or self.default_delimiter
        self.delimiter = {"\\t": "\t", "tab": "\t"}.get(delimiter, delimiter)
        if len(self.delimiter) != 1:
            raise DriftvoteError(f"--delimiter must be one character, not {self.delimiter!r}")
        self.encoding = options.encoding
        self._is_utf8 = self.encoding.lower().replace("-", "") == "utf8"
        self.names, self._header_lines = self._read_header()
        if len(self.names) == 1:
            self._find_delimiter(given=options.delimiter is not None)
        for place, name in enumerate(self.names):
            if not name:  # as pandas writes an index
                self.names[place] = f"column_{place + 1}"
        self.refuse_repeated()

    def _read_header(self) -> tuple[list[str], int]:
        with self._explain_errors(), self._lines() as lines:
            reader = csv.reader(lines, delimiter=self.delimiter)
            for cells in reader:
                if cells:
                    return [cell.strip("\ufeff \t") for cell in cells], reader.line_num
        raise self.error("the file is empty; there is no header to read")

    def _find_delimiter(self, given: bool) -> None:
        """Take the other delimiter that cuts the first lines into as many cells as the header, if there is one such."""
        header, mine = self.names[0], self.delimiter
        others = [other for other in _DELIMITERS if other != mine and other in header]
        fitting = []
        for self.delimiter in others:
            lines = [cells for _, (_, cells) in zip(range(_FIRST_LINES), self._records(), strict=False)]
            if len({len(cells) for cells in lines}) == 1:
                fitting.append(self.delimiter)
        self.delimiter = mine
        if len(fitting) == 1 and not given:
            self.delimiter = fitting[0]
            self.names, self._header_lines = self._read_header()
            self.notes = (f"note: cells are separated by {self.delimiter!r}; pass --delimiter if that is not so",)
        elif others:
            raise self.error(
                f"the header is one column, {header[:60]!r}, with the delimiter {mine!r};"
                f" pass --delimiter {_DELIMITERS[others[0]]}"
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
            with self._explain_errors(), self._open_bytes() as stream:
                for batch in arrow_csv.open_csv(stream, read, parse, convert):
                    yield from self._cut(batch)
        except pa.ArrowInvalid as problem:
            if "Empty CSV" in str(problem):
                return  # a header and nothing else
            raise self.error(self._explain(str(problem))) from None

    def place(self, row: int) -> str:
        last = 0
        for count, (line, _) in enumerate(self._records()):
            last = line
            if count == row + 1:
                break
        return f"line {last:,}"

    @contextmanager
    def _lines(self, errors: str = "strict") -> Iterator[Any]:
        """The file as text, for Python's reader."""
        import pyarrow as pa

        encoding = "utf-8-sig" if self._is_utf8 else self.encoding
        with pa.input_stream(str(self.path), compression=self.compression, buffer_size=1 << 16) as stream:
            yield self._limited(io.TextIOWrapper(stream, encoding=encoding, errors=errors, newline=""))

    def _limited(self, text: Any) -> Iterator[Any]:
        """The lines of a file; one that is too long is refused before it is held in memory."""
        while line := text.readline(LONGEST_LINE):
            if len(line) == LONGEST_LINE:
                raise self.error(TOO_LONG)
            yield line

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        """First line and cells of every record, the header included."""
        with self._explain_errors(), self._lines("replace") as lines:
            reader = csv.reader(lines, delimiter=self.delimiter)
            line = 1
            for cells in reader:
                if cells:
                    yield line, cells
                line = reader.line_num + 1

    @contextmanager
    def _explain_errors(self) -> Iterator[None]:
        """Errors of decoding and unpacking become sentences that name the file."""
        try:
            yield
        except LookupError:
            raise self.error(f"--encoding {self.encoding}: there is no such encoding") from None
        except UnicodeError:
            raise self.error(self._explain_encoding()) from None
        except csv.Error as problem:
            raise self.error(f"not a table of text ({problem}); say what it is with --from") from None
        except (OSError, zlib.error) as problem:
            if isinstance(problem, OSError) and problem.errno is not None and problem.filename is not None:
                raise
            raise self.error(f"the file cannot be unpacked to its end ({_shorten(problem)}); fetch it again") from None

    def _explain(self, problem: str) -> str:
        if "UTF8" in problem or "UTF-8" in problem:
            return self._explain_encoding()
        if "columns" in problem or "parse error" in problem:
            for line, cells in self._records():
                if len(cells) != len(self.names):
                    return (
                        f"line {line:,} has {len(cells)} fields, the header has {len(self.names)}"
                        f" ({quote_names(self.names, 6)}); complete the line, or quote the fields that hold a"
                        f" {self.delimiter!r} or a line break"
                    )
        return f"cannot be read ({_shorten(problem)})"

    def _explain_encoding(self) -> str:
        import pyarrow as pa

        remedy = "save it as UTF-8, or name its encoding, such as --encoding latin-1"
        with self.path.open("rb") as file:
            if file.read(2) in (b"\xff\xfe", b"\xfe\xff"):  # as Excel writes Unicode text
                remedy = "save it as UTF-8, or pass --encoding utf-16"
        if self._is_utf8:
            with pa.input_stream(str(self.path), compression=self.compression) as stream:
                for number, line in enumerate(self._limited(io.BufferedReader(stream)), 1):
                    if line.decode(errors="ignore").encode() != line:
                        return f"line {number:,} is not UTF-8; {remedy}"
        return f"the file is not {self.encoding}; {remedy}"


class TsvTable(CsvTable):
    """CSV with tabs."""

    default_delimiter = "\t"


def _shorten(problem: object) -> str:
    text = " ".join(str(problem).split())
    return text if len(text) <= 120 else f"{text[:117]}..."
