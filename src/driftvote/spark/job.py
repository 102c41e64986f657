"""A job for files, as a script that can be read, changed and handed to spark-submit; and running it here."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from driftvote.errors import DriftvoteError, MissingExtraError

READERS = {
    "parquet": "parquet({path!r})",
    "csv": "csv({path!r}, header=True, inferSchema=True)",
    "json": "json({path!r})",
    "orc": "orc({path!r})",
}
ENDINGS = {"parquet": "parquet", "pq": "parquet", "csv": "csv", "jsonl": "json", "json": "json", "ndjson": "json"}
ENDINGS |= {"orc": "orc"}


@dataclass(frozen=True)
class Job:
    """What is read, how it is labeled, and where it goes; texts are Python."""

    source: str
    kind: str  # of READERS
    out: str
    model: str  # such as "AdaptiveLabelModel(n_classes=3)"
    labelers: tuple[str, ...]  # names or patterns
    settings: dict[str, Any]  # of `label`
    overwrite: bool = False

    def script(self) -> str:
        """The job as a program."""
        given = "".join(f"    {name}={value!r},\n" for name, value in self.settings.items())
        mode = "overwrite" if self.overwrite else "errorifexists"
        labelers, needed = repr(list(self.labelers)), ""
        if any(set("*?[") & set(name) for name in self.labelers):
            labelers = f"[name for name in votes.columns if any(fnmatchcase(name, like) for like in {labelers})]"
            needed = "from fnmatch import fnmatchcase\n\n"
        kind = self.model.partition("(")[0].partition(".")[0]
        return f'''"""Labels rows of votes on Spark. Run it with Python, or with spark-submit on a cluster."""

{needed}from pyspark.sql import SparkSession

from driftvote import {kind}
from driftvote.spark import label

spark = SparkSession.builder.appName("driftvote").getOrCreate()
votes = spark.read.{READERS[self.kind].format(path=self.source)}
labeled = label(
    votes,
    labelers={labelers},
    model={self.model},
{given})
labeled.write.mode({mode!r}).parquet({self.out!r})
'''

    def run(self, master: str | None, conf: Sequence[str] = ()) -> int:
        """Run the very script in this process; the number of rows written."""
        with _session(master, conf) as spark, _our_words():
            exec(compile(self.script(), "<spark-label>", "exec"), {"__name__": "__main__"})
            return int(spark.read.parquet(self.out).count())


def kind_of(path: str, asked: str | None) -> str:
    """How Spark is to read this; a folder is Parquet unless its name or --from says otherwise."""
    if asked is not None and asked not in READERS:
        raise DriftvoteError(f"--from {asked}: Spark is asked to read {', '.join(READERS)}")
    plain = re.sub(r"\.(gz|bz2|zst)$", "", path.rstrip("/"))
    return asked or ENDINGS.get(plain.rpartition(".")[2].lower(), "parquet")


@contextmanager
def _session(master: str | None, conf: Sequence[str]) -> Iterator[Any]:
    """A session for the script to find."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise MissingExtraError("this needs Spark: pip install 'driftvote[spark]', and Java 17 or newer") from None
    local = master is None or master.startswith("local")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    if local:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master(master or "local[*]").config("spark.ui.showConsoleProgress", "false")
    if local:
        builder = builder.config("spark.ui.enabled", "false")
    for setting in conf:
        name, equals, value = setting.partition("=")
        if not equals:
            raise DriftvoteError(f"--conf {setting}: write name=value, such as --conf spark.driver.memory=4g")
        builder = builder.config(name, value)
    try:
        spark = builder.appName("driftvote").getOrCreate()
    except Exception as problem:
        raise DriftvoteError(f"Spark does not start ({_first_line(problem)}); it needs Java 17 or newer") from None
    spark.sparkContext.setLogLevel("OFF")
    try:
        yield spark
    finally:
        spark.stop()


@contextmanager
def _our_words() -> Iterator[None]:
    """Spark's error, reduced to our sentence where there is one in it."""
    try:
        yield
    except DriftvoteError:
        raise
    except Exception as problem:
        said = re.search(r"driftvote\.errors\.\w+: (.+)", str(problem))
        raise DriftvoteError(said[1] if said else f"Spark: {_first_line(problem)}") from None


def _first_line(problem: Exception) -> str:
    lines = str(problem).strip().splitlines() or [type(problem).__name__]
    return lines[0].partition(" SQLSTATE")[0][:300]
