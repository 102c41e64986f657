"""Every format in and out: `label` on a file is `label_stream` on the same votes, bit for bit."""

from __future__ import annotations

import io
import json
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from driftvote import AdaptiveLabelModel, load
from driftvote.files import csv, jsonl, long
from driftvote.files.table import Table, format_of, sniff_format
from driftvote.settings import REVIEW_BELOW

from streams_for_tests import random_stream, rows_for
from votes_on_disk import LABELERS, TEXT, cells_of, expected, invoke, read_back, table_of, write_delimited, write_votes

N = rows_for(3000, 300)
INPUTS = ["v.csv", "v.csv.gz", "v.tsv", "v.jsonl", "v.parquet", "v.feather", "v.arrow", "v.npy", "v.npz"]


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    """Files of a few thousand rows must be cut into many batches, or nothing at the seams would be tested."""
    monkeypatch.setattr(Table, "batch_rows", 271)
    monkeypatch.setattr(long, "BATCH", 271)
    monkeypatch.setattr(csv, "BLOCK", 4096)
    monkeypatch.setattr(jsonl, "BLOCK", 8192)


def same_bits(found: pa.Table, out: object, n_classes: int = 3) -> None:
    assert found.num_rows == len(out)
    named = [name for name in found.column_names if name.startswith("proba_")]
    assert len(named) == n_classes
    for place, name in enumerate(named):
        np.testing.assert_array_equal(found[name].to_numpy(), out.proba[:, place])
    np.testing.assert_array_equal(found["probability"].to_numpy(), out.probability)
    np.testing.assert_array_equal(found["window"].to_numpy(), out.windows)
    np.testing.assert_array_equal(found["n_votes"].to_numpy(), out.n_votes)
    said = ["" if label is None else label for label in out.labels.tolist()]
    assert ["" if label is None else label for label in found["label"].to_pylist()] == said


def roles(name: str) -> list[str]:
    return [] if name.endswith(".npy") else ["--keep", "id"] if name.endswith(".npz") else ["--keep", "id,at"]


@pytest.mark.parametrize("classes", [None, TEXT], ids=["numbers", "text"])
@pytest.mark.parametrize("name", INPUTS)
def test_every_input_gives_the_bits_of_label_stream(tmp_path, name, classes):
    codes = random_stream(1, N, 5, n_classes=3, abstain=0.3)
    write_votes(tmp_path / name, codes, classes)
    invoke("label", tmp_path / name, *roles(name), "-o", tmp_path / "labels.parquet")
    written = classes if not name.endswith(".npy") else None  # codes are all that an NPY holds
    found = pyarrow.parquet.read_table(tmp_path / "labels.parquet")
    same_bits(found, expected(codes, written))
    if "id" in found.column_names and not name.endswith(".npz"):
        assert found["id"].to_pylist() == [f"m{i}" for i in range(N)]
        assert found["at"].to_pylist() == list(range(N)), "numbers of a CSV stay numbers"


@pytest.mark.parametrize("name", ["l.csv", "l.tsv", "l.jsonl", "l.parquet", "l.feather", "l.npz"])
def test_every_output_holds_the_same(tmp_path, name):
    codes = random_stream(2, N, 5, n_classes=3, abstain=0.4)
    write_votes(tmp_path / "v.parquet", codes, TEXT)
    dropped = ["--drop", "id", "--keep", "at"] if name.endswith("npz") else ["--keep", "id,at"]
    invoke("label", tmp_path / "v.parquet", *dropped, "--accuracies", "--weights", "-o", tmp_path / name)
    found, out = read_back(tmp_path / name), expected(codes, TEXT)
    same_bits(found, out)
    for place, labeler in enumerate(LABELERS):
        np.testing.assert_array_equal(found[f"accuracy_{labeler}"].to_numpy(), out.accuracies[:, place])
        np.testing.assert_array_equal(found[f"weight_{labeler}"].to_numpy(), out.weights[:, place])
    review = (out.probability < REVIEW_BELOW) | (out.codes < 0)
    assert found["needs_review"].to_pylist() == review.tolist()
    assert 0 < review.sum() < N


