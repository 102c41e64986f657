"""`driftvote spark-label`: the command, the script it writes, and both against one process."""

from __future__ import annotations

import re
import subprocess
import sys

import pandas as pd
import pytest
from typer.testing import CliRunner

from driftvote import AdaptiveLabelModel, DriftvoteError, MissingExtraError, cli

from same_labels import assert_same, table

COLUMNS = ["--labelers", "[abcde]", "--time", "at", "--stream", "camera", "--accuracies", "--set", "beta=0.2"]
CONF = ["--master", "local[2]", "--conf", "spark.sql.shuffle.partitions=2", "--conf", "spark.driver.memory=1g"]


def driftvote(*arguments):
    return CliRunner().invoke(cli.app, ["spark-label", *arguments])


TWICE = """
import sys
from driftvote.cli import main
for arguments in {runs!r}:
    sys.argv = ["driftvote", "spark-label", *arguments]
    try:
        main()
    except SystemExit as end:
        print("exit code", end.code, flush=True)
"""


def test_files_in_and_out(tmp_path):
    """A bad row is one line and leaves nothing; without it the labels are written, and never overwritten unasked."""
    votes = table([300, 50])
    votes.to_csv(tmp_path / "votes.csv", index=False)
    bad = votes.assign(c=votes["c"].where(votes["at"] != 70, 9))
    bad.to_parquet(tmp_path / "bad.parquet")
    runs = [[name, "-o", "labels", *COLUMNS, *CONF] for name in ("bad.parquet", "votes.csv", "votes.csv")]
    command = [sys.executable, "-c", TWICE.format(runs=runs)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout == "exit code 2\nwrote    labels: 350 rows\nexit code 0\nexit code 2\n", done.stderr
    told = [line for line in done.stderr.splitlines() if line.startswith("driftvote: ")]
    assert len(told) == 2
    assert re.match(r"driftvote: camera 'cam-\d', at 70, column 'c': 9 is neither a class \(0, 1\)", told[0])
    assert told[1] == "driftvote: labels: the folder exists; pass --force to overwrite it, or choose another name"
    assert "Traceback" not in done.stderr
    assert_same(pd.read_parquet(tmp_path / "labels"), votes, AdaptiveLabelModel(beta=0.2), "camera")


def test_the_script_gives_the_same(tmp_path, spark, monkeypatch):
    """In this process, where the session is there already, as under spark-submit."""
    votes = table([120, 40])
    votes.to_parquet(tmp_path / "votes.parquet")
    monkeypatch.chdir(tmp_path)
    done = driftvote(str(tmp_path / "votes.parquet"), "-o", str(tmp_path / "labels"), *COLUMNS, "--write-job", "job.py")
    assert done.output == "wrote    job.py; run it with: spark-submit job.py\n"
    exec(compile((tmp_path / "job.py").read_text(), "job.py", "exec"), {"__name__": "__main__"})
    assert_same(spark.read.parquet(str(tmp_path / "labels")).toPandas(), votes, AdaptiveLabelModel(beta=0.2), "camera")
    again = driftvote("v.parquet", "-o", "labels", *COLUMNS, "--write-job", "job.py")
    assert "job.py: the file exists; pass --force" in str(again.exception)


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (["--set", "betta=1"], "--set betta: AdaptiveLabelModel has no such setting"),
        (["--model", "best"], "--model best: there is no such model"),
        (["--from", "xls"], "--from xls: Spark is asked to read parquet, csv, json, orc"),
        (["--classes", "a"], "classes must name from 2"),
    ],
)
def test_mistakes_are_found_before_spark_starts(tmp_path, more, sentence):
    done = driftvote("votes.parquet", "-o", "labels", *COLUMNS, *more, "--write-job", str(tmp_path / "job.py"))
    assert isinstance(done.exception, DriftvoteError)
    assert sentence in str(done.exception)
    assert not (tmp_path / "job.py").exists()


def test_without_spark_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    done = driftvote("votes.parquet", "-o", "labels", *COLUMNS)
    assert isinstance(done.exception, MissingExtraError)
    assert "pip install 'driftvote[spark]'" in str(done.exception)
