"""`driftvote compare`: several models on one file, side by side."""

from __future__ import annotations

import json
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from driftvote.cli.comparison import Comparison
from driftvote.cli.inputs import Votes, votes_in
from driftvote.cli.labeling import Labeling, Streams
from driftvote.cli.options import Force, Given, Json, Quiet, Settings, listed, takes_votes
from driftvote.cli.outputs import Columns, most_likely
from driftvote.cli.places import check_places
from driftvote.cli.progress import rows_done
from driftvote.cli.threads import ahead
from driftvote.cli.which_model import make_model
from driftvote.errors import DriftvoteError
from driftvote.files.atomic import WholeFiles
from driftvote.files.formats import format_of
from driftvote.files.writers import ended, writer_for
from driftvote.models import LabelModel


@takes_votes
def compare(
    given: Given,
    windows: Annotated[str, typer.Option("--windows", help="Fixed windows to compare with: 256,4096.")] = "1024",
    settings: Settings = None,
    out: Annotated[
        str | None,
        typer.Option("--out", "-o", help="Also write the labels of every model, row by row.", show_default=False),
    ] = None,
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Label a file with the adaptive model, a majority vote, all the past and fixed windows, and compare.

    Labels are compared with each other, and with the truth where --gold names a column of it.

    Example: driftvote compare votes.csv --gold truth --windows 256,4096
    """
    specs = ["adaptive", "majority", "all-past", *(f"window:{_size(size)}" for size in dict.fromkeys(listed(windows)))]
    check_places(given.file, {"--out": out}, force)
    if given.gold_for_learning is not None:
        raise DriftvoteError("--gold-for-learning goes with label and report; here nothing is learned from the truth")
    with votes_in(given) as votes, WholeFiles() as files:
        models = {spec: make_model(spec, votes.form, settings if spec == "adaptive" else None) for spec in specs}
        result = _run(votes, models, files, out, quiet)
    summary = {**votes.describe(), **result.as_dict()}
    if as_json:
        typer.echo(json.dumps(summary, indent=2, default=str))
    elif not quiet:
        for note in votes.notes:
            typer.echo(note)
        typer.echo(f"read     {votes.table.shown}: {result.rows:,} rows; classes {votes.how_read()}")
        _show(result)


def _size(text: str) -> int:
    if not text.isdigit() or not int(text):
        raise DriftvoteError(f"--windows: {text!r} is not a number of rows; write for example 256,4096")
    return int(text)


def _run(votes: Votes, models: dict[str, LabelModel], files: WholeFiles, out: str | None, quiet: bool) -> Comparison:
    result = Comparison(list(models), [str(value) for value in votes.form.classes])
    writer = None if out is None else writer_for(format_of(out, None, "--out")[0], files.open(out), out)
    columns = Columns(votes.form, (), 0.0)
    runs = {
        spec: Labeling(
            Streams(model.clone, passing=votes.many and votes.given.sort),
            votes.table,
            votes.roles.time or None,
            votes.many,
            frozenset(),
        )
        for spec, model in models.items()
    }
    with rows_done("comparing", quiet) as listen, ended(writer, out):
        for rows in ahead(votes.batches(writer is None or writer.typed)):
            answers = {spec: labeling.label(rows) for spec, labeling in runs.items()}
            result.add(np.stack([answer.codes for answer in answers.values()]), rows.gold)
            if writer is not None:
                ours: dict[str, Any] = {}
                for spec, answer in answers.items():
                    ours[f"label_{spec}"] = columns.labels(answer.codes)
                    ours[f"probability_{spec}"] = most_likely(answer.proba)
                writer.write(columns.beside(rows.kept, ours))
            listen(result.rows, votes.table.done())
    return result


def _show(result: Comparison) -> None:
    """Two tables: how good, and how alike."""
    console = Console()
    scored = bool(result.known)
    table = Table("labels by", "tied rows", *(["right", "macro F1"] if scored else []), title=_title(result))
    for line in result.lines():
        figures = [f"{line['accuracy']:.2%}", f"{line['f1']:.3f}"] if scored else []
        style = "bold" if line["model"] == "adaptive" else None
        table.add_row(line["model"], f"{line['tied'] / max(1, result.rows):.2%}", *figures, style=style)
    console.print(table)
    alike = Table("same label", *result.models, title="share of rows with the same label")
    for name, row in zip(result.models, result.agreement(), strict=True):
        alike.add_row(name, *(f"{value:.2%}" for value in row))
    console.print(alike)


def _title(result: Comparison) -> str:
    if not result.known:
        return "no --gold column: labels are compared with each other"
    return f"against gold on {result.known:,} rows (a tied row counts 1/{len(result.classes)})"
