"""`driftvote convert`: votes from one format to another, and between wide and long."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from driftvote.cli.inputs import Votes, votes_in
from driftvote.cli.options import Force, Given, Json, Quiet, takes_votes
from driftvote.cli.places import check_places
from driftvote.cli.progress import rows_done
from driftvote.cli.threads import ahead
from driftvote.cli.vote_tables import ArrayVotes, LongVotes, WideVotes
from driftvote.errors import DriftvoteError
from driftvote.files.atomic import WholeFiles
from driftvote.files.formats import format_of
from driftvote.files.writers import ended


@takes_votes
def convert(
    given: Given,
    out: Annotated[str, typer.Argument(help="File to write; the ending is the format.")],
    long: Annotated[bool, typer.Option("--long", help="Write one vote a line.")] = False,
    to: Annotated[
        str | None, typer.Option("--to", help="Format to write, if the name does not tell.", show_default=False)
    ] = None,
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Convert votes between formats, and between one column a labeler and one vote a line.

    Example: driftvote convert votes.csv votes.parquet
    """
    check_places(given.file, {"output": out}, force)
    if given.gold_for_learning is not None:
        raise DriftvoteError("--gold-for-learning goes with label and report; here nothing is learned from the truth")
    kind, squeezed = format_of(out, to, "--to")
    if squeezed:
        raise DriftvoteError(
            f"{out}: compressed text is read, not written; name it .parquet, or compress it afterwards"
        )
    if long and kind in ("npy", "npz"):
        raise DriftvoteError(f"{out}: one vote a line is text or Parquet; name it .csv, .jsonl or .parquet")
    with votes_in(given) as votes, WholeFiles() as files:
        sink = _sink(votes, kind, files.open(out), long)
        rows, cells = _copy(votes, sink, out, quiet)
    summary: dict[str, Any] = {**votes.describe(), "rows": rows, "votes": cells, "outputs": {"output": out}}
    if as_json:
        typer.echo(json.dumps(summary, indent=2, default=str))
    elif not quiet:
        for note in votes.notes:
            typer.echo(note)
        typer.echo(f"read     {votes.table.shown}: {rows:,} rows, {cells:,} votes; classes {votes.how_read()}")
        for line in sink.notes():
            typer.echo(line)
        typer.echo(f"wrote    {out}")


def _sink(votes: Votes, kind: str, file: Any, long: bool) -> Any:
    if kind in ("npy", "npz"):
        return ArrayVotes(votes.form, kind, file, votes.roles.gold)
    return (LongVotes if long else WideVotes)(votes, kind, file)


def _copy(votes: Votes, sink: Any, out: str, quiet: bool) -> tuple[int, int]:
    done = cells = 0
    with rows_done("converting", quiet) as listen, ended(sink, out):
        for rows in ahead(votes.batches(sink.typed)):
            sink.write(rows)
            done += len(rows)
            cells += int((rows.codes >= 0).sum())
            listen(done, votes.table.done())
    return done, cells
