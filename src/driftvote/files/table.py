"""Tables in files: the formats by name, opening a file of any format, and the interface that readers implement.

To add a format, write a subclass of `Table` in a module of its own and add one line to `FORMATS`.
"""

from __future__ import annotations

import importlib
import os
import shutil
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from driftvote.errors import DriftvoteError

BATCH = 1 << 17
"""Rows read at a time: enough for the kernels, and some tens of MB with everything that is made from them."""


LONGEST_LINE = 1 << 24
"""Bytes of a line of text: a longer one is no row of votes, and would be held in memory as a whole."""
TOO_LONG = "a line is longer than 16 MB; a line is one row of votes, so this is not such a file"


DUPLICATES = ("error", "first", "last")


class FileFormat(NamedTuple):
    """How files of a format are recognized, and which class reads them."""

    reader: str  # module:class in this package, imported when a file of the format is opened
    endings: tuple[str, ...]
    magic: tuple[bytes, ...] = ()  # first bytes of a file
    is_text: bool = False  # text may be compressed as a whole


FORMATS = {
    "csv": FileFormat("csv:CsvTable", (".csv",), is_text=True),
    "tsv": FileFormat("csv:TsvTable", (".tsv", ".tab"), is_text=True),
    "jsonl": FileFormat("jsonl:JsonLinesTable", (".jsonl", ".ndjson", ".json"), is_text=True),
    "parquet": FileFormat("arrow:ParquetTable", (".parquet", ".pq"), (b"PAR1",)),
    "arrow": FileFormat("arrow:ArrowTable", (".arrow", ".feather", ".ipc"), (b"ARROW1", b"\xff\xff\xff\xff")),
    "npy": FileFormat("numpy:NpyTable", (".npy",), (b"\x93NUMPY",)),
    "npz": FileFormat("numpy:NpzTable", (".npz",), (b"PK\x03\x04",)),
}
COMPRESSIONS = {
    "gzip": (".gz", b"\x1f\x8b"),
    "bz2": (".bz2", b"BZh"),
    "zstd": (".zst", b"\x28\xb5\x2f\xfd"),
    "lz4": (".lz4", b"\x04\x22\x4d\x18"),
}


@dataclass(frozen=True)
class FileOptions:
    """How a file of votes is read: its format, and what its columns are."""

    format: str | None = None  # None: by the name of the file
    delimiter: str | None = None
    encoding: str = "utf-8"
    labelers: Sequence[str] = ()  # names or patterns; empty: every column that has no other role
    id: str | None = None
    time: str | None = None
    time_format: str | None = None  # of times that are text, as for strptime
    in_order: bool = False  # the lines of a long file are in time order already
    stream: str | None = None
    gold: str | None = None
    verified: str | None = None
    keep: Sequence[str] = ()
    drop: Sequence[str] = ()
    text: Sequence[str] = ()  # columns that stay text in a typed output
    task: str | None = None
    labeler: str | None = None
    label: str | None = None
    duplicates: str = "error"  # of a long file, one of DUPLICATES: which vote of a labeler on a task counts

    @property
    def long(self) -> bool:
        """Whether the file has one vote per line."""
        return any(name is not None for name in (self.task, self.labeler, self.label))


class FileError(DriftvoteError, ValueError):
    """A file that cannot be read as a table of votes."""


class Table(ABC):
    """A file with named columns."""

    textual = False  # whether all cells are text, as in CSV; other formats have types of their own
    word = "row"  # what a row is called in messages
    n_rows: int | None = None
    labelers: list[str] | None = None  # the columns of votes, named as the options name them, if the file tells
    classes: list[Any] | None = None  # the values that class codes in the file stand for, if the file tells
    batch_rows = BATCH
    notes: tuple[str, ...] = ()  # what was found out about the file, for the user

    def __init__(
        self, path: str | Path, options: FileOptions, shown: str | None = None, compression: str | None = None
    ) -> None:
        self.path = Path(path)
        self.shown = shown or str(path)
        self.compression = compression
        self.names: list[str] = []
        self._bytes: Any = None  # the open file, whose position tells how much has been read

    @abstractmethod
    def batches(self, columns: Sequence[str], votes: Collection[str] = ()) -> Iterator[Any]:
        """Record batches of these columns, in this order; text columns in `votes` come as dictionaries."""

    def place(self, row: int) -> str:
        """Where a row (counting from 0) stands in the file, for a person who opens it."""
        return f"{self.word} {row + 1:,}"

    def done(self) -> float | None:
        """Share of the file that the running `batches` has read, if it is known."""
        try:
            return float(self._bytes.tell() / self._bytes.size())
        except (AttributeError, ValueError, ZeroDivisionError):  # not begun, or the reading thread has just closed it
            return None

    def complete(self) -> None:  # noqa: B027 - most files have all names at their beginning
        """Make sure that `names` holds every column."""

    def labeler_of(self, column: str) -> str:
        """The name of the labeler whose votes a column holds."""
        return column

    def type_of(self, column: str) -> Any:
        """The Arrow type of a column, if it is known before reading."""
        return None

    def decode_classes(self, column: Any) -> Any:
        """A column of true classes in the values of the votes, where the file holds codes."""
        return column

    def error(self, sentence: str) -> FileError:
        """An error that names the file."""
        return FileError(f"{self.shown}: {sentence}")

    def require(self, columns: Sequence[str | None]) -> None:
        """Refuse names of columns that are not there."""
        for name in columns:
            if name is not None and name not in self.names:
                raise self.error(f"there is no column {name!r}; it has {quote_names(self.names)}")

    def refuse_repeated(self) -> None:
        """Refuse a name that two columns have."""
        for place, name in enumerate(self.names):
            first = self.names.index(name)
            if first < place:
                raise self.error(
                    f"column {name!r} appears twice in the header (columns {first + 1} and {place + 1}); rename"
                    " one of them"
                )

    @contextmanager
    def _open_bytes(self) -> Iterator[Any]:
        """The unpacked bytes of the file."""
        import pyarrow as pa

        with pa.OSFile(str(self.path)) as self._bytes:
            yield pa.CompressedInputStream(self._bytes, self.compression) if self.compression else self._bytes

    def _cut(self, batch: Any) -> Iterator[Any]:
        """A record batch in pieces of at most `batch_rows` rows."""
        for start in range(0, batch.num_rows, self.batch_rows):
            yield batch.slice(start, self.batch_rows)