def test_formats_of_votes_are_declared_as_in_python(tmp_path):
    codes = random_stream(3, N, 5, abstain=0.2)
    signed = np.where(codes < 0, 0, 2 * codes - 1)
    np.save(tmp_path / "signed.npy", signed)
    invoke("label", tmp_path / "signed.npy", "--votes", "signed", "-o", tmp_path / "l.parquet")
    same_bits(read_back(tmp_path / "l.parquet"), AdaptiveLabelModel(votes="signed").label_stream(signed), 2)
    write_delimited(tmp_path / "v.csv", table_of(codes, ["1.0", "2.0"]))  # as pandas writes numbers beside gaps
    for arguments in (["--classes", "1,2"], []):
        invoke("label", tmp_path / "v.csv", "--keep", "id,at", *arguments, "-o", tmp_path / "l.csv", "--force")
        same_bits(
            read_back(tmp_path / "l.csv"), AdaptiveLabelModel(classes=[1, 2]).label_stream(cells_of(codes, [1, 2])), 2
        )
    write_delimited(tmp_path / "q.csv", table_of(np.where(codes < 0, 2, codes), ["no", "yes", "?"]))
    done = invoke("label", tmp_path / "q.csv", "--keep", "id,at", "--abstain", "?", "-o", tmp_path / "l.csv", "--force")
    assert "no, yes; ? or an empty cell is no vote" in done.output
    said = AdaptiveLabelModel(classes=["no", "yes"], abstain="?").label_stream(cells_of(codes, ["no", "yes"]))
    same_bits(read_back(tmp_path / "l.csv"), said, 2)


def test_class_names_may_look_like_anything(tmp_path):
    names = ['a,"b"', "spam\nham", " padded "]
    codes = random_stream(4, 60, 5, n_classes=3, abstain=0.1)
    write_delimited(tmp_path / "v.csv", table_of(codes, names))
    stripped = sorted(name.strip() for name in names)
    for ending in ("csv", "jsonl", "parquet"):
        out = tmp_path / f"l.{ending}"
        invoke("label", tmp_path / "v.csv", "--keep", "id,at", "-o", out)
        found = (
            read_back(out)
            if ending != "csv"
            else pa.csv.read_csv(out, parse_options=pa.csv.ParseOptions(newlines_in_values=True))
        )
        order = [stripped.index(name.strip()) for name in names]
        again = np.where(codes < 0, -1, np.array(order)[codes])
        said = AdaptiveLabelModel(classes=stripped).label_stream(cells_of(again, stripped))
        assert found["label"].to_pylist() == [
            x if x is not None else ("" if ending == "csv" else None) for x in said.labels
        ]
        assert f"proba_{stripped[0]}" in found.column_names


