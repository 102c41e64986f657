"""Columns of every type that people keep votes and times in."""

from __future__ import annotations

import datetime
import io
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

from driftvote import AdaptiveLabelModel, cli, load
from driftvote.files import jsonl
from test_files_bad import refused

from streams_for_tests import random_stream
from votes_on_disk import LABELERS, TEXT, cells_of, invoke, read_back, table_of, write_votes

N = 60
DAYS = [datetime.date(2024, 1, 1) + datetime.timedelta(days=i) for i in range(N)]
TIMES = {
    "dates": pa.array(DAYS, pa.date32()),
    "milliseconds": pa.array(DAYS, pa.date64()),
    "seconds": pa.array(np.arange(N), pa.timestamp("s")),
    "zoned": pa.array(np.arange(N), pa.timestamp("ns", "Asia/Tokyo")),
    "durations": pa.array(np.arange(N), pa.duration("ms")),
    "floats": pa.array(np.linspace(0, 1, N)),
    "decimals": pa.array([Decimal(i) / 4 for i in range(N)], pa.decimal128(8, 2)),
    "text": pa.array([f"2024-01-{1 + i // 3:02d}" for i in range(N)]),
    "categories": pa.array([f"2024-01-{1 + i // 3:02d}" for i in range(N)]).dictionary_encode(),
}


@pytest.mark.parametrize("name", TIMES)
def test_times_of_every_type_are_checked_as_in_python(tmp_path, monkeypatch, capsys, name):
    votes = table_of(random_stream(1, N, 5, n_classes=3), TEXT).drop_columns(["at"]).append_column("at", TIMES[name])
    pyarrow.parquet.write_table(votes, tmp_path / "v.parquet")
    command = ["label", tmp_path / "v.parquet", "--id", "id", "--time", "at", "-o", tmp_path / "l.parquet", "--force"]
    invoke(*command, "--state", tmp_path / "s.npz")
    frame = votes.drop_columns(["id"])
    if name not in ("categories", "decimals", "milliseconds"):
        model = AdaptiveLabelModel(classes=TEXT, labelers=LABELERS)
        model.label_stream(frame, time="at")
        assert load(tmp_path / "s.npz").last_time == model.last_time
    pyarrow.parquet.write_table(votes.take(list(range(30, N)) + list(range(30))), tmp_path / "v.parquet")
    assert "row 31, column 'at': time" in refused(monkeypatch, capsys, *command)
    invoke(*command, "--sort")
    assert read_back(tmp_path / "l.parquet")["id"].to_pylist() == votes["id"].to_pylist()


def test_what_is_no_time(tmp_path, monkeypatch, capsys):
    cases = {
        "holes": (pa.array([1.0, None, 3.0]), "row 2, column 'at' has no time"),
        "nan": (pa.array([1.0, float("nan"), 3.0]), "row 2, column 'at' has no time"),
        "lists": (pa.array([[1], [2], [3]]), "cannot be read as time"),
    }
    for times, message in cases.values():
        pyarrow.parquet.write_table(
            pa.table({"a": [0, 1, 1], "b": [0, 1, 1], "c": [0, 1, 0], "at": times}), tmp_path / "v.parquet"
        )
        assert message in refused(
            monkeypatch, capsys, "label", tmp_path / "v.parquet", "--time", "at", "-o", tmp_path / "l.csv"
        )


