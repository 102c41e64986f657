"""Tables of votes to write: a column for each labeler, one vote a line, or arrays of codes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from driftvote.cli.inputs import Votes
from driftvote.cli.outputs import Columns
from driftvote.errors import DriftvoteError
from driftvote.files.arrays_in import CLASSES, LABELERS, VOTES
from driftvote.files.arrays_out import NpyWriter, NpzWriter
from driftvote.files.rows import VoteRows
from driftvote.files.writers import writer_for
from driftvote.votes import VoteFormat


class WideVotes:
    """A column for each labeler, in the order of the file; no vote is an empty cell."""

    def __init__(self, votes: Votes, kind: str, file: Any) -> None:
        self._writer = writer_for(kind, file)
        self._names = votes.table.names
        self._columns = Columns(votes.form, (), 0.0)
        self.typed = self._writer.typed

    def write(self, rows: VoteRows) -> None:
        """Add rows."""
        found = dict(zip(rows.kept.schema.names, rows.kept.columns, strict=True))
        for place, name in enumerate(rows.labelers):
            if name in found:
                raise DriftvoteError(f"labeler {name!r} has the name of another column; rename one of them")
            found[name] = self._columns.votes(rows.codes[:, place])
        order = [name for name in self._names if name in found]
        order += [name for name in found if name not in order]
        self._writer.write(pa.RecordBatch.from_arrays([found[name] for name in order], names=order))

    def notes(self) -> list[str]:
        return []

    def close(self) -> None:
        self._writer.close()

    def abandon(self) -> None:
        self._writer.abandon()


class LongVotes:
    """One vote a line: task, labeler, label, time, and gold and stream where there are any."""

    def __init__(self, votes: Votes, kind: str, file: Any) -> None:
        self._writer = writer_for(kind, file)
        self._roles = votes.roles
        self._columns = Columns(votes.form, (), 0.0)
        self.typed = self._writer.typed

    def write(self, rows: VoteRows) -> None:
        """Add the votes of rows; abstentions are lines that are not there."""
        roles, kept = self._roles, rows.kept
        row_of, who = np.nonzero(rows.codes >= 0)
        names = kept.schema.names
        tasks = kept.column(roles.id) if roles.id in names else pa.array(rows.rows)
        times = kept.column(roles.time) if roles.time in names else pa.array(rows.rows)
        found: dict[str, Any] = {}
        if roles.stream is not None and roles.stream in names:
            found[roles.stream] = kept.column(roles.stream).take(pa.array(row_of))
        found[roles.id or "task"] = tasks.take(pa.array(row_of))
        labelers = pa.array(list(rows.labelers), pa.string())
        found[roles.labeler or "labeler"] = pa.DictionaryArray.from_arrays(pa.array(who.astype(np.int32)), labelers)
        found[roles.label or "label"] = self._columns.votes(rows.codes[row_of, who])
        found[roles.time or "time"] = times.take(pa.array(row_of))
        if roles.gold is not None and roles.gold in names:
            found[roles.gold] = kept.column(roles.gold).take(pa.array(row_of))
        self._writer.write(pa.RecordBatch.from_arrays(list(found.values()), names=list(found)))

    def notes(self) -> list[str]:
        return []

    def close(self) -> None:
        self._writer.close()

    def abandon(self) -> None:
        self._writer.abandon()


class ArrayVotes:
    """Class codes, rows x labelers; an NPZ also names labelers and classes and keeps columns of numbers."""

    typed = True

    def __init__(self, form: VoteFormat, kind: str, file: Any, gold: str | None = None) -> None:
        self._gold = gold
        self.form = form
        self.kind = kind
        self._writer: Any = NpyWriter(file) if kind == "npy" else NpzWriter(file)
        self._labelers: tuple[str, ...] = ()
        self._left_out: list[str] = []

    def write(self, rows: VoteRows) -> None:
        """Add rows."""
        self._labelers = rows.labelers
        self._writer.add_rows(VOTES, rows.codes)
        if self.kind == "npz":
            self._writer.write(_with_codes(rows, self._gold))
        else:
            self._left_out = list(rows.kept.schema.names)

    def notes(self) -> list[str]:
        codes = ", ".join(f"{code} {value}" for code, value in enumerate(self.form.classes[:10]))
        said = [f"codes    {codes}; -1 is no vote"]
        if self._left_out:
            said.append(f"note: an NPY holds votes only; left out: {', '.join(self._left_out)} (an NPZ keeps numbers)")
        return said

    def close(self) -> None:
        self._writer.add_whole(LABELERS, self._labelers)
        self._writer.add_whole(CLASSES, self.form.classes)
        self._writer.close()

    def abandon(self) -> None:
        self._writer.abandon()


def _with_codes(rows: VoteRows, gold: str | None) -> Any:
    """What passes through, with the truth in codes as the votes are."""
    names = rows.kept.schema.names
    if gold not in names:
        return rows.kept
    arrays = [
        pa.array(rows.gold) if name == gold else array for name, array in zip(names, rows.kept.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, names=names)
