"""The figures of docs/files.md at a small size: memory that does not grow with the rows, and verdicts that can fail."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


@pytest.fixture
def files(monkeypatch):
    """benchmarks/files.py, which is no part of the package."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1]))
    return importlib.import_module("benchmarks.files")


def test_memory_is_flat_in_the_number_of_rows(tmp_path, files):
    held = []
    for rows in (400_000, 1_600_000):
        files.make_parquet(rows, tmp_path / "votes.parquet")
        held.append(files.in_a_process(rows, tmp_path)["peak_mb"])
    assert max(held) < files.MOST_MB
    # The outputs of 1.2 million rows more are 100 MB and above; batches of them are not held.
    assert held[1] - held[0] < 60


def test_the_page_tells_what_was_measured(tmp_path, files):
    found = files.measure([20_000], 1, 5_000, 20_000, tmp_path)
    text = files.page(found)
    assert "| 20,000 |" in text
    assert "## By format" in text
    found["sizes"][-1]["ratio"] = 3.0
    assert "| 3.00 x | fail |" in files.page(found)
