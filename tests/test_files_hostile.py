"""Files that are damaged or made to harm: refused in one sentence, without a crash and without a hunger for memory."""

from __future__ import annotations

import gzip
import subprocess
import sys
import tracemalloc

import numpy as np
import pyarrow as pa
import pytest

from test_files_bad import refused

import fuzz
from streams_for_tests import random_stream
from votes_on_disk import TEXT, write_votes


@pytest.fixture(scope="module")
def child():
    """A process for cases that may crash."""
    process = fuzz.Child(fuzz.MEMORY)
    yield process
    process.close()


@pytest.mark.slow
@pytest.mark.parametrize("target", ["csv", "jsonl", "parquet", "arrow", "feather", "npy", "npz"])
def test_damaged_files_are_refused_and_crash_nothing(child, target, tmp_path):
    for seed in range(10):
        folder = tmp_path / str(seed)
        folder.mkdir()
        outcome = child.run(target, seed, folder)
        assert outcome["outcome"] in fuzz.FAIR, f"seed {seed}: {outcome['why']}"


def test_json_lines_that_are_not_utf_8(tmp_path, monkeypatch, capsys):
    path = tmp_path / "l.jsonl"
    lines = b'{"a":"ham","b":"ham","c":"spam"}\n', b'{"a":"h\xffam","b":"ham","c":"ham"}\n'
    path.write_bytes(b"".join(lines))
    said = refused(monkeypatch, capsys, "label", path, "-o", tmp_path / "y.csv")
    assert "line 2 is not UTF-8; save the file as UTF-8" in said
    path.write_bytes(b'{"\xff":"ham","b":"ham","c":"spam"}\n')
    assert "line 1 is not UTF-8" in refused(monkeypatch, capsys, "label", path, "-o", tmp_path / "y.csv")


def test_typed_text_that_is_not_utf_8(tmp_path, monkeypatch, capsys):
    codes = random_stream(1, 300, 5, n_classes=3)
    for name in ("v.parquet", "v.arrow"):
        path = tmp_path / name
        write_votes(path, codes, TEXT)
        data = path.read_bytes()
        for word in (b"scam", b"crowd"):  # a class, and the name of a column
            assert word in data
            path.write_bytes(data.replace(word, b"\xff" + word[1:]))
            said = refused(monkeypatch, capsys, "label", path, "--keep", "id,at", "-o", tmp_path / "y.csv")
            assert f"{name}: not a whole" in said


def test_headers_of_arrays(tmp_path, monkeypatch, capsys):
    path = tmp_path / "v.npy"
    np.save(path, np.zeros((30, 3), np.int8))
    whole = path.read_bytes()
    for damaged in (
        whole.replace(b"(30, 3)", b"(30, 3 "),
        whole.replace(b"(30, 3)", b"(30,30)"),
        whole.replace(b"(30, 3)", b"(-1, 3)"),
        whole.replace(b"'|i1'", b"'|x1'"),
        whole.replace(b"(30, 3), }     ", b"(1, 999999999), }"[:15]),
    ):
        assert damaged != whole
        path.write_bytes(damaged)
        assert "not a whole npy file" in refused(monkeypatch, capsys, "label", path, "-o", tmp_path / "y.csv")
    write_votes(tmp_path / "v.npz", random_stream(1, 300, 5, n_classes=3), TEXT)
    whole = (tmp_path / "v.npz").read_bytes()
    last = whole.rindex(b"PK\x01\x02")  # the directory's last entry
    for at, value in ((last + 10, 99), (last + 8, 1), (last + 48, 255)):  # compression, encryption, name
        damaged = bytearray(whole)
        damaged[at] = value
        (tmp_path / "v.npz").write_bytes(damaged)
        said = refused(monkeypatch, capsys, "label", tmp_path / "v.npz", "-o", tmp_path / "y.csv")
        assert "not a whole npz file" in said
    np.savez_compressed(tmp_path / "wide.npz", votes=np.zeros((1, 1_000_000), np.int8))
    said = refused(monkeypatch, capsys, "label", tmp_path / "wide.npz", "-o", tmp_path / "y.csv")
    assert "the array has 1,000,000 columns" in said


@pytest.mark.parametrize("name", ["v.csv.gz", "v.jsonl.gz"])
@pytest.mark.parametrize("filling", [b"x", b"\x00", b'{"a":'])
def test_a_first_line_without_an_end(tmp_path, monkeypatch, capsys, name, filling):
    path = tmp_path / name
    with gzip.open(path, "wb", compresslevel=1) as file:
        for _ in range(100):
            file.write(filling * (1_000_000 // len(filling)))
    tracemalloc.start()
    try:
        said = refused(monkeypatch, capsys, "label", path, "-o", tmp_path / "y.csv")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert "longer than 16 MB" in said
    assert peak < 90_000_000  # of 100 MB in one line


@pytest.mark.parametrize(("lines", "number"), [(b"null\n", 1), (b'{"a": 1, "b": 0, "c": 1}\n null \n', 2)])
def test_a_line_that_is_null_is_no_row(tmp_path, monkeypatch, capsys, lines, number):
    """Arrow crashes on the first, and takes the second for a row without votes."""
    path = tmp_path / "v.jsonl"
    path.write_bytes(lines)
    said = refused(monkeypatch, capsys, "label", path, "-o", tmp_path / "y.csv")
    assert f"line {number} is not an object" in said


def test_a_column_without_a_name_is_a_labeler(tmp_path):
    path = tmp_path / "v.arrow"
    votes = pa.table({"a": [1, 0, 1], "": [1, 0, 0], "c": [1, 1, 1]})
    with pa.ipc.new_file(path, votes.schema) as file:
        file.write_table(votes)
    command = [sys.executable, "-m", "driftvote", "label", path, "-o", tmp_path / "y.csv"]
    subprocess.run(command, check=True, capture_output=True)
    assert len((tmp_path / "y.csv").read_text().splitlines()) == 4
