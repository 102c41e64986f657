"""`label_stream`: Structured Streaming over many streams, with the model of each stream in Spark's state store.

The store holds one value for each stream: the bytes of a state file, in the format of `driftvote.files.state`, whose
header also has the time of the last row and the number of late rows.
"""

from __future__ import annotations

import datetime
import json
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from driftvote.arrays import Ints
from driftvote.errors import DriftvoteError, MissingExtraError, OrderError, SettingError, StateError
from driftvote.files.state import pack_state, unpack_state
from driftvote.models import LabelModel
from driftvote.spark.columns import DEFAULT_OUTPUTS, LabelJob, column, make_job
from driftvote.spark.tasks import FormatCheck, RowReader

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame, SparkSession

LATE = ("error", "drop")
LATE_ROWS = "late_rows"
"""Column with the number of late rows of the stream so far."""

STREAM, ROWS = "stream", "rows"
"""Columns between tasks: the key as text, and rows as the bytes of an Arrow batch."""

BATCH_TIME, WATERMARK = "now", "mark"
"""Columns between tasks with `ttl`: the time of the micro-batch in milliseconds, and as a timestamp."""

WATERMARK_DELAY = "1 hour"
"""Spark silently drops rows behind the watermark: by so much a machine's clock may be set back."""

MAX_PACKED_ROWS = 20_000

STORE = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}
"""Settings of the session: the store that keyed state needs, and changelogs, so that a micro-batch writes only the
values that changed."""


def label_stream(
    frame: DataFrame,
    *,
    key: str | Sequence[str] | None,
    time: str,
    labelers: Sequence[str] | None = None,
    model: LabelModel | None = None,
    keep: Sequence[str] = (),
    order: Sequence[str] = (),
    outputs: Sequence[str] = DEFAULT_OUTPUTS,
    prefix: str = "",
    rejected: str | None = None,
    duplicates: str = "error",
    late: str = "error",
    ttl: datetime.timedelta | float | None = None,
) -> DataFrame:
    """A streaming DataFrame with the labels of each stream: what `label_stream` gives in one process, bit for bit.

    The state of every stream is in Spark's store and its checkpoint, so a query that was killed continues where it
    stopped; with `write_batches` no row is lost and none is written twice. A micro-batch writes the state of every
    stream in it, whose size follows the largest window: see docs/spark-streaming.md for a window that fits.
    Parameters that are not listed are those of `driftvote.spark.label`.

    Parameters
    ----------
    late
        A row that is older than the last one seen of its stream: `"error"` stops the query, `"drop"` omits the row and
        counts it in the column `late_rows` (rows of that stream so far).
    ttl
        Delete the state of a stream without rows for so long (a timedelta, or seconds). If rows come again, the stream
        starts with an empty model.
    """
    if not getattr(frame, "isStreaming", False):
        raise SettingError("this DataFrame is not a stream; use driftvote.spark.label")
    if late not in LATE:
        raise SettingError(f"late must be 'error' or 'drop', not {late!r}")
    _check_extra()
    job = make_job(
        frame,
        key=key,
        time=time,
        labelers=labelers,
        model=model,
        keep=keep,
        order=order,
        outputs=outputs,
        prefix=prefix,
        rejected=rejected,
        duplicates=duplicates,
    )
    processor = LabelProcessor(job, late, _milliseconds(ttl))
    configure_store(frame.sparkSession)
    return _label_by_key(frame, processor)


def _label_by_key(frame: DataFrame, processor: LabelProcessor) -> DataFrame:
    from pyspark.sql import functions
    from pyspark.sql.types import LongType, StructField, StructType

    job, schema = processor.job, processor.job.schema(frame)
    if processor.late == "drop":
        count = job.prefix + LATE_ROWS
        if count.casefold() in (name.casefold() for name in schema.names):
            raise SettingError(f"{count!r} would be the name of two columns of the result; rename yours")
        schema = StructType([*schema.fields, StructField(count, LongType(), True)])

    def pack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return pack_rows(batches, job)

    streams = frame.select(*map(column, job.read)).mapInArrow(pack, f"{STREAM} string, {ROWS} binary")
    if processor.ttl is not None:
        # Spark records the time of a micro-batch and uses it again when it repeats the batch. As a watermark it makes
        # timers expire; with Spark's processing time empty micro-batches would run without end.
        now = functions.current_timestamp()
        streams = streams.withColumns({BATCH_TIME: functions.unix_millis(now), WATERMARK: now})
        streams = streams.withWatermark(WATERMARK, WATERMARK_DELAY)
    results = streams.groupBy(STREAM).transformWithStateInPandas(
        processor,
        outputStructType=f"{ROWS} binary",
        outputMode="Append",
        timeMode="None" if processor.ttl is None else "EventTime",
    )
    return results.mapInArrow(unpack_rows, schema)