def quote_names(names: Sequence[str], most: int = 12) -> str:
    """Names for a message, not too many."""
    some = ", ".join(repr(name) for name in names[:most])
    return some if len(names) <= most else f"{some} and {len(names) - most} more"


# -- opening -----------------------------------------------------------------------------------


@contextmanager
def open_table(path: str, options: FileOptions) -> Iterator[Table]:
    """The table in a file, or in standard input for "-".

    Standard input and named pipes are copied to a temporary file first: classes are found in one pass and votes read in
    another, and an error names its line.
    """
    is_pipe = path != "-" and Path(path).is_fifo()
    if path != "-" and not is_pipe:
        if Path(path).is_dir():
            raise DriftvoteError(f"{path}: this is a folder; name one file")
        kind, compression = format_of(path, options.format)
        yield _make_table(path, kind, compression, options)
        return
    if not is_pipe and (sys.stdin is None or sys.stdin.isatty()):
        raise DriftvoteError("-: standard input is a terminal; pipe a file into it, or name a file")
    with _spool() as (spool, name):
        if is_pipe:
            with open(path, "rb") as pipe:
                shutil.copyfileobj(pipe, spool)
        else:
            shutil.copyfileobj(sys.stdin.buffer, spool)
        spool.flush()
        kind, compression = sniff_format(name, options.format)
        yield _make_table(name, kind, compression, options, path if is_pipe else "standard input")


@contextmanager
def _spool() -> Iterator[tuple[Any, str]]:
    """A temporary file and a name to read it by; in no folder where the system allows that: a kill leaves nothing."""
    with tempfile.TemporaryFile() as unnamed:
        name = f"/proc/self/fd/{unnamed.fileno()}"
        if os.path.exists(name):
            yield unnamed, name
            return
    with tempfile.NamedTemporaryFile(prefix="driftvote-stdin-") as named:
        yield named, named.name


def _make_table(path: str, kind: str, compression: str | None, options: FileOptions, shown: str | None = None) -> Table:
    with open(path, "rb"):  # a file that is missing or may not be read is refused before anything else happens
        pass
    module, _, name = FORMATS[kind].reader.partition(":")
    reader = getattr(importlib.import_module(f"driftvote.files.{module}"), name)
    table: Table = reader(path, options, shown, compression)
    return table


def format_of(path: str | Path, name: str | None = None, option: str = "--from") -> tuple[str, str | None]:
    """Format and compression of a file by its ending; `name` overrules the ending.

    >>> format_of("votes.csv.gz"), format_of("votes.dat", "tsv")
    (('csv', 'gzip'), ('tsv', None))
    """
    path = Path(path)
    compression = next((kind for kind, (end, _) in COMPRESSIONS.items() if end == path.suffix.lower()), None)
    ending = (Path(path.stem) if compression else path).suffix.lower()
    if name is not None and name not in FORMATS:
        raise DriftvoteError(f"{option} {name}: there is no such format; choose one of {', '.join(FORMATS)}")
    kind = name or next((kind for kind, entry in FORMATS.items() if ending in entry.endings), None)
    if kind is None and ending in (".xlsx", ".xls", ".xlsm", ".ods"):
        raise DriftvoteError(f"{path}: this is a spreadsheet; save its sheet as CSV (UTF-8), and name that file")
    if kind is None:
        what = f"the ending {ending!r}" if ending else "a name without an ending"
        raise DriftvoteError(f"{path}: cannot tell the format from {what}; pass {option} {' | '.join(FORMATS)}")
    if compression and not FORMATS[kind].is_text:
        raise DriftvoteError(f"{path}: {kind} files are not compressed as a whole; unpack it first")
    return kind, compression


def sniff_format(path: str | Path, name: str | None = None) -> tuple[str, str | None]:
    """Format and compression of a file without a name, such as standard input, by its first bytes.

    Text that begins with a brace is JSON lines, other text is CSV.
    """
    with open(path, "rb") as file:
        head = file.read(256)
    compression = next((kind for kind, (_, magic) in COMPRESSIONS.items() if head.startswith(magic)), None)
    if name is None and compression is None:
        text = "jsonl" if head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{") else "csv"
        name = next((kind for kind, entry in FORMATS.items() if head.startswith(entry.magic)), text)
    return format_of("-", name or "csv")[0], compression
