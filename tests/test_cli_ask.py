"""`driftvote ask`, `label --verified` and `watch --ask`: questions in files, at the terminal and in a stream."""

from __future__ import annotations

import csv
import json
import os
import re
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import typer
from typer.testing import CliRunner

from driftvote import AdaptiveLabelModel, MajorityLabelModel, cli
from driftvote.cli.answers import wilson_interval
from driftvote.files.table import Table
from driftvote.live import WatchOptions
from driftvote.live.loop import StreamLoop
from driftvote.live.metrics import collect_metrics
from driftvote.live.state import Position
from driftvote.models.questions import Pool, known_stretches, stretch_starts
from driftvote.report import report_from_json, report_to_json
from driftvote.streams import swap
from test_files_bad import refused

from votes_on_disk import LABELERS, invoke, read_back
from watch_for_tests import line_of, votes_that_drift, watch

N = 2000
CLASSES = ["ham", "spam"]
STREAM = swap(N)


def votes_table(votes: np.ndarray = STREAM.votes, truth: np.ndarray = STREAM.truth) -> dict[str, list[object]]:
    columns: dict[str, list[object]] = {
        "id": [f"m-{row}" for row in range(len(votes))],
        "note": [f"a, ü {row}" for row in range(len(votes))],
    }
    columns |= {name: [CLASSES[code] for code in votes[:, place]] for place, name in enumerate(LABELERS)}
    return columns | {"truth": [CLASSES[code] for code in truth]}


def write_csv(path, columns, delimiter=",", encoding="utf-8", end="\n"):
    with path.open("w", newline="", encoding=encoding) as file:
        writer = csv.writer(file, delimiter=delimiter, lineterminator=end)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def read_csv(path) -> dict[str, list[str]]:
    with path.open(newline="") as file:
        header, *rows = csv.reader(file)
    return {name: [row[place] for row in rows] for place, name in enumerate(header)}


