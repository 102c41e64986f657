"""The file of a stream: SQLite with rows, labels, events, answers and snapshots of the model.

One file for each stream. Measured on two cores with 200 streams and one durable commit for each row: files of their own
take 5,500 commits a second from four threads (the file system syncs them together), one file for all takes 500, or as
many rows as are put into one transaction. Both are enough; files of their own are deleted, copied and damaged one by
one, and a long export or a large delete holds up no other stream.

The log is written ahead (WAL) with `synchronous=FULL`: a commit that returned is on disk. Rows are numbered from 0.
Those of one turn are stored together, by columns. Only where an id is, and the field `data`, are stored row by row,
each with one statement: with one for each row, Python would offer its lock to the other threads after each of them.
An answer stands between rows: `at_row` rows had been learned when it came. So rows and answers together say in which
order everything happened, and a snapshot says how much of both it holds.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from driftvote.arrays import Codes
from driftvote.errors import DriftvoteError
from driftvote.files.atomic import sync_folder
from driftvote.models import LabeledStream

VERSION = 2
MOST_POINTS = 600
"""Points of the timeline; with more, every second one is dropped."""

_SCHEMA = """
create table facts (name text primary key, value text not null) without rowid;
create table labelers (place integer primary key, name text not null unique, row integer not null);
create table batches (first integer primary key, n_rows integer not null, at real not null, votes blob not null,
    codes blob not null, probability blob not null, windows blob not null, ids text not null, times text);
create table ids (id text primary key, row integer not null) without rowid;
create table data (row integer primary key, body text not null);
create table events (number integer primary key, row integer not null, body text not null);
create table answers (number integer primary key, at_row integer not null, row integer not null, id text not null,
    code integer not null, at real not null, taken_back integer not null default 0);
create table points (row integer primary key, body text not null);
create table snapshots (row integer not null, answers integer not null, body blob not null, primary key (row, answers));
"""


class StoredRow(NamedTuple):
    """A row as it is stored, with the label that was given."""

    row: int
    id: str
    time: Any
    votes: bytes
    code: int
    probability: float
    window: int


class StoredBatch(NamedTuple):
    """Consecutive rows as they are stored: columns of numbers, and lists in JSON."""

    first: int
    n_rows: int
    at: float  # when they were written
    votes: bytes
    codes: bytes
    probability: bytes
    windows: bytes
    ids: str
    times: str | None  # None: no row has one

    @classmethod
    def of(cls, out: LabeledStream, ids: list[str], times: list[Any]) -> StoredBatch:
        """Return labeled rows as they are stored."""
        numbers = out.votes, out.codes.astype("<i4"), out.probability.astype("<f8"), out.windows.astype("<i8")
        votes, codes, probability, windows = (one.tobytes() for one in numbers)
        listed = json.dumps(ids, ensure_ascii=False), json.dumps(times) if times.count(None) < len(times) else None
        return cls(out.first_row, len(ids), time.time(), votes, codes, probability, windows, *listed)

    def rows(self, places: Iterable[int]) -> list[StoredRow]:
        """Return the rows at these places."""
        columns: tuple[Any, ...] = (
            json.loads(self.ids),
            [None] * self.n_rows if self.times is None else json.loads(self.times),
            np.frombuffer(self.votes, f"V{len(self.votes) // self.n_rows}").tolist(),
            np.frombuffer(self.codes, "<i4").tolist(),
            np.frombuffer(self.probability, "<f8").tolist(),
            np.frombuffer(self.windows, "<i8").tolist(),
        )
        return [StoredRow(self.first + place, *(column[place] for column in columns)) for place in places]

    def since(self, place: int) -> StoredBatch:
        """Return the rows from a place on."""
        columns = (self.votes, self.codes, self.probability, self.windows)
        votes, codes, probability, windows = (one[place * (len(one) // self.n_rows) :] for one in columns)
        ids, times = (json.dumps(json.loads(one)[place:]) if one else "" for one in (self.ids, self.times))
        first, n_rows = self.first + place, self.n_rows - place
        return StoredBatch(first, n_rows, self.at, votes, codes, probability, windows, ids, times or None)


class Answer(NamedTuple):
    """A verified class, given when `at_row` rows had been learned."""

    number: int
    at_row: int
    row: int
    id: str
    code: int


_BATCH = ", ".join(StoredBatch._fields)
_ANSWER = "number, at_row, row, id, code"


def file_name(name: str) -> str:
    """Return the name of a stream's file: a hash, so that no name is a path, or too long, or differs only in case."""
    return f"{sha256(name.encode()).hexdigest()[:40]}.sqlite"


