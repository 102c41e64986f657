"""Unbounded streams of many keys: Structured Streaming with the state of every stream in Spark's store."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from driftvote.errors import MissingExtraError, SettingError
from driftvote.models import LabelModel
from driftvote.spark.columns import USUAL, Plan, columns, make_plan, output_schema
from driftvote.spark.keyed import LATE_ROWS, KeyedStreams, Policy
from driftvote.spark.packing import KEY, ROWS, from_bytes, pack, to_bytes, unpack
from driftvote.spark.seeds import declared_by, load_models, make_seed, send, stream_text

LATE = ("error", "drop")

CLOCK, MARK = "now", "mark"

SLACK = "1 hour"
"""Spark drops rows that are behind the watermark without a word: so far may a machine's clock be set back."""

STORE = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}
"""Settings that Spark's keyed state needs, and the one that makes a micro-batch write what changed."""


def label_stream(
    frame: Any,
    *,
    key: str | Sequence[str] | None,
    time: str,
    labelers: Sequence[str] | None = None,
    model: LabelModel | None = None,
    keep: Sequence[str] = (),
    order: Sequence[str] = (),
    outputs: Sequence[str] = USUAL,
    prefix: str = "",
    rejected: str | None = None,
    duplicates: str = "error",
    late: str = "error",
    ttl: datetime.timedelta | float | None = None,
    start: str | Path | Mapping[Any, str | Path] | None = None,
) -> Any:
    """Label the rows of a streaming DataFrame, each stream from its own state: what `label_stream` gives, bit for bit.

    The state of every stream lies in Spark's store and in its checkpoint, so a query that is killed goes on where it
    stopped; with `write_batches` no row is lost and none comes twice. See docs/spark-streaming.md.

    Parameters
    ----------
    late
        A row that is older than the last one seen of its stream: `"error"` stops the query, `"drop"` leaves it out and
        counts it in the column `late_rows` (rows of that stream so far).
    ttl
        Forget a stream of which nothing came for so long (a timedelta, or seconds). If it comes back it begins anew.
    start
        A file that `save` wrote: what every stream begins with; or a dict from keys to files. `model` may be left out
        then.

    The other parameters are those of `driftvote.spark.label`.
    """
    if not getattr(frame, "isStreaming", False):
        raise SettingError("this DataFrame is not a stream; use driftvote.spark.label")
    if late not in LATE:
        raise SettingError(f"late must be 'error' or 'drop', not {late!r}")
    _check_extra()
    silence, saved = _milliseconds(ttl), load_models(start)
    if model is None and saved:
        model = next(iter(saved.values())).clone()
    plan = make_plan(
        frame,
        key=key,
        time=time,
        labelers=labelers or declared_by(saved),
        model=model,
        keep=keep,
        order=order,
        outputs=outputs,
        prefix=prefix,
        rejected=rejected,
        duplicates=duplicates,
    )
    seeds = {stream_text(at, frame, plan): make_seed(plan, model) for at, model in saved.items()}
    settle_store(frame.sparkSession)
    sent = {at: send(seed, frame.sparkSession) for at, seed in seeds.items()}
    return _labeled(frame, plan, Policy(late, silence, sent))


def _labeled(frame: Any, plan: Plan, policy: Policy) -> Any:
    from pyspark.sql import functions
    from pyspark.sql.types import LongType, StructField, StructType

    schema = output_schema(frame, plan)
    if policy.late == "drop":
        count = plan.prefix + LATE_ROWS
        if count.casefold() in (name.casefold() for name in schema.names):
            raise SettingError(f"{count!r} would be the name of two columns of the result; rename yours")
        schema = StructType([*schema.fields, StructField(count, LongType(), True)])

    def packed(batches: Iterable[Any]) -> Iterator[Any]:
        return pack(batches, plan)

    streams = frame.select(*columns(plan.read)).mapInArrow(packed, f"{KEY} string, {ROWS} binary")
    if policy.ttl is not None:
        # The time of the micro-batch, which Spark writes down and gives again when it runs the batch again. As a
        # watermark it lets timers ring; Spark's own processing time would run empty batches without end.
        now = functions.current_timestamp()
        streams = streams.withColumns({CLOCK: functions.unix_millis(now), MARK: now}).withWatermark(MARK, SLACK)
    said = streams.groupBy(KEY).transformWithStateInPandas(
        Processor(plan, policy),
        outputStructType=f"{ROWS} binary",
        outputMode="Append",
        timeMode="None" if policy.ttl is None else "EventTime",
    )
    return said.mapInArrow(unpack, schema)


class Processor:
    """Spark's stateful processor; it has the methods of one, so that nothing here needs pyspark to be imported."""

    def __init__(self, plan: Plan, policy: Policy) -> None:
        self.plan, self.policy = plan, policy
        self._streams: KeyedStreams | None = None

    def init(self, handle: Any) -> None:
        """Spark's first call, on the driver as well: it learns what state there will be."""
        self._handle = handle
        self._value = handle.getValueState("stream", "state binary")
        self._chunks = handle.getMapState("rows", "chunk int", "rows binary")
        self._streams = None

    @property
    def streams(self) -> KeyedStreams:
        """Made when the first rows come: engines take memory."""
        if self._streams is None:
            self._streams = KeyedStreams(self.plan, self.policy, self._value, self._chunks)
        return self._streams

    def handleInputRows(self, key: Any, rows: Iterable[Any], timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803
        """All rows of a stream in this micro-batch."""
        import pandas as pd

        parts = list(rows)
        now = 0 if self.policy.ttl is None else int(parts[0][CLOCK].iloc[0])
        batches = [from_bytes(bytes(raw)) for part in parts for raw in part[ROWS]]
        said, is_new = self.streams.label(key[0], batches, now)
        if self.policy.ttl is not None and is_new:
            self._handle.registerTimer(now + self.policy.ttl)
        if said:
            yield pd.DataFrame({ROWS: [to_bytes(batch) for batch in said]})

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Any]:  # noqa: N802, N803
        """Time to look whether the stream is still alive. One timer a stream: it is set anew only when it rings."""
        again = self.streams.expire(int(timerValues.getCurrentWatermarkInMs()))
        if again is not None:
            self._handle.registerTimer(again)
        return iter(())

    def handleInitialState(self, key: Any, initialState: Any, timerValues: Any) -> None:  # noqa: N802, N803
        """Nothing: streams begin with `start`."""

    def close(self) -> None:
        """Spark's last call."""
        self._streams = None


def settle_store(session: Any) -> None:
    """Keyed state needs the RocksDB store: set it where nobody has chosen another, and refuse the others by name."""
    chosen = session.conf.getAll
    chosen = chosen() if callable(chosen) else chosen
    for name, value in STORE.items():
        if name not in chosen:
            session.conf.set(name, value)
        elif chosen[name].casefold() != value.casefold():
            raise SettingError(f"{name} is {chosen[name]!r}, but labeling streams needs {value!r}; set it so")


def _check_extra() -> None:
    """Without protobuf a query dies with a sentence that does not name it."""
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
