"""compare, convert, simulate and report on the command line."""

from __future__ import annotations

import importlib.util
import json
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from driftvote import AdaptiveLabelModel, FixedWindowLabelModel, MajorityLabelModel
from driftvote.files import long
from driftvote.report import page
from driftvote.streams import SCENARIOS, scenario
from test_files_bad import refused

from streams_for_tests import COMPILED, random_stream, rows_for
from votes_on_disk import LABELERS, TEXT, cells_of, invoke, read_back, table_of, write_delimited, write_votes

N = rows_for(2000, 300)


def macro_f1(truth: np.ndarray, said: np.ndarray) -> float:
    """By definition, class by class."""
    found = []
    for value in np.unique(truth):
        right = ((said == value) & (truth == value)).sum()
        found.append(2 * right / ((said == value).sum() + (truth == value).sum()))
    return float(np.mean(found))


def test_compare_counts_what_the_models_say(tmp_path):
    stream = scenario("abstaining", n_rows=N, seed=1)
    votes = pa.table({f"l{i}": stream.votes[:, i] for i in range(5)} | {"truth": stream.truth})
    pyarrow.parquet.write_table(votes, tmp_path / "v.parquet")
    command = ["compare", tmp_path / "v.parquet", "--gold", "truth", "--windows", "64,256"]
    found = json.loads(invoke(*command, "--json", "-o", tmp_path / "c.parquet").stdout)
    models = {
        "adaptive": AdaptiveLabelModel(),
        "majority": MajorityLabelModel(),
        "all-past": FixedWindowLabelModel(window=None),
        "window:64": FixedWindowLabelModel(window=64),
        "window:256": FixedWindowLabelModel(window=256),
    }
    codes = {name: model.label_stream(stream.votes).codes for name, model in models.items()}
    rows = read_back(tmp_path / "c.parquet")
    for line in found["models"]:
        said = codes[line["model"]]
        assert line["accuracy"] == pytest.approx(stream.score(said))
        assert line["f1"] == pytest.approx(macro_f1(stream.truth, said))
        assert line["tied"] == (said < 0).sum()
        assert found["agreement"]["adaptive"][line["model"]] == pytest.approx((said == codes["adaptive"]).mean())
        assert rows[f"label_{line['model']}"].to_pylist() == said.tolist()
    assert [line["model"] for line in found["models"]] == list(models)
    shown = invoke(*command).output
    assert "macro F1" in shown
    assert "share of rows with the same label" in shown
    without = invoke("compare", tmp_path / "v.parquet", "--drop", "truth").output
    assert "no --gold column" in without


def test_verified_classes_are_learned_from_and_come_out(tmp_path):
    stream = scenario("abrupt", n_rows=N, seed=2)
    verified = np.where(np.arange(N) % 10 == 3, stream.truth, -1)
    columns = {f"l{i}": stream.votes[:, i] for i in range(5)}
    columns |= {"checked": pa.array(verified, mask=verified < 0), "truth": stream.truth}
    pyarrow.parquet.write_table(pa.table(columns), tmp_path / "v.parquet")
    names = ["--gold-for-learning", "checked", "--gold", "truth"]
    invoke("label", tmp_path / "v.parquet", "-o", tmp_path / "l.parquet", *names)
    found = read_back(tmp_path / "l.parquet")
    model = AdaptiveLabelModel(labelers=[f"l{i}" for i in range(5)])
    out = model.label_stream(stream.votes, verified=verified)
    assert found["label"].to_pylist() == out.labels.tolist()
    assert found["proba_1"].to_pylist() == out.proba[:, 1].tolist()
    assert (out.labels[verified >= 0] == stream.truth[verified >= 0]).all()


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (["compare", "v.csv"], "goes with label, report and check"),
        (["convert", "v.csv", "w.parquet"], "goes with label, report and check"),
        (["label", "v.csv", "-o", "l.csv", "--model", "majority"], "does not learn from verified labels"),
    ],
)
def test_verified_classes_where_nobody_learns_from_them(tmp_path, monkeypatch, capsys, command, says):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "v.csv").write_text("a,b,c,seen\n0,1,1,1\n1,1,1,\n")
    assert says in refused(monkeypatch, capsys, *command, "--gold-for-learning", "seen")


def test_a_state_that_does_not_learn_from_verified_classes_says_so(tmp_path, monkeypatch, capsys):
    (tmp_path / "v.csv").write_text("a,b,c,seen\n0,1,1,1\n1,1,1,\n")
    state = ["--state", tmp_path / "s.npz"]
    invoke("label", tmp_path / "v.csv", "-o", tmp_path / "l.csv", "--drop", "seen", "--model", "majority", *state)
    command = ["label", tmp_path / "v.csv", "-o", tmp_path / "m.csv", "--gold-for-learning", "seen", "--again", *state]
    assert "does not learn from verified labels" in refused(monkeypatch, capsys, *command)