class StreamStore:
    """One stream's file. Writing is for one thread at a time; `reading` opens a connection for any other."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._db = _connect(path)
        version = self._db.execute("pragma user_version").fetchone()[0]
        if version != VERSION:
            self._db.close()
            raise DriftvoteError(
                f"{path}: this is not a stream that this version of driftvote serve can read (its format is {version},"
                f" not {VERSION}); send its votes again, to a new data folder"
            )

    @classmethod
    def create(cls, path: Path, facts: dict[str, Any]) -> StreamStore:
        """Create the file of a stream; it appears under its name when it is whole."""
        part = path.with_suffix(".part")
        for leftover in _files(part):
            leftover.unlink(missing_ok=True)
        with closing(_connect(part, "rwc")) as db:
            db.executescript(f"pragma auto_vacuum = incremental; vacuum; begin; {_SCHEMA}")
            for name, value in facts.items():
                db.execute("insert into facts values (?, ?)", (name, json.dumps(value)))
            db.execute(f"pragma user_version = {VERSION}")
            db.execute("commit")
        for leftover in _files(path)[1:]:  # the log of a deleted stream must not become this one's
            leftover.unlink(missing_ok=True)
        os.replace(part, path)
        sync_folder(path.parent)
        return cls(path)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit what is written inside, durably, or nothing of it."""
        self._db.execute("begin immediate")
        try:
            yield
            self._db.execute("commit")
        except BaseException:
            with suppress(sqlite3.Error):
                self._db.execute("rollback")
            raise

    @contextmanager
    def reading(self) -> Iterator[StreamReader]:
        """A connection of its own that sees the last commit."""
        with closing(_connect(self.path)) as db:
            db.execute("pragma query_only = on")
            yield StreamReader(db)

    @property
    def reader(self) -> StreamReader:
        """What is stored, as the writing thread sees it."""
        return StreamReader(self._db)

    def close(self) -> None:
        """Close the file; the log is merged into it."""
        self._db.close()

    def delete(self) -> None:
        """Remove the file."""
        self._db.close()
        for path in _files(self.path):
            path.unlink(missing_ok=True)
        sync_folder(self.path.parent)

    # -- writing, inside of a transaction ------------------------------------------------------

    def set_fact(self, name: str, value: Any) -> None:
        """Write a fact about the stream."""
        self._db.execute("insert or replace into facts values (?, ?)", (name, json.dumps(value)))

    def add_rows(self, batch: StoredBatch, data: Sequence[str | None]) -> None:
        """Append rows, and the JSON of their field `data`."""
        self._add_batch(batch)
        self._db.execute("insert into ids select value, ? + key from json_each(?)", (batch.first, batch.ids))
        if any(data):
            text = f"[{','.join(one or 'null' for one in data)}]"
            self._db.execute(
                "insert into data select ? + key, value from json_each(?) where type = 'object'", (batch.first, text)
            )

    def _add_batch(self, batch: StoredBatch) -> None:
        self._db.execute("insert into batches values (?, ?, ?, ?, ?, ?, ?, ?, ?)", batch)

    def add_labeler(self, place: int, name: str, row: int) -> None:
        """Add a labeler that joined at a row."""
        self._db.execute("insert into labelers values (?, ?, ?)", (place, name, row))

    def add_event(self, number: int, row: int, body: dict[str, Any]) -> None:
        """Add a drift event."""
        self._db.execute("insert into events values (?, ?, ?)", (number, row, json.dumps(body)))

    def add_answer(self, at_row: int, row: int, row_id: str, code: int) -> int:
        """Add a verified class; its number comes back."""
        values = (at_row, row, row_id, code, time.time())
        found = self._db.execute("insert into answers (at_row, row, id, code, at) values (?, ?, ?, ?, ?)", values)
        return int(found.lastrowid or 0)

    def take_back(self, row_id: str) -> None:
        """Mark every answer to a row as taken back."""
        self._db.execute("update answers set taken_back = 1 where id = ?", (row_id,))

    def add_points(self, points: Sequence[dict[str, Any]]) -> None:
        """Add points of the timeline."""
        self._db.executemany(
            "insert or replace into points values (?, ?)", [(one["row"], json.dumps(one)) for one in points]
        )

    def thin_points(self, step: int) -> None:
        """Keep the points at multiples of `step` rows."""
        self._db.execute("delete from points where (row + 1) % ?", (step,))

    def add_snapshot(self, row: int, answers: int, body: bytes) -> None:
        """Add a snapshot of the model; of earlier ones, few that are old are kept: one for each doubling of the age."""
        self._db.execute("insert or replace into snapshots values (?, ?, ?)", (row, answers, body))
        kept: set[int] = set()
        for old, old_answers in self._db.execute("select row, answers from snapshots order by row desc, answers desc"):
            age = (row - old).bit_length()
            if age in kept:
                self._db.execute("delete from snapshots where row = ? and answers = ?", (old, old_answers))
            kept.add(age)

    def drop_snapshots(self, after_answer: int) -> None:
        """Drop the snapshots that hold this answer."""
        self._db.execute("delete from snapshots where answers >= ?", (after_answer,))

    def drop_rows(self, before: int) -> int:
        """Drop the rows before this one, but for the last of all; how many were dropped comes back."""
        before = min(before, self.reader.count_rows() - 1)  # the last row tells how many there were
        dropped = before - self.reader.first_row()
        self._db.execute("delete from snapshots where row < ?", (before,))
        self._db.execute("delete from data where row < ?", (before,))
        self._db.execute(
            "delete from ids where id in (select value from batches, json_each(batches.ids) where first + key < ?1"
            " and first < ?1)",
            (before,),
        )
        cut = self.reader.batch_at(before)
        self._db.execute("delete from batches where first < ?", (before,))
        if cut.first < before:
            self._add_batch(cut.since(before - cut.first))
        self._db.execute("pragma incremental_vacuum(1000)").fetchall()
        return dropped


