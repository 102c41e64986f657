"""Files as people have them: other delimiters, votes cast twice, names with commas, pipes, an early Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from driftvote import load
from driftvote.files import long
from test_files_bad import refused

from votes_on_disk import invoke, read_back

ROWS = [f"m{i},ham,{'spam' if i % 2 else 'ham'},{'' if i % 3 else 'ham'}" for i in range(40)]
TEXT = "\n".join(["id,a,b,c", *ROWS]) + "\n"
LONG = ["--task", "task", "--labeler", "who", "--label", "vote", "--time", "at"]


@pytest.mark.parametrize(("name", "delimiter"), [("v.csv", ";"), ("v.csv", "\t"), ("v.csv", "|"), ("v.tsv", ",")])
def test_another_delimiter_is_read_where_it_is_unmistakable(tmp_path, name, delimiter):
    (tmp_path / "plain.csv").write_text(TEXT)
    (tmp_path / name).write_text(TEXT.replace(",", delimiter))
    invoke("label", tmp_path / "plain.csv", "--id", "id", "-o", tmp_path / "l.csv")
    done = invoke("label", tmp_path / name, "--id", "id", "-o", tmp_path / "m.csv")
    assert f"note: cells are separated by {delimiter!r}" in done.output
    assert (tmp_path / "m.csv").read_bytes() == (tmp_path / "l.csv").read_bytes()


def test_formats_that_are_not_read_are_named(tmp_path, monkeypatch, capsys):
    (tmp_path / "v.xlsx").write_bytes(b"PK")
    said = refused(monkeypatch, capsys, "label", tmp_path / "v.xlsx", "-o", tmp_path / "l.csv")
    assert "v.xlsx: this is a spreadsheet; save its sheet as CSV (UTF-8)" in said
    (tmp_path / "v.csv").write_text(TEXT, encoding="utf-16")
    said = refused(monkeypatch, capsys, "label", tmp_path / "v.csv", "-o", tmp_path / "l.csv")
    assert "pass --encoding utf-16" in said
    invoke("label", tmp_path / "v.csv", "--id", "id", "-o", tmp_path / "l.csv", "--encoding", "utf-16")
    said = refused(monkeypatch, capsys, "label", tmp_path / "none.csv", "-o", tmp_path / "m.csv")
    assert "none.csv: there is no such file; check its name" in said


def test_a_few_fractions_are_not_empty_cells(tmp_path, monkeypatch, capsys):
    (tmp_path / "v.csv").write_text("a,b,c\n0.9,0.1,0.4\n0.2,0.8,0.1\n")
    said = refused(monkeypatch, capsys, "label", tmp_path / "v.csv", "-o", tmp_path / "l.csv")
    assert "line 2, column 'a': 0.9 is no class; votes are classes" in said


def test_names_with_commas_are_quoted(tmp_path):
    (tmp_path / "v.csv").write_text('"Dee, J.",b,c\n' + '"yes, sure",no,no\n"yes, sure","yes, sure",no\n' * 3)
    said = invoke("label", tmp_path / "v.csv", "-o", tmp_path / "l.csv").output
    assert "3 labelers: 'Dee, J.', b, c" in said
    assert "classes  no, 'yes, sure';" in said
    assert "'yes, sure' " in said.split("labels   ")[1]
    assert "'Dee, J.' 0." in said.split("accuracy ")[1]


@pytest.mark.parametrize("external", [False, True], ids=["in memory", "duckdb"])
def test_votes_that_are_cast_twice(tmp_path, monkeypatch, capsys, external):
    if external:
        monkeypatch.setattr(long, "IN_MEMORY", 10)
    lines = [f"t{row},{name},{'ny'[(row + (name == 'c')) % 2]},{row}.0" for row in range(20) for name in "abcd"]
    again = ["t1,b,n,1.7", "t1,b,y,1.2", "t1,b,n,1.2"]  # by time: y (1.0), y (1.2), n (1.2), n (1.7)
    files = {"error": lines + again, "first": lines, "last": [*lines[:5], "t1,b,n,1.7", *lines[6:]]}
    for name, text in files.items():
        (tmp_path / f"{name}.csv").write_text("task,who,vote,at\n" + "\n".join(text) + "\n")
    said = refused(monkeypatch, capsys, "label", tmp_path / "error.csv", *LONG, "-o", tmp_path / "x.csv")
    assert "labeler 'b' votes again on task 't1'" in said
    assert "or pass --duplicates first or last" in said
    for which in ("first", "last"):
        done = ["label", tmp_path / "error.csv", *LONG, "--duplicates", which, "-o", tmp_path / f"{which}-found.csv"]
        invoke(*done)
        invoke("label", tmp_path / f"{which}.csv", *LONG, "-o", tmp_path / f"{which}-meant.csv")
        found, meant = (read_back(tmp_path / f"{which}-{name}.csv") for name in ("found", "meant"))
        assert found["task"].to_pylist() == meant["task"].to_pylist()
        np.testing.assert_array_equal(found["probability"].to_numpy(), meant["probability"].to_numpy())
    for wrong, message in (
        (["--duplicates", "any"], "choose error, first, last"),
        (["--duplicates", "first"], "one vote per line"),
    ):
        assert message in refused(
            monkeypatch, capsys, "label", tmp_path / "error.csv", *wrong, "-o", tmp_path / "x.csv"
        )


def test_lines_that_are_in_order_need_no_time_in_the_next_file_either(tmp_path):
    lines = [f"t{row},{name},{'ny'[(row + (name == 'c')) % 2]}" for row in range(30) for name in "abcd"]
    state = ["--state", tmp_path / "s.npz"]
    for day, part in enumerate((lines[:80], lines[80:])):
        (tmp_path / f"{day}.csv").write_text("task,who,vote\n" + "\n".join(part) + "\n")
        invoke("label", tmp_path / f"{day}.csv", *LONG[:-2], "--in-order", *state, "-o", tmp_path / f"l{day}.csv")
    assert load(tmp_path / "s.npz").n_rows == 30


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes on this system")
def test_a_named_pipe_is_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_text, args=[TEXT], daemon=True)
    writer.start()
    invoke("label", tmp_path / "pipe", "--id", "id", "-o", tmp_path / "l.csv")
    writer.join(timeout=10)
    (tmp_path / "v.csv").write_text(TEXT)
    invoke("label", tmp_path / "v.csv", "--id", "id", "-o", tmp_path / "m.csv")
    assert (tmp_path / "l.csv").read_bytes() == (tmp_path / "m.csv").read_bytes()


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_an_early_interrupt_is_one_line():
    """While the command imports what it needs, too."""
    code = "import sys; print('started', flush=True); sys.argv = ['driftvote', '--version']; import driftvote.cli"
    for wait in (0.0, 0.15, 0.4):
        words = [sys.executable, "-c", code, "-m", "driftvote"]  # as `python -m driftvote`, but it says that it runs
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(wait + 0.1)
            process.send_signal(signal.SIGINT)
            said = process.communicate()[1]
        assert "Traceback" not in said
        assert process.returncode in (0, 130, -signal.SIGINT)  # the last: it was ending already; shells show 130, too
        assert said in ("", "driftvote: interrupted\n")