@pytest.mark.parametrize("external", [False, True], ids=["in memory", "duckdb"])
def test_any_line_of_a_task_may_verify_it(tmp_path, monkeypatch, capsys, external):
    if external:
        monkeypatch.setattr(long, "IN_MEMORY", 10)
    lines = [f"t{row},{name},{'ny'[(row + (name == 'c')) % 2]},{row}," for row in range(20) for name in "abcd"]
    lines[6] += "n"  # the third line of t1, which most call y
    (tmp_path / "v.csv").write_text("task,who,vote,at,seen\n" + "".join(f"{line}\n" for line in lines))
    names = ["--task", "task", "--labeler", "who", "--label", "vote", "--time", "at"]
    for option in ("--gold-for-learning", "--gold"):
        out = tmp_path / f"l{option}.csv"
        done = invoke("label", tmp_path / "v.csv", "-o", out, *names, option, "seen", "--json")
        found = read_back(out).to_pylist()
        assert [row["seen"] for row in found] == ["", "n", *[""] * 18]
        label = (found[1]["label"], found[1]["probability"])
        assert label == ("n", 1.0) if option == "--gold-for-learning" else label[0] == "y"
        assert ("gold" in json.loads(done.output)) == (option == "--gold")
    lines[4] += "y"
    (tmp_path / "v.csv").write_text("task,who,vote,at,seen\n" + "".join(f"{line}\n" for line in lines))
    said = refused(monkeypatch, capsys, "label", tmp_path / "v.csv", "-o", tmp_path / "x.csv", *names, "--gold", "seen")
    assert "line 8, column 'seen': task 't1' is 'n' here, and 'y' in line 6; keep one of them" in said


def test_compare_refuses_nonsense(tmp_path, monkeypatch, capsys):
    (tmp_path / "v.csv").write_text("a,b,c\n0,1,1\n")
    assert "'x' is not a number of rows" in refused(
        monkeypatch, capsys, "compare", tmp_path / "v.csv", "--windows", "x"
    )


@pytest.mark.parametrize("name", ["v.csv", "v.tsv", "v.jsonl", "v.parquet", "v.feather", "v.npz"])
def test_convert_between_all_formats_and_back(tmp_path, name):
    codes = random_stream(1, 200, 5, n_classes=3, abstain=0.3)
    write_votes(tmp_path / "first.parquet", codes, TEXT)
    drop = ["--drop", "id", "--keep", "at"] if name.endswith("npz") else ["--keep", "id,at"]
    invoke("convert", tmp_path / "first.parquet", tmp_path / name, *drop)
    keep = ["--keep", "at"] if name.endswith("npz") else ["--keep", "id,at"]
    invoke("convert", tmp_path / name, tmp_path / "last.parquet", *keep)
    found = read_back(tmp_path / "last.parquet")
    first = table_of(codes, TEXT)
    for column in (*LABELERS, "at", *(["id"] if "id" in keep[1] else [])):
        assert found[column].to_pylist() == first[column].to_pylist(), column


def test_convert_to_arrays(tmp_path, monkeypatch, capsys):
    codes = random_stream(2, 50, 5, n_classes=3, abstain=0.3)
    write_votes(tmp_path / "v.csv", codes, TEXT)
    done = invoke("convert", tmp_path / "v.csv", tmp_path / "v.npy", "--keep", "id,at")
    np.testing.assert_array_equal(np.load(tmp_path / "v.npy"), codes)
    assert "codes    0 ham, 1 scam, 2 spam; -1 is no vote" in done.output
    assert "left out: id, at" in done.output
    invoke("convert", tmp_path / "v.csv", tmp_path / "v.npz", "--drop", "id", "--time", "at")
    with np.load(tmp_path / "v.npz") as archive:
        np.testing.assert_array_equal(archive["votes"], codes)
        assert archive["labelers"].tolist() == LABELERS
        assert archive["classes"].tolist() == TEXT
    said = refused(monkeypatch, capsys, "convert", tmp_path / "v.csv", tmp_path / "w.npz", "--id", "id", "--drop", "at")
    assert "column 'id' (string) has no place in an NPZ file; leave it out with --drop id" in said
    assert not (tmp_path / "w.npz").exists()
    said = refused(monkeypatch, capsys, "convert", tmp_path / "v.csv", tmp_path / "l.npy", "--long", "--keep", "id,at")
    assert "one vote per line is text or Parquet" in said


def test_convert_wide_to_long_and_back(tmp_path):
    codes = random_stream(3, 300, 5, n_classes=3, abstain=0.3)
    codes[:, 0] = np.maximum(codes[:, 0], 0)  # every row has a vote, and the first line names the first labeler
    codes[0] = [0, 1, 2, 0, 1]
    write_votes(tmp_path / "wide.csv", codes, TEXT)
    done = invoke(
        "convert", tmp_path / "wide.csv", tmp_path / "long.jsonl", "--long", "--id", "id", "--time", "at", "--json"
    )
    assert json.loads(done.stdout)["votes"] == (codes >= 0).sum()
    lines = read_back(tmp_path / "long.jsonl")
    assert lines.column_names == ["id", "labeler", "label", "at"]
    assert lines.num_rows == (codes >= 0).sum()
    keys = ["--task", "id", "--labeler", "labeler", "--label", "label", "--time", "at"]
    invoke("convert", tmp_path / "long.jsonl", tmp_path / "back.csv", *keys)
    assert (tmp_path / "back.csv").read_text() == (tmp_path / "wide.csv").read_text().replace("\r", "")