def configure_store(session: SparkSession) -> None:
    """Set the settings in `STORE` where the session has none, and refuse others."""
    current = session.conf.getAll
    current = current() if callable(current) else current
    for name, value in STORE.items():
        if name not in current:
            session.conf.set(name, value)
        elif current[name].casefold() != value.casefold():
            raise SettingError(f"{name} is {current[name]!r}, but labeling streams needs {value!r}; set it so")


def _check_extra() -> None:
    """Without protobuf a query fails with a message that does not name it."""
    try:
        for name in ("google.protobuf", "pandas"):
            import_module(name)
    except ImportError as problem:
        raise MissingExtraError(
            f"streams on Spark need {problem.name}, which pyspark does not bring: pip install 'driftvote[spark]'"
        ) from None


def _milliseconds(ttl: datetime.timedelta | float | None) -> int | None:
    if ttl is None:
        return None
    seconds = ttl.total_seconds() if isinstance(ttl, datetime.timedelta) else ttl
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0.001 <= seconds < 1e12:
        raise SettingError(f"ttl must be a timedelta, or seconds above 0, not {ttl!r}")
    return int(seconds * 1000)


# -- state -------------------------------------------------------------------------------------


@dataclass
class KeyState:
    """What the store holds of one stream."""

    model: LabelModel
    last_place: pa.RecordBatch | None = None  # time and order of the newest row
    late_rows: int = 0
    last_seen: int = 0  # time of the last micro-batch with rows, in milliseconds

    def pack(self, job: LabelJob) -> bytes:
        """The value in the store."""
        header, arrays = self.model.to_state()
        header |= {"job": job.plain_settings, "late_rows": self.late_rows, "last_seen": self.last_seen}
        place = b"" if self.last_place is None else to_bytes(self.last_place)
        return pack_state(header, arrays | {"last_place": np.frombuffer(place, np.uint8)})

    @classmethod
    def unpack(cls, data: bytes, job: LabelJob, stream: str) -> KeyState:
        """The state in a value; one of another model is refused by the name of what differs."""
        try:
            header, arrays = unpack_state(data, f"stream {stream}")
        except StateError as problem:
            raise StateError(f"{problem}; a streaming query then needs a new checkpoint folder") from problem
        theirs, ours = header["job"], json.loads(json.dumps(job.plain_settings, default=list))
        for name in dict.fromkeys(["model", "labelers", *sorted(theirs.keys() | ours.keys())]):
            if name != "n_jobs" and theirs.get(name) != ours.get(name):
                raise StateError(
                    f"stream {stream}: the checkpoint holds state that was made with {name} {theirs.get(name)!r}, but"
                    f" the query has {ours.get(name)!r}; run it with the old value, or use a new checkpoint folder"
                )
        place = arrays.pop("last_place").tobytes()
        model = LabelModel.from_state(header, arrays, name=f"stream {stream}")
        return cls(model, from_bytes(place) if place else None, header["late_rows"], header["last_seen"])


