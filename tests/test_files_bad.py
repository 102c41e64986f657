"""Files that cannot be meant: one line that says where and what to do, exit code 2, nothing written."""

from __future__ import annotations

import gzip
import os
import re
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

from driftvote import cli

from streams_for_tests import random_stream
from votes_on_disk import TEXT, invoke, table_of, write_votes

HEAD = "id,a,b,c\n"
ROWS = [f"m{i},ham,spam,{'' if i % 3 else 'ham'}\n" for i in range(40)]


def refused(monkeypatch, capsys, *arguments: object) -> str:
    """What the command says when it refuses: exactly one line, and never a traceback."""
    monkeypatch.setattr(sys, "argv", ["driftvote", *map(str, arguments)])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    said = capsys.readouterr()
    assert caught.value.code == 2, said
    assert said.out == ""
    assert said.err.startswith("driftvote: ")
    assert said.err.count("\n") == 1, said.err
    return said.err


def csv_with(line: int, text: str) -> str:
    rows = list(ROWS)
    rows[line - 2] = text
    return HEAD + "".join(rows)


BAD = {
    "wrong delimiter": ("v.csv", (HEAD + "".join(ROWS)).replace(",", ";").replace("m7;", "m7,"), [], r"header is one column, 'id;a;b;c'.*--delimiter ';'"),
    "two delimiters": ("v.csv", "a;b|c\n0;1|1\n", [], r"--delimiter ';'"),
    "given delimiter": ("v.csv", (HEAD + "".join(ROWS)), ["--delimiter", ";"], r"--delimiter ','"),
    "missing column": ("v.csv", HEAD + "".join(ROWS), ["--time", "when"], r"no column 'when'; it has 'id', 'a', 'b', 'c'"),
    "missing labeler": ("v.csv", HEAD + "".join(ROWS), ["--labelers", "a,b,d"], r"no column 'd'"),
    "two labelers": ("v.csv", HEAD + "".join(ROWS), ["--labelers", "a,b"], r"at least 3 labelers are needed, and there are 2"),
    "one role each": ("v.csv", HEAD + "".join(ROWS), ["--labelers", "a,b,c", "--gold", "c"], r"column 'c' is named as a labeler and as something else"),
    "short line": ("v.csv", csv_with(17, "m15,ham,spam\n"), ["--id", "id"], r"line 17 has 3 fields, the header has 4"),
    "long line": ("v.csv", csv_with(17, "m15,ham,spam,ham,ham\n"), ["--id", "id"], r"line 17 has 5 fields.*quote the fields that hold a ','"),
    "open quote": ("v.csv", csv_with(17, 'm15,ham,"spam,ham\n'), ["--id", "id"], r"line 17 has 3 fields"),
    "unknown class": ("v.csv", csv_with(9, "m7,ham,spma,ham\n"), ["--id", "id", "--classes", "ham,spam"], r"line 9, column 'b': 'spma' is not a vote; read as classes 'ham', 'spam'.*--classes or --abstain"),
    "unknown number": ("v.csv", "a,b,c\n0,1,1\n1,0,7\n", ["--votes", "snorkel"], r"line 3, column 'c': '7' is not a vote.*--classes 1,2,3"),
    "not signed": ("v.csv", "a,b,c\n-1,1,1\n1,-1,7\n", ["--votes", "signed"], r"line 3, column 'c': '7' is not a vote"),
    "unknown gold": ("v.csv", csv_with(9, "m7,ham,spam,ham\n").replace("id,", "gold,").replace("\nm", "\nx"), ["--gold", "gold", "--classes", "ham,spam"], r"line 2, column 'gold': 'x0'"),
    "mixed types": ("v.csv", csv_with(12, "m10,ham,1,ham\n"), ["--id", "id"], r"line 12, column 'b': '1' among votes such as 'ham'.*numbers and text are mixed"),
    "a fraction": ("v.csv", "a,b,c\n0,1,1\n1,0,0.5\n", [], r"line 3, column 'c': 0.5 is no class"),
    "a negative code": ("v.csv", "a,b,c\n0,1,1\n1,0,-3\n", [], r"line 3, column 'c': -3 is not a class code"),
    "an id column": ("v.csv", HEAD + "".join(ROWS), [], r"column 'id' holds a different value in nearly every row.*--keep id"),
    "a column of something else": ("v.csv", "where" + HEAD[2:] + "".join(("web" if i % 2 else "mail") + row[row.index(","):] for i, row in enumerate(ROWS)), [], r"column 'where' \('mail', 'web'\) has no value in common"),
    "the truth": ("v.csv", HEAD.replace("id", "truth") + "".join(ROWS), [], r"column 'truth' looks like the truth.*--gold truth"),
    "one class": ("v.csv", "a,b,c\nham,ham,ham\n", [], r"every vote is 'ham'; declare all classes, such as --classes ham,other"),
    "no votes at all": ("v.csv", "a,b,c\n,,\n,,\n", [], r"there is not one vote in 'a', 'b', 'c'"),
    "empty file": ("v.csv", "", [], r"the file is empty"),
    "header only": ("v.csv", HEAD, ["--id", "id"], r"there are no rows after the header"),
    "header only, declared": ("v.csv", HEAD, ["--id", "id", "--classes", "ham,spam"], r"there are no rows after the header"),
    "duplicate header": ("v.csv", "a,b,a\n" + "0,1,1\n", [], r"column 'a' appears twice in the header \(columns 1 and 3\)"),
    "not utf-8": ("v.csv", (HEAD + "".join(ROWS[:5])).encode() + "m5,ham,späm,ham\n".encode("latin-1"), ["--id", "id"], r"line 7 is not UTF-8.*--encoding latin-1"),
    "header not utf-8": ("v.csv", "idä,a,b,c\n".encode("latin-1") + "".join(ROWS).encode(), [], r"line 1 is not UTF-8"),
    "unknown encoding": ("v.csv", HEAD + "".join(ROWS), ["--encoding", "klingon"], r"--encoding klingon: there is no such encoding"),
    "time goes back": ("v.csv", "t,a,b,c\n" + "".join(f"{t},ham,spam,ham\n" for t in [1, 2, 10, 9, 11]), ["--time", "t"], r"line 5, column 't': time 9 is before 10 .*--sort"),
    "dates go back": ("v.csv", "t,a,b,c\n" + "".join(f"2024-01-{t:02d} 10:00,ham,spam,ham\n" for t in [1, 2, 10, 9]), ["--time", "t"], r"line 5, column 't': time 2024-01-09T10:00:00.000000 is before 2024-01-10"),
    "no time": ("v.csv", "t,a,b,c\n1,ham,spam,ham\n,ham,ham,spam\n", ["--time", "t"], r"line 3, column 't' has no time"),
    "time of another kind": ("v.csv", "t,a,b,c\n" + "1,ham,spam,ham\n" * 300 + "noon,ham,ham,spam\n", ["--time", "t"], r"line 302, column 't': 'noon' is not a number like those of the lines before"),
    "id of another kind": ("v.csv", HEAD + "".join(f"{i},ham,spam,ham\n" for i in range(300)) + "x9,ham,ham,ham\n", ["--id", "id", "--to", "parquet"], r"line 302, column 'id': 'x9' is not a number like those before; pass --text id"),
    "broken json": ("v.jsonl", '{"a": 0, "b": 1, "c": 1}\n{"a": 0, "b": 1\n', [], r"line 2 is not JSON"),
    "json array": ("v.jsonl", '[{"a": 0, "b": 1, "c": 1}]\n', [], r"line 1 is not an object"),
    "json of two types": ("v.jsonl", '{"a": 0, "b": 1, "c": 1}\n\n{"a": "no", "b": 1, "c": 0}\n', [], r"line 3, column 'a': a string, but a number before"),
    "empty json": ("v.jsonl", "\n", [], r"the file is empty"),
    "not parquet": ("v.parquet", "hello world, this is text", [], r"not a whole Parquet file"),
    "empty parquet": ("v.parquet", "", [], r"the file is empty"),
    "not arrow": ("v.feather", "hello world, this is text", [], r"not a whole Arrow file"),
    "not npy": ("v.npy", "hello world, this is text", [], r"not a whole npy file"),
    "not npz": ("v.npz", "hello world, this is text", [], r"not a whole npz file"),
    "not gzip": ("v.csv.gz", "hello world, this is text", [], r"cannot be unpacked"),
    "cut gzip": ("v.csv.gz", gzip.compress((HEAD + "".join(ROWS * 500)).encode())[:-200], ["--id", "id"], r"cannot be unpacked|line [\d,]+ has \d fields"),
    "unknown ending": ("v.doc", "a,b,c\n0,1,1\n", [], r"cannot tell the format from the ending '.doc'; pass --from csv"),
    "no ending": ("votes", "a,b,c\n0,1,1\n", [], r"a name without an ending"),
    "unknown format": ("v.csv", "a,b,c\n0,1,1\n", ["--from", "excel"], r"--from excel: there is no such format"),
    "unknown model": ("v.csv", "a,b,c\n0,1,1\n", ["--model", "magic"], r"--model magic: there is no such model"),
    "unknown setting": ("v.csv", "a,b,c\n0,1,1\n", ["--set", "gamma=1"], r"--set gamma: AdaptiveLabelModel has no such setting; it has"),
    "setting without a value": ("v.csv", "a,b,c\n0,1,1\n", ["--set", "beta"], r"write name=value"),
    "setting out of range": ("v.csv", "a,b,c\n0,1,1\n", ["--set", "beta=-1"], r"beta must be a number above 0"),
    "sort without time": ("v.csv", "a,b,c\n0,1,1\n", ["--sort"], r"--sort needs --time"),
    "only without stream": ("v.csv", "a,b,c\n0,1,1\n", ["--only", "x"], r"--stream"),
    "no such stream": ("v.csv", "s,a,b,c\nx,0,1,1\n", ["--stream", "s", "--only", "y"], r"there is no stream 'y'"),
    "empty stream": ("v.csv", "s,a,b,c\nx,0,1,1\n", ["--stream", "s", "--only", "y"], r"there is no stream 'y'"),
    "name of a result": ("v.csv", HEAD.replace("id", "label") + "".join(ROWS), ["--id", "label"], r"has the name of a result; ignore it with --drop label"),
    "long without labeler": ("v.csv", "task,who,vote\n1,a,no\n", ["--task", "task", "--label", "vote"], r"--labeler is missing"),
    "long without time": ("v.csv", "task,who,vote\n1,a,no\n1,b,yes\n", ["--task", "task", "--label", "vote", "--labeler", "who"], r"needs --time.*--in-order"),
    "long, votes twice": ("v.csv", "task,who,vote\n1,a,no\n1,b,yes\n2,c,yes\n1,a,no\n", ["--task", "task", "--label", "vote", "--labeler", "who", "--in-order"], r"line 5: labeler 'a' votes again on task '1' \(first in line 2\)"),
    "long without a task": ("v.csv", "task,who,vote\n1,a,no\n,b,yes\n", ["--task", "task", "--label", "vote", "--labeler", "who", "--in-order"], r"line 3, column 'task' is empty"),
    "signed that is not declared": ("v.csv", "a,b,c\n" + "1,-1,1\n" * 120, [], r"the votes are -1 and 1, which mean two things; pass --votes signed"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD, ids=str)
def test_a_bad_file_is_one_line_and_nothing_is_written(tmp_path, monkeypatch, capsys, name):
    file, content, arguments, message = BAD[name]
    (tmp_path / file).write_bytes(content if isinstance(content, bytes) else content.encode())
    from driftvote.files import csv

    monkeypatch.setattr(csv, "BLOCK", 512)
    said = refused(monkeypatch, capsys, "label", tmp_path / file, *arguments, "-o", tmp_path / "labels.csv")
    assert re.search(message, said), said
    assert os.listdir(tmp_path) == [file]


def test_cut_and_damaged_files(tmp_path, monkeypatch, capsys):
    codes = random_stream(1, 3000, 5, n_classes=3)
    for name in ("v.parquet", "v.feather", "v.npy", "v.npz", "v.arrow"):
        path = tmp_path / name
        write_votes(path, codes, TEXT)
        whole = path.read_bytes()
        for share in (0.3, 0.95):
            path.write_bytes(whole[: int(len(whole) * share)])
            keep = ["--keep", "id,at"] if name in ("v.parquet", "v.feather", "v.arrow") else []
            said = refused(monkeypatch, capsys, "label", path, *keep, "-o", tmp_path / "labels.csv")
            assert "cut short" in said
        path.unlink()
    write_votes(tmp_path / "v.parquet", codes, TEXT)
    damaged = bytearray((tmp_path / "v.parquet").read_bytes())
    damaged[200:1500] = bytes(1300)
    (tmp_path / "v.parquet").write_bytes(damaged)
    said = refused(
        monkeypatch, capsys, "label", tmp_path / "v.parquet", "--keep", "id,at", "-o", tmp_path / "labels.csv"
    )
    assert "v.parquet: " in said
    assert os.listdir(tmp_path) == ["v.parquet"]


def test_arrays_of_the_wrong_kind(tmp_path, monkeypatch, capsys):
    cases = {
        "flat.npy": (np.zeros(5, np.int8), "no array of rows x labelers"),
        "empty.npy": (np.zeros((0, 4), np.int8), "there are no votes to read"),
        "objects.npy": (np.array([["a", None, 1]], object), "Python objects"),
    }
    for name, (array, message) in cases.items():
        np.save(tmp_path / name, array, allow_pickle=True)
        assert message in refused(monkeypatch, capsys, "label", tmp_path / name, "-o", tmp_path / "l.csv")
    np.savez(tmp_path / "two.npz", a=np.zeros((3, 3)), b=np.zeros((3, 3)))
    assert "it holds 'a' (3, 3), 'b' (3, 3)" in refused(
        monkeypatch, capsys, "label", tmp_path / "two.npz", "-o", tmp_path / "l.csv"
    )
    np.save(tmp_path / "ok.npy", np.zeros((3, 3), np.int8))
    said = refused(monkeypatch, capsys, "label", tmp_path / "ok.npy", "--labelers", "a,b", "-o", tmp_path / "l.csv")
    assert "2 labelers are named, but the array has 3 columns" in said


def test_places_are_checked_before_anything_is_read(tmp_path, monkeypatch, capsys):
    pyarrow.parquet.write_table(table_of(random_stream(1, 50, 5, n_classes=3), TEXT), tmp_path / "v.parquet")
    (tmp_path / "l.csv").write_text("mine")
    votes = tmp_path / "v.parquet"
    command = ("label", votes, "--keep", "id,at")
    assert "the file exists; pass --force" in refused(monkeypatch, capsys, *command, "-o", tmp_path / "l.csv")
    assert (tmp_path / "l.csv").read_text() == "mine"
    (tmp_path / "link.parquet").symlink_to(votes)
    for name in ("v.parquet", "link.parquet"):
        said = refused(monkeypatch, capsys, *command, "-o", tmp_path / name, "--force")
        assert "is the input itself" in said
    said = refused(monkeypatch, capsys, *command, "-o", tmp_path / "x.json", "--report", tmp_path / "x.json")
    assert "--report and --out name one file" in said
    assert "there is no folder" in refused(monkeypatch, capsys, *command, "-o", tmp_path / "no" / "l.csv")
    assert "this is a folder" in refused(monkeypatch, capsys, *command, "-o", tmp_path)
    assert "this is a folder" in refused(monkeypatch, capsys, "label", tmp_path, "-o", tmp_path / "y.csv")
    assert "there is no such file" in refused(
        monkeypatch, capsys, "label", tmp_path / "none.csv", "-o", tmp_path / "y.csv"
    )
    assert "cannot be written as npy" in refused(monkeypatch, capsys, *command, "-o", tmp_path / "y.npy")
    assert "read, not written" in refused(monkeypatch, capsys, *command, "-o", tmp_path / "y.csv.gz")
    assert "written as .html or .json" in refused(
        monkeypatch, capsys, *command, "-o", tmp_path / "y.csv", "--report", tmp_path / "y.pdf"
    )
    assert sorted(os.listdir(tmp_path)) == ["l.csv", "link.parquet", "v.parquet"]
    invoke(*command, "-o", tmp_path / "l.csv", "--force")
    assert (tmp_path / "l.csv").read_text().startswith("id,at,label,")


def test_an_error_that_nobody_thought_of_is_one_line_too(monkeypatch, capsys):
    def fail(standalone_mode):
        raise ZeroDivisionError("two\nlines")

    monkeypatch.setattr(cli, "app", fail)
    with pytest.raises(SystemExit) as caught:
        cli.main()
    assert caught.value.code == 1
    assert capsys.readouterr().err.startswith("driftvote: internal error (ZeroDivisionError: two lines)")
    monkeypatch.setenv("DRIFTVOTE_TRACEBACK", "1")
    with pytest.raises(ZeroDivisionError):
        cli.main()


def test_an_ambiguous_word_is_pointed_out(tmp_path):
    (tmp_path / "v.csv").write_text("a,b,c\n" + "yes,no,ABSTAIN\nno,no,yes\n" * 3)
    done = invoke("label", tmp_path / "v.csv", "-o", tmp_path / "l.csv")
    assert "'ABSTAIN' is read as a class; if it means no vote, pass --abstain ABSTAIN" in done.output
    assert CliRunner().invoke(cli.app, ["label", str(tmp_path / "v.csv"), "-o", str(tmp_path / "l.csv")]).exit_code == 1


def test_repeated_columns_of_an_arrow_file(tmp_path, monkeypatch, capsys):
    table = pa.table([[0], [1], [1]], names=["a", "b", "a"])
    with pa.OSFile(str(tmp_path / "v.arrow"), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    said = refused(monkeypatch, capsys, "label", tmp_path / "v.arrow", "-o", tmp_path / "l.csv")
    assert "column 'a' appears twice" in said


def test_containers_are_no_votes(tmp_path, monkeypatch, capsys):
    table = pa.table({"a": [0], "b": [1], "c": [1], "d": [[1, 2]], "e": [b"x"]})
    pyarrow.parquet.write_table(table, tmp_path / "v.parquet")
    said = refused(monkeypatch, capsys, "label", tmp_path / "v.parquet", "-o", tmp_path / "l.csv")
    assert re.search(r"column 'd' holds list<.*>, not votes", said)
    said = refused(monkeypatch, capsys, "label", tmp_path / "v.parquet", "--drop", "d", "-o", tmp_path / "l.csv")
    assert "column 'e' holds binary, not votes" in said
