"""Opening a file of votes, whatever its format; standard input is set down in a temporary file first."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from driftvote.errors import DriftvoteError
from driftvote.files.formats import format_of, sniffed
from driftvote.files.table import Table


@contextmanager
def opened(
    path: str,
    said: str | None = None,
    delimiter: str | None = None,
    encoding: str = "utf-8",
    labelers: Sequence[str] = (),
) -> Iterator[Table]:
    """The table in a file, or in standard input for "-" (it is read to its end first: classes are found in one pass
    and votes read in another, and an error names its line)."""
    if path != "-":
        if Path(path).is_dir():
            raise DriftvoteError(f"{path}: this is a folder; name one file")
        kind, squeezed = format_of(path, said)
        yield table_of(path, kind, squeezed, delimiter, encoding, labelers)
        return
    if sys.stdin is None or sys.stdin.isatty():
        raise DriftvoteError("-: standard input is a terminal; pipe a file into it, or name a file")
    with tempfile.NamedTemporaryFile(prefix="driftvote-stdin-") as spool:
        shutil.copyfileobj(sys.stdin.buffer, spool)
        spool.flush()
        kind, squeezed = sniffed(spool.name, said)
        yield table_of(spool.name, kind, squeezed, delimiter, encoding, labelers, "standard input")


def table_of(
    path: str,
    kind: str,
    squeezed: str | None,
    delimiter: str | None,
    encoding: str,
    labelers: Sequence[str] = (),
    shown: str | None = None,
) -> Table:
    """The reader for a format."""
    with open(path, "rb"):  # missing or closed files are named before anything else happens
        pass
    if kind in ("csv", "tsv"):
        from driftvote.files.csv_in import CsvTable

        mark = delimiter or ("\t" if kind == "tsv" else ",")
        mark = {"\\t": "\t", "tab": "\t"}.get(mark, mark)
        if len(mark) != 1:
            raise DriftvoteError(f"--delimiter must be one character, not {mark!r}")
        return CsvTable(path, mark, squeezed, encoding, shown)
    if kind == "jsonl":
        from driftvote.files.jsonl_in import JsonLinesTable

        return JsonLinesTable(path, squeezed, shown)
    if kind in ("npy", "npz"):
        from driftvote.files.arrays_in import ArraysTable

        return ArraysTable(path, kind, labelers, shown)
    from driftvote.files.arrow_in import ArrowTable, ParquetTable

    return ParquetTable(path, shown) if kind == "parquet" else ArrowTable(path, shown)
