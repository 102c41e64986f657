"""`driftvote label`: what passes through, streams, sorting, state, summaries."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from driftvote import AdaptiveLabelModel, FixedWindowLabelModel, MajorityLabelModel, load
from driftvote.cli import progress
from driftvote.cli.pipeline import read_ahead, write_behind
from driftvote.files import long
from driftvote.files.table import Table
from driftvote.streams import swap
from test_files_bad import refused

from streams_for_tests import random_stream, rows_for
from votes_on_disk import LABELERS, TEXT, cells_of, expected, invoke, read_back, table_of, write_delimited
from watch_for_tests import JUDGES, votes_that_drift

N = rows_for(2000, 400)


def with_columns(votes: pa.Table, **columns: list[object]) -> pa.Table:
    for name, values in columns.items():
        votes = votes.append_column(name, pa.array(values))
    return votes


def test_a_newcomers_csv(tmp_path, monkeypatch):
    """Text classes, empty cells, quotes, an id, and nothing but the words of the help."""
    monkeypatch.chdir(tmp_path)
    codes = random_stream(1, 300, 5, abstain=0.3)
    write_delimited(tmp_path / "votes.csv", table_of(codes, ["ham", "spam"]).drop_columns(["at"]))
    done = invoke("label", "votes.csv", "--id", "id", "-o", "labels.csv")
    assert "classes  ham, spam; an empty cell is no vote (found in the file)" in done.output
    assert "300 rows, 5 labelers: regex, model, crowd, old, new" in done.output
    found = read_back(tmp_path / "labels.csv")
    out = AdaptiveLabelModel(classes=["ham", "spam"]).label_stream(cells_of(codes, ["ham", "spam"]))
    assert found.column_names == [
        "id",
        "label",
        "probability",
        "proba_ham",
        "proba_spam",
        "window",
        "n_votes",
        "needs_review",
    ]
    assert [x or None for x in found["label"].to_pylist()] == out.labels.tolist()


def test_what_passes_through_is_unchanged(tmp_path):
    codes = random_stream(2, 100, 5, n_classes=3)
    odd = ["007", "1e5", "a,b", 'say "x"', "", "NA", "  y ", "1.50", "ü", "2024-01-01"] * 10
    write_delimited(tmp_path / "v.csv", with_columns(table_of(codes, TEXT), note=odd))
    for name in ("l.csv", "l.parquet", "l.jsonl"):
        invoke("label", tmp_path / "v.csv", "--keep", "id,at,note", "-o", tmp_path / name)
    options = pa.csv.ConvertOptions(column_types={"note": pa.string()}, strings_can_be_null=False)
    assert pa.csv.read_csv(tmp_path / "l.csv", convert_options=options)["note"].to_pylist() == odd
    for name in ("l.parquet", "l.jsonl"):
        assert read_back(tmp_path / name)["note"].to_pylist() == odd
    typed = with_columns(
        table_of(codes, TEXT),
        when=pa.array(np.arange(100), pa.timestamp("ns", "Europe/Berlin")),
        day=pa.array(np.arange(100, dtype=np.int32), pa.date32()),
        score=np.linspace(0, 1, 100, dtype=np.float32).tolist(),
    )
    pyarrow.parquet.write_table(typed, tmp_path / "v.parquet")
    arguments = ["--keep", "id,at,when,day,score", "--time", "at"]
    for extra in ([], ["--sort"]):
        invoke("label", tmp_path / "v.parquet", *arguments, *extra, "-o", tmp_path / "t.feather", "--force")
        found = read_back(tmp_path / "t.feather")
        for name in ("id", "at", "when", "day", "score"):
            assert found[name].equals(typed[name]), name
    invoke(
        "label",
        tmp_path / "v.csv",
        "--keep",
        "id,note",
        "--drop",
        "at",
        "--text",
        "id",
        "-o",
        tmp_path / "p.parquet",
    )
    assert read_back(tmp_path / "p.parquet").column_names[:4] == ["id", "note", "label", "probability"]


@pytest.mark.parametrize("external", [False, True], ids=["in memory", "duckdb"])
def test_sorting(tmp_path, monkeypatch, capsys, external):
    if external:
        monkeypatch.setattr(long, "IN_MEMORY", 100)
    monkeypatch.setattr(long, "BATCH", 97)
    codes = random_stream(3, N, 5, n_classes=3, abstain=0.2)
    at = np.sort(np.random.default_rng(0).integers(0, N, N))
    ordered = with_columns(
        table_of(codes, TEXT).drop_columns(["at"]), at=[f"2024-01-01T00:{t // 60:02d}:{t % 60:02d}Z" for t in at]
    )
    shuffle = np.argsort(np.random.default_rng(1).random(N))
    stable = shuffle[np.argsort(at[shuffle], kind="stable")]  # rows of one time stay in the order of the file
    write_delimited(tmp_path / "v.csv", ordered.take(shuffle))
    assert "is before" in refused(
        monkeypatch, capsys, "label", tmp_path / "v.csv", "--id", "id", "--time", "at", "-o", tmp_path / "l.csv"
    )
    invoke("label", tmp_path / "v.csv", "--id", "id", "--time", "at", "--sort", "-o", tmp_path / "l.parquet")
    found, out = read_back(tmp_path / "l.parquet"), expected(codes[stable], TEXT)
    assert found["id"].to_pylist() == [f"m{i}" for i in stable]
    np.testing.assert_array_equal(found["probability"].to_numpy(), out.probability)
    assert found["at"].type == pa.timestamp("us", "UTC")


def test_a_bad_cell_is_found_when_sorting_too(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(long, "IN_MEMORY", 10)
    (tmp_path / "v.csv").write_text("t,a,b,c\n" + "5,no,yes,no\n" * 200 + "4,no,yse,no\n")
    arguments = ["--time", "t", "--sort", "--classes", "no,yes", "-o", tmp_path / "l.csv"]
    assert "line 202, column 'b': 'yse'" in refused(monkeypatch, capsys, "label", tmp_path / "v.csv", *arguments)


def test_streams_are_independent(tmp_path, monkeypatch):
    monkeypatch.setattr(Table, "batch_rows", 311)
    parts = {name: random_stream(seed, N // 2, 5, n_classes=3, abstain=0.1) for seed, name in enumerate("xyz")}
    order = np.random.default_rng(0).permutation(np.repeat(list(parts), N // 2))
    place = dict.fromkeys(parts, 0)
    codes = np.empty((len(order), 5), np.int8)
    for row, name in enumerate(order):
        codes[row] = parts[name][place[name]]
        place[name] += 1
    votes = with_columns(table_of(codes, TEXT), which=order.tolist())
    pyarrow.parquet.write_table(votes, tmp_path / "v.parquet")
    command = ["label", tmp_path / "v.parquet", "--keep", "id", "--time", "at", "--stream", "which"]
    done = invoke(*command, "--weights", "-o", tmp_path / "l.parquet", "--state", tmp_path / "s.npz", "--json")
    assert json.loads(done.stdout)["streams"] == 3
    found = read_back(tmp_path / "l.parquet")
    invoke(*command, "--sort", "-o", tmp_path / "sorted.parquet")
    by_stream = read_back(tmp_path / "sorted.parquet")
    assert by_stream["which"].to_pylist() == sorted(order)
    for name, part in parts.items():
        out = expected(part, TEXT)
        for table_ in (found, by_stream):
            mine = table_.filter(pa.compute.equal(table_["which"], name))
            np.testing.assert_array_equal(mine["probability"].to_numpy(), out.probability)
        mine = found.filter(pa.compute.equal(found["which"], name))
        np.testing.assert_array_equal(mine["weight_old"].to_numpy(), out.weights[:, 3])
        invoke(*command, "--only", name, "-o", tmp_path / f"{name}.parquet")
        np.testing.assert_array_equal(
            read_back(tmp_path / f"{name}.parquet")["probability"].to_numpy(), out.probability
        )
    pyarrow.parquet.write_table(
        votes.set_column(1, "at", pa.array(np.arange(len(order)) + 10**6)), tmp_path / "w.parquet"
    )
    command[1] = tmp_path / "w.parquet"
    invoke(*command, "-o", tmp_path / "l2.parquet", "--state", tmp_path / "s.npz")
    after = read_back(tmp_path / "l2.parquet")
    model = AdaptiveLabelModel(classes=TEXT)
    model.label_stream(cells_of(parts["y"], TEXT))
    mine = after.filter(pa.compute.equal(after["which"], "y"))
    again = model.label_stream(cells_of(parts["y"], TEXT))
    np.testing.assert_array_equal(mine["probability"].to_numpy(), again.probability)


def test_a_state_goes_on_where_it_stopped(tmp_path, monkeypatch, capsys):
    codes = random_stream(4, N, 5, n_classes=3, abstain=0.2)
    half = N // 2
    whole = expected(codes, TEXT)
    day = [table_of(codes, TEXT).slice(0, half), table_of(codes, TEXT).slice(half)]
    day[1] = day[1].select(["id", "at", *reversed(LABELERS)])  # columns are known by name
    for number, part in enumerate(day):
        write_delimited(tmp_path / f"{number}.csv", part)
        invoke(
            "label",
            tmp_path / f"{number}.csv",
            "--id",
            "id",
            "--time",
            "at",
            "-o",
            tmp_path / f"l{number}.csv",
            "--state",
            tmp_path / "s.npz",
        )
        found = read_back(tmp_path / f"l{number}.csv")
        rows = slice(0, half) if not number else slice(half, None)
        np.testing.assert_array_equal(found["probability"].to_numpy(), whole.probability[rows])
    model = load(tmp_path / "s.npz")  # the same file that Python reads and writes
    assert (model.n_rows, model.labelers) == (N, tuple(LABELERS))
    write_delimited(tmp_path / "old.csv", day[0])
    command = [
        "label",
        tmp_path / "old.csv",
        "--id",
        "id",
        "--time",
        "at",
        "-o",
        tmp_path / "x.csv",
        "--state",
        tmp_path / "s.npz",
    ]
    assert f"time 0 is before {N - 1}" in refused(monkeypatch, capsys, *command)
    command = [
        "label",
        tmp_path / "1.csv",
        "--id",
        "id",
        "--keep",
        "at",
        "-o",
        tmp_path / "x.csv",
        "--state",
        tmp_path / "s.npz",
        "--again",
    ]
    assert "the state reads classes" in refused(monkeypatch, capsys, *command, "--classes", "ham,spam")
    assert "started with beta=0.1, and the command asks for 0.5" in refused(
        monkeypatch, capsys, *command, "--set", "beta=0.5"
    )
    assert "not of --model majority" in refused(monkeypatch, capsys, *command, "--model", "majority")
    assert "the state of one stream" in refused(monkeypatch, capsys, *command, "--stream", "at", "--drop", "id")
    (tmp_path / "s.npz").write_bytes((tmp_path / "s.npz").read_bytes()[:500])
    assert "not a whole state file" in refused(monkeypatch, capsys, *command)
    assert not (tmp_path / "x.csv").exists()


def test_a_labeler_may_join_and_one_be_missing(tmp_path):
    codes = random_stream(5, 400, 5, n_classes=3)
    first, second = (
        table_of(codes, TEXT).slice(0, 200).drop_columns(["new"]),
        table_of(codes, TEXT).slice(200).drop_columns(["regex"]),
    )
    for number, part in enumerate((first, second)):
        write_delimited(tmp_path / f"{number}.csv", part)
        invoke(
            "label",
            tmp_path / f"{number}.csv",
            "--keep",
            "id,at",
            "-o",
            tmp_path / f"l{number}.csv",
            "--state",
            tmp_path / "s.npz",
            "--report",
            tmp_path / f"r{number}.json",
        )
    model = AdaptiveLabelModel(classes=TEXT)
    model.label_stream(first.drop_columns(["id", "at"]))
    out = model.label_stream(second.drop_columns(["id", "at"]))
    np.testing.assert_array_equal(read_back(tmp_path / "l1.csv")["probability"].to_numpy(), out.probability)
    assert load(tmp_path / "s.npz").labelers == ("regex", "model", "crowd", "old", "new")


def test_models_and_settings(tmp_path):
    codes = random_stream(6, 500, 5)
    np.save(tmp_path / "v.npy", codes)
    cases = [
        (["--model", "majority"], MajorityLabelModel()),
        (["--model", "all-past"], FixedWindowLabelModel(window=None)),
        (["--model", "window:64"], FixedWindowLabelModel(window=64)),
        (["--model", "paper", "--set", "seed=3"], AdaptiveLabelModel.paper(seed=3)),
        (
            ["--set", "beta=0.3", "--set", "windows=[8,32]", "--set", "refresh=8"],
            AdaptiveLabelModel(beta=0.3, windows=[8, 32], refresh=8),
        ),
        (
            ["--set", "estimator=triplet", "--set", "clip=[0.2,0.8]"],
            AdaptiveLabelModel(estimator="triplet", clip=(0.2, 0.8)),
        ),
    ]
    for arguments, model in cases:
        invoke("label", tmp_path / "v.npy", *arguments, "-o", tmp_path / "l.parquet", "--force")
        np.testing.assert_array_equal(
            read_back(tmp_path / "l.parquet")["probability"].to_numpy(), model.label_stream(codes).probability
        )


def test_a_majority_of_two_labelers(tmp_path, monkeypatch, capsys):
    (tmp_path / "v.csv").write_text("a,b\nham,ham\nspam,\nham,spam\n")
    command = ["label", tmp_path / "v.csv", "-o", tmp_path / "l.csv"]
    assert "at least 3 labelers are needed, and there are 2" in refused(monkeypatch, capsys, *command)
    invoke(*command, "--model", "majority")
    assert [label or None for label in read_back(tmp_path / "l.csv")["label"].to_pylist()] == ["ham", "spam", None]


def test_the_summary_is_machine_readable_and_quiet_is_quiet(tmp_path):
    stream = swap(N)
    votes = pa.table({f"l{i}": stream.votes[:, i] for i in range(5)} | {"truth": stream.truth})
    pyarrow.parquet.write_table(votes, tmp_path / "v.parquet")
    command = ["label", tmp_path / "v.parquet", "--gold", "truth", "-o", tmp_path / "l.csv", "--force"]
    found = json.loads(invoke(*command, "--json").stdout)
    out = AdaptiveLabelModel().label_stream(stream.votes)
    assert found["rows"] == found["rows_seen"] == N
    assert found["labels"] == {"0": int((out.codes == 0).sum()), "1": int((out.codes == 1).sum())}
    assert found["gold"]["accuracy"] == pytest.approx(stream.score(out.codes))
    assert found["window"] == out.windows[-1]
    assert found["accuracies"]["l4"] == out.accuracies[-1, 4]
    assert found["needs_review"] == int(((out.probability < 0.6) | (out.codes < 0)).sum())
    strict = json.loads(invoke(*command, "--json", "--review-below", "1").stdout)
    assert strict["needs_review"] > found["needs_review"]
    done = subprocess.run(
        [sys.executable, "-m", "driftvote", *map(str, command), "--quiet"], capture_output=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_the_summary_tells_what_drifted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    votes = votes_that_drift(3000, 1500)
    lines = [",".join(JUDGES), *(",".join(map(str, row)) for row in votes.tolist())]
    (tmp_path / "votes.csv").write_text("\n".join(lines) + "\n")
    told = AdaptiveLabelModel().label_stream(votes).events
    assert [event.names for event in told] == [("labeler_0",)]
    sentence = told[0].sentence.replace("labeler_0", JUDGES[0])
    done = invoke("label", "votes.csv", "-o", "labels.csv")
    assert f"drift    {sentence} (noticed at row {told[0].row:,})\n" in done.output
    summary = json.loads(invoke("label", "votes.csv", "-o", "again.csv", "--json", "--quiet").stdout)
    assert (summary["n_events"], [event["sentence"] for event in summary["events"]]) == (1, [sentence])
    steady = votes[:1400]
    (tmp_path / "steady.csv").write_text("\n".join([lines[0], *(",".join(map(str, row)) for row in steady.tolist())]))
    assert "drift" not in invoke("label", "steady.csv", "-o", "steady-labels.csv").output


def test_progress_of_rows(monkeypatch, capsys):
    import io

    from rich.console import Console

    shown = io.StringIO()
    monkeypatch.setattr(progress, "Console", lambda **_: Console(file=shown, force_terminal=True, width=120))
    monkeypatch.setattr(progress.sys.stderr, "isatty", lambda: True, raising=False)
    with progress.rows_done("labeling", quiet=False) as listen:
        listen(5_000, None)
        listen(10_000, 0.5)
    assert "10,000 rows" in shown.getvalue()
    monkeypatch.undo()
    monkeypatch.setenv("FORCE_COLOR", "1")  # as in CI: lines all the same, as this is no terminal
    monkeypatch.setattr(progress, "_EVERY", 0.0)
    with progress.rows_done("labeling", quiet=False) as listen:
        listen(10_000, 0.5)
        listen(20_000, None)
    lines = capsys.readouterr().err.splitlines()
    assert "labeling: 10,000 rows" in lines[0]
    assert "50% of the file" in lines[0]
    assert len(lines) == 2


def write_all(work, *items) -> None:
    with write_behind(work) as put:
        for item in items:
            put(item)


def fail_while_writing() -> None:
    with write_behind(print):
        raise ZeroDivisionError("in this thread")


def test_threads_pass_errors_on():
    def failing():
        yield 1
        raise ValueError("reading")

    items = read_ahead(failing())
    assert next(items) == 1
    with pytest.raises(ValueError, match="reading"):
        next(items)
    endless = read_ahead(iter(int, 1))
    assert next(endless) == 0
    endless.close()  # ends the thread that reads ahead
    with pytest.raises(ZeroDivisionError):
        write_all(lambda item: 1 // item, 1, 0)
    with pytest.raises(ZeroDivisionError):
        write_all(lambda item: 1 // item, 0, 1, 1)
    with pytest.raises(ZeroDivisionError, match="in this thread"):
        fail_while_writing()


def test_names_that_would_be_there_twice(tmp_path, monkeypatch, capsys):
    codes = random_stream(1, 50, 5, n_classes=3)
    write_delimited(tmp_path / "v.csv", with_columns(table_of(codes, TEXT), weight_old=["x"] * 50))
    command = ["label", tmp_path / "v.csv", "--keep", "id,at,weight_old", "--weights", "-o", tmp_path / "l.csv"]
    said = refused(monkeypatch, capsys, *command)
    assert "column 'weight_old' of the file has the name of a result; ignore it with --drop weight_old" in said
    command[3:4] = ["id,at", "--drop", "weight_old"]
    invoke(*command)
    assert "weight_old" in read_back(tmp_path / "l.csv").column_names