@pytest.mark.parametrize("name", SCENARIOS)
def test_simulate_writes_votes_and_truth(tmp_path, name):
    done = invoke(
        "simulate",
        name,
        "-o",
        tmp_path / "v.csv",
        "--rows",
        "120",
        "--seed",
        "5",
        "--accuracies",
        tmp_path / "a.csv",
        "--json",
    )
    stream = scenario(name, n_rows=120, seed=5)
    found = read_back(tmp_path / "v.csv")
    assert found["truth"].to_pylist() == stream.truth.tolist()
    votes = np.array([[-1 if x is None else x for x in found[c].to_pylist()] for c in found.column_names[1:-1]]).T
    np.testing.assert_array_equal(votes, stream.votes)
    assert read_back(tmp_path / "a.csv")["labeler_0"].to_pylist() == stream.accuracies[:, 0].tolist()
    assert json.loads(done.stdout)["borders"] == list(stream.borders)


def test_simulate_speaks_in_class_names_and_labels_itself(tmp_path, monkeypatch, capsys):
    for ending in ("csv", "npz", "parquet"):
        path = tmp_path / f"v.{ending}"
        done = invoke("simulate", "swap", "-o", path, "--rows", "400", "--classes", "ham,spam")
        advice = done.output.rpartition("next: driftvote ")[2].split()
        monkeypatch.chdir(tmp_path)
        shown = json.loads(invoke(*advice, "--json", "--force").stdout)
        assert shown["classes"] == ["ham", "spam"]
        assert shown["gold"]["accuracy"] > 0.8
    invoke("simulate", "swap", "-o", tmp_path / "v.npy", "--rows", "50")
    assert np.load(tmp_path / "v.npy").shape == (50, 5)
    assert "there is no scenario 'swop'" in refused(monkeypatch, capsys, "simulate", "swop", "-o", "x.csv")
    assert "pass one of them" in refused(
        monkeypatch, capsys, "simulate", "swap", "-o", "x.csv", "--classes", "a,b", "--n-classes", "3"
    )


@pytest.mark.skipif(importlib.util.find_spec("driftvote.report") is None, reason="reports are not there")
def test_a_report_beside_the_labels_and_alone(tmp_path, monkeypatch, capsys):
    invoke("simulate", "swap", "-o", tmp_path / "v.csv", "--rows", str(N), "--classes", "ham,spam")
    columns = ["--id", "row", "--gold", "truth"]
    invoke("label", tmp_path / "v.csv", *columns, "-o", tmp_path / "l.csv", "--report", tmp_path / "r.json")
    invoke("report", tmp_path / "v.csv", *columns, "-o", tmp_path / "alone.json")
    one, other = (json.loads((tmp_path / name).read_text()) for name in ("r.json", "alone.json"))
    assert one == other
    assert str(N) in json.dumps(one)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["alone.json", "l.csv", "r.json", "v.csv"]
    if COMPILED:
        invoke("report", tmp_path / "v.csv", *columns, "-o", tmp_path / "r.html")
        assert 'data-chart="accuracy"' in (tmp_path / "r.html").read_text()
    said = refused(
        monkeypatch, capsys, "report", tmp_path / "v.csv", "--stream", "truth", "--id", "row", "-o", tmp_path / "s.html"
    )
    assert "a report is about one stream; select it with --only VALUE" in said
    invoke("report", tmp_path / "v.csv", "--stream", "truth", "--only", "ham", "--id", "row", "-o", tmp_path / "s.json")


def test_a_page_that_cannot_be_made_is_refused_at_once(tmp_path, monkeypatch, capsys):
    write_delimited(tmp_path / "v.csv", table_of(random_stream(1, 30, 5, n_classes=3), TEXT))
    page._template.cache_clear()
    monkeypatch.setitem(sys.modules, "jinja2", None)
    command = [
        "label",
        tmp_path / "v.csv",
        "--keep",
        "id,at",
        "-o",
        tmp_path / "l.csv",
        "--report",
        tmp_path / "r.html",
    ]
    assert "pip install 'driftvote[report]'" in refused(monkeypatch, capsys, *command)
    assert not (tmp_path / "l.csv").exists()


def test_sorting_without_duckdb_names_the_extra(tmp_path, monkeypatch, capsys):
    from driftvote.files import long

    monkeypatch.setattr(long, "IN_MEMORY", 10)
    monkeypatch.setitem(sys.modules, "duckdb", None)
    write_delimited(tmp_path / "v.csv", table_of(random_stream(1, 30, 5, n_classes=3), TEXT))
    command = ["label", tmp_path / "v.csv", "--id", "id", "--time", "at", "--sort", "-o", tmp_path / "l.csv"]
    assert "pip install 'driftvote[sort]'" in refused(monkeypatch, capsys, *command)
    assert cells_of(np.array([[0, -1]]), TEXT) == [["ham", None]]
