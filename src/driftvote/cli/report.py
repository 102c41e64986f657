"""`driftvote report`: a page about a file of votes, without writing its labels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from driftvote.cli.label import REVIEW_BELOW, ReviewBelow, Wanted, run
from driftvote.cli.options import Force, Given, Json, Model, Quiet, Settings, takes_votes


@takes_votes
def report(
    given: Given,
    out: Annotated[Path, typer.Option("--out", "-o", help="The report: .html, or .json for the same content.")],
    model: Model = "adaptive",
    settings: Settings = None,
    review_below: ReviewBelow = REVIEW_BELOW,
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Label the rows of a file and show how it went on one page that works offline.

    Example: driftvote report votes.csv -o report.html --gold truth
    """
    wanted = Wanted(
        report=out, force=force, model=model, settings=tuple(settings or ()), review_below=review_below, quiet=quiet
    )
    summary, lines = run(given, wanted)
    if as_json:
        typer.echo(json.dumps(summary, indent=2, default=str))
    elif not quiet:
        typer.echo("\n".join(lines))
