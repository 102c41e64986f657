"""Size and cost of the state of one stream in Structured Streaming, by largest window; writes docs/spark-streaming.md.

Run by `make bench-spark-state`, a few minutes. For each window a real query labels one stream: a first micro-batch that
fills the state, then micro-batches of 100 rows. What they write is read from Spark's checkpoint, whose changelog has
one file for each micro-batch.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.common import ROOT, Case, clock, make_votes, replace_between
from driftvote import AdaptiveLabelModel, WindowGrid
from driftvote.spark import label_stream, write_batches
from driftvote.spark.columns import LabelJob, make_job
from driftvote.spark.streaming import KeyState

PAGE = ROOT / "docs" / "spark-streaming.md"
LABELERS = [f"labeler_{place}" for place in range(6)]
SCHEMA = "stream string, at bigint, " + ", ".join(f"{name} tinyint" for name in LABELERS)
EXPONENTS = (10, 13, 15, 17, 19)
ROWS, BATCHES = 100, 8
BEGIN = "<!-- figures: written by make bench-spark-state -->"


def session(folder: Path) -> Any:
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    from pyspark.sql import SparkSession

    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.local.dir", str(folder))
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def write_votes(folder: Path, n_before: int) -> Any:
    """Files of one stream, one a micro-batch; returns the votes."""
    votes, _ = make_votes(Case(n_before + ROWS * BATCHES, len(LABELERS)))
    folder.mkdir(parents=True)
    ends = [n_before + ROWS * batch for batch in range(BATCHES + 1)]
    for batch, (first, last) in enumerate(zip([0, *ends], ends, strict=False)):
        columns: dict[str, Any] = {"stream": ["one"] * (last - first), "at": range(first, last)}
        columns |= {name: votes[first:last, place] for place, name in enumerate(LABELERS)}
        path = folder / f"{batch:03}.parquet"
        pq.write_table(pa.table(columns), path)
        os.utime(path, (1_600_000_000 + batch,) * 2)
    return votes


def measure(spark: Any, exponent: int, folder: Path) -> dict[str, Any]:
    """Bytes and seconds of one stream whose state is full."""
    model = AdaptiveLabelModel(windows=WindowGrid.powers_of_two(exponent + 1))
    votes = write_votes(folder / "in", 2 * (model.memory_rows or 0))
    frame = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
    labeled = label_stream(frame, key="stream", time="at", labelers=LABELERS, model=model)
    to = {"checkpoint": folder / "checkpoint", "trigger": {"availableNow": True}}
    write_batches(labeled, folder / "out", **to).awaitTermination()
    logs = (folder / "checkpoint" / "state").rglob("[0-9]*.changelog")
    sizes = {int(path.name.partition(".")[0]): path.stat().st_size for path in logs}
    written = [size for version, size in sizes.items() if version > 1]
    assert len(written) >= BATCHES - 1
    job = make_job(frame, key="stream", time="at", labelers=LABELERS, model=model)
    return {"exponent": exponent, "rows": model.memory_rows, "written": max(written)} | measure_value(job, votes)


def measure_value(job: LabelJob, votes: Any) -> dict[str, Any]:
    """The value in the store: its size, and the seconds that a micro-batch takes to read and to write it."""
    model = job.new_model()
    model.partial_fit(votes)
    value = KeyState(model).pack(job)
    seconds = [clock(lambda: KeyState.unpack(value, job, "one").pack(job)) for _ in range(5)]
    return {"value": len(value), "seconds": median(seconds)}


def table(found: list[dict[str, Any]]) -> str:
    """The figures in Markdown."""
    lines = [
        f"| 2^{one['exponent']} = {2 ** one['exponent']:,} | {one['rows']:,} | {one['value'] / 1000:,.0f} KB |"
        f" {one['written'] / 1000:,.0f} KB | {one['seconds'] * 1000:.0f} ms |"
        for one in found
    ]
    return f"""`windows=WindowGrid.powers_of_two(k + 1)`, {len(LABELERS)} labelers, one stream, {ROWS} rows a batch.

| largest window 2^k | rows in the state | the value | written to the checkpoint | time to read and write the value |
|---|---|---|---|---|
{chr(10).join(lines)}
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        spark = session(Path(scratch))
        found = [measure(spark, exponent, Path(scratch) / str(exponent)) for exponent in EXPONENTS]
        spark.stop()
    text = table(found)
    print(text)
    PAGE.write_text(replace_between(PAGE.read_text(), BEGIN, "<!-- end of figures -->", text.rstrip()))


if __name__ == "__main__":
    main()
