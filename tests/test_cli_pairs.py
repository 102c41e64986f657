"""`driftvote label` with every pair of its options: the labels are those of the library with the same meaning, or the
pair is refused with a sentence."""

from __future__ import annotations

import csv
import json
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

from driftvote import AdaptiveLabelModel, DriftvoteError, FixedWindowLabelModel, LabeledStream, LabelModel, cli
from driftvote.files import long
from driftvote.files.table import Table

from streams_for_tests import COMPILED

ROWS = 180 if COMPILED else 60
CLASSES = ["ham", "spam"]
LABELERS = [f"judge_{letter}" for letter in "abcde"]

OPTIONS: dict[str, list[str]] = {
    "time": ["--time", "at"],
    "sort": ["--time", "at", "--sort"],
    "id": ["--id", "id"],
    "stream": ["--stream", "site"],
    "only": ["--stream", "site", "--only", "west"],
    "gold": ["--gold", "truth"],
    "verified": ["--gold-for-learning", "seen"],
    "labelers": ["--labelers", "judge_*"],
    "drop": ["--drop", "note"],
    "text": ["--text", "id"],
    "classes": ["--classes", "ham,spam"],
    "long": ["--task", "id", "--labeler", "who", "--label", "vote", "--time", "at"],
    "csv": [],  # the file is a CSV
    "model": ["--model", "window:64"],
    "set": ["--set", "beta=0.4"],
    "state": [],  # the rows come in two files, and a state goes from the first to the second
    "report": [],
    "accuracies": ["--accuracies"],
    "weights": ["--weights"],
    "json": ["--json"],
}

REFUSED = {
    ("verified", "model"): "does not learn from verified labels",
    ("labelers", "long"): "--labelers names the columns of a wide file",
    ("stream", "report"): "a report is about one stream; select it with --only VALUE",
    ("model", "set"): "--set beta: FixedWindowLabelModel has no such setting",
}

PAIRS = [(), *((name,) for name in OPTIONS), *combinations(OPTIONS, 2)]
TRIPLES = list(combinations(["sort", "stream", "only", "verified", "long", "state", "csv"], 3))
VERIFIED = [("verified", "state", *more) for size in (2, 3) for more in combinations(["sort", "stream", "long"], size)]


