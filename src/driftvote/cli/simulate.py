"""`driftvote simulate`: votes of labelers that drift in a known way, with the true classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import numpy as np
import typer

from driftvote.cli.options import Force, Json, Quiet, To, print_summary, split_list
from driftvote.cli.pipeline import ResultColumns, check_paths
from driftvote.errors import DriftvoteError
from driftvote.files.atomic import WholeFiles
from driftvote.files.numpy import CLASSES, LABELERS, VOTES
from driftvote.files.table import BATCH, format_of
from driftvote.files.write import Writer, open_writer
from driftvote.streams import SCENARIOS, SimulatedStream, scenario
from driftvote.votes import declare_votes

_NAMES = ", ".join(SCENARIOS)


def simulate(
    name: Annotated[str, typer.Argument(metavar="SCENARIO", help=f"One of: {_NAMES}.")],
    out: Annotated[str, typer.Option("--out", "-o", help="File for votes and truth; the ending is the format.")],
    rows: Annotated[int | None, typer.Option("--rows", min=1, help="Length of the stream.", show_default=False)] = None,
    n_labelers: Annotated[
        int | None, typer.Option("--n-labelers", min=3, help="Number of labelers.", show_default=False)
    ] = None,
    n_classes: Annotated[
        int | None, typer.Option("--n-classes", min=2, help="Number of classes.", show_default=False)
    ] = None,
    classes: Annotated[
        str | None, typer.Option("--classes", help="Names of the classes: ham,spam.", show_default=False)
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the random votes.")] = 0,
    accuracies: Annotated[
        str | None,
        typer.Option("--accuracies", help="Also write the true accuracies of each row.", show_default=False),
    ] = None,
    to: To = None,
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Simulate a stream of votes whose drift is known: columns row, truth, and one for each labeler.

    Example: driftvote simulate swap -o votes.csv --classes ham,spam
    """
    import pyarrow as pa

    names = split_list(classes or "")
    if names and n_classes not in (None, len(names)):
        raise DriftvoteError(f"--n-classes {n_classes} and --classes with {len(names)} names; pass one of them")
    check_paths("-", {"--out": out, "--accuracies": accuracies}, force)
    kind = format_of(out, to, "--to")[0]
    stream = scenario(name, n_rows=rows, n_labelers=n_labelers, n_classes=len(names) or n_classes, seed=seed)
    if names and len(names) != stream.n_classes:
        raise DriftvoteError(f"{name} has {stream.n_classes} classes; name all of them with --classes")
    with WholeFiles() as files:
        _write_votes(stream, names, kind, files.open(out))
        if accuracies is not None:
            writer = open_writer(format_of(accuracies, None, "--accuracies")[0], files.open(accuracies), accuracies)
            figures = {f"labeler_{place}": column.copy() for place, column in enumerate(stream.accuracies.T)}
            _write_table(writer, figures, pa.array)
    drift = SCENARIOS[name].drift
    summary: dict[str, Any] = {
        "scenario": name, "drift": drift, "rows": len(stream.truth), "labelers": stream.votes.shape[1],
        "classes": list(names or range(stream.n_classes)), "borders": list(stream.borders), "seed": seed,
        "outputs": {"--out": out} | ({"--accuracies": accuracies} if accuracies else {}),
    }  # fmt: skip
    lines = [
        f"made     {name}: {len(stream.truth):,} rows x {stream.votes.shape[1]} labelers. {drift}",
        f"wrote    {out}; next: driftvote label {out} --id row --gold truth -o labels.csv",
    ]
    print_summary(summary, lines, as_json, quiet)


def _write_votes(stream: SimulatedStream, names: tuple[str, ...], kind: str, file: Any) -> None:
    labelers = [f"labeler_{place}" for place in range(stream.votes.shape[1])]
    if kind == "npy":
        np.save(file, stream.votes)
    elif kind == "npz":
        columns: dict[str, Any] = {"row": np.arange(len(stream.truth)), "truth": stream.truth, VOTES: stream.votes}
        columns |= {LABELERS: labelers, CLASSES: list(names or range(stream.n_classes))}
        np.savez(file, **columns)
    else:
        form = declare_votes(classes=names) if names else declare_votes("snorkel", stream.n_classes)
        to_values = ResultColumns(form).votes
        columns = dict(zip(labelers, stream.votes.T, strict=True)) | {"truth": stream.truth}
        _write_table(open_writer(kind, file), columns, to_values)


def _write_table(writer: Writer, columns: dict[str, Any], convert: Callable[[Any], Any]) -> None:
    """Write columns in batches, beside the number of the row."""
    import pyarrow as pa

    rows = len(next(iter(columns.values())))
    for start in range(0, rows, BATCH):
        stop = min(rows, start + BATCH)
        batch = {name: convert(values[start:stop]) for name, values in columns.items()}
        writer.write(pa.RecordBatch.from_pydict({"row": pa.array(np.arange(start, stop)), **batch}))
    writer.close()
