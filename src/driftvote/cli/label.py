"""`driftvote label`: votes in, labels out."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from driftvote.cli.inputs import Votes, votes_in
from driftvote.cli.labeling import Answer, Labeling, Streams
from driftvote.cli.options import Force, Given, Json, Model, Quiet, Settings, takes_votes
from driftvote.cli.outputs import Columns
from driftvote.cli.places import check_places
from driftvote.cli.progress import rows_done
from driftvote.cli.reporting import Reporting
from driftvote.cli.saved import Saved, mark_of, read_saved, refuse_again, refuse_other_settings, write_saved
from driftvote.cli.threads import Behind, ahead
from driftvote.cli.totals import Totals
from driftvote.cli.which_model import make_model
from driftvote.errors import DriftvoteError
from driftvote.files.atomic import WholeFiles
from driftvote.files.formats import format_of
from driftvote.files.rows import VoteRows
from driftvote.files.writers import Writer, ended, writer_for

REVIEW_BELOW = 0.7
ReviewBelow = Annotated[
    float,
    typer.Option("--review-below", min=0.0, max=1.0, help="A less probable label needs review; a tie always does."),
]


@dataclass(frozen=True)
class Wanted:
    """What a run is to make, besides learning."""

    out: str | None = None
    to: str | None = None
    report: Path | None = None
    state: Path | None = None
    again: bool = False
    force: bool = False
    model: str = "adaptive"
    settings: tuple[str, ...] = ()
    review_below: float = REVIEW_BELOW
    per_labeler: frozenset[str] = frozenset()
    prefix: str = ""
    quiet: bool = False


@takes_votes
def label(
    given: Given,
    out: Annotated[
        str, typer.Option("--out", "-o", help="File for the labels, format by ending; - is standard output.")
    ],
    report: Annotated[
        Path | None, typer.Option("--report", help="Also write a report: .html or .json.", show_default=False)
    ] = None,
    state: Annotated[
        Path | None, typer.Option("--state", help="Go on from this state, and save it again.", show_default=False)
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Learn from a file that the state knows already.")] = False,
    model: Model = "adaptive",
    settings: Settings = None,
    review_below: ReviewBelow = REVIEW_BELOW,
    accuracies: Annotated[
        bool, typer.Option("--accuracies", help="Add the accuracy of each labeler, row by row.")
    ] = False,
    weights: Annotated[bool, typer.Option("--weights", help="Add the weight of each labeler, row by row.")] = False,
    prefix: Annotated[str, typer.Option("--prefix", help="Put before the names of results.", show_default=False)] = "",
    to: Annotated[
        str | None, typer.Option("--to", help="Format of the labels, if the name does not tell.", show_default=False)
    ] = None,
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Label the rows of a file: a row for each item in time order, a column for each labeler, empty cells for no vote.

    Example: driftvote label votes.csv -o labels.parquet --report report.html
    """
    per_labeler = {name for name, asked in (("accuracies", accuracies), ("weights", weights)) if asked}
    wanted = Wanted(
        out, to, report, state, again, force, model, tuple(settings or ()), review_below, frozenset(per_labeler),
        prefix, quiet,
    )  # fmt: skip
    summary, lines = run(given, wanted)
    if as_json:
        typer.echo(json.dumps(summary, indent=2, default=str), err=out == "-")
    elif not quiet:
        typer.echo("\n".join(lines), err=out == "-")