class StreamReader:
    """What a stream's file holds."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def fact(self, name: str, default: Any = None) -> Any:
        """Return a fact about the stream."""
        found = self._db.execute("select value from facts where name = ?", (name,)).fetchone()
        return default if found is None else json.loads(found[0])

    def count_rows(self) -> int:
        """Return how many rows were ever stored."""
        found = self._db.execute("select first + n_rows from batches order by first desc limit 1").fetchone()
        return 0 if found is None else int(found[0])

    def first_row(self) -> int:
        """Return the number of the oldest row that is still stored."""
        found = self._db.execute("select min(first) from batches").fetchone()[0]
        return 0 if found is None else int(found)

    def first_row_since(self, moment: float) -> int:
        """Return the first row that arrived at this moment or later."""
        low, high = self.first_row(), self.count_rows()
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if self.batch_at(middle).at < moment else (low, middle)
        return low

    def batch_at(self, row: int) -> StoredBatch:
        """Return the batch that holds a row which is stored."""
        found = self._db.execute(f"select {_BATCH} from batches where first <= ? order by first desc limit 1", (row,))
        return StoredBatch(*found.fetchone())

    def _batches(self, first: int, last: int) -> list[tuple[StoredBatch, range]]:
        """Return the batches that hold rows from `first` up to, without, `last`, and the places of these rows."""
        found = self._db.execute(
            f"select {_BATCH} from batches where first < ? and first >= coalesce((select max(first) from batches where"
            " first <= ?), 0) order by first",
            (last, first),
        )
        batches = (StoredBatch(*one) for one in found)
        return [(one, range(max(0, first - one.first), min(one.n_rows, last - one.first))) for one in batches]

    def rows(self, first: int, last: int) -> list[StoredRow]:
        """Return the rows from `first` up to, without, `last`."""
        return [row for batch, places in self._batches(first, last) for row in batch.rows(places)]

    def rows_by_id(self, ids: Sequence[str]) -> dict[str, StoredRow]:
        """Return the rows that have these ids."""
        found = self._db.execute(
            "select row from ids where id in (select value from json_each(?)) order by row", (json.dumps(ids),)
        )
        return {row.id: row for row in self.rows_at([row for (row,) in found]).values()}

    def rows_at(self, numbers: Iterable[int]) -> dict[int, StoredRow]:
        """Return the rows with these numbers, those that are still stored."""
        found: dict[int, StoredRow] = {}
        first, last = self.first_row(), self.count_rows()
        waiting = deque(sorted({row for row in numbers if first <= row < last}))
        while waiting:
            batch, places = self.batch_at(waiting[0]), []
            while waiting and waiting[0] < batch.first + batch.n_rows:
                places.append(waiting.popleft() - batch.first)
            found |= {row.row: row for row in batch.rows(places)}
        return found

    def data(self, row: int) -> Any:
        """Return the field `data` of a row."""
        found = self._db.execute("select body from data where row = ?", (row,)).fetchone()
        return None if found is None else json.loads(found[0])

    def votes(self, first: int, last: int, n_labelers: int, dtype: np.dtype[Any]) -> Codes:
        """Return the votes of consecutive rows; a labeler that joined later abstains."""
        parts = self._batches(first, last)
        found = np.full((sum(len(places) for _, places in parts), n_labelers), -1, dtype)
        begin = 0
        for batch, places in parts:
            votes = np.frombuffer(batch.votes, dtype).reshape(batch.n_rows, -1)[places.start : places.stop]
            found[begin : begin + len(votes), : votes.shape[1]] = votes
            begin += len(votes)
        return found

    def labelers(self) -> list[tuple[str, int]]:
        """Return the labelers in their order, each with the row at which it joined."""
        return list(self._db.execute("select name, row from labelers order by place"))

    def events(self, after: int = 0, most: int = 1_000) -> list[dict[str, Any]]:
        """Return events with larger numbers than `after`."""
        found = self._db.execute("select body from events where number > ? order by number limit ?", (after, most))
        return [json.loads(body) for (body,) in found]

    def last_events(self, most: int) -> list[dict[str, Any]]:
        """Return the latest events, oldest first."""
        found = self._db.execute("select body from events order by number desc limit ?", (most,))
        return [json.loads(body) for (body,) in found][::-1]

    def events_at(self, first: int, last: int) -> list[dict[str, Any]]:
        """Return the events of rows from `first` to `last`."""
        found = self._db.execute("select body from events where row between ? and ? order by number", (first, last))
        return [json.loads(body) for (body,) in found]

    def count_events(self) -> int:
        """Return how many events there were."""
        return int(self._db.execute("select count(*) from events").fetchone()[0])

    def answers(self, after: int = 0) -> list[Answer]:
        """Return the answers that count, in order, with larger numbers than `after`."""
        found = self._db.execute(
            f"select {_ANSWER} from answers where number > ? and not taken_back order by number", (after,)
        )
        return [Answer(*one) for one in found]

    def answers_to(self, row_id: str) -> list[Answer]:
        """Return the answers to a row that count."""
        found = self._db.execute(f"select {_ANSWER} from answers where id = ? and not taken_back", (row_id,))
        return [Answer(*one) for one in found]

    def last_answers(self, most: int) -> tuple[int, list[Answer]]:
        """Return how many rows have an answer, and the latest answers."""
        count = self._db.execute("select count(distinct id) from answers where not taken_back").fetchone()[0]
        found = self._db.execute(
            f"select {_ANSWER} from answers where not taken_back order by number desc limit ?", (most,)
        )
        return int(count), [Answer(*one) for one in found]

    def last_answer_number(self) -> int:
        """Return the largest number that an answer has, taken back or not."""
        return int(self._db.execute("select coalesce(max(number), 0) from answers").fetchone()[0])

    def points(self, after: int = -1) -> list[dict[str, Any]]:
        """Return the points of the timeline after a row."""
        found = self._db.execute("select body from points where row > ? order by row", (after,))
        return [json.loads(body) for (body,) in found]

    def count_points(self) -> int:
        """Return how many points the timeline has."""
        return int(self._db.execute("select count(*) from points").fetchone()[0])

    def snapshots(self) -> list[tuple[int, int]]:
        """Return row and last answer of each snapshot, newest first."""
        return list(self._db.execute("select row, answers from snapshots order by row desc, answers desc"))

    def snapshot(self, row: int, answers: int) -> bytes:
        """Return the body of a snapshot."""
        found = self._db.execute("select body from snapshots where row = ? and answers = ?", (row, answers))
        return bytes(found.fetchone()[0])


def _connect(path: Path, mode: str = "rw") -> sqlite3.Connection:
    """Open a file; with the mode "rw" one that is gone is an error, where SQLite would make an empty one."""
    address = f"{path.absolute().as_uri()}?mode={mode}"
    db = sqlite3.connect(address, uri=True, timeout=30.0, isolation_level=None, check_same_thread=False)
    db.execute("pragma journal_mode = wal")
    db.execute("pragma synchronous = full")
    db.execute("pragma cache_size = -8000")
    db.execute("pragma journal_size_limit = 67108864")
    return db


def _files(path: Path) -> list[Path]:
    return [path, path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")]


def list_stores(folder: Path) -> list[Path]:
    """Return the files of streams in a data folder."""
    return sorted((folder / "streams").glob("*.sqlite"))


def back_up(data: Path, out: Path) -> int:
    """Copy every stream of a data folder, also while it is served; each copy is whole. Returns how many there are."""
    if not (data / "streams").is_dir():
        raise DriftvoteError(f"{data}: this is not the data folder of a service; it has no folder 'streams'")
    if out.exists():
        raise DriftvoteError(f"{out}: there is something of this name already; name a new folder")
    part = out.with_name(f".{out.name}.part")
    shutil.rmtree(part, ignore_errors=True)  # of a copy that was cut off
    part.mkdir(mode=0o700, parents=True)
    (part / "streams").mkdir()
    try:
        found = sum(_copy(path, part / "streams" / path.name) for path in list_stores(data))
        sync_folder(part / "streams")
        os.replace(part, out)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
    sync_folder(out.parent)
    return found


def _copy(path: Path, out: Path) -> bool:
    """Copy a stream as it is at one moment; False if it was deleted meanwhile."""
    try:
        with closing(_connect(path)) as source, closing(sqlite3.connect(out)) as copy:
            source.backup(copy)  # in one step: with several, each write to the source begins it anew
            copy.execute("pragma journal_mode = delete")
    except sqlite3.Error as problem:
        if path.exists():
            raise DriftvoteError(f"{path}: this stream cannot be copied ({problem}); nothing was") from None
        out.unlink(missing_ok=True)
        return False
    with open(out, "rb") as file:
        os.fsync(file.fileno())
    return True