@pytest.mark.slow
def test_standard_input_and_output(tmp_path):
    codes = random_stream(5, 200, 5, n_classes=3)
    out = expected(codes, TEXT)
    for name in ("v.csv", "v.jsonl", "v.parquet", "v.npz"):
        write_votes(tmp_path / name, codes, TEXT)
        command = [sys.executable, "-m", "driftvote", "label", "-", *roles(name), "-o", "-"]
        done = subprocess.run(command, input=(tmp_path / name).read_bytes(), capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
        same_bits(pa.csv.read_csv(io.BytesIO(done.stdout)), out)
        assert b"standard input: 200 rows" in done.stderr
    command = f"'{sys.executable}' -m driftvote label '{tmp_path}/v.csv' --keep id,at -o - --quiet | head -n 2"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert len(done.stdout.splitlines()) == 2


def test_objects_inside_objects_and_late_keys(tmp_path):
    codes = random_stream(6, 400, 5, n_classes=3, abstain=0.3)
    lines = []
    for number, row in enumerate(cells_of(codes, TEXT)):
        votes = {name: vote for name, vote in zip(LABELERS, row, strict=True) if vote is not None}
        if number < 300:
            votes.pop("new", None)  # joins late: its key is not in the first blocks
        lines.append(json.dumps({"id": number, "votes": votes, "tags": ["x", str(number)]}) + "\n\n" * (number == 7))
    codes[:300, 4] = -1
    (tmp_path / "v.jsonl").write_text("\n".join(lines))
    invoke("label", tmp_path / "v.jsonl", "--labelers", "votes.*", "-o", tmp_path / "l.csv")
    first = list(json.loads(lines[0])["votes"])
    found = read_back(tmp_path / "l.csv")
    assert found["tags"][3].as_py() == '["x", "3"]'
    assert found.num_rows == 400
    assert set(first) <= set(LABELERS)
    state = tmp_path / "s.npz"
    invoke("label", tmp_path / "v.jsonl", "--keep", "id,tags", "-o", tmp_path / "all.parquet", "--state", state)
    assert set(load(state).labelers) == set(LABELERS), "by the names that their votes have"
    assert read_back(tmp_path / "all.parquet").num_rows == 400


def test_fortran_order_floats_and_npz_with_gold(tmp_path):
    codes = random_stream(7, N, 5, n_classes=3, abstain=0.2)
    out = expected(codes)
    np.save(tmp_path / "f.npy", np.asfortranarray(codes.astype(np.float32)))
    np.save(tmp_path / "nan.npy", np.where(codes < 0, np.nan, codes))
    np.savez_compressed(tmp_path / "c.npz", votes=np.asfortranarray(codes.astype(np.int64)))
    np.save(tmp_path / "big-endian.npy", codes.astype(">i4"))
    for name in ("f.npy", "nan.npy", "c.npz", "big-endian.npy"):
        invoke("label", tmp_path / name, "-o", tmp_path / "l.parquet", "--force")
        same_bits(read_back(tmp_path / "l.parquet"), out)
    np.savez(tmp_path / "g.npz", votes=codes, classes=TEXT, truth=np.zeros(N, int))
    done = invoke("label", tmp_path / "g.npz", "--gold", "truth", "-o", tmp_path / "l.parquet", "--force", "--json")
    right = np.mean(np.where(out.codes < 0, 1 / 3, out.codes == 0))
    assert json.loads(done.output)["gold"] == {"rows": N, "accuracy": pytest.approx(right)}


@pytest.mark.parametrize("external", [False, True], ids=["in memory", "duckdb"])
def test_long_files_give_the_bits_of_the_long_door(tmp_path, monkeypatch, external):
    if external:
        monkeypatch.setattr(long, "IN_MEMORY", 100)
    codes = random_stream(8, N // 3, 5, n_classes=3, abstain=0.4)
    rng = np.random.default_rng(0)
    rows, who = np.nonzero(codes >= 0)
    lines = pa.table({
        "task": [f"t{row % 97}-{row}" for row in rows],
        "who": [LABELERS[place] for place in who],
        "vote": [TEXT[codes[row, place]] for row, place in zip(rows, who, strict=True)],
        "at": pa.array(rows * 10 + rng.integers(0, 25, len(rows)), pa.timestamp("s")),
    })  # fmt: skip
    lines = lines.take(rng.permutation(len(lines)))
    keys = {"task": "task", "labeler": "who", "label": "vote", "time": "at"}
    options = [part for key, name in keys.items() for part in (f"--{key}", name)]
    out = AdaptiveLabelModel(classes=sorted(TEXT)).label_stream(lines, **keys)
    pyarrow.parquet.write_table(lines, tmp_path / "v.parquet")
    write_delimited(tmp_path / "v.csv", lines)
    for name in ("v.parquet", "v.csv"):
        invoke("label", tmp_path / name, *options, "-o", tmp_path / "l.parquet", "--force")
        found = read_back(tmp_path / "l.parquet")
        same_bits(found, out)
        assert found["task"].to_pylist() == out.to_frame()["task"].to_pylist()
        assert found["at"].to_pylist() == sorted(found["at"].to_pylist())
    assert long.QUERY  # the query and the table in memory give one order, as both cases show


def test_long_lines_that_are_in_order_need_no_time(tmp_path, monkeypatch):
    monkeypatch.setattr(long, "BATCH", 2)  # every task of three votes crosses a seam
    (tmp_path / "v.csv").write_text(
        "task,who,vote\n" + "".join(f"{t},{w},{'no' if t % 2 else 'yes'}\n" for t in range(30) for w in "abc")
    )
    invoke(
        "label",
        tmp_path / "v.csv",
        "--task",
        "task",
        "--labeler",
        "who",
        "--label",
        "vote",
        "--in-order",
        "-o",
        tmp_path / "l.csv",
    )
    found = read_back(tmp_path / "l.csv")
    assert found["label"].to_pylist() == ["yes", "no"] * 15
    assert found.column_names[0] == "task"


def test_names_tell_the_format(tmp_path):
    assert format_of("a.CSV") == ("csv", None)
    assert format_of("a.ndjson.zst") == ("jsonl", "zstd")
    (tmp_path / "x").write_bytes(b"\x93NUMPY...")
    assert sniff_format(tmp_path / "x") == ("npy", None)
    (tmp_path / "x").write_text('\n {"a": 1}')
    assert sniff_format(tmp_path / "x") == ("jsonl", None)