class LabelProcessor:
    """Labels the rows of one stream after another, each from its state in the store.

    It has the methods of Spark's `StatefulProcessor` without inheriting, so that this module imports without pyspark.
    """

    def __init__(self, job: LabelJob, late: str = "error", ttl: int | None = None) -> None:
        self.job = job
        self.late = late
        self.ttl = ttl  # milliseconds

    def init(self, handle: Any) -> None:
        """Spark's first call, on the driver as well: Spark learns which state there will be."""
        self._handle = handle
        self._value = handle.getValueState("stream", "state binary")

    def handleInputRows(  # noqa: N802
        self,
        key: tuple[str],
        rows: Iterable[pd.DataFrame],
        timerValues: Any,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        """Results of all rows of a stream in this micro-batch."""
        import pandas as pd

        frames = list(rows)
        now = 0 if self.ttl is None else int(frames[0][BATCH_TIME].iloc[0])
        batches = [from_bytes(bytes(data)) for frame in frames for data in frame[ROWS]]
        batch = sort_rows(pa.Table.from_batches(batches).combine_chunks().to_batches()[0], self.job)
        results = self.label(key[0], batch, now)
        if results is not None:
            yield pd.DataFrame({ROWS: [to_bytes(results)]})

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Any]:  # noqa: N802, N803
        """Delete the state of a silent stream. A stream has one timer, which is set again only when it expires."""
        state = self._load(key[0])
        if state is not None and self.ttl is not None:
            if int(timerValues.getCurrentWatermarkInMs()) < state.last_seen + self.ttl:
                self._handle.registerTimer(state.last_seen + self.ttl)
            else:
                self._value.clear()
        return iter(())

    def close(self) -> None:
        """Spark's last call."""

    def _load(self, stream: str) -> KeyState | None:
        value = self._value.get()
        return KeyState.unpack(bytes(value[0]), self.job, stream) if value and value[0] is not None else None

    def label(self, stream: str, batch: pa.RecordBatch, now: int) -> pa.RecordBatch | None:
        """Results of sorted rows of the stream at which the store is; None if all rows were dropped."""
        state = self._load(stream)
        if self.ttl is not None and state is None:
            self._handle.registerTimer(now + self.ttl)
        if state is None or (self.ttl is not None and now >= state.last_seen + self.ttl):
            state = KeyState(self.job.new_model())
        state.last_seen = now
        reader = RowReader(self.job, self._last_row(batch, state))
        late = self._find_late(batch, state)
        state.late_rows += len(late)
        if late and self.job.rejected is None:
            if self.late == "error":
                raise self._too_late(reader, batch, late[0], state)
            batch = pa.concat_batches([batch.slice(0, late[0]), batch.slice(late[-1] + 1)])
            late = range(0)
        problems = {row: self._too_late(reader, batch, row, state) for row in late}
        results = self._label_rows(reader, batch, problems, state) if batch.num_rows else None
        if state.model.n_rows:
            self._value.update((state.pack(self.job),))
        if results is None or self.late != "drop":
            return results
        counts = pa.array(np.full(results.num_rows, state.late_rows, np.int64))
        return results.append_column(self.job.prefix + LATE_ROWS, counts)

    def _label_rows(
        self, reader: RowReader, batch: pa.RecordBatch, problems: dict[int, DriftvoteError], state: KeyState
    ) -> pa.RecordBatch:
        rows = reader.read(batch, problems)
        codes = rows.good_codes
        if not len(codes):
            return rows.results([])
        if not state.model.n_rows:
            check = FormatCheck(self.job)
            check.add(rows)
            check.finish()
        results = rows.results([state.model.label_stream(codes)])
        assert reader.last is not None
        n_keys = len(self.job.key)
        state.last_place = pa.RecordBatch.from_arrays(list(reader.last[n_keys:]), names=self.job.place[n_keys:])
        return results

    def _last_row(self, batch: pa.RecordBatch, state: KeyState) -> list[pa.Array] | None:
        """Stream, time and order of the last row, as `RowReader` takes them."""
        if state.last_place is None:
            return None
        keys = [batch.column(name).slice(batch.num_rows - 1) for name in self.job.key]
        return [*keys, *state.last_place.columns]

    def _find_late(self, batch: pa.RecordBatch, state: KeyState) -> range:
        """Rows that are older than the last one seen. Rows are sorted: without a time, late, others."""
        if state.last_place is None:
            return range(0)
        names = state.last_place.schema.names
        last = _comparable(state.last_place, names, 0)
        first = batch.column(self.job.time).null_count
        rows = range(first, batch.num_rows)
        return range(first, first + bisect_left(rows, last, key=lambda row: _comparable(batch, names, row)))

    def _too_late(self, reader: RowReader, batch: pa.RecordBatch, row: int, state: KeyState) -> DriftvoteError:
        assert state.last_place is not None
        last = state.last_place.column(0)[0].as_py()
        return OrderError(
            f"{reader.show_place(batch, row)}: this row is older than the last one of its stream, {last}; pass"
            " late='drop' to omit and count such rows, or rejected='reason' to have them set apart"
        )


