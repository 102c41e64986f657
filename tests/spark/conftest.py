"""One Spark session for all tests here. `make test-spark` runs them; the rest of the suite does without."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

import pytest

from java_here import why_not

HERE = Path(__file__).parent


def pytest_ignore_collect(collection_path, config):
    """Only when they are asked for by name: a JVM takes longer to start than most tests to run."""
    asked = any(Path(str(arg).partition("::")[0]).resolve().is_relative_to(HERE) for arg in config.args)
    return True if not asked or importlib.util.find_spec("pyspark") is None else None


def pytest_collection_modifyitems(items):
    reason = why_not()
    for item in items:
        if reason is not None and item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.skip(reason=reason))
        elif item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.filterwarnings("default"))  # Spark and pandas warn of each other


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    """Two cores, no web page, few partitions."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[2]")
        .appName("driftvote tests")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.extraJavaOptions", "-XX:+UseSerialGC -XX:TieredStopAtLevel=1")
        .config("spark.local.dir", str(tmp_path_factory.mktemp("spark")))
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