def run(given: Given, wanted: Wanted) -> tuple[dict[str, Any], list[str]]:
    """Label a file; the summary, for machines and for people.

    Everything is written beside its place and on disk before the first file appears. Then labels, report and state
    appear in this order: a crash in between leaves labels without the state that knows of them, and the same command
    (with --force) makes both again from the same beginning. Never the other way round.
    """
    places = {"--out": wanted.out, "--report": wanted.report}
    check_places(given.file, places, wanted.force, wanted.state)
    many = given.stream is not None and given.only is None
    reporting = Reporting(wanted.report, many, wanted.review_below)
    saved = Saved(many=many) if wanted.state is None else read_saved(wanted.state, many)
    form = next(iter(saved.models.values()))._form if saved.models else None
    with ExitStack() as stack:
        votes = stack.enter_context(votes_in(given, form))
        if wanted.state is not None:
            mark = mark_of(votes.table.path)
            if not wanted.again:
                refuse_again(saved, mark, wanted.state, votes.table.shown)
            saved.last_input = {"mark": mark, "file": votes.table.shown, "output": wanted.out}
        streams = open_streams(votes, wanted, saved)
        files = stack.enter_context(WholeFiles())
        writer, columns = _open_output(files, votes, wanted)
        reporting.settings = {"model": wanted.model, **_shown_settings(streams)}
        totals = _label_all(votes, wanted, streams, writer, columns, reporting)
        summary = totals.as_dict(streams, {**places, "--state": wanted.state})
        reporting.write(files)
        if wanted.state is not None:
            saved.models = streams.models
            write_saved(files.open(wanted.state), saved)
    return summary, [*votes.notes, *totals.lines(summary)]


def open_streams(votes: Votes, wanted: Wanted, saved: Saved) -> Streams:
    """The models of the state, and new ones where it has none."""

    def make() -> Any:
        return make_model(wanted.model, votes.form, wanted.settings)

    fresh = make()  # wrong settings are refused before anything is read
    if votes.roles.verified is not None:
        fresh._learner()  # and so is a model that does not learn from verified labels
    if saved.models and wanted.state is not None and (wanted.model != "adaptive" or wanted.settings):
        refuse_other_settings(saved, fresh, wanted.model, wanted.state)
    return Streams(make, dict(saved.models), passing=votes.many and votes.given.sort and wanted.state is None)


def _shown_settings(streams: Streams) -> dict[str, Any]:
    """The settings that have a value, without those that only say how votes are written."""
    params = streams.example().get_params()
    hidden = ("n_classes", "votes", "classes", "abstain", "labelers")
    return {key: value for key, value in params.items() if value is not None and key not in hidden}


def _open_output(files: WholeFiles, votes: Votes, wanted: Wanted) -> tuple[Writer | None, Columns]:
    columns = Columns(votes.form, votes.roles.kept, wanted.review_below, wanted.prefix)
    if wanted.out is None:
        return None, columns
    if wanted.out == "-":
        kind, file = wanted.to or "csv", sys.stdout.buffer
        return writer_for(kind, file, "standard output"), columns
    kind, squeezed = format_of(wanted.out, wanted.to, "--to")
    if squeezed:
        raise DriftvoteError(
            f"{wanted.out}: compressed text is read, not written; name it .parquet, or compress it afterwards"
        )
    return writer_for(kind, files.open(wanted.out), wanted.out), columns


def _label_all(
    votes: Votes, wanted: Wanted, streams: Streams, writer: Writer | None, columns: Columns, reporting: Reporting
) -> Totals:
    """The loop: one thread reads ahead, this one labels, another writes behind."""
    totals = Totals(votes)
    labeling = Labeling(streams, votes.table, votes.roles.time or None, votes.many, wanted.per_labeler)
    typed = writer is None or writer.typed

    def finish(item: tuple[VoteRows, Answer]) -> None:
        rows, answer = item
        batch, review = columns.batch(answer, rows.kept)
        if writer is not None:
            writer.write(batch)
        totals.add(answer, review, rows.gold)

    with rows_done("labeling", wanted.quiet) as listen, ended(writer, wanted.out), _behind(finish) as behind:
        done = 0
        for rows in ahead(votes.batches(typed)):
            answer = labeling.label(rows)
            reporting.add(votes, rows, answer)
            behind.put((rows, answer))
            done += len(rows)
            listen(done, votes.table.done())
    return totals


@contextmanager
def _behind(work: Any) -> Iterator[Behind]:
    behind = Behind(work)
    try:
        yield behind
    except BaseException:
        behind.abandon()
        raise
    behind.finish()
