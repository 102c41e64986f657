"""Votes written to files of every kind, and the command line called in this process."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
from typer.testing import CliRunner

from driftvote import AdaptiveLabelModel, cli

LABELERS = ["regex", "model", "crowd", "old", "new"]
TEXT = ["ham", "scam", "spam"]


def invoke(*arguments: object, **keys: Any) -> Any:
    """The command as a user types it; anything but success is shown."""
    done = CliRunner().invoke(cli.app, [str(argument) for argument in arguments], **keys)
    assert done.exit_code == 0, f"{done.output}\n{done.exception!r}"
    return done


def cells_of(codes: np.ndarray, classes: list[Any] | None) -> list[list[Any]]:
    """Votes as values, None where nobody voted."""
    return [[None if c < 0 else classes[c] if classes else int(c) for c in row] for row in codes]


def table_of(codes: np.ndarray, classes: list[Any] | None) -> pa.Table:
    cells = cells_of(codes, classes)
    columns: dict[str, Any] = {"id": [f"m{i}" for i in range(len(codes))], "at": list(range(len(codes)))}
    columns |= {name: [row[place] for row in cells] for place, name in enumerate(LABELERS)}
    return pa.table(columns)


def write_delimited(path: Path, table: pa.Table, delimiter: str = ",") -> None:
    with gzip.open(path, "wt", newline="") if path.suffix == ".gz" else path.open("w", newline="") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(table.column_names)
        writer.writerows([["" if cell is None else cell for cell in row.values()] for row in table.to_pylist()])


def write_votes(path: Path, codes: np.ndarray, classes: list[Any] | None = None) -> None:
    """The votes in the format that the name asks for."""
    table, name = table_of(codes, classes), path.name
    if name.endswith((".csv", ".csv.gz")):
        write_delimited(path, table)
    elif name.endswith(".tsv"):
        write_delimited(path, table, "\t")
    elif name.endswith(".jsonl"):
        rows = table.to_pylist()  # the first names every key, so that the labelers are in order
        lines = [json.dumps({k: v for k, v in row.items() if not i or v is not None}) for i, row in enumerate(rows)]
        path.write_text("\n".join(lines) + "\n")
    elif name.endswith(".parquet"):
        pyarrow.parquet.write_table(table, path, row_group_size=700)
    elif name.endswith(".feather"):
        pyarrow.feather.write_feather(table, path)
    elif name.endswith(".arrow"):
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=500)
    elif name.endswith(".npy"):
        np.save(path, codes)
    else:
        np.savez(path, votes=codes, labelers=LABELERS, classes=classes or [0, 1, 2], id=np.arange(len(codes)))


def expected(codes: np.ndarray, classes: list[Any] | None = None, **settings: Any) -> Any:
    """What `label_stream` says of the same votes in memory."""
    declared: dict[str, Any] = {"classes": classes} if classes else {"n_classes": 3}
    return AdaptiveLabelModel(**declared, **settings).label_stream(codes if not classes else _values(codes, classes))


def _values(codes: np.ndarray, classes: list[Any]) -> list[list[Any]]:
    return cells_of(codes, classes)


def read_back(path: Path) -> pa.Table:
    if path.suffix in (".csv", ".tsv"):
        options = pa.csv.ParseOptions(delimiter="\t" if path.suffix == ".tsv" else ",")
        return pa.csv.read_csv(path, parse_options=options)
    if path.suffix == ".jsonl":
        return pa.Table.from_pylist([json.loads(line) for line in path.read_text().splitlines()])
    if path.suffix == ".parquet":
        return pa.parquet.read_table(path)
    if path.suffix == ".npz":
        with np.load(path) as archive:
            return pa.table({name: archive[name].tolist() for name in archive.files})
    with pa.OSFile(str(path)) as file:
        return pa.ipc.open_file(file).read_all()