def test_votes_of_every_type(tmp_path):
    codes = random_stream(2, 80, 5, abstain=0.2)
    gaps = [[None if c < 0 else int(c) for c in column] for column in codes.T]
    kinds = [pa.bool_(), pa.float64(), pa.int64(), pa.uint8(), pa.decimal128(20, 1)]
    table = pa.table({
        name: pa.array(gaps[i]).cast(kind) if kind != pa.bool_() else pa.array([None if x is None else bool(x) for x in gaps[i]])
        for i, (name, kind) in enumerate(zip(LABELERS, kinds, strict=True))
    })  # fmt: skip
    pyarrow.parquet.write_table(table, tmp_path / "v.parquet", write_statistics=False)
    invoke("label", tmp_path / "v.parquet", "-o", tmp_path / "l.parquet")
    np.testing.assert_array_equal(
        read_back(tmp_path / "l.parquet")["probability"].to_numpy(),
        AdaptiveLabelModel().label_stream(codes).probability,
    )
    columns = {}
    for place, name in enumerate(LABELERS):
        indices = pa.array([None if c < 0 else int(c) + 1 for c in codes[:, place]], pa.int8())
        columns[name] = pa.DictionaryArray.from_arrays(indices, ["never", "no", "yes"])
    pyarrow.parquet.write_table(pa.table(columns), tmp_path / "c.parquet")
    done = invoke("label", tmp_path / "c.parquet", "-o", tmp_path / "l.parquet", "--force")
    assert "classes  no, yes;" in done.output, "a category that nobody votes for is no class"
    out = AdaptiveLabelModel(classes=["no", "yes"]).label_stream(cells_of(codes, ["no", "yes"]))
    np.testing.assert_array_equal(read_back(tmp_path / "l.parquet")["probability"].to_numpy(), out.probability)


def test_fractions_as_classes_and_an_abstention_in_numbers(tmp_path):
    (tmp_path / "v.csv").write_text("a,b,c\n0.5,1,0.5\n9,1,1\n0.5,0.5,9\n")
    invoke("label", tmp_path / "v.csv", "--classes", "0.5,1", "--abstain", "9", "-o", tmp_path / "l.csv")
    rows = [[0.5, 1.0, 0.5], [9, 1.0, 1.0], [0.5, 0.5, 9]]
    out = AdaptiveLabelModel(classes=[0.5, 1], abstain=9).label_stream(rows)
    assert read_back(tmp_path / "l.csv")["label"].to_pylist() == out.labels.tolist()
    invoke("label", tmp_path / "v.csv", "--classes", "0.5,1", "--abstain", "9", "-o", tmp_path / "l.npz")
    (tmp_path / "w.csv").write_text("a,b,c\n3,1,3\n9,1,1\n3,3,9\n")
    done = invoke("label", tmp_path / "w.csv", "--abstain", "9", "-o", tmp_path / "w.npz")
    assert "classes  1, 2, 3; 9 or an empty cell is no vote" in done.output


def test_numbers_of_json_change_their_type(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(jsonl, "BLOCK", 400)
    lines = [f'{{"n": {i}, "a": 0, "b": 1, "c": 1}}' for i in range(30)] + ['{"n": "x", "a": 0, "b": 1, "c": 1}'] * 20
    (tmp_path / "v.jsonl").write_text("\n".join(lines))
    said = refused(monkeypatch, capsys, "label", tmp_path / "v.jsonl", "--id", "n", "-o", tmp_path / "l.csv")
    assert "column 'n'" in said


def test_standard_input_in_this_process(tmp_path):
    codes = random_stream(3, 50, 5, n_classes=3)
    write_votes(tmp_path / "v.csv", codes, TEXT)
    done = CliRunner().invoke(
        cli.app,
        ["label", "-", "--keep", "id,at", "-o", str(tmp_path / "l.csv")],
        input=(tmp_path / "v.csv").read_bytes(),
    )
    assert done.exit_code == 0, done.output
    assert "standard input: 50 rows" in done.output
    assert read_back(tmp_path / "l.csv").num_rows == 50
    assert isinstance(io.BytesIO(), io.IOBase)


def test_every_stream_needs_a_name(tmp_path, monkeypatch, capsys):
    pyarrow.parquet.write_table(
        pa.table({"s": ["x", None], "a": [0, 1], "b": [0, 1], "c": [1, 1]}), tmp_path / "v.parquet"
    )
    said = refused(monkeypatch, capsys, "label", tmp_path / "v.parquet", "--stream", "s", "-o", tmp_path / "l.csv")
    assert "row 2: the stream is empty" in said
