"""`driftvote convert`: votes from one format to another, and between wide and long."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import typer

from driftvote.cli.label import output_format
from driftvote.cli.options import Force, InputOptions, Json, Quiet, SafeCsv, To, print_summary, takes_options
from driftvote.cli.pipeline import ResultColumns, VoteFile, check_paths, open_votes, read_ahead
from driftvote.cli.progress import rows_done
from driftvote.errors import DriftvoteError
from driftvote.files.atomic import WholeFiles
from driftvote.files.numpy import CLASSES, LABELERS, VOTES
from driftvote.files.rows import VoteRows
from driftvote.files.write import NpyWriter, NpzWriter, Writer, closing_writer, open_writer


@takes_options()
def convert(
    votes: InputOptions,
    out: Annotated[str, typer.Argument(help="File to write; the ending is the format.")],
    long: Annotated[bool, typer.Option("--long", help="Write one vote per line.")] = False,
    to: To = None,
    safe_csv: SafeCsv = False,
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Convert votes between formats, and between one column a labeler and one vote per line.

    Example: driftvote convert votes.csv votes.parquet
    """
    check_paths(votes.file, {"output": out}, force)
    votes.refuse_verified()
    kind = output_format(out, to)
    if safe_csv and kind not in ("csv", "tsv"):
        raise DriftvoteError(f"{out}: --safe-csv is about .csv and .tsv; text in {kind} files is never a formula")
    if long and kind in ("npy", "npz"):
        raise DriftvoteError(f"{out}: one vote per line is text or Parquet; name it .csv, .jsonl or .parquet")
    with open_votes(votes) as file, WholeFiles() as files:
        writer: ArrayWriter | TableWriter
        if kind in ("npy", "npz"):
            writer = ArrayWriter(file, kind, files.open(out))
        else:
            writer = TableWriter(file, open_writer(kind, files.open(out), out, safe_csv), long)
        done = cells = 0
        with rows_done("converting", quiet) as listen, closing_writer(writer, out):
            for rows in read_ahead(file.batches(writer.typed)):
                writer.write(rows)
                done += len(rows)
                cells += int((rows.codes >= 0).sum())
                listen(done, file.table.done())
    summary: dict[str, Any] = {**file.to_dict(), "rows": done, "votes": cells, "outputs": {"output": out}}
    read = f"read     {file.table.shown}: {done:,} rows, {cells:,} votes; classes {file.describe_classes()}"
    print_summary(summary, [*file.notes, read, *writer.notes(), f"wrote    {out}"], as_json, quiet)


class TableWriter:
    """Writes votes as a table: a column for each labeler in the order of the file, or one vote per line."""

    def __init__(self, votes: VoteFile, writer: Writer, long: bool) -> None:
        self._writer = writer
        self._votes = votes
        self._values = ResultColumns(votes.form)
        self._long = long
        self.typed = self._writer.typed
        self.close = self._writer.close
        self.abandon = self._writer.abandon

    def write(self, rows: VoteRows) -> None:
        """Add rows."""
        import pyarrow as pa

        columns = self._long_columns(rows) if self._long else self._wide_columns(rows)
        self._writer.write(pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns)))

    def notes(self) -> list[str]:
        """Lines for the printed summary."""
        return []

    def _wide_columns(self, rows: VoteRows) -> dict[str, Any]:
        columns = dict(zip(rows.kept.schema.names, rows.kept.columns, strict=True))
        for place, name in enumerate(rows.labelers):
            if name in columns:
                raise DriftvoteError(f"labeler {name!r} has the name of another column; rename one of them")
            columns[name] = self._values.votes(rows.codes[:, place])
        order = [name for name in self._votes.table.names if name in columns]
        return {name: columns[name] for name in dict.fromkeys([*order, *columns])}

    def _long_columns(self, rows: VoteRows) -> dict[str, Any]:
        """Columns with a line for each vote; abstentions have none."""
        import pyarrow as pa

        roles, kept = self._votes.roles, rows.kept
        row_of, who = np.nonzero(rows.codes >= 0)
        names, lines = kept.schema.names, pa.array(row_of)
        numbers = pa.array(rows.rows)
        columns: dict[str, Any] = {}
        if roles.stream is not None and roles.stream in names:
            columns[roles.stream] = kept.column(roles.stream).take(lines)
        columns[roles.id or "task"] = (kept.column(roles.id) if roles.id in names else numbers).take(lines)
        labelers = pa.array(list(rows.labelers), pa.string())
        columns[roles.labeler or "labeler"] = pa.DictionaryArray.from_arrays(pa.array(who.astype(np.int32)), labelers)
        columns[roles.label or "label"] = self._values.votes(rows.codes[row_of, who])
        columns[roles.time or "time"] = (kept.column(roles.time) if roles.time in names else numbers).take(lines)
        if roles.gold is not None and roles.gold in names:
            columns[roles.gold] = kept.column(roles.gold).take(lines)
        return columns


class ArrayWriter:
    """Writes class codes, rows x labelers; an NPZ also holds labelers, classes and columns of numbers."""

    typed = True

    def __init__(self, votes: VoteFile, kind: str, file: Any) -> None:
        self._votes = votes
        self._kind = kind
        self._writer: Any = NpyWriter(file) if kind == "npy" else NpzWriter(file)
        self._labelers: tuple[str, ...] = ()
        self._ignored: list[str] = []
        self.abandon = self._writer.abandon

    def write(self, rows: VoteRows) -> None:
        """Add rows; in an NPZ the column of true classes holds codes, as the votes do."""
        import pyarrow as pa

        self._labelers = rows.labelers
        self._writer.add_rows(VOTES, rows.codes)
        names = rows.kept.schema.names
        if self._kind == "npy":
            self._ignored = list(names)
            return
        kept, gold = rows.kept, self._votes.roles.gold
        if gold in names:
            kept = kept.set_column(names.index(gold), gold, pa.array(rows.gold))
        self._writer.write(kept)

    def notes(self) -> list[str]:
        """Lines for the printed summary."""
        codes = ", ".join(f"{code} {value}" for code, value in enumerate(self._votes.form.classes[:10]))
        lines = [f"codes    {codes}; -1 is no vote"]
        if self._ignored:
            lines.append(f"note: an NPY holds votes only; left out: {', '.join(self._ignored)} (an NPZ keeps numbers)")
        return lines

    def close(self) -> None:
        """End the file."""
        self._writer.add_whole(LABELERS, self._labelers)
        self._writer.add_whole(CLASSES, self._votes.form.classes)
        self._writer.close()
