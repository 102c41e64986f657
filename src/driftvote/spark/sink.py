"""A sink of whole micro-batches: one folder for each, so that whoever reads sees all rows of a batch or none.

Spark's file sink is exactly-once only for readers that know its log, and leaves files behind when it is killed. Here a
micro-batch is written to a hidden folder and renamed when it is whole. If Spark runs it again after a failure, its
folder is replaced by one with the same rows.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from driftvote.errors import SettingError

BATCH = "batch_id"
HIDDEN = ".unfinished-"
OWNER = ".query"


def write_batches(
    frame: Any,
    folder: str | Path,
    *,
    checkpoint: str | Path,
    trigger: Mapping[str, Any] | None = None,
    name: str | None = None,
    options: Mapping[str, str] | None = None,
    format: str = "parquet",
) -> Any:
    """Start a query that writes every micro-batch to a folder of its own below `folder`; returns Spark's query.

    Folders are called `batch_id=0`, `batch_id=1` ..., which Spark, Arrow, DuckDB and Polars read as one table with a
    column more. Together with the checkpoint this is exactly-once: no row is lost and none is there twice, whatever is
    killed when, on file systems that rename a folder at once (local, HDFS; not object stores).

    Parameters
    ----------
    checkpoint
        Where Spark keeps how far it got, and the state of the streams. It belongs to this folder: a query with another
        checkpoint is refused, because its batches would overwrite those that are there.
    trigger
        Keywords of Spark's `trigger`, such as `{"processingTime": "1 minute"}` or `{"availableNow": True}`.
    options, format
        How files are written: options of Spark's writer, and "parquet", "orc", "json" or "csv".
    """
    if not getattr(frame, "isStreaming", False):
        raise SettingError("this DataFrame is not a stream; write it with frame.write")
    if BATCH in (column.casefold() for column in frame.columns):
        raise SettingError(f"column {BATCH!r} is the name of the folders, too; rename it")
    place = str(folder)
    settings = dict(options or {})

    def write(batch: Any, batch_id: int) -> None:
        write_batch(batch, batch_id, place, settings, format)

    writer = frame.writeStream.foreachBatch(write).option("checkpointLocation", str(checkpoint)).outputMode("append")
    writer = writer.queryName(name) if name else writer
    return (writer.trigger(**trigger) if trigger else writer).start()


def write_batch(batch: Any, batch_id: int, place: str, options: Mapping[str, str], format: str) -> None:
    """One micro-batch: hidden until it is whole."""
    session = batch.sparkSession
    files = Files(session, place)
    files.claim(session.sparkContext.getLocalProperty("sql.streaming.queryId"))
    files.sweep()
    unfinished = f"{HIDDEN}{batch_id}-{uuid.uuid4().hex}"
    # One action and no more: a second one would run the streams again.
    batch.write.format(format).options(**options).save(f"{place}/{unfinished}")
    files.publish(unfinished, f"{BATCH}={batch_id}")


class Files:
    """A folder, through Hadoop's file systems: what Spark can write to can be renamed the same way."""

    def __init__(self, session: Any, place: str) -> None:
        jvm = session._jvm
        if jvm is None:
            raise SettingError("write_batches needs a Spark session of its own, not one of Spark Connect")
        self._path = jvm.org.apache.hadoop.fs.Path
        self.place = place
        self.system = self._path(place).getFileSystem(session._jsc.hadoopConfiguration())

    def _at(self, name: str) -> Any:
        return self._path(self.place, name)

    def claim(self, query: str | None) -> None:
        """The folder belongs to one query: another one counts its batches from 0 and would overwrite them."""
        mark = self._at(OWNER)
        mine = (query or "").encode()
        if self.system.exists(mark):
            stream = self.system.open(mark)
            try:
                theirs = bytes(stream.readAllBytes())
            finally:
                stream.close()
            if theirs and theirs != mine:
                raise SettingError(
                    f"{self.place} holds the batches of query {theirs.decode()}, and this one is {query}; give it the"
                    " checkpoint folder that it had, or another folder to write to"
                )
            if theirs:
                return
        stream = self.system.create(mark, True)
        try:
            stream.write(bytearray(mine))
        finally:
            stream.close()

    def sweep(self) -> None:
        """Remove what a killed query left unfinished."""
        for status in self.system.listStatus(self._path(self.place)):
            if status.getPath().getName().startswith(HIDDEN):
                self.system.delete(status.getPath(), True)

    def publish(self, unfinished: str, name: str) -> None:
        """Give a folder its name; one that is there is from an earlier run of the same batch."""
        there = self._at(name)
        if self.system.exists(there):
            self.system.delete(there, True)
        if not self.system.rename(self._at(unfinished), there):
            raise OSError(f"{self.place}: {unfinished} could not be renamed to {name}")
