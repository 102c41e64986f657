"""Work of Python tasks on Arrow batches: encode votes, find rows that cannot be labeled, label the others.

Nothing here uses pyspark. A task holds one batch and one model, whatever the number and the length of its streams.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from driftvote.arrays import Bools, Codes, Floats, Ints
from driftvote.errors import DriftvoteError, OrderError, VoteError
from driftvote.models import LabeledStream
from driftvote.spark.columns import ERROR_BOUND, LabelJob
from driftvote.votes import BAD, check_first_batch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_FIELDS = {"label": "codes", "window": "windows", ERROR_BOUND: "error_bounds"}
"""Fields of `LabeledStream` whose names differ from the output's."""


def label_partitions(frame: DataFrame, job: LabelJob, partitions: int | None) -> DataFrame:
    """Labels of all rows, each stream in one task, in the order of its times."""
    keys = job.aliases(job.key)
    rows = frame.select(*job.sent())
    rows = rows.repartition(*keys) if partitions is None else rows.repartition(partitions, *keys)
    rows = rows.sortWithinPartitions(*job.aliases(job.sorting))

    def task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return label_sorted(job.received(batches), job)

    return rows.mapInArrow(task, job.schema(frame))


def label_sorted(batches: Iterable[pa.RecordBatch], job: LabelJob) -> Iterator[pa.RecordBatch]:
    """Results for the batches of a partition, which are sorted by stream and time."""
    reader, check = RowReader(job), FormatCheck(job)
    model = job.new_model()
    for batch in batches:
        if not batch.num_rows:
            continue
        rows = reader.read(batch)
        check.add(rows)
        parts = []
        codes, starts = rows.good_codes, set(np.flatnonzero(rows.starts[rows.good]).tolist())
        for first, last in pairwise(sorted({0, *starts, len(codes)})):
            if first in starts and model.n_rows:
                model = job.new_model()
            parts.append(model.label_stream(codes[first:last]))
        yield rows.results(parts)
    check.finish()


@dataclass(frozen=True)
class TaskRows:
    """Rows of one Arrow batch, read."""

    job: LabelJob
    batch: pa.RecordBatch
    codes: Codes  # rows x labelers
    literal: bool  # whether some abstention was written out, not left empty
    problems: dict[int, DriftvoteError]  # by row
    good: Bools  # rows without a problem
    starts: Bools  # good rows that are the first of their stream

    @property
    def good_codes(self) -> Codes:
        return self.codes[self.good] if self.problems else self.codes

    def results(self, parts: Sequence[LabeledStream]) -> pa.RecordBatch:
        """Columns that pass through and outputs; rows with a problem have null outputs and the reason.

        `parts` are the results of the good rows, one after the other.
        """
        job, n_rows = self.job, self.batch.num_rows
        if parts:
            added = [_output(name, parts, job) for name in job.outputs]
        else:
            added = [pa.nulls(0, kind) for kind in job.arrow_types.values()]
        if self.problems:
            places = pa.array(np.cumsum(self.good) - 1, mask=~self.good)
            added = [array.take(places) for array in added]
        if job.rejected is not None:
            reasons = [str(self.problems[row]) if row in self.problems else None for row in range(n_rows)]
            added.append(pa.array(reasons, pa.string()))
        arrays = [self.batch.column(name) for name in job.passing] + added
        return pa.RecordBatch.from_arrays(arrays, names=[*job.passing, *job.added])