def sort_rows(batch: pa.RecordBatch, job: LabelJob) -> pa.RecordBatch:
    """Rows of one stream by time and order, then by votes and kept columns, so that a repeated batch is the same."""
    keys = []
    for name in dict.fromkeys((*job.sorting, *job.keep)):
        array = batch.column(name)
        kind = array.type
        if name in job.key or pa.types.is_nested(kind) or pa.types.is_null(kind) or pa.types.is_interval(kind):
            continue
        if array.null_count:
            keys.append(array.is_valid())  # null comes first, as in Spark
        keys.append(array)
    by = pa.RecordBatch.from_arrays(keys, names=[str(at) for at in range(len(keys))])
    return batch.take(pc.sort_indices(by, sort_keys=[(name, "ascending") for name in by.schema.names]))


def _comparable(batch: pa.RecordBatch, names: Sequence[str], row: int) -> tuple[Any, ...]:
    """Values of a row that compare as Spark sorts: null comes first."""
    values = [batch.column(name)[row].as_py() for name in names]
    return tuple((False,) if value is None else (True, value) for value in values)


# -- rows between tasks ------------------------------------------------------------------------
#
# Spark hands rows to a stateful processor through pandas, where whole numbers beside nulls lose digits and the hour
# that a clock change repeats becomes ambiguous. So rows are packed: an Arrow batch is split by stream, and each part
# is sent as bytes.


def pack_rows(batches: Iterable[pa.RecordBatch], job: LabelJob) -> Iterator[pa.RecordBatch]:
    """Batches of `STREAM` and `ROWS` from batches of rows."""
    for batch in batches:
        if not batch.num_rows:
            continue
        numbers, texts = number_streams([batch.column(name) for name in job.key], batch.num_rows)
        ordered = batch.take(pa.array(np.argsort(numbers, kind="stable")))
        ends = np.cumsum(np.bincount(numbers, minlength=len(texts))).tolist()
        streams, rows = [], []
        for text, begin, end in zip(texts, [0, *ends], ends, strict=False):
            for first in range(begin, end, MAX_PACKED_ROWS):
                streams.append(text)
                rows.append(to_bytes(ordered.slice(first, min(MAX_PACKED_ROWS, end - first))))
        yield pa.RecordBatch.from_arrays(
            [pa.array(streams, pa.string()), pa.array(rows, pa.binary())], names=[STREAM, ROWS]
        )


def unpack_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Batches of rows from batches of `ROWS`."""
    for batch in batches:
        if batch.num_rows:
            tables = [pa.ipc.open_stream(cell.as_buffer()).read_all() for cell in batch.column(0)]
            yield from pa.concat_tables(tables).combine_chunks().to_batches()


def number_streams(keys: list[pa.Array], n_rows: int) -> tuple[Ints, list[str]]:
    """The number of the stream of each row, and the text of each stream."""
    if not keys:
        return np.zeros(n_rows, np.int64), ["[]"]
    coded = [array.dictionary_encode() for array in keys]
    values = [[*map(_plain_value, array.dictionary), None] for array in coded]
    places = [
        array.indices.fill_null(len(distinct) - 1).to_numpy(zero_copy_only=False)
        for array, distinct in zip(coded, values, strict=True)
    ]
    combinations, numbers = np.unique(np.stack(places, axis=1), axis=0, return_inverse=True)
    texts = [
        json.dumps([distinct[at] for distinct, at in zip(values, row, strict=True)]) for row in combinations.tolist()
    ]
    # Different values may have one text: 0.0 and -0.0 are one stream, as in Spark.
    names = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    return np.array([names[text] for text in texts])[np.asarray(numbers).ravel()], list(names)


def _plain_value(value: pa.Scalar) -> Any:
    """The value of a key for JSON, independent of the session's time zone."""
    kind = value.type
    if pa.types.is_temporal(kind):
        return value.value
    if pa.types.is_floating(kind):
        return value.as_py() + 0.0
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return value.as_py().hex()
    return str(value.as_py()) if pa.types.is_decimal(kind) else value.as_py()


def to_bytes(batch: pa.RecordBatch) -> bytes:
    """A batch and its schema as bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def from_bytes(data: bytes) -> pa.RecordBatch:
    """The batch in bytes that `to_bytes` made."""
    return pa.ipc.open_stream(data).read_next_batch()
