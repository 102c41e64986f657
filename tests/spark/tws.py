"""A streaming query without a JVM: the processor under Spark's own tester, with the packing on both sides."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pyarrow as pa

from driftvote.spark.columns import make_plan
from driftvote.spark.keyed import Policy
from driftvote.spark.packing import KEY, ROWS, pack, unpack
from driftvote.spark.streaming import CLOCK, Processor

NAMES = ["a", "b", "c", "d"]


class Frame:
    """The columns of a DataFrame that does not exist."""

    def __init__(self, types: dict[str, str]) -> None:
        from pyspark.sql import types as spark_types

        named = {"string": "StringType", "bigint": "LongType", "tinyint": "ByteType", "timestamp": "TimestampType"}
        fields = [spark_types.StructField(name, getattr(spark_types, named[kind])()) for name, kind in types.items()]
        self.schema = spark_types.StructType(fields)
        self.columns = self.schema.names


def frame(**more: str) -> Frame:
    return Frame({"stream": "string", "t": "bigint", **dict.fromkeys(NAMES, "tinyint"), **more})


def plan_for(model: Any, where: Frame | None = None, **more: Any) -> Any:
    settings = {"key": "stream", "time": "t", "labelers": NAMES, "model": model}
    return make_plan(where or frame(), **(settings | more))


def table(keys: list[str] | np.ndarray, times: Any, votes: np.ndarray, **more: Any) -> pa.Table:
    columns = {"stream": pa.array(keys, pa.string()), "t": pa.array(times, pa.int64())}
    columns |= {name: pa.array(votes[:, place].astype(np.int8)) for place, name in enumerate(NAMES)}
    return pa.table(columns | more)


class Counting:
    """Counts what is written to one of Spark's states."""

    def __init__(self, state: Any) -> None:
        self.state, self.read, self.written = state, 0, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.state, name)

    def update(self, newValue):  # noqa: N803
        self.written += len(newValue[0])
        self.state.update(newValue)

    def updateValue(self, key, value):  # noqa: N802
        self.written += len(value[0])
        self.state.updateValue(key, value)

    def getValue(self, key):  # noqa: N802
        found = self.state.getValue(key)
        self.read += len(found[0]) if found else 0
        return found


class Query:
    """Micro-batches one after the other; every one has a processor that knows nothing but the state."""

    def __init__(self, plan: Any, policy: Policy | None = None) -> None:
        from pyspark.sql.streaming.tws_tester import TwsTester

        self.plan, self.policy = plan, policy or Policy()
        mode = "None" if self.policy.ttl is None else "EventTime"
        first = Processor(plan, self.policy)
        self.tester = TwsTester(first, timeMode=mode, eventTimeExtractor=lambda row: row[CLOCK])
        self.value = self.chunks = None
        self.now = 1

    def micro_batch(self, rows: pa.Table, cut: int = 10_000) -> pa.Table | None:
        """What comes out for these rows."""
        import pandas as pd

        processor = pickle.loads(pickle.dumps(Processor(self.plan, self.policy)))
        self.tester.processor = processor
        processor.init(self.tester.handle)
        self.value = processor._value = Counting(processor._value)
        self.chunks = processor._chunks = Counting(processor._chunks)
        rows = rows.select(list(self.plan.read))
        parts = pa.Table.from_batches(list(pack(rows.to_batches(cut), self.plan))).to_pylist()
        by_key: dict[str, list[bytes]] = {}
        for part in parts:
            by_key.setdefault(part[KEY], []).append(part[ROWS])
        out = []
        for key, cells in by_key.items():
            said = self.tester.testInPandas(key, pd.DataFrame({ROWS: cells, CLOCK: self.now}))
            out += said[ROWS].tolist() if len(said) else []
        said = list(unpack([pa.RecordBatch.from_arrays([pa.array(out, pa.binary())], names=[ROWS])]))
        return pa.Table.from_batches(said) if said else None

    def written(self) -> int:
        return self.value.written + self.chunks.written

    def size(self, key: str) -> int:
        """Bytes of a stream's state."""
        chunks = self.tester.peekMapState("rows", key)
        return len(self.tester.peekValueState("stream", key)[0]) + sum(len(value[0]) for value in chunks.values())
