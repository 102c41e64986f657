"""Around the adapter: the script in the documentation, the benchmark's verdicts, and a machine without Java."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from driftvote import AdaptiveLabelModel

from java_here import why_not
from same_labels import LABELERS, assert_same, table

ROOT = Path(__file__).parents[2]


def test_the_script_in_the_documentation_runs(spark, tmp_path, monkeypatch):
    """In this process, where there is a session already, as under spark-submit."""
    script = re.search(r"```python\n(\"\"\"job.py: .*?)```", (ROOT / "docs" / "spark.md").read_text(), re.DOTALL)[1]
    votes = table([120, 40])
    names = {name: f"judge_{name}" for name in LABELERS}
    votes.rename(columns=names).to_parquet(tmp_path / "votes")
    monkeypatch.setattr(sys, "argv", ["job.py", str(tmp_path / "votes"), str(tmp_path / "labels")])
    exec(compile(script, "job.py", "exec"), {"__name__": "__main__"})
    assert_same(spark.read.parquet(str(tmp_path / "labels")).toPandas(), votes, AdaptiveLabelModel(), "camera")


@pytest.fixture
def bench(monkeypatch):
    """benchmarks/spark.py, which is no part of the package."""
    monkeypatch.syspath_prepend(str(ROOT))
    return importlib.import_module("benchmarks.spark")


def test_the_benchmarks_verdicts_can_fail(bench):
    machine = importlib.import_module("benchmarks.common").describe_machine()
    names = ("copy", "default", "paper", "one stream")
    found = {"machine": machine, "rows": 1000, "keys": 5}
    found |= {"1": {name: [30.0] for name in names}, "2": {name: [16.0, 18.0] for name in names}}
    told = bench.table(found)
    assert "| at most 2.0 x | 1.00 x | pass |" in told
    assert "| at least 1.5 x | 1.76 x | pass |" in told
    found["2"]["default"] = [40.0, 46.0]
    told = bench.table(found)
    assert "| at most 2.0 x | 2.53 x | fail |" in told
    assert "| at least 1.5 x | 0.70 x | fail |" in told
    page = bench.write_table(bench.write_table(bench.PAGE.read_text(), told), told)
    assert page.count("2.53 x") == told.count("2.53 x") > 0
    with pytest.raises(SystemExit, match="has no marks"):
        bench.write_table("no place", told)


@pytest.mark.parametrize(
    ("java", "reason"),
    [
        (None, "there is no java here"),
        ("echo 'openjdk version \"11.0.2\" 2019' >&2", "is Java 11; set JAVA_HOME to a newer one"),
        ("echo hello", "does not say which Java it is"),
        ("echo 'openjdk version \"21\" 2023' >&2", None),
    ],
)
def test_without_java_17_the_tests_are_skipped_and_say_so(tmp_path, monkeypatch, java, reason):
    (tmp_path / "bin").mkdir()
    if java is not None:
        (tmp_path / "bin" / "java").write_text(f"#!/bin/sh\n{java}\n")
        (tmp_path / "bin" / "java").chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    told = why_not()
    assert (told is None) if reason is None else (told is not None and reason in told)
    command = [sys.executable, str(ROOT / "tests" / "spark" / "java_here.py")]
    done = subprocess.run(command, env=dict(os.environ), capture_output=True, text=True, check=False)
    assert done.returncode == (0 if reason is None else 1)
    assert done.stdout == ("" if told is None else f"the Spark tests are skipped: {told}\n")
