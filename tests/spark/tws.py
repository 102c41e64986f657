"""A streaming query without a JVM: the processor in Spark's own tester, with the packing of rows on both sides."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pyarrow as pa

from driftvote.spark.columns import make_job
from driftvote.spark.streaming import BATCH_TIME, ROWS, STREAM, LabelProcessor, pack_rows, unpack_rows

NAMES = ["a", "b", "c", "d"]


class Frame:
    """The columns of a DataFrame that does not exist."""

    def __init__(self, types: dict[str, str]) -> None:
        from pyspark.sql import types as spark_types

        named = {"string": "StringType", "bigint": "LongType", "tinyint": "ByteType", "timestamp": "TimestampType"}
        fields = [spark_types.StructField(name, getattr(spark_types, named[kind])()) for name, kind in types.items()]
        self.schema = spark_types.StructType(fields)
        self.columns = self.schema.names


def frame(votes: str = "tinyint", **more: str) -> Frame:
    return Frame({"stream": "string", "t": "bigint", **dict.fromkeys(NAMES, votes), **more})


def job_for(model: Any, where: Frame | None = None, **more: Any) -> Any:
    settings = {"key": "stream", "time": "t", "labelers": NAMES, "model": model}
    return make_job(where or frame(), **(settings | more))


def table(keys: list[str] | np.ndarray, times: Any, votes: np.ndarray, **more: Any) -> pa.Table:
    columns = {"stream": pa.array(keys, pa.string()), "t": pa.array(times, pa.int64())}
    columns |= {name: pa.array(votes[:, place].astype(np.int8)) for place, name in enumerate(NAMES)}
    return pa.table(columns | more)


class Query:
    """Micro-batches one after the other; each has a new processor, which has nothing but the state."""

    def __init__(self, job: Any, **options: Any) -> None:
        from pyspark.sql.streaming.tws_tester import TwsTester

        self.job, self.options = job, options
        mode = "None" if options.get("ttl") is None else "EventTime"
        first = LabelProcessor(job, **options)
        self.tester = TwsTester(first, timeMode=mode, eventTimeExtractor=lambda row: row[BATCH_TIME])
        self.now = 1

    def micro_batch(self, rows: pa.Table, cut: int = 10_000) -> pa.Table | None:
        """The results of these rows."""
        import pandas as pd

        processor = pickle.loads(pickle.dumps(LabelProcessor(self.job, **self.options)))
        self.tester.processor = processor
        processor.init(self.tester.handle)
        rows = rows.select(list(self.job.read))
        packed = pa.Table.from_batches(list(pack_rows(rows.to_batches(cut), self.job))).to_pylist()
        by_key: dict[str, list[bytes]] = {}
        for part in packed:
            by_key.setdefault(part[STREAM], []).append(part[ROWS])
        out = []
        for key, cells in by_key.items():
            results = self.tester.testInPandas(key, pd.DataFrame({ROWS: cells, BATCH_TIME: self.now}))
            out += results[ROWS].tolist() if len(results) else []
        batches = list(unpack_rows([pa.RecordBatch.from_arrays([pa.array(out, pa.binary())], names=[ROWS])]))
        return pa.Table.from_batches(batches) if batches else None

    def value(self, key: str) -> bytes | None:
        """The state of a stream."""
        value = self.tester.peekValueState("stream", key)
        return None if value is None else value[0]
