"""`write_batches`: a sink with one folder for each micro-batch, so that readers see all rows of a batch or none.

Spark's file sink is exactly-once only for readers that use its log, and leaves files behind when it is killed. Here a
micro-batch is written to a hidden folder, which is renamed when it is complete. If Spark runs the micro-batch again
after a failure, its folder is replaced by one with the same rows.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from driftvote.errors import SettingError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

BATCH = "batch_id"
HIDDEN = ".unfinished-"
OWNER = ".query"


def write_batches(
    frame: DataFrame,
    folder: str | Path,
    *,
    checkpoint: str | Path,
    trigger: Mapping[str, Any] | None = None,
    name: str | None = None,
    options: Mapping[str, str] | None = None,
    format: str = "parquet",
) -> StreamingQuery:
    """The started query, which writes every micro-batch to a folder of its own below `folder`.

    The folders are called `batch_id=0`, `batch_id=1` ..., which Spark, Arrow, DuckDB and Polars read as one table with
    one more column. Together with the checkpoint this is exactly-once: no row is lost and none is there twice, whatever
    process is killed at any time, on file systems that rename a folder atomically (local, HDFS; not object stores).

    Parameters
    ----------
    checkpoint
        Folder for Spark's progress and the state of the streams. It belongs to `folder`: a query with another
        checkpoint is refused, because its batches would overwrite the existing ones.
    trigger
        Keywords of Spark's `trigger`, such as `{"processingTime": "1 minute"}` or `{"availableNow": True}`.
    options, format
        Options of Spark's writer, and "parquet", "orc", "json" or "csv".
    """
    if not getattr(frame, "isStreaming", False):
        raise SettingError("this DataFrame is not a stream; write it with frame.write")
    if BATCH in (column.casefold() for column in frame.columns):
        raise SettingError(f"column {BATCH!r} is also the name of the folders; rename it")
    path, settings = str(folder), dict(options or {})

    def write(batch: DataFrame, batch_id: int) -> None:
        session = batch.sparkSession
        batches = BatchFolder(session, path)
        batches.claim(session.sparkContext.getLocalProperty("sql.streaming.queryId"))
        batches.remove_unfinished()
        unfinished = f"{HIDDEN}{batch_id}-{uuid.uuid4().hex}"
        # A single action: a second one would label the rows again.
        batch.write.format(format).options(**settings).save(f"{path}/{unfinished}")
        batches.publish(unfinished, f"{BATCH}={batch_id}")

    writer = frame.writeStream.foreachBatch(write).option("checkpointLocation", str(checkpoint)).outputMode("append")
    writer = writer.queryName(name) if name else writer
    return (writer.trigger(**trigger) if trigger else writer).start()


class BatchFolder:
    """The output folder, through Hadoop's file systems: whatever Spark can write to can be renamed in the same way."""

    def __init__(self, session: SparkSession, path: str) -> None:
        jvm = session._jvm
        if jvm is None:
            raise SettingError("write_batches needs a Spark session of its own, not one of Spark Connect")
        self._path = jvm.org.apache.hadoop.fs.Path
        self.path = path
        self.system = self._path(path).getFileSystem(session._jsc.hadoopConfiguration())

    def _at(self, name: str) -> Any:
        return self._path(self.path, name)

    def claim(self, query: str | None) -> None:
        """Record the query that owns the folder, and refuse another: it would count its batches from 0."""
        mark = self._at(OWNER)
        ours = (query or "").encode()
        if self.system.exists(mark):
            stream = self.system.open(mark)
            try:
                theirs = bytes(stream.readAllBytes())
            finally:
                stream.close()
            if theirs and theirs != ours:
                raise SettingError(
                    f"{self.path} holds the batches of query {theirs.decode()}, and this one is {query}; give it the"
                    " checkpoint folder that it had, or another folder to write to"
                )
            if theirs:
                return
        stream = self.system.create(mark, True)
        try:
            stream.write(bytearray(ours))
        finally:
            stream.close()

    def remove_unfinished(self) -> None:
        """Delete the hidden folders that a killed query left."""
        for status in self.system.listStatus(self._path(self.path)):
            if status.getPath().getName().startswith(HIDDEN):
                self.system.delete(status.getPath(), True)

    def publish(self, unfinished: str, name: str) -> None:
        """Rename a complete folder; an existing one is from an earlier run of the same batch."""
        target = self._at(name)
        if self.system.exists(target):
            self.system.delete(target, True)
        if not self.system.rename(self._at(unfinished), target):
            raise OSError(f"{self.path}: {unfinished} could not be renamed to {name}")
