"""The state of a stream on disk, in a real query with full rings; writes the table of docs/spark-streaming.md.

Run by `make bench-spark-state`, a few minutes. One stream begins with a saved model whose ring is full, then gets
micro-batches of 100 rows; what they write is read off Spark's checkpoint: its changelog, a file for each micro-batch,
and the files of its newest snapshot.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.plan import ROOT, Case
from benchmarks.streams import make_votes
from driftvote import AdaptiveLabelModel
from driftvote.spark import label_stream, write_batches

PAGE = ROOT / "docs" / "spark-streaming.md"
LABELERS = [f"labeler_{place}" for place in range(6)]
SEEN, ROWS, BATCHES = 600_000, 100, 24
MODELS = {"AdaptiveLabelModel()": AdaptiveLabelModel, "AdaptiveLabelModel.paper()": AdaptiveLabelModel.paper}


def session(folder: Path) -> Any:
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    from pyspark.sql import SparkSession

    made = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.sql.streaming.stateStore.maintenanceInterval", "1s")  # snapshots are made then
        .config("spark.local.dir", str(folder))
        .getOrCreate()
    )
    made.sparkContext.setLogLevel("ERROR")
    return made


def run(spark: Any, name: str, seen: int, folder: Path) -> dict[str, Any]:
    """A stream that has seen so many rows, and what its micro-batches write."""
    votes, _ = make_votes(Case(seen + ROWS * BATCHES, len(LABELERS)))
    votes = np.where(votes < 0, -1, votes).astype(np.int8)
    model = MODELS[name](labelers=LABELERS)
    if seen:
        model.partial_fit(votes[:seen])
    folder.mkdir()
    model.save(folder / "model.npz")
    (folder / "in").mkdir()
    for batch in range(BATCHES):
        part = votes[seen + ROWS * batch :][:ROWS]
        columns: dict[str, Any] = {"stream": ["one"] * ROWS, "at": np.arange(ROWS) + ROWS * batch}
        columns |= {labeler: part[:, place] for place, labeler in enumerate(LABELERS)}
        path = folder / "in" / f"{batch:03}.parquet"
        pq.write_table(pa.table(columns), path)
        os.utime(path, (1_600_000_000 + batch,) * 2)
    schema = "stream string, at bigint, " + ", ".join(f"{labeler} tinyint" for labeler in LABELERS)
    frame = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
    said = label_stream(frame, key="stream", time="at", start=folder / "model.npz")
    query = write_batches(said, folder / "out", checkpoint=folder / "checkpoint", trigger={"availableNow": True})
    query.awaitTermination()
    model.partial_fit(votes[seen:])
    times = sorted(progress["durationMs"]["triggerExecution"] for progress in query.recentProgress[2:])
    return {"model": name, "seen": seen, "ms": times[len(times) // 2]} | figures(model, folder / "checkpoint")


def figures(model: AdaptiveLabelModel, checkpoint: Path) -> dict[str, int]:
    """Sizes of the ring and its sums in memory, and of what the checkpoint holds."""
    state = checkpoint / "state" / "0" / "0"
    logs = {int(path.name.partition(".")[0]): path.stat().st_size for path in state.glob("[0-9]*.changelog")}
    newest = max(state.glob("[0-9]*.zip"), key=lambda path: int(path.name.partition(".")[0]))
    engine: Any = model._engine
    sums = engine.state.memory.sums.nbytes + engine.state.memory.votes.nbytes if hasattr(engine, "state") else 0
    return {
        "ring": engine.arrays()["rows"].nbytes,
        "sums": sums or engine.tally.stats.nbytes,
        "changelog": max(size for version, size in logs.items() if version > 2),
        "snapshot": newest.stat().st_size + sum(path.stat().st_size for path in files_of(newest, state)),
        "checkpoint": sum(path.stat().st_size for path in state.rglob("*") if path.is_file()),
    }


def files_of(snapshot: Path, state: Path) -> list[Path]:
    """The files that a snapshot names, beside those inside of it."""
    import zipfile

    with zipfile.ZipFile(snapshot) as archive:
        text = archive.read("metadata").decode()
    listed = json.loads(text[text.index("{") :])
    return [state / "SSTs" / file["dfsSstFileName"] for file in listed["sstFiles"]]


def table(found: list[dict[str, Any]]) -> str:
    """The figures and the verdicts, in Markdown."""
    lines = []
    for one in found:
        bound = one["ring"] + one["sums"]
        within = one["snapshot"] <= 1.5 * bound and one["changelog"] < 64_000
        lines.append(
            f"| `{one['model']}` | {one['seen']:,} | {bound / 1000:,.0f} KB | {one['snapshot'] / 1000:,.0f} KB |"
            f" {one['snapshot'] / bound:.2f} x | {one['changelog'] / 1000:.1f} KB | {'pass' if within else 'fail'} |"
        )
    return f"""{len(LABELERS)} labelers, one stream, micro-batches of {ROWS} rows. The snapshot may be 1.5 times the
ring and the sums over the windows; the changelog of a micro-batch must stay below 64 KB.

| model | rows seen before | ring and sums | newest snapshot | ratio | largest changelog | |
|---|---|---|---|---|---|---|
{chr(10).join(lines)}
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        spark = session(Path(scratch))
        cases = [(name, seen) for seen in (SEEN, 2_000) for name in MODELS]
        found = [run(spark, name, seen, Path(scratch) / str(at)) for at, (name, seen) in enumerate(cases)]
        spark.stop()
    for one in found:
        print(one)
    begin, end = "<!-- figures: written by make bench-spark-state -->", "<!-- end of figures -->"
    page = PAGE.read_text()
    PAGE.write_text(re.sub(f"{begin}.*?{end}", lambda _: f"{begin}\n{table(found)}{end}", page, flags=re.DOTALL))


if __name__ == "__main__":
    main()