def make_votes() -> dict[str, np.ndarray]:
    """Columns of a small stream in time order: votes as codes, true and verified classes, streams."""
    rng = np.random.default_rng(7)
    truth = rng.integers(0, 2, ROWS)
    right = rng.random((ROWS, 5)) < np.where(np.arange(ROWS)[:, None] < ROWS // 2, [0.9, 0.9, 0.8, 0.6, 0.6], 0.7)
    codes = np.where(right, truth[:, None], 1 - truth[:, None])
    codes[rng.random(codes.shape) < 0.2] = -1
    codes[:, 0] = np.maximum(codes[:, 0], 0)  # a row without votes would not be in a long file
    codes[0] = [0, 1, 0, 1, 1]  # the first line of a long file names the first labeler, and so on
    verified = np.where(rng.random(ROWS) < 0.2, truth, -1)
    site = np.where(rng.random(ROWS) < 0.5, "west", "east")
    return {"codes": codes.astype(np.int8), "truth": truth, "verified": verified, "site": site}


VOTES = make_votes()


def order_of(rows: np.ndarray, shuffled: bool) -> np.ndarray:
    """The order of rows in a file; the first one stays, so that labelers have one order."""
    return np.r_[rows[:1], np.random.default_rng(1).permutation(rows[1:])] if shuffled else rows


def wide_table(rows: np.ndarray, chosen: set[str]) -> pa.Table:
    """The rows as a table with a column for each labeler, and the columns that the options name."""
    columns: dict[str, Any] = {"id": [f"m{row}" for row in rows]}
    if chosen & {"time", "sort"}:
        columns["at"] = rows
    if chosen & {"stream", "only"}:
        columns["site"] = VOTES["site"][rows]
    if "gold" in chosen:
        columns["truth"] = [CLASSES[code] for code in VOTES["truth"][rows]]
    if "verified" in chosen:
        columns["seen"] = [None if code < 0 else CLASSES[code] for code in VOTES["verified"][rows]]
    if "drop" in chosen:
        columns["note"] = ["whatever"] * len(rows)
    for place, name in enumerate(LABELERS):
        columns[name] = [None if code < 0 else CLASSES[code] for code in VOTES["codes"][rows, place]]
    return pa.table(columns)


def long_table(rows: np.ndarray, chosen: set[str]) -> pa.Table:
    """The same with a line for each vote."""
    row_of, who = np.nonzero(VOTES["codes"][rows] >= 0)
    columns: dict[str, Any] = {name: array.take(row_of) for name, array in zip_columns(wide_table(rows, chosen))}
    columns["at"] = rows[row_of]
    columns["who"] = [LABELERS[place] for place in who]
    columns["vote"] = [CLASSES[code] for code in VOTES["codes"][rows[row_of], who]]
    return pa.table(columns)


def zip_columns(found: pa.Table) -> list[tuple[str, Any]]:
    return [(name, found[name]) for name in found.column_names if name not in LABELERS]


def write_file(path: Path, rows: np.ndarray, chosen: set[str]) -> None:
    rows = order_of(rows, "sort" in chosen)
    found = long_table(rows, chosen) if "long" in chosen else wide_table(rows, chosen)
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(found, path)
        return
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(found.column_names)
        writer.writerows([["" if cell is None else cell for cell in row.values()] for row in found.to_pylist()])


def run_label(folder: Path, chosen: set[str]) -> tuple[pa.Table, list[str]]:
    """The labels that the command writes, and what it prints, for one file or for two with a state."""
    ending = ".csv" if "csv" in chosen else ".parquet"
    halves = np.split(np.arange(ROWS), [ROWS // 2]) if "state" in chosen else [np.arange(ROWS)]
    found, printed = [], []
    for number, rows in enumerate(halves):
        votes, labels = folder / f"votes{number}{ending}", folder / f"labels{number}.parquet"
        write_file(votes, rows, chosen)
        arguments = [
            "label",
            str(votes),
            "-o",
            str(labels),
            *(part for name in OPTIONS if name in chosen for part in OPTIONS[name]),
        ]
        if not chosen & {"id", "long"}:
            arguments += ["--keep", "id"]
        if "state" in chosen:
            arguments += ["--state", str(folder / "state.npz")]
        if "report" in chosen:
            arguments += ["--report", str(folder / f"report{number}.json")]
        done = CliRunner().invoke(cli.app, arguments)
        if isinstance(done.exception, DriftvoteError):
            raise done.exception
        assert done.exit_code == 0, f"{done.output}\n{done.exception!r}"
        found.append(pa.parquet.read_table(labels))
        printed.append(done.stdout)
    return pa.concat_tables(found), printed


def expected_rows(chosen: set[str]) -> list[tuple[np.ndarray, LabeledStream]]:
    """Row numbers and labels of each stream, by the library."""
    streams = [np.arange(ROWS)]
    if chosen & {"stream", "only"}:
        names = ["west"] if "only" in chosen else ["west", "east"]
        streams = [np.flatnonzero(VOTES["site"] == name) for name in names]
    found = []
    for rows in streams:
        values = [[None if code < 0 else CLASSES[code] for code in row] for row in VOTES["codes"][rows]]
        keys: dict[str, Any] = {}
        if "verified" in chosen:
            keys["verified"] = [None if code < 0 else CLASSES[code] for code in VOTES["verified"][rows]]
        found.append((rows, make_model(chosen).label_stream(values, **keys)))
    return found


def make_model(chosen: set[str]) -> LabelModel:
    if "model" in chosen:
        return FixedWindowLabelModel(window=64, classes=CLASSES, labelers=LABELERS)
    settings = {"beta": 0.4} if "set" in chosen else {}
    return AdaptiveLabelModel(classes=CLASSES, labelers=LABELERS, **settings)


@pytest.mark.parametrize("names", [*PAIRS, *TRIPLES, *VERIFIED], ids=lambda names: "+".join(names) or "none")
def test_options_mean_the_same_together(tmp_path, monkeypatch, names):
    monkeypatch.setattr(Table, "batch_rows", 53)  # several batches
    monkeypatch.setattr(long, "BATCH", 47)
    chosen = set(names)
    reasons = [sentence for pair, sentence in REFUSED.items() if set(pair) <= chosen]
    if reasons:
        with pytest.raises(DriftvoteError) as refused:
            run_label(tmp_path, chosen)
        assert any(reason in str(refused.value) for reason in reasons), refused.value
        assert not list(tmp_path.glob("labels*")), "nothing is written"
        return
    found, printed = run_label(tmp_path, chosen)
    check_labels(found, chosen)
    check_summary(printed, chosen)
    if "report" in chosen:
        for path in tmp_path.glob("report*.json"):
            assert [labeler["name"] for labeler in json.loads(path.read_text())["labelers"]] == LABELERS


def check_labels(found: pa.Table, chosen: set[str]) -> None:
    place = {name: number for number, name in enumerate(found["id"].to_pylist())}
    assert len(place) == found.num_rows
    by_stream = expected_rows(chosen)
    assert found.num_rows == sum(len(rows) for rows, _ in by_stream)
    for rows, out in by_stream:
        places = [place[f"m{row}"] for row in rows]
        assert chosen & {"stream"} or places == sorted(places), "in time order"
        mine = found.take(places)
        assert mine["label"].to_pylist() == out.labels.tolist()
        np.testing.assert_array_equal(mine["probability"].to_numpy(), out.probability)
        np.testing.assert_array_equal(mine["window"].to_numpy(), out.windows)
        if "verified" in chosen:
            verified = VOTES["verified"][rows]
            assert (verified >= 0).any()
            for label, probability, code in zip(mine["label"].to_pylist(), out.probability, verified, strict=True):
                assert code < 0 or (label, probability) == (CLASSES[code], 1.0)
        for column, name in enumerate(LABELERS):
            if "accuracies" in chosen:
                np.testing.assert_array_equal(mine[f"accuracy_{name}"].to_numpy(), out.accuracies[:, column])
            if "weights" in chosen:
                weights = out.weights[:, column]
                np.testing.assert_array_equal(mine[f"weight_{name}"].to_numpy(), weights)


def check_summary(printed: list[str], chosen: set[str]) -> None:
    codes = np.concatenate([out.codes for _, out in expected_rows(chosen)])
    rows = np.concatenate([rows for rows, _ in expected_rows(chosen)])
    if "json" not in chosen:
        assert all(text.count("labels   ") == 1 and ("gold     " in text) == ("gold" in chosen) for text in printed)
        return
    summaries = [json.loads(text) for text in printed]
    assert sum(summary["labels"]["spam"] for summary in summaries) == (codes == 1).sum()
    if "gold" in chosen:
        scored = sum(summary["gold"]["accuracy"] * summary["gold"]["rows"] for summary in summaries)
        assert scored == pytest.approx((codes == VOTES["truth"][rows]).sum() + (codes < 0).sum() / 2)
    if "stream" in chosen and "only" not in chosen:
        assert {summary["streams"] for summary in summaries} == {2}