class RowReader:
    """Reads rows that come in the order of the job, batch after batch.

    It remembers the last row, so it does not matter where batches are cut.
    """

    def __init__(self, job: LabelJob, last: Sequence[pa.Array] | None = None) -> None:
        self.job = job
        self.last = last  # stream, time and order of the last good row, as arrays of length one

    def read(self, batch: pa.RecordBatch, late: Mapping[int, DriftvoteError] | None = None) -> TaskRows:
        """The rows, encoded, with the problems of those that cannot be labeled; `late` has problems by row.

        Without a column for rejected rows the problem of the first such row is raised.
        """
        codes, literal = self._encode(batch)
        problems = self._find_problems(batch, codes) | dict(late or {})
        good = np.ones(batch.num_rows, np.bool_)
        good[list(problems)] = False
        starts, repeats = self._compare(batch, good)
        if self.job.duplicates == "error":
            problems |= {row: self._repeated(batch, row) for row in np.flatnonzero(repeats).tolist()}
            good &= ~repeats
        if problems and self.job.rejected is None:
            raise problems[min(problems)]
        return TaskRows(self.job, batch, codes, literal, problems, good, starts)

    def find_good(self, batch: pa.RecordBatch) -> Bools:
        """Rows that can be labeled, repeated ones included; rows in any order."""
        good = np.ones(batch.num_rows, np.bool_)
        good[list(self._find_problems(batch, self._encode(batch)[0]))] = False
        return good

    def _encode(self, batch: pa.RecordBatch) -> tuple[Codes, bool]:
        """Class codes, and whether some abstention was written out."""
        columns = [self.job.form.encode_column(batch.column(name)) for name in self.job.labelers]
        # In C order: kernels run along rows, and sums of floats in another order would differ in their last bits.
        codes = np.ascontiguousarray(np.stack([encoded.codes for encoded in columns], axis=1))
        return codes, any(encoded.literal for encoded in columns)

    def _compare(self, batch: pa.RecordBatch, good: Bools) -> tuple[Bools, Bools]:
        """Good rows that start a stream, and good rows at the place of the good row before them."""
        starts, repeats = np.zeros(len(good), np.bool_), np.zeros(len(good), np.bool_)
        rows = np.flatnonzero(good)
        if not len(rows):
            return starts, repeats
        arrays = [batch.column(name).filter(pa.array(good)) for name in self.job.place]
        last, self.last = self.last, [array.slice(len(rows) - 1) for array in arrays]
        if last is None:
            starts[rows[0]] = True
            rows = rows[1:]
        else:
            arrays = [pa.concat_arrays(pair) for pair in zip(last, arrays, strict=True)]
        n_keys = len(self.job.key)
        new_stream = changes(arrays[:n_keys], len(rows))
        starts[rows] = new_stream
        repeats[rows] = ~new_stream & ~changes(arrays[n_keys:], len(rows))
        return starts, repeats

    # -- problems ------------------------------------------------------------------------------

    def _find_problems(self, batch: pa.RecordBatch, codes: Codes) -> dict[int, DriftvoteError]:
        """Rows without a stream or a time, or with a vote that has no meaning."""
        problems: dict[int, DriftvoteError] = {}
        for name in (*self.job.key, self.job.time):
            for row in np.flatnonzero(find_missing(batch.column(name))).tolist():
                problems.setdefault(row, self._no_place(batch, row, name))
        if codes.size and codes.min() <= BAD:
            for row, place in np.argwhere(codes == BAD).tolist():
                if row not in problems:
                    problems[row] = self._no_vote(batch, row, self.job.labelers[place])
        return problems

    def show_place(self, batch: pa.RecordBatch, row: int) -> str:
        """The stream and the time of a row, for a message."""
        names = (*self.job.key, self.job.time)
        return ", ".join(f"{name} {show_cell(batch.column(name), row)}" for name in names)

    def _no_place(self, batch: pa.RecordBatch, row: int, name: str) -> DriftvoteError:
        role = "time" if name == self.job.time else "key"
        place = f" ({self.show_place(batch, row)})" if self.job.key else ""
        return OrderError(
            f"{role} column {name!r} is {show_cell(batch.column(name), row)}{place}; every row needs a {role}: fill it"
            " in, remove such rows, or pass rejected='reason' to have them set apart"
        )

    def _no_vote(self, batch: pa.RecordBatch, row: int, name: str) -> DriftvoteError:
        value = batch.column(name)[row].as_py()
        message = self.job.form.refuse_at(self.show_place(batch, row), name, value)
        return VoteError(f"{message}, or pass rejected='reason' to have such rows set apart")

    def _repeated(self, batch: pa.RecordBatch, row: int) -> DriftvoteError:
        by = f" and {', '.join(self.job.order)}" if self.job.order else ""
        return OrderError(
            f"{self.show_place(batch, row)}: two rows have this time{by}, so their order is not defined; name columns"
            " that define it with order=[...], or pass duplicates='sort' (by their votes) or rejected='reason'"
        )


