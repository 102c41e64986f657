"""One stream among many, micro-batch after micro-batch: order the rows, refuse or drop what is wrong, label the rest.

No pyspark here: the state is whatever has the methods of Spark's, and rows are Arrow.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from driftvote.errors import DriftvoteError, OrderError, StateError
from driftvote.kernels.layout import Bools, Codes
from driftvote.models import LabeledStream
from driftvote.models.keepers import keeper_for
from driftvote.spark.chunked_state import ChunkedState, Chunks, Notes, Value
from driftvote.spark.columns import Plan
from driftvote.spark.packing import from_bytes, to_bytes
from driftvote.spark.rows import Problem, missing
from driftvote.spark.tasks import SortedRows, label_codes, results
from driftvote.votes import check_first_batch

LATE_ROWS = "late_rows"


@dataclass(frozen=True)
class Seed:
    """What a stream begins with: the state of a saved model, as the store would hold it."""

    value: bytes
    chunks: dict[int, bytes]
    last_time: tuple[str, Any] | None

    def read(self) -> Seed:
        """Itself; one that was sent as a file is read there."""
        return self


@dataclass(frozen=True)
class Policy:
    """What a stream does with rows that come late, how long it is kept, and what it begins with."""

    late: str = "error"
    ttl: int | None = None  # milliseconds
    seeds: dict[str | None, Any] = field(default_factory=dict)  # by stream; None: any other one

    def seed(self, key: str) -> Seed | None:
        found = self.seeds.get(key, self.seeds.get(None))
        return None if found is None else found.read()


class KeyedStreams:
    """Labels the rows of one stream after the other, each from its state in the store."""

    def __init__(self, plan: Plan, policy: Policy, value: Value, chunks: Chunks) -> None:
        self.plan, self.policy = plan, policy
        self.value, self.chunks = value, chunks
        self.keeper = keeper_for(plan.model.new())
        self.state = ChunkedState(self.keeper, value, chunks)

    def label(self, key: str, batches: Sequence[Any], now: int) -> tuple[list[Any], bool]:
        """Results for rows of the stream that the store is at, as Arrow batches; and whether the stream is new."""
        batch = self._sorted(pa.Table.from_batches(batches).combine_chunks().to_batches()[0])
        try:
            notes, is_new = self._opened(key, now)
            if notes is None:
                notes = self._planted(key, batch)
        except StateError as problem:
            raise StateError(f"stream {key}: {problem}") from problem
        begins = notes is None
        notes = notes or Notes()
        notes.seen = now
        late = self._late(batch, notes)
        said = []
        if late.any():
            notes.late += int(late.sum())
            said.append(self._late_results(batch.filter(pa.array(late)), notes))
            batch = batch.filter(pa.array(~late))
        if batch.num_rows:
            said.append(self._label(batch, notes, begins))
        elif not begins:
            self.state.save(notes, 0)
        return [self._with_count(part, notes) for part in said if part is not None], is_new

    def expire(self, now: int) -> int | None:
        """Forget the stream that the store is at if nothing came for so long; otherwise when to look again."""
        notes, ttl = self.state.open(), self.policy.ttl
        if notes is None or ttl is None:
            return None
        if now < notes.seen + ttl:
            return notes.seen + ttl
        self.state.clear()
        return None

    # -- state ---------------------------------------------------------------------------------

    def _opened(self, key: str, now: int) -> tuple[Notes | None, bool]:
        """The stream's notes, unless it has none or was silent for too long; and whether nothing was there."""
        notes = self.state.open()
        if notes is None:
            return None, True
        if self.policy.ttl is not None and now >= notes.seen + self.policy.ttl:
            self.state.clear()
            self.state.open()
            return None, False
        return notes, False

    def _planted(self, key: str, batch: Any) -> Notes | None:
        """A saved model as the beginning of the stream."""
        seed = self.policy.seed(key)
        if seed is None:
            return None
        self.value.update((seed.value,))
        for place, raw in seed.chunks.items():
            self.chunks.updateValue((place,), (raw,))
        notes = self.state.open()
        assert notes is not None
        if seed.last_time is not None:
            notes.last = self._last_of_seed(seed.last_time, batch)
        return notes

    def _last_of_seed(self, last: tuple[str, Any], batch: Any) -> bytes:
        kind, value = last
        wanted = batch.column(self.plan.time).type
        if kind == "datetime" and pa.types.is_timestamp(wanted):
            time = pa.array([value // 1000], pa.int64()).cast(wanted)
        elif kind == "datetime" and pa.types.is_date(wanted):
            time = pa.array([value // 86_400_000_000_000], pa.int32()).cast(wanted)
        elif kind == ("text" if pa.types.is_string(wanted) else "number") and not pa.types.is_temporal(wanted):
            time = pa.array([value]).cast(wanted)
        else:
            raise StateError(
                f"the saved model has seen {kind}s as times, last {value!r}, and column {self.plan.time!r} is {wanted};"
                " cast the column, or save the model from a stream without time="
            )
        others = [pa.nulls(1, batch.column(name).type) for name in self.plan.order]
        return to_bytes(pa.RecordBatch.from_arrays([time, *others], names=[self.plan.time, *self.plan.order]))

    # -- order ---------------------------------------------------------------------------------

    def _sorted(self, batch: Any) -> Any:
        """By time and order, then by votes and what passes through, so that a replay has the same order."""
        keys = []
        for name in dict.fromkeys((*self.plan.sorting, *self.plan.keep)):
            array = batch.column(name)
            if name in self.plan.key or not _sortable(array.type):
                continue
            if array.null_count:
                keys.append(array.is_valid())  # a missing value comes first, as Spark sorts
            keys.append(array)
        by = pa.RecordBatch.from_arrays(keys, names=[str(at) for at in range(len(keys))])
        return batch.take(pc.sort_indices(by, sort_keys=[(name, "ascending") for name in by.schema.names]))

    def _late(self, batch: Any, notes: Notes) -> Bools:
        """Which rows are older than the last one seen. Rows are in order, so those are the first with a time."""
        late = np.zeros(batch.num_rows, np.bool_)
        if not notes.last:
            return late
        first = batch.column(self.plan.time).null_count  # NaN comes last
        names = (self.plan.time, *self.plan.order)
        last = _place(from_bytes(notes.last), names, 0)
        n_late = bisect_left(range(first, batch.num_rows), last, key=lambda row: _place(batch, names, row))
        late[first : first + n_late] = True
        return late

    def _too_late(self, batch: Any, row: int, notes: Notes) -> DriftvoteError:
        last = from_bytes(notes.last).column(0)[0].as_py()
        return OrderError(
            f"{self._rows().reader.where(batch, row)}: this row is older than the last one of its stream, {last}; pass"
            " late='drop' to leave such rows out and count them, or rejected='reason' to have them set apart"
        )

    def _rows(self) -> SortedRows:
        return SortedRows(self.plan)

    def _late_results(self, batch: Any, notes: Notes) -> Any:
        """Late rows as rejected ones, if those are asked for; nothing if they are dropped."""
        if self.plan.rejected is None:
            if self.policy.late == "error":
                raise self._too_late(batch, 0, notes)
            return None
        problems = [Problem(row, self._too_late(batch, row, notes)) for row in range(batch.num_rows)]
        return results(batch, [], np.zeros(batch.num_rows, np.bool_), problems, self.plan)

    # -- labels --------------------------------------------------------------------------------

    def _label(self, batch: Any, notes: Notes, begins: bool) -> Any:
        rows = self._rows()
        if notes.last:
            # The stream's own name, and the place where it stopped.
            last = from_bytes(notes.last)
            keys = [batch.column(name).slice(batch.num_rows - 1) for name in self.plan.key]
            rows._last = [*keys, *last.columns]
        codes, good, _, problems = rows.read(batch)
        n_rows = int(good.sum())
        said: list[LabeledStream] = []
        if n_rows:
            if begins:
                self._check_format(batch, codes[good])
            said = self._said(codes if n_rows == len(codes) else codes[good])
            assert rows._last is not None
            names = [self.plan.time, *self.plan.order]
            place = pa.RecordBatch.from_arrays(rows._last[len(self.plan.key) :], names=names)
            notes.last = to_bytes(place)
        if n_rows or not begins:
            self.state.save(notes, n_rows)
        return results(batch, said, good, problems, self.plan)

    def _said(self, codes: Codes) -> list[LabeledStream]:
        n_rows = len(codes)
        self.state.resume(n_rows)
        piece = self.keeper.piece(self.state.clock, n_rows)
        return [label_codes(self.keeper.model, codes[first : first + piece]) for first in range(0, n_rows, piece)]

    def _check_format(self, batch: Any, codes: Codes) -> None:
        """A stream's first rows, as `label_stream` looks at them."""
        form = self.plan.model.form
        if not form.declared:
            unsaid = sum(int(missing(batch.column(name)).sum()) for name in self.plan.labelers)
            check_first_batch(form, codes, literal=int((codes == -1).sum()) > unsaid)

    def _with_count(self, batch: Any, notes: Notes) -> Any:
        if self.policy.late != "drop":
            return batch
        counts = pa.array(np.full(batch.num_rows, notes.late, np.int64))
        return batch.append_column(self.plan.prefix + LATE_ROWS, counts)


def _sortable(kind: Any) -> bool:
    return not (pa.types.is_nested(kind) or pa.types.is_null(kind) or pa.types.is_interval(kind))


def _place(batch: Any, names: Sequence[str], row: int) -> tuple[Any, ...]:
    """Time and order of a row, comparable; a missing value comes before all others, as Spark sorts them."""
    values = [batch.column(name)[row].as_py() for name in names]
    return tuple((value is not None, value) if value is not None else (False,) for value in values)
