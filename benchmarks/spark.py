"""Labeling on Spark against the same job with a function that copies its input; writes the table of docs/spark.md.

Run by `make bench-spark`, some ten minutes. `python -m benchmarks.spark child CORES FOLDER ROUNDS` is one Spark
process, held to that many cores: a task keeps the JVM and a Python worker busy at once, so `local[1]` alone would use
more than one.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.common import (
    ROOT,
    Case,
    clock,
    describe_machine,
    interleave,
    machine_sentence,
    make_votes,
    ratio,
    replace_between,
)
from driftvote import AdaptiveLabelModel

PAGE = ROOT / "docs" / "spark.md"
LABELERS = [f"labeler_{place}" for place in range(6)]
MOST_RATIO, LEAST_SPEEDUP = 2.0, 1.5
PIECE = 1_000_000


def make_table(rows: int, keys: int, folder: Path) -> None:
    """Votes of six labelers on many streams, rows in random order, in several Parquet files."""
    codes, _ = make_votes(Case(rows, len(LABELERS)))
    rng = np.random.default_rng(0)
    folder.mkdir()
    for piece, start in enumerate(range(0, rows, PIECE)):
        part = codes[start : start + PIECE]
        columns: dict[str, Any] = {"stream": rng.integers(0, keys, len(part)), "at": rng.permutation(len(part)) + start}
        columns |= {name: part[:, place] for place, name in enumerate(LABELERS)}
        pq.write_table(pa.table(columns), folder / f"part-{piece}.parquet")


def session(cores: int, scratch: Path) -> Any:
    """A Spark process of this many cores."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    from pyspark.sql import SparkSession

    made = (
        SparkSession.builder.master(f"local[{cores}]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "4g")
        .config("spark.sql.shuffle.partitions", "8")
        .config("spark.local.dir", str(scratch))
        .getOrCreate()
    )
    made.sparkContext.setLogLevel("ERROR")
    return made


def jobs(spark: Any, votes: Path, out: Path) -> dict[str, Any]:
    """Jobs from Parquet to Parquet: three that are alike but for the function in the middle, and one long stream."""
    from driftvote.spark import label

    models = {"default": AdaptiveLabelModel(), "paper": AdaptiveLabelModel.paper()}

    def copied() -> None:
        frame = spark.read.parquet(str(votes)).select("stream", "at", *LABELERS)
        rows = frame.repartition("stream").sortWithinPartitions("stream", "at")
        rows.mapInArrow(lambda batches: batches, frame.schema).write.mode("overwrite").parquet(str(out / "copy"))

    def labeled(name: str) -> None:
        frame = label(
            spark.read.parquet(str(votes)), key="stream", time="at", labelers=LABELERS, model=models[name].clone()
        )
        frame.write.mode("overwrite").parquet(str(out / name))

    def one_stream() -> None:
        frame = label(spark.read.parquet(str(votes)), key=None, time="at", labelers=LABELERS)
        frame.write.mode("overwrite").parquet(str(out / "one"))

    many = {name: (lambda name=name: labeled(name)) for name in models}
    every = {"copy": copied} | many | {"one stream": one_stream}
    return {name: announced(name, work) for name, work in every.items()}


def child(cores: int, folder: Path, rounds: int) -> None:
    """Time all jobs in turns, after one turn on a small table that starts workers and loads kernels."""
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        spark = session(cores, Path(scratch))
        for work in jobs(spark, folder / "small", Path(scratch)).values():
            work()
        times = interleave(jobs(spark, folder / "votes", Path(scratch)), rounds, 1200)
        spark.stop()
    print(json.dumps(times))


def announced(name: str, work: Any) -> Any:
    """The job, with a line on standard error when it is done."""

    def run() -> None:
        seconds = clock(work)
        print(f"{name}: {seconds:.1f} s", file=sys.stderr, flush=True)

    return run


def in_a_process(cores: int, folder: Path, rounds: int) -> dict[str, list[float]]:
    command = [sys.executable, "-m", "benchmarks.spark", "child", str(cores), str(folder), str(rounds)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def measure(rows: int, keys: int, rounds: int, folder: Path) -> dict[str, Any]:
    """Seconds of each job on one core and on two."""
    make_table(rows, keys, folder / "votes")
    make_table(max(1000, rows // 100), 4, folder / "small")
    found: dict[str, Any] = {"machine": describe_machine(), "rows": rows, "keys": keys}
    for cores in (2, 1):
        found[str(cores)] = in_a_process(cores, folder, rounds if cores > 1 else 1)
        print(cores, {name: [round(value, 1) for value in times] for name, times in found[str(cores)].items()})
    return found


def table(found: dict[str, Any]) -> str:
    """The figures and the verdicts, in Markdown."""
    two, one = found["2"], found["1"]
    lines = []
    names = {"copy": "copies its input", "default": "`AdaptiveLabelModel()`", "paper": "`AdaptiveLabelModel.paper()`"}
    names["one stream"] = "one long stream (`key=None`), `AdaptiveLabelModel()`"
    for name, shown in names.items():
        lines.append(
            f"| {shown} | {median(one[name]):.0f} s | {median(two[name]):.0f} s |"
            f" {median(one[name]) / median(two[name]):.2f} x | {ratio(two, name, 'copy'):.2f} x |"
        )
    over, faster = ratio(two, "default", "copy"), median(one["default"]) / median(two["default"])
    judged = [
        ("labeling over copying, two cores", f"at most {MOST_RATIO:.1f} x", over, over <= MOST_RATIO),
        ("two cores over one", f"at least {LEAST_SPEEDUP:.1f} x", faster, faster >= LEAST_SPEEDUP),
    ]
    verdicts = [
        f"| {what} | {target} | {value:.2f} x | {'pass' if good else 'fail'} |" for what, target, value, good in judged
    ]
    return f"""{found["rows"]:,} rows x {len(LABELERS)} labelers, {found["keys"]} streams, Parquet to Parquet.
Measured on: {machine_sentence(found["machine"])}

| what must hold | target | measured |  |
|---|---|---|---|
{chr(10).join(verdicts)}

| the function in the middle | one core | two cores | two over one | over copying |
|---|---|---|---|---|
{chr(10).join(lines)}
"""


def write_table(page: str, text: str) -> str:
    """The page with the table between its marks."""
    begin, end = "<!-- figures: written by make bench-spark -->", "<!-- end of figures -->"
    return replace_between(page, begin, end, text.rstrip())


def main() -> None:
    if sys.argv[1:2] == ["child"]:
        child(int(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]))
        return
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--keys", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--print", action="store_true", help="leave the page alone")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder:
        found = measure(asked.rows, asked.keys, asked.rounds, Path(folder))
    text = table(found)
    print(text)
    if not asked.print:
        PAGE.write_text(write_table(PAGE.read_text(), text))


if __name__ == "__main__":
    main()
