"""Rows of files: no field is lost when rows are taken, cut, sorted; and a format is one class and one line."""

from __future__ import annotations

import dataclasses
import sys
import types

import numpy as np
import pyarrow as pa
import pytest

from driftvote.files import long, table
from driftvote.files.long import flatten, sort_rows, unflatten
from driftvote.files.rows import VoteRows
from driftvote.files.table import FileFormat, Table
from driftvote.times import Times

from streams_for_tests import random_stream
from votes_on_disk import LABELERS, expected, invoke, read_back

N = 40


def full_rows(times, seed=0):
    """Rows in which every field has a value."""
    rng = np.random.default_rng(seed)
    kept = {
        "id": pa.array([f"m{i}" for i in range(N)]),
        "when": pa.array(rng.integers(0, 10**15, N), pa.timestamp("us", "UTC")),
        "day": pa.array(rng.integers(0, 10**4, N).astype(np.int32), pa.date32()),
        "score": pa.array([None if x < 0.2 else x for x in rng.random(N)]),
    }
    return VoteRows(
        rows=np.arange(N),
        labelers=("a", "b", "c"),
        codes=rng.integers(-1, 3, (N, 3)).astype(np.int8),
        literal=True,
        kept=pa.RecordBatch.from_pydict(kept),
        times=times,
        streams=pa.array(rng.choice(["x", "y"], N)),
        gold=rng.integers(-1, 3, N).astype(np.int8),
        verified=rng.integers(-1, 3, N).astype(np.int8),
    )


def assert_same(one, other):
    for field in dataclasses.fields(VoteRows):
        a, b = getattr(one, field.name), getattr(other, field.name)
        assert a is not None, f"{field.name} is not tested: give it a value in full_rows"
        if isinstance(a, Times):
            assert (a.kind, a.scale) == (b.kind, b.scale)
            a, b = a.values, b.values
        if isinstance(a, np.ndarray):
            assert a.dtype == b.dtype, field.name
            np.testing.assert_array_equal(a, b)
        else:
            assert a.equals(b) if hasattr(a, "equals") else a == b, field.name


TIMES = {
    "number": Times("number", np.random.default_rng(3).integers(0, 9, N)),
    "datetime": Times("datetime", np.random.default_rng(4).integers(0, 10**12, N), 1000),
    "text": Times("text", np.array([f"t{i % 7}" for i in range(N)], object)),
}


@pytest.mark.parametrize("kind", list(TIMES))
def test_no_field_is_lost_on_the_way_through_plain_columns(kind):
    rows = full_rows(TIMES[kind])
    assert_same(rows, unflatten(flatten(rows), full_rows(TIMES[kind], seed=1)))


@pytest.mark.parametrize("external", [False, True], ids=["in memory", "duckdb"])
@pytest.mark.parametrize("by_stream", [False, True])
def test_sorted_rows_are_the_rows_taken_in_order(monkeypatch, external, by_stream):
    if external:
        monkeypatch.setattr(long, "IN_MEMORY", 10)
    rows = full_rows(TIMES["number"])
    keys = [rows.rows, rows.times.values] + ([rows.streams.to_numpy(zero_copy_only=False).astype(str)] * by_stream)
    sorted_batches = list(sort_rows(iter([rows]), by_stream))
    assert len(sorted_batches) == 1
    assert_same(rows.take(np.lexsort(keys)), sorted_batches[0])


def test_a_part_of_the_votes_has_every_field_of_a_model():
    rows = full_rows(TIMES["number"])
    part, taken = rows.votes_only()[5:9], rows.take(np.arange(5, 9))
    for name in ("rows", "codes", "verified"):
        np.testing.assert_array_equal(getattr(part, name), getattr(taken, name))
    np.testing.assert_array_equal(part.times.values, taken.times.values)
    assert (part.kept, part.streams, part.gold) == (None, None, None)


def test_a_new_format_is_one_class_and_one_line(tmp_path, monkeypatch):
    """Votes as words of digits: one line a row, a letter for each labeler."""

    class WordTable(Table):
        def __init__(self, path, options, shown=None, compression=None):
            super().__init__(path, options, shown, compression)
            self.names = list(LABELERS)
            self.lines = self.path.read_text().split()

        def batches(self, columns, votes=()):
            cells = {name: [line[i].strip("-") for line in self.lines] for i, name in enumerate(self.names)}
            yield from self._cut(pa.RecordBatch.from_pydict({name: cells[name] for name in columns}))

    module = types.ModuleType("driftvote.files.words")
    module.WordTable = WordTable
    monkeypatch.setitem(sys.modules, "driftvote.files.words", module)
    monkeypatch.setitem(table.FORMATS, "words", FileFormat("words:WordTable", (".words",), is_text=True))
    codes = random_stream(5, 90, 5, n_classes=3, abstain=0.2)
    lines = ["".join("-" if code < 0 else str(code) for code in row) for row in codes]
    (tmp_path / "v.words").write_text("\n".join(lines))
    invoke("label", tmp_path / "v.words", "-o", tmp_path / "l.parquet")
    labels = read_back(tmp_path / "l.parquet")
    np.testing.assert_array_equal(labels["probability"].to_numpy(), expected(codes).probability)
