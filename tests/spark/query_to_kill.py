"""A streaming query in a process of its own: `python query_to_kill.py FOLDER`, which has in/, and gets out/ and checkpoint/.

With a further number it kills itself and the JVM at the worst moment: that batch is complete, and Spark has not yet
recorded it.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

NAMES = ["a", "b", "c", "d", "e"]


def session(folder: Path):
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    from pyspark.sql import SparkSession

    made = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.driver.extraJavaOptions", "-XX:+UseSerialGC -XX:TieredStopAtLevel=1")
        .config("spark.local.dir", str(folder / "local"))
        .getOrCreate()
    )
    made.sparkContext.setLogLevel("ERROR")
    return made


def start(spark, folder: Path):
    """All files of in/, one a micro-batch, then the end."""
    from driftvote.spark import label_stream, write_batches

    schema = "camera string, t timestamp, note bigint, " + ", ".join(f"{name} tinyint" for name in NAMES)
    votes = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
    outputs = ["label", "proba", "window", "accuracies"]
    labeled = label_stream(votes, key="camera", time="t", labelers=NAMES, keep=["note"], outputs=outputs, late="drop")
    return write_batches(labeled, folder / "out", checkpoint=folder / "checkpoint", trigger={"availableNow": True})


def die_after(batch_id: int) -> None:
    from driftvote.spark import sink

    publish = sink.BatchFolder.publish

    def publish_and_die(folder, unfinished, name):
        publish(folder, unfinished, name)
        if name == f"{sink.BATCH}={batch_id}":
            os.killpg(0, signal.SIGKILL)  # the JVM is of this group; Python workers end when it is gone

    sink.BatchFolder.publish = publish_and_die


if __name__ == "__main__":
    where = Path(sys.argv[1])
    if len(sys.argv) > 2:
        die_after(int(sys.argv[2]))
    query = start(session(where), where)
    query.awaitTermination()
    (where / "done").touch()
