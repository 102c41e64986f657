"""`driftvote check`: has something changed, are too many rows doubtful? The exit code says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from driftvote.cli.label import REVIEW_BELOW, ReviewBelow
from driftvote.cli.options import Given, Json, Model, Quiet, Settings, takes_votes

DRIFT = 3
DOUBTFUL = 4
LAST = 1000
MOST_DOUBTFUL = 0.25


@takes_votes
def check(
    given: Given,
    last: Annotated[int, typer.Option("--last", min=1, help="Look for drift and doubt in so many last rows.")] = LAST,
    most_doubtful: Annotated[
        float, typer.Option("--most-doubtful", min=0.0, max=1.0, help="Share of these rows that may need review.")
    ] = MOST_DOUBTFUL,
    review_below: ReviewBelow = REVIEW_BELOW,
    state: Annotated[
        Path | None, typer.Option("--state", help="Begin with this state; it is left as it is.", show_default=False)
    ] = None,
    metrics: Annotated[
        Path | None,
        typer.Option("--metrics", help="Also write metrics for Prometheus to this file (.prom).", show_default=False),
    ] = None,
    model: Model = "adaptive",
    settings: Settings = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Check a file of votes, for CI: exit code 0 if all is well, 3 for drift in the last rows, 4 for too much doubt.

    Example: driftvote check votes.csv --last 1000
    """
    from driftvote.cli.checking import Limits, checked, shown
    from driftvote.cli.label import Wanted

    wanted = Wanted(state=state, model=model, settings=tuple(settings or ()), review_below=review_below, quiet=quiet)
    found: dict[str, Any] = checked(given, wanted, Limits(last, most_doubtful), metrics)
    found["exit_code"] = DRIFT if found["drift"] else DOUBTFUL if found["too_doubtful"] else 0
    if as_json:
        typer.echo(json.dumps(found, indent=2, default=str))
    elif not quiet:
        typer.echo("\n".join(shown(found)))
    raise typer.Exit(found["exit_code"])