class FormatCheck:
    """Refuses an assumed vote format that does not fit the rows of a task; see `votes.check_first_batch`."""

    def __init__(self, job: LabelJob) -> None:
        self.job = job
        self.open = not job.form.declared and job.form.n_classes == 2  # a single vote for class 0 settles it
        self.n_rows = 0
        self.has_ones = self.literal = False

    def add(self, rows: TaskRows) -> None:
        """Look at further rows."""
        if not self.open:
            return
        self.open = not (rows.codes == 0).any()
        self.has_ones |= bool((rows.codes == 1).any())
        self.literal |= rows.literal
        self.n_rows += len(rows.codes)

    def finish(self) -> None:
        """Judge all rows that were added."""
        if self.open and self.has_ones and self.literal:
            check_first_batch(self.job.form, np.broadcast_to(np.int8(1), (self.n_rows, 1)), literal=True)


def find_missing(array: pa.Array) -> Bools:
    """Where an array is null or NaN."""
    if pa.types.is_floating(array.type):
        return np.asarray(np.isnan(array.to_numpy(zero_copy_only=False)))  # null becomes NaN
    return np.asarray(array.is_null().to_numpy(zero_copy_only=False))


def show_cell(array: pa.Array, row: int) -> str:
    """One value, for a message."""
    value = array[row].as_py()
    if value is None:
        return "null"
    text = str(value) if hasattr(value, "isoformat") else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def changes(arrays: Sequence[pa.Array], n_pairs: int) -> Bools:
    """For each two neighbours, whether any of the columns differs between them."""
    changed = np.zeros(n_pairs, np.bool_)
    for array in arrays:
        now, before = array.slice(1), array.slice(0, n_pairs)
        differs = pc.not_equal(now, before)
        if pa.types.is_floating(array.type):  # in Spark NaN is equal to NaN
            differs = pc.and_(differs, pc.invert(pc.and_(pc.is_nan(now), pc.is_nan(before))))
        if array.null_count:
            differs = pc.or_(differs.fill_null(False), pc.not_equal(now.is_null(), before.is_null()))
        changed |= differs.to_numpy(zero_copy_only=False)
    return changed


def _output(name: str, parts: Sequence[LabeledStream], job: LabelJob) -> pa.Array:
    """One output of all parts as an Arrow array."""
    values = np.concatenate([getattr(part, _FIELDS.get(name, name)) for part in parts])
    if name == "label":
        return _labels(values, job)
    return _lists(values) if values.ndim == 2 else pa.array(values.astype(job.arrow_types[name].to_pandas_dtype()))


def _labels(codes: Ints, job: LabelJob) -> pa.Array:
    """Class values; a tie becomes the declared abstention, or null where that has another type."""
    form = job.form
    if form.name == "snorkel":
        return pa.array(codes)
    fits = form.abstain is not None and type(form.abstain) in {type(value) for value in form.classes}
    table = pa.array([*form.classes, form.abstain if fits else None], job.arrow_types["label"])
    return table.take(pa.array(np.where(codes < 0, len(form.classes), codes)))


def _lists(table: Floats) -> pa.Array:
    """Rows of a table as lists."""
    n_rows, width = table.shape
    offsets = pa.array(np.arange(n_rows + 1, dtype=np.int32) * np.int32(width))
    return pa.ListArray.from_arrays(offsets, pa.array(np.ascontiguousarray(table).ravel()))
