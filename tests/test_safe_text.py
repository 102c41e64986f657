"""Names from strangers: no control character reaches a terminal, and no formula a spreadsheet that was asked for."""

from __future__ import annotations

import csv
import json

import pyarrow as pa
import pyarrow.parquet
import pytest

from driftvote.errors import one_line
from driftvote.live.notify import Log
from test_files_bad import refused

from votes_on_disk import invoke

NASTY = ["\x1b[31mred", "two\nforged: lines", "\u202ereversed", "\rover", "\x9b31m", "tab\there", "\x7f", "\u2028"]


def write(path, names, classes=("ham", "spam"), rows=12):
    columns = {name: [classes[(row + place) % 3 % 2] for row in range(rows)] for place, name in enumerate(names)}
    pyarrow.parquet.write_table(pa.table({"id": [f"=cmd{row}" for row in range(rows)], **columns}), path)


def is_safe(text: str) -> bool:
    return all(letter == "\n" or (letter.isprintable()) for letter in text)


def test_names_cannot_reach_the_terminal(tmp_path):
    path = tmp_path / "v.parquet"
    write(path, NASTY, classes=("\x1b[2Jham", "sp\nam"))
    for command in (
        ("label", path, "-o", tmp_path / "l.parquet"),
        ("check", path),
        ("convert", path, tmp_path / "c.jsonl"),
    ):
        done = invoke(*command, "--id", "id")
        lines = done.output.splitlines()
        assert is_safe(done.output), repr(done.output)
        assert not any(line.startswith("forged") for line in lines)
        assert r"\x1b[2Jham" in done.output
    done = invoke("label", path, "-o", tmp_path / "m.parquet", "--id", "id", "--json")
    assert is_safe(done.output)
    assert json.loads(done.output)["rows"] == 12


def test_names_in_errors(tmp_path, monkeypatch, capsys):
    write(tmp_path / "v.parquet", NASTY)
    for options in (["--time", "x\x1b[2J"], ["--time", "no"], ["--drop", "a\nb"], ["--nonsense\x1b"]):
        said = refused(monkeypatch, capsys, "label", tmp_path / "v.parquet", "-o", tmp_path / "l.csv", *options)
        assert is_safe(said), repr(said)
        assert said.count("\n") == 1


def test_the_log_of_a_live_stream(capsys):
    Log().warn("line 1: 'x\x1b[2Jy\nforged' joins")
    said = capsys.readouterr().err
    assert is_safe(said)
    assert said == "driftvote: line 1: 'x\\x1b[2Jy\\nforged' joins\n"


@pytest.mark.parametrize("text", ["plain", "Ünï \u0928\u093f\u200d", "日本", "a\xa0b", "emoji 👩\u200d🔬"])
def test_ordinary_text_stays(text):
    assert one_line(text) == text


FORMULAS = ["=1+1", "+A1", "-2+3", "@SUM(A1)", " =x", "\t=x"]
HARMLESS = ["-1", "+2.5", "-.5e-3", "3", "a=b", "x-1", "mail@host", "'quoted", ""]


def test_formulas_in_a_csv(tmp_path):
    path, ids = tmp_path / "v.parquet", FORMULAS + HARMLESS
    votes = {
        name: [["=ham", "spam"][(row + place) % 3 % 2] for row in range(len(ids))] for place, name in enumerate("@bc")
    }
    pyarrow.parquet.write_table(pa.table({"id": ids, **votes}), path)
    for ending, delimiter in (("csv", ","), ("tsv", "\t")):
        for options in (["--safe-csv"], []):
            out = tmp_path / f"l{len(options)}.{ending}"
            invoke("label", path, "-o", out, "--id", "id", "--accuracies", *options)
            with out.open(newline="") as file:
                header, *rows = csv.reader(file, delimiter=delimiter)
            column = {name: [row[place] for row in rows] for place, name in enumerate(header)}
            mark = "'" if options else ""
            assert column["id"] == [mark + text for text in FORMULAS] + HARMLESS
            assert set(column["label"]) <= {f"{mark}=ham", "spam", ""}
            wide = tmp_path / f"c{len(options)}.{ending}"
            invoke("convert", path, wide, "--keep", "id", *options)
            assert wide.read_text().splitlines()[0].split(delimiter)[1:] == [f"{mark}@", "b", "c"]
    invoke("label", path, "-o", "-", "--id", "id", "--safe-csv")


def test_safe_csv_is_about_csv(tmp_path, monkeypatch, capsys):
    write(tmp_path / "v.parquet", ["a", "b", "c"])
    for name in ("l.parquet", "l.jsonl"):
        said = refused(
            monkeypatch, capsys, "label", tmp_path / "v.parquet", "-o", tmp_path / name, "--id", "id", "--safe-csv"
        )
        assert "--safe-csv is about .csv and .tsv" in said
    said = refused(
        monkeypatch, capsys, "convert", tmp_path / "v.parquet", tmp_path / "c.npz", "--drop", "id", "--safe-csv"
    )
    assert "--safe-csv is about .csv and .tsv" in said
