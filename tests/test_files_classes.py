"""Classes that are found in a file: what looks like a mistake is pointed out."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from driftvote.votes import declare_votes, find_similar, fold_case
from test_files_bad import refused

from votes_on_disk import invoke, read_back

SPELLINGS = ["yes", "Yes", "YES", "no", "No", "NO"]


def write_spellings(path, n=400):
    draw = np.random.default_rng(0)
    truth = draw.integers(0, 2, n)
    votes = np.where(draw.random((n, 4)) < 0.85, truth[:, None], 1 - truth[:, None])
    spelled = draw.choice(3, (n, 4), p=[0.6, 0.3, 0.1])
    rows = [
        [SPELLINGS[3 * vote + how] for vote, how in zip(*row, strict=True)] for row in zip(votes, spelled, strict=True)
    ]
    path.write_text("a,b,c,d\n" + "".join(",".join(f" {cell} " for cell in row) + "\n" for row in rows))
    return votes


def test_classes_that_differ_only_in_case_are_pointed_out_and_can_be_one(tmp_path):
    votes = write_spellings(tmp_path / "v.csv")
    done = invoke("label", tmp_path / "v.csv", "-o", tmp_path / "six.csv")
    notes = [line for line in done.output.splitlines() if line.startswith("note:")]
    assert len(notes) == 2
    assert "differ only in case and are 3 classes; pass --fold-case" in notes[0]
    assert all(repr(name) in notes[place // 3] for place, name in enumerate(["NO", "No", "no", "YES", "Yes", "yes"]))
    done = invoke("label", tmp_path / "v.csv", "-o", tmp_path / "two.csv", "--fold-case")
    assert "classes  no, yes;" in done.output
    assert "note:" not in done.output
    np.savetxt(tmp_path / "plain.csv", votes, fmt="%d", delimiter=",", header="a,b,c,d", comments="")
    invoke("label", tmp_path / "plain.csv", "-o", tmp_path / "codes.csv")
    found, plain = (read_back(tmp_path / name)["label"].to_pylist() for name in ("two.csv", "codes.csv"))
    assert found == [["yes", "no"][code] for code in plain]


def test_case_is_folded_in_declared_classes_gold_and_states_too(tmp_path, monkeypatch, capsys):
    (tmp_path / "v.csv").write_text("a,b,c,truth\n" + "yes,YES,No,Yes\nno,NO,no,NO\nno,Unsure,no,no\n" * 5)
    options = ["--gold", "truth", "--classes", "No,Yes", "--abstain", "unsure", "--json"]
    arguments = ["label", tmp_path / "v.csv", *options]
    said = refused(monkeypatch, capsys, *arguments, "-o", tmp_path / "l.csv")
    assert "line 2, column 'a': 'yes' is not a vote" in said
    state = ["--state", tmp_path / "s.npz"]
    done = invoke(*arguments, "--fold-case", "-o", tmp_path / "l.csv", *state)
    summary = json.loads(done.output)
    assert summary["classes"] == ["No", "Yes"]
    assert summary["gold"] == {"rows": 15, "accuracy": 1.0}
    again = ["label", tmp_path / "v.csv", "--gold", "truth", "--fold-case"]
    invoke(*again, "-o", tmp_path / "l2.csv", *state, "--again")
    said = refused(monkeypatch, capsys, *again, "-o", tmp_path / "x.csv", "--classes", "no,No")
    assert "classes 'no' and 'No' differ only in case" in said


def test_similar_values():
    assert find_similar(["straße", "STRASSE", "x"]) == [["straße", "STRASSE"]]
    form = fold_case(declare_votes(classes=["No", "Yes"], abstain="Pass"))
    assert [form.code_of(cell, lenient=True) for cell in (" NO", "yes ", "PASS", "maybe")] == [0, 1, -1, -2]
    assert form.code_of("no") == -2  # values in memory are what they are


def test_many_and_rare_classes_are_pointed_out(tmp_path):
    draw = np.random.default_rng(1)
    votes = draw.integers(0, 2, (500, 5))
    cells = np.array(["ham", "spam"])[votes]
    cells[77, 2] = "spm"
    (tmp_path / "v.csv").write_text("a,b,c,d,e\n" + "".join(",".join(row) + "\n" for row in cells))
    note = "note: of 2,500 votes, under 0.1% are for 'spm' (1); if that is a mistake, correct it, or declare --classes"
    assert note in invoke("label", tmp_path / "v.csv", "-o", tmp_path / "l.csv").output
    assert note in invoke("label", tmp_path / "v.csv", "-o", tmp_path / "m.csv", "--json").output
    declared = invoke("label", tmp_path / "v.csv", "-o", tmp_path / "n.csv", "--classes", "ham,spam,spm")
    assert "note:" not in declared.output
    codes = votes.copy()
    codes[77, 2] = 3
    columns = {name: codes[:, place] for place, name in enumerate("abcde")}
    pyarrow.parquet.write_table(pa.table(columns), tmp_path / "v.parquet")
    said = invoke("label", tmp_path / "v.parquet", "-o", tmp_path / "o.csv").output
    assert "under 0.1% are for 2 (0), 3 (1);" in said


@pytest.mark.parametrize(("n_classes", "noted"), [(20, False), (21, True)])
def test_more_than_twenty_classes(tmp_path, n_classes, noted):
    rows = [f"k{row % n_classes:02d},k{row % n_classes:02d},k{(row + 1) % n_classes:02d}\n" for row in range(60)]
    (tmp_path / "v.csv").write_text("a,b,c\n" + "".join(rows))
    done = invoke("convert", tmp_path / "v.csv", tmp_path / "w.csv")
    assert (f"note: {n_classes} classes were found; if some are mistakes, declare --classes" in done.output) is noted