COLUMNS = ["--id", "id", "--keep", "note", "--drop", "truth"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Votes, labels without answers, questions, and the same with their answers."""
    path = tmp_path_factory.mktemp("ask")
    write_csv(path / "votes.csv", votes_table())
    invoke("label", path / "votes.csv", *COLUMNS, "-o", path / "labels.csv")
    done = invoke("ask", path / "votes.csv", *COLUMNS, "-n", 12, "-o", path / "questions.csv", "--json")
    (path / "summary.json").write_text(done.stdout)
    answer(path / "questions.csv", path / "answers.csv")
    return path


def answer(source, target, skip=(), **keys) -> None:
    """Fill in the true classes."""
    columns = read_csv(source)
    columns["verified"] = ["" if row in skip else CLASSES[STREAM.truth[int(row)]] for row in columns["row"]]
    write_csv(target, columns, **keys)


def labeled_by_library(rows: list[int], n_before: int = 0) -> tuple[AdaptiveLabelModel, object, object]:
    """The labels of the stream from row `n_before` on, without and with the true classes of some rows."""
    model, rows = AdaptiveLabelModel(classes=CLASSES, labelers=LABELERS), sorted(rows)
    votes = np.array(CLASSES)[STREAM.votes]
    if n_before:
        model.label_stream(votes[:n_before])
    trial = model.copy()
    before = trial.label_stream(votes[n_before:])
    places = np.array(rows) - n_before
    truth = STREAM.truth[rows].astype(np.int64)
    model.know(known_stretches(np.array(rows), before.score(places), truth, stretch_starts(before.events)))
    verified = [None] * (len(votes) - n_before)
    for row in rows:
        verified[row - n_before] = CLASSES[STREAM.truth[row]]
    return model, before, model.label_stream(votes[n_before:], verified=verified)


# -- files of questions ----------------------------------------------------------------------------


def test_questions_are_rows_of_the_file_in_dispute(folder):
    found, votes = read_csv(folder / "questions.csv"), votes_table()
    assert list(found) == ["row", "id", "note", *LABELERS, "dispute", "why", "verified"]
    rows = [int(row) for row in found["row"]]
    assert len(set(rows)) == 12
    for name in ("id", "note", *LABELERS):
        assert found[name] == [votes[name][row] for row in rows], name
    assert set(found["verified"]) == {""}
    assert all(re.fullmatch(r"(ham|spam) \d+% / (ham|spam) \d+%", cell) for cell in found["dispute"])
    assert all(" say " in cell for cell in found["why"])


def test_the_choice_is_that_of_the_library(folder):
    out = AdaptiveLabelModel(classes=CLASSES, labelers=LABELERS).label_stream(np.array(CLASSES)[STREAM.votes])
    scores, pool = out.score(np.arange(N)), Pool(0)
    pool.add(np.arange(N), scores)
    assert stretch_starts(out.events), "two stretches"
    chosen = pool.choose(12, stretch_starts(out.events))
    assert [int(row) for row in read_csv(folder / "questions.csv")["row"]] == chosen.rows
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["rows"] == N
    assert summary["disputed_rows"] == int(scores.disputed.sum())
    assert summary["expected_change"] == pytest.approx(chosen.expected_change, abs=1e-6)
    assert summary["questions"] == 12
    assert summary["answered"] == 0
    assert 1 < summary["kinds"] <= summary["disputed_rows"]
    assert summary["note"] == ""
    first = read_csv(folder / "questions.csv")["dispute"][0]
    shares = dict(zip(CLASSES, out.proba[chosen.rows[0]], strict=True))
    assert first == " / ".join(f"{name} {shares[name]:.0%}" for name in sorted(shares, key=lambda name: -shares[name]))


def test_the_printed_summary_names_the_next_command(folder, tmp_path):
    write_csv(tmp_path / "v.csv", {name: votes_table()[name] for name in LABELERS})
    said = invoke("ask", tmp_path / "v.csv", "-o", tmp_path / "q.csv", "-n", 3).output
    assert f"read     {tmp_path / 'v.csv'}: {N:,} rows, 5 labelers" in said
    assert re.search(r"disputed [\d,]+ rows \(\d+\.\d%\), in \d+ kinds of disagreement", said)
    assert re.search(r"asked    3 questions; 20 answers are expected to change \d+\.\d% of the labels", said)
    assert f"then: driftvote label {tmp_path / 'v.csv'} -o labels.csv --verified {tmp_path / 'q.csv'}\n" in said
    said = invoke("ask", folder / "votes.csv", *COLUMNS, "-o", tmp_path / "q.csv", "-n", 1, "--force").output
    assert "with the options of this command" in said


def test_other_formats_hold_the_same(folder, tmp_path):
    asked = read_csv(folder / "questions.csv")
    for name in ("q.parquet", "q.jsonl", "q.tsv"):
        invoke("ask", folder / "votes.csv", *COLUMNS, "-n", 12, "-o", tmp_path / name)
        table = read_back(tmp_path / name)
        assert table["row"].to_pylist() == [int(row) for row in asked["row"]]
        assert [cell or "" for cell in table["verified"].to_pylist()] == [""] * 12
    table = pyarrow.parquet.read_table(tmp_path / "q.parquet")
    truth = pa.array([CLASSES[STREAM.truth[row]] for row in table["row"].to_pylist()])
    answered = table.set_column(table.num_columns - 1, "verified", truth)
    pyarrow.parquet.write_table(answered, tmp_path / "a.parquet")
    for name in (tmp_path / "a.parquet", folder / "answers.csv"):
        out = tmp_path / f"{name.stem}-{name.suffix[1:]}.csv"
        invoke("label", folder / "votes.csv", *COLUMNS, "-o", out, "--verified", name)
    assert (tmp_path / "a-parquet.csv").read_bytes() == (tmp_path / "answers-csv.csv").read_bytes()


def test_standard_output(folder):
    done = CliRunner().invoke(cli.app, ["ask", str(folder / "votes.csv"), *COLUMNS, "-n", "12", "-o", "-"])
    assert done.stdout == (folder / "questions.csv").read_text()


def test_labelers_that_agree_leave_nothing_to_ask(tmp_path):
    same = [CLASSES[row % 3 == 0] for row in range(200)]
    write_csv(tmp_path / "v.csv", dict.fromkeys(LABELERS, same))
    done = invoke("ask", tmp_path / "v.csv", "-o", tmp_path / "q.csv")
    assert "note: The label models agree on every row: there is nothing to ask." in done.output
    assert "next" not in done.output
    assert read_csv(tmp_path / "q.csv") == {name: [] for name in ["row", *LABELERS, "dispute", "why", "verified"]}
    invoke("label", tmp_path / "v.csv", "-o", tmp_path / "l.csv", "--verified", tmp_path / "q.csv")


def test_batches_do_not_matter(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(Table, "batch_rows", 97)
    monkeypatch.setattr(sys.modules["driftvote.cli.ask"], "SCORED", 40)
    invoke("ask", folder / "votes.csv", *COLUMNS, "-n", 12, "-o", tmp_path / "q.csv")
    assert (tmp_path / "q.csv").read_bytes() == (folder / "questions.csv").read_bytes()
    use = ["-o", tmp_path / "few.csv", "--verified", folder / "answers.csv", "--json"]
    few = invoke("label", folder / "votes.csv", *COLUMNS, *use)
    monkeypatch.undo()
    use[1] = tmp_path / "many.csv"
    many = invoke("label", folder / "votes.csv", *COLUMNS, *use)
    assert (tmp_path / "few.csv").read_bytes() == (tmp_path / "many.csv").read_bytes()
    assert json.loads(few.stdout)["answers"] == json.loads(many.stdout)["answers"]


# -- answers ---------------------------------------------------------------------------------------


def test_answers_count_for_their_whole_stretch(folder, tmp_path):
    arguments = [folder / "votes.csv", "--id", "id", "--drop", "note,truth"]
    done = invoke("label", *arguments, "-o", tmp_path / "l.csv", "--verified", folder / "answers.csv", "--json")
    rows = [int(row) for row in read_csv(folder / "questions.csv")["row"]]
    model, before, after = labeled_by_library(rows)
    found = read_csv(tmp_path / "l.csv")
    assert found["label"] == after.labels.tolist()
    assert [float(cell) for cell in found["probability"]] == after.probability.tolist()
    assert [found["label"][row] for row in rows] == [CLASSES[STREAM.truth[row]] for row in rows]
    moved = np.flatnonzero(before.codes != after.codes)
    second = before.events[0].about
    told = np.flatnonzero((before.proba != after.proba).any(axis=1))
    assert second <= told[told >= second][0] < min(row for row in rows if row >= second), "and rows before an answer"
    answers = json.loads(done.stdout)["answers"]
    assert answers["used"] == 12
    assert answers["unanswered"] == 0
    assert answers["labels_moved"] == len(moved) > 12
    assert answers["share_moved"] == len(moved) / N
    assert answers["weights"] == {name: round(weight, 4) for name, weight in model.mixture.items()}
    assert answers["weights_before"] == {name: round(w, 4) for name, w in model.mixture_before_answers.items()}
    assert answers["weights"] != answers["weights_before"]
    right = int((before.codes[rows] == STREAM.truth[rows]).sum())
    low, high = wilson_interval(right, 12)
    assert answers["disputed_before"] == {
        "rows": 12,
        "accuracy": round(right / 12, 4),
        "low": round(low, 4),
        "high": round(high, 4),
    }


def test_the_printed_summary_says_what_the_answers_changed(folder, tmp_path):
    skipped = read_csv(folder / "questions.csv")["row"][:2]
    answer(folder / "questions.csv", tmp_path / "a.csv", skip=skipped)
    said = invoke(
        "label", folder / "votes.csv", *COLUMNS, "-o", tmp_path / "l.csv", "--verified", tmp_path / "a.csv"
    ).output
    assert re.search(r"answers  10 used, 2 open; they moved \d+ labels \(\d+\.\d%\)", said)
    assert re.search(r"weights  majority 0\.\d\d -> 0\.\d\d, one_coin 0\.\d\d -> ", said)
    assert re.search(
        r"disputed \d+% of such rows were right before the answers \(95% interval \d+% to \d+%, from 10 answers\)", said
    )


def test_questions_without_answers_change_nothing(folder, tmp_path):
    done = invoke(
        "label", folder / "votes.csv", *COLUMNS, "-o", tmp_path / "l.csv", "--verified", folder / "questions.csv"
    )
    assert (tmp_path / "l.csv").read_bytes() == (folder / "labels.csv").read_bytes()
    assert "answers  0 used, 12 open; they moved 0 labels (0.0%)" in done.output


@pytest.mark.parametrize("encoding", ["utf-8-sig", "cp1252", "utf-16"])
def test_a_file_may_come_back_from_a_spreadsheet(encoding, folder, tmp_path):
    answer(folder / "questions.csv", tmp_path / "a.csv", delimiter=";", encoding="utf-8", end="\r\n")
    text = (tmp_path / "a.csv").read_bytes().decode()
    assert text.startswith("row;id;")
    shouted = text.replace(";ham\r\n", "; HAM \r\n") + ";" * 10 + "\r\n"
    assert shouted.count("HAM") > 2
    (tmp_path / "a.csv").write_bytes(shouted.encode(encoding))
    for name, answers in (("l", tmp_path / "a.csv"), ("m", folder / "answers.csv")):
        invoke("label", folder / "votes.csv", *COLUMNS, "-o", tmp_path / f"{name}.csv", "--verified", answers)
    found = (tmp_path / "l.csv").read_bytes()
    assert found == (tmp_path / "m.csv").read_bytes() != (folder / "labels.csv").read_bytes()


def test_formulas_are_kept_from_being_some(tmp_path):
    votes = votes_table()
    votes["id"] = [f"=m{row}" for row in range(N)]
    votes["-old"] = votes.pop("old")
    write_csv(tmp_path / "v.csv", {name: votes[name] for name in ("id", "regex", "model", "crowd", "-old", "new")})
    options = [tmp_path / "v.csv", "--id", "id"]
    invoke("ask", *options, "-n", 5, "-o", tmp_path / "q.csv", "--safe-csv")
    assert all(cell.startswith("'=m") for cell in read_csv(tmp_path / "q.csv")["id"])
    answer(tmp_path / "q.csv", tmp_path / "a.csv")
    invoke("label", *options, "-o", tmp_path / "l.csv", "--verified", tmp_path / "a.csv")
    changed = (tmp_path / "a.csv").read_text().replace("'=m", "'=n")
    (tmp_path / "a.csv").write_text(changed)
    done = CliRunner().invoke(
        cli.app, ["label", *map(str, options), "-o", "x.csv", "--verified", str(tmp_path / "a.csv")]
    )
    assert "column 'id'" in str(done.exception)


def flip(cell: str) -> str:
    return "spam" if cell == "ham" else "ham"


WRONG = {
    "no class": ({"verified": "eggs"}, r"line 2, column 'verified': 'eggs' for row \d+ is none of the classes 'ham', 'spam'; correct it, or leave it empty"),
    "no number": ({"row": "first"}, r"line 2, column 'row': 'first' is not the number of a row; keep the numbers"),
    "too large": ({"row": "1e30"}, r"line 2, column 'row': '1e30' is not the number of a row"),
    "no such row": ({"row": str(N)}, rf"line 2, column 'row': there is no row {N}, .*votes.csv has rows 0 to {N - 1}; read the votes with the options"),
    "another id": ({"id": "m-x"}, r"line 2, column 'id': row \d+ had 'm-x', and .*votes.csv has 'm-\d+' now; ask again if the votes have changed"),
    "another vote": ({"crowd": flip}, r"line 2, column 'crowd': row \d+ had '(ham|spam)', and .*votes.csv has '(ham|spam)' now"),
    "no vote": ({"crowd": ""}, r"line 2, column 'crowd': row \d+ had no vote, and .* has '(ham|spam)' now"),
}  # fmt: skip


@pytest.mark.parametrize(("change", "says"), WRONG.values(), ids=list(WRONG))
def test_wrong_answers_are_refused(change, says, folder, tmp_path, monkeypatch, capsys):
    columns = read_csv(folder / "answers.csv")
    for name, value in change.items():
        columns[name][0] = value(columns[name][0]) if callable(value) else value
    write_csv(tmp_path / "a.csv", columns)
    arguments = [folder / "votes.csv", *COLUMNS, "-o", tmp_path / "l.csv", "--verified", tmp_path / "a.csv", "--quiet"]
    said = refused(monkeypatch, capsys, "label", *arguments)
    assert re.search(says, said), said
    assert os.listdir(tmp_path) == ["a.csv"]


def test_an_unanswered_row_may_have_changed(folder, tmp_path):
    columns = read_csv(folder / "answers.csv")
    columns["verified"][0], columns["crowd"][0] = "", flip(columns["crowd"][0])
    write_csv(tmp_path / "a.csv", columns)
    invoke("label", folder / "votes.csv", *COLUMNS, "-o", tmp_path / "l.csv", "--verified", tmp_path / "a.csv")


def test_other_things_that_are_refused(folder, tmp_path, monkeypatch, capsys):
    def says(*arguments: object) -> str:
        return refused(monkeypatch, capsys, *arguments, "--quiet")

    votes, out, answers = folder / "votes.csv", tmp_path / "l.csv", folder / "answers.csv"
    label = ["label", votes, *COLUMNS, "-o", out, "--verified", answers]
    twice = says(*label, "--verified", answers)
    assert re.search(r"line 2, column 'verified': row \d+ is answered already \(.*line 2\); keep one of", twice)
    assert "--verified needs a mixture of label models" in says(*label, "--model", "majority")
    assert "ask needs a mixture" in says("ask", votes, *COLUMNS, "-o", out, "--set", "estimator=one_coin")
    streams = ["--stream", "note", "--id", "id", "--drop", "truth"]
    assert "ask is about one stream; select it with --only VALUE" in says("ask", votes, *streams, "-o", out)
    assert "--verified is about one stream" in says("label", votes, *streams, "-o", out, "--verified", answers)
    assert "there is no column 'row'" in says("label", votes, *COLUMNS, "-o", out, "--verified", votes)
    again = ["ask", votes, *COLUMNS, "-o", answers]
    assert "the file exists; pass --force" in says(*again)
    assert "--out is the input itself" in says(*again, "--force", "--verified", answers)
    assert "questions are text; name it .csv" in says("ask", votes, *COLUMNS, "-o", tmp_path / "q.npz")
    assert "name a file of votes and a file for -o" in says("ask", votes, *COLUMNS, "-o", "-", "--interactive")
    many = {name: [f"c{(row + place) % 40}" for row in range(80)] for place, name in enumerate(LABELERS)}
    write_csv(tmp_path / "many.csv", many)
    assert "keys for 32 classes, and there are 40" in says("ask", tmp_path / "many.csv", "-o", out, "--interactive")
    columns = read_csv(answers)
    write_csv(tmp_path / "few.csv", {name: columns[name] for name in ("row", "dispute", "verified")})
    assert "neither the id nor a vote" in says("label", votes, *COLUMNS, "-o", out, "--verified", tmp_path / "few.csv")
    renamed = votes_table()
    renamed["why"] = renamed.pop("note")
    write_csv(tmp_path / "v.csv", renamed)
    named = ["ask", tmp_path / "v.csv", "--id", "id", "--keep", "why", "--drop", "truth", "-o", out]
    assert "column 'why' of the file has the name of a result; ignore it with --drop why" in says(*named)
    assert not out.exists()


def test_answers_and_a_column_of_verified_classes(folder, tmp_path, monkeypatch, capsys):
    votes = votes_table()
    rows = sorted(int(row) for row in read_csv(folder / "questions.csv")["row"])
    votes["known"] = [""] * N
    labels = read_csv(folder / "labels.csv")["label"]
    wrong = next(row for row in range(N) if labels[row] != votes["truth"][row] and rows[0] < row < rows[1])
    votes["known"][wrong], votes["known"][rows[0]] = votes["truth"][wrong], votes["truth"][rows[0]]
    write_csv(tmp_path / "v.csv", votes)
    options = ["--id", "id", "--drop", "note,truth", "--gold-for-learning", "known", "--quiet"]
    use = ["-o", tmp_path / "l.csv", "--verified", folder / "answers.csv"]
    invoke("label", tmp_path / "v.csv", *options, *use)
    labels = read_csv(tmp_path / "l.csv")["label"]
    assert [labels[row] for row in (wrong, *rows)] == [CLASSES[STREAM.truth[row]] for row in (wrong, *rows)]
    votes["known"][rows[0]] = flip(votes["truth"][rows[0]])
    write_csv(tmp_path / "v.csv", votes)
    said = refused(monkeypatch, capsys, "label", tmp_path / "v.csv", *options, *use, "--force")
    assert re.search(r"column 'verified': row \d+ is '\w+', and '\w+' in column 'known' of .*v.csv; keep one", said)


def test_more_questions_after_the_first_answers(folder, tmp_path):
    base, half = [folder / "votes.csv", *COLUMNS], N // 2
    first = folder / "answers.csv"
    done = invoke("ask", *base, "-n", 12, "-o", tmp_path / "q.csv", "--verified", first, "--json")
    assert str(first) in json.loads(done.stdout)["next"]
    more, known = read_csv(tmp_path / "q.csv")["row"], read_csv(first)["row"]
    assert more
    assert not {*more} & {*known}
    answer(tmp_path / "q.csv", tmp_path / "a.csv")
    both = ["--verified", first, "--verified", folder / "questions.csv", "--verified", tmp_path / "a.csv"]
    done = invoke("label", *base, "-o", tmp_path / "l.csv", *both, "--json")
    assert json.loads(done.stdout)["answers"]["used"] == len(known) + len(more)
    assert {int(row) < half for row in (*known, *more)} == {True, False}, "questions about both stretches"


def test_row_numbers_go_on_with_a_state(folder, tmp_path):
    begin = N // 4
    columns = votes_table()
    write_csv(tmp_path / "a.csv", {name: values[:begin] for name, values in columns.items()})
    write_csv(tmp_path / "b.csv", {name: values[begin:] for name, values in columns.items()})
    options = [*COLUMNS, "--state", tmp_path / "s.npz", "--classes", "ham,spam"]
    invoke("label", tmp_path / "a.csv", *options, "-o", tmp_path / "la.csv")
    saved = (tmp_path / "s.npz").read_bytes()
    invoke("ask", tmp_path / "b.csv", *options, "-n", 8, "-o", tmp_path / "q.csv")
    assert (tmp_path / "s.npz").read_bytes() == saved
    asked = read_csv(tmp_path / "q.csv")
    asked["verified"] = [CLASSES[STREAM.truth[begin + int(row)]] for row in asked["row"]]
    write_csv(tmp_path / "q.csv", asked)
    invoke("label", tmp_path / "b.csv", *options, "-o", tmp_path / "lb.csv", "--verified", tmp_path / "q.csv")
    _, _, after = labeled_by_library([begin + int(row) for row in asked["row"]], begin)
    assert read_csv(tmp_path / "lb.csv")["label"] == after.labels.tolist()


def test_sorted_files_and_one_vote_a_line(folder, tmp_path, monkeypatch, capsys):
    """The same questions, whatever the order and the layout of the file; without --sort other rows have the numbers."""
    columns = votes_table()
    columns["at"] = list(range(N))
    order = np.random.default_rng(1).permutation(N)
    mixed = {name: [values[place] for place in order] for name, values in columns.items()}
    write_csv(tmp_path / "mixed.csv", mixed)
    lines = [(columns["id"][row], name, columns[name][row], row) for row in range(N) for name in LABELERS]
    write_csv(tmp_path / "long.csv", dict(zip(("item", "who", "vote", "at"), zip(*lines, strict=True), strict=True)))
    wide = ["--id", "id", "--drop", "note,truth", "--time", "at"]
    long = ["--task", "item", "--labeler", "who", "--label", "vote", "--time", "at"]
    rows, labels = [], []
    for name, options in (("mixed.csv", [*wide, "--sort"]), ("long.csv", long)):
        invoke("ask", tmp_path / name, *options, "-n", 12, "-o", tmp_path / "q.csv", "--force")
        answer(tmp_path / "q.csv", tmp_path / "a.csv")
        rows.append(read_csv(tmp_path / "q.csv")["row"])
        use = ["-o", tmp_path / "l.csv", "--verified", tmp_path / "a.csv", "--force"]
        invoke("label", tmp_path / name, *options, *use)
        labels.append(read_csv(tmp_path / "l.csv")["label"])
    assert rows[0] == rows[1] == read_csv(folder / "questions.csv")["row"]
    assert labels[0] == labels[1]
    said = refused(monkeypatch, capsys, "label", tmp_path / "mixed.csv", *wide[:-2], "--drop", "at,note,truth", *use)
    assert "now; ask again" in said


def test_one_stream_of_many(folder, tmp_path):
    columns = votes_table()
    doubled = {name: [value for value in values for _ in range(2)] for name, values in columns.items()}
    doubled["room"] = ["one", "two"] * N
    write_csv(tmp_path / "v.csv", doubled)
    options = ["--id", "id", "--drop", "note,truth", "--stream", "room", "--only", "two"]
    invoke("ask", tmp_path / "v.csv", *options, "-n", 12, "-o", tmp_path / "q.csv")
    assert read_csv(tmp_path / "q.csv")["row"] == read_csv(folder / "questions.csv")["row"]
    answer(tmp_path / "q.csv", tmp_path / "a.csv")
    invoke("label", tmp_path / "v.csv", *options, "-o", tmp_path / "l.csv", "--verified", tmp_path / "a.csv")
    rows = [int(row) for row in read_csv(tmp_path / "q.csv")["row"]]
    assert read_csv(tmp_path / "l.csv")["label"] == labeled_by_library(rows)[2].labels.tolist()


def test_the_interval_holds_the_share():
    assert wilson_interval(0, 5)[0] == 0.0
    assert wilson_interval(5, 5)[1] == 1.0
    low, high = wilson_interval(50, 100)
    assert (low, high) == pytest.approx((0.404, 0.596), abs=5e-4)


# -- at the terminal -------------------------------------------------------------------------------


def verified_in(path) -> list[str]:
    return read_csv(path)["verified"]


def test_answers_at_the_terminal(folder, tmp_path):
    out = tmp_path / "q.csv"
    arguments = ["ask", folder / "votes.csv", *COLUMNS, "-o", out, "-n", 5, "--interactive"]
    said = invoke(*arguments, input="1\n2\nu\n1\ns\nwhat\n2\nq\n").output
    assert verified_in(out) == ["ham", "ham", "", "spam", ""]
    asked = read_csv(out)
    assert f"question 1 of 5, row {asked['row'][0]}\n  id: {asked['id'][0]}\n  note: {asked['note'][0]}\n" in said
    assert "[1 ham  2 spam  s skip  u undo  q stop]" in said
    assert f"{asked['dispute'][0]}? {asked['why'][0]}" in said
    assert "answered 3 of 5" in said
    invoke(*arguments, input="2\nu\nq\n")
    assert verified_in(out) == ["ham", "ham", "", "spam", ""], "taken back"
    said = invoke(*arguments, input="2\n1\n").output
    assert verified_in(out) == ["ham", "ham", "spam", "spam", "ham"]
    assert "question 3 of 5" in said
    assert "question 1 of 5" not in said
    done = invoke("label", folder / "votes.csv", *COLUMNS, "-o", tmp_path / "l.csv", "--verified", out, "--json")
    assert json.loads(done.stdout)["answers"]["used"] == 5
    invoke(*arguments, "--force", input="")
    assert verified_in(out) == [""] * 5


def test_nothing_is_lost_when_the_terminal_goes(folder, tmp_path, monkeypatch):
    keys, out = iter("21"), tmp_path / "q.csv"

    def press() -> str:
        seen.append(verified_in(out))
        key = next(keys, None)
        if key is None:
            raise KeyboardInterrupt
        return key

    seen: list[list[str]] = []
    monkeypatch.setattr(typer, "getchar", press)
    monkeypatch.setattr(sys, "stdin", type("Terminal", (), {"isatty": lambda self: True})())
    monkeypatch.setattr(
        sys,
        "argv",
        ["driftvote", "ask", str(folder / "votes.csv"), *COLUMNS, "-o", str(out), "-n", "3", "--interactive"],
    )
    with pytest.raises(SystemExit) as caught:
        cli.main()
    assert caught.value.code == 130
    assert seen == [["", "", ""], ["spam", "", ""], ["spam", "ham", ""]]
    assert verified_in(out) == ["spam", "ham", ""]
    assert os.listdir(tmp_path) == ["q.csv"]


def test_questions_about_other_votes_are_not_asked_on(folder, tmp_path, monkeypatch, capsys):
    votes = votes_table(STREAM.votes[::-1])
    write_csv(tmp_path / "v.csv", votes)
    (tmp_path / "q.csv").write_bytes((folder / "questions.csv").read_bytes())
    arguments = ["ask", tmp_path / "v.csv", *COLUMNS, "-o", tmp_path / "q.csv", "--interactive", "--quiet"]
    assert "now; ask again if the votes have changed" in refused(monkeypatch, capsys, *arguments)
    assert (tmp_path / "q.csv").read_bytes() == (folder / "questions.csv").read_bytes()


# -- live ------------------------------------------------------------------------------------------


class Watched:
    """A stream that is labeled line by line in this process."""

    def __init__(self, model: AdaptiveLabelModel, **options: object) -> None:
        self.model = model
        self.loop = StreamLoop(model, WatchOptions(quiet=True, ask=True, **options), Position(), 1)

    def send(self, **message: object) -> dict[str, object]:
        return json.loads(self.loop._answer(json.dumps(message).encode()))

    def row(self, number: int) -> dict[str, object]:
        votes = dict(zip(LABELERS, (CLASSES[code] for code in STREAM.votes[number]), strict=True))
        return self.send(id=f"m-{number}", votes=votes)


def test_questions_in_a_stream():
    live = Watched(AdaptiveLabelModel(classes=CLASSES), ask_every=100)
    asked: dict[int, dict[str, object]] = {}
    for number in range(N):
        answer = live.row(number)
        assert "error" not in answer, answer
        if "question" in answer:
            asked[number] = answer["question"]
    event = next(event.row for event in live.model.events)
    assert {(row + 1) % 100 for row in asked if row <= event} == {0}
    assert min(row for row in asked if row > event) == event + 20
    assert {(row - event - 20) % 100 for row in asked if row > event} == {0}
    rows = [question["row"] for question in asked.values()]
    assert len(set(rows)) == len(rows) == live.loop.counts.questions > 3
    for number, question in asked.items():
        assert question["row"] <= number
        assert question["id"] == f"m-{question['row']}"
        assert {one["class"] for one in question["classes"]} == {*CLASSES}
        assert question["why"]
        assert "time" not in question
    late = list(asked.values())[-1]
    before = {one.name: one.weight for one in live.model.label_models}
    done = live.send(id=late["id"], verified=CLASSES[STREAM.truth[late["row"]]])
    assert done == {"id": late["id"], "verified": CLASSES[STREAM.truth[late["row"]]]}
    samples = {
        (family.name, labels["label_model"]): value
        for family in collect_metrics(live.model, live.loop.counts)
        for labels, value in family.samples
        if "label_model" in labels
    }
    for one in live.model.label_models:
        assert samples["driftvote_label_model_weight", one.name] == one.weight
        assert samples["driftvote_label_model_weight_before_answers", one.name] == one.before_answers
    assert {one.name: one.weight for one in live.model.label_models} != before
    total = {family.name: family.samples for family in collect_metrics(live.model, live.loop.counts)}
    assert total["driftvote_questions_total"] == (({}, len(rows)),)


def test_the_clock_of_questions_survives_a_restart():
    model = AdaptiveLabelModel(classes=CLASSES)
    live, asked = Watched(model, ask_every=100), []
    for number in range(N):
        if number % 7 == 0:
            live = Watched(model, ask_every=100)
        if "question" in live.row(number):
            asked.append(number)
    event = next(event.row for event in model.events)
    assert event + 20 in asked
    assert len([row for row in asked if row < event]) > 3


def test_a_watched_process_asks_and_takes_the_answer():
    lines = [line_of(number, codes) for number, codes in enumerate(votes_that_drift(400, 400, abstain=0.3))]
    answers, said = watch("\n".join(lines), "--ask", "--ask-every", 200)
    (question,) = (one["question"] for one in answers[:399] if "question" in one)
    assert answers[199]["question"] == question
    lines.insert(300, json.dumps({"id": question["id"], "verified": "safe"}))
    answers, said = watch("\n".join(lines), "--ask", "--ask-every", 200)
    assert answers[300] == {"id": question["id"], "verified": "safe"}
    assert "asked    2 questions; 1 answer received" in said
    assert answers[400]["question"]["row"] != question["row"]


def test_no_question_while_nothing_is_in_dispute():
    live = Watched(AdaptiveLabelModel(classes=CLASSES), ask_every=10)
    for number in range(60):
        answer = live.send(id=number, votes=dict.fromkeys(LABELERS, CLASSES[number % 2]))
        assert "question" not in answer
    assert live.loop.counts.questions == 0


def test_watching_with_another_model_cannot_ask(monkeypatch, capsys):
    said = refused(monkeypatch, capsys, "watch", "--ask", "--classes", "ham,spam", "--model", "majority")
    assert "--ask needs a mixture of label models, the default" in said


# -- the report ------------------------------------------------------------------------------------


def test_the_report_shows_the_weights(folder, tmp_path):
    options = [folder / "votes.csv", *COLUMNS, "--json"]
    done = invoke("report", *options, "-o", tmp_path / "r.json", "--verified", folder / "answers.csv")
    weights = json.loads(done.stdout)["answers"]
    report = report_from_json(tmp_path / "r.json")
    assert {one.name: one.weight for one in report.label_models} == weights["weights"]
    assert {one.name: one.before_answers for one in report.label_models} == weights["weights_before"]
    invoke("report", *options, "-o", tmp_path / "r.html", "--verified", folder / "answers.csv")
    page = (tmp_path / "r.html").read_text()
    section = page[page.index('<section id="model">') :].split("</section>")[0]
    assert "by votes alone" in section
    assert section.count('scope="row"') == len(report.label_models) == 6
    assert "before the answers</h2>" in section
    invoke("report", *options, "-o", tmp_path / "p.html")
    page = (tmp_path / "p.html").read_text()
    section = page[page.index('<section id="model">') :].split("</section>")[0]
    assert "by votes alone" not in section
    plain = json.loads(report_to_json(report))
    del plain["label_models"]
    assert report_from_json(json.dumps(plain)).label_models == []


def test_a_model_describes_its_weights():
    model = AdaptiveLabelModel()
    assert model.label_models == []
    model.label_stream(STREAM.votes[:100])
    shown = ", ".join(f"{name} {weight:.2f}" for name, weight in model.mixture.items())
    assert f"label models: {shown}" in model.describe()
    other = MajorityLabelModel()
    other.label_stream(STREAM.votes[:100])
    assert other.label_models == []
    assert "label models" not in other.describe()
