"""`driftvote watch`: votes come in line by line, answers go out line by line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from driftvote.cli.label import REVIEW_BELOW, ReviewBelow
from driftvote.cli.options import Model, Quiet, Settings

_VOTES = "How votes are written"
_ANSWERS = "Answers"
_STATE = "State"
_TELL = "Telling"


def _option(*names: str, help: str, panel: str, default: bool = False, **more: Any) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=panel, show_default=default, **more)


def watch(
    classes: Annotated[
        str | None, _option("--classes", help="Class values in order: safe,unsafe.", panel=_VOTES)
    ] = None,
    abstain: Annotated[
        str | None, _option("--abstain", help="Value that means no vote; null always does.", panel=_VOTES)
    ] = None,
    votes: Annotated[
        str | None,
        _option("--votes", help="snorkel (0..K-1, -1 is no vote) or signed (-1, +1, 0 is no vote).", panel=_VOTES),
    ] = None,
    n_classes: Annotated[
        int | None, _option("--n-classes", help="Number of classes with --votes snorkel.", panel=_VOTES)
    ] = None,
    labelers: Annotated[
        str | None, _option("--labelers", help="Who may vote: a,b,c. Default: whoever is named.", panel=_VOTES)
    ] = None,
    unknown: Annotated[
        str,
        _option("--unknown", help="A vote without a meaning: refuse the line, or abstain.", panel=_VOTES, default=True),
    ] = "refuse",
    late: Annotated[
        str,
        _option(
            "--late", help="A line whose time goes back: take it as it comes, or refuse.", panel=_VOTES, default=True
        ),
    ] = "take",
    arrival: Annotated[
        bool, _option("--arrival", help="Lines without a time get the time at which they came.", panel=_VOTES)
    ] = False,
    keep_ids: Annotated[
        bool, _option("--keep-ids", help="Remember ids, so that lines may verify rows by id.", panel=_VOTES)
    ] = False,
    model: Model = "adaptive",
    settings: Settings = None,
    review_below: ReviewBelow = REVIEW_BELOW,
    proba: Annotated[bool, _option("--proba", help="Add the probability of each class.", panel=_ANSWERS)] = False,
    accuracies: Annotated[
        bool, _option("--accuracies", help="Add the accuracy of each labeler.", panel=_ANSWERS)
    ] = False,
    weights: Annotated[bool, _option("--weights", help="Add the weight of each labeler.", panel=_ANSWERS)] = False,
    explain: Annotated[
        bool, _option("--explain", help="Add each labeler's part in the label.", panel=_ANSWERS)
    ] = False,
    state: Annotated[
        Path | None, _option("--state", help="Go on from this state, and save it now and then.", panel=_STATE)
    ] = None,
    save_every: Annotated[
        float, _option("--save-every", min=0.0, help="Seconds between two saves.", panel=_STATE, default=True)
    ] = 10.0,
    save_lines: Annotated[
        int | None, _option("--save-lines", min=1, help="Save after so many lines, too.", panel=_STATE)
    ] = None,
    skip_seen: Annotated[
        bool,
        _option("--skip-seen", help="The input begins anew: skip the lines that the state has taken.", panel=_STATE),
    ] = False,
    events: Annotated[
        Path | None, _option("--events", help="Append drift events to this file as JSON lines.", panel=_TELL)
    ] = None,
    webhook: Annotated[
        str | None,
        _option("--webhook", envvar="DRIFTVOTE_WEBHOOK", help="Post drift events to this URL as JSON.", panel=_TELL),
    ] = None,
    metrics: Annotated[
        Path | None, _option("--metrics", help="Write metrics for Prometheus to this file (.prom).", panel=_TELL)
    ] = None,
    metrics_every: Annotated[
        float, _option("--metrics-every", min=0.0, help="Seconds between two such files.", panel=_TELL, default=True)
    ] = 10.0,
    metrics_port: Annotated[
        int | None, _option("--metrics-port", min=0, max=65535, help="Serve metrics on this port.", panel=_TELL)
    ] = None,
    metrics_address: Annotated[
        str, _option("--metrics-address", help="Address to serve metrics at.", panel=_TELL, default=True)
    ] = "127.0.0.1",
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 2 if a line could not be taken.")] = False,
    quiet: Quiet = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON, on standard error.")] = False,
) -> None:
    """Label lines as they come: JSON votes on standard input, a JSON answer for each at once on standard output.

    Example: driftvote watch --classes safe,unsafe --state judges.npz --events events.jsonl < votes.jsonl
    """
    import os

    from driftvote.cli.watching import Watched, run, shown_summary
    from driftvote.live.answers import Answers
    from driftvote.live.loop import Habits

    wanted = Watched(
        Answers(review_below, proba, accuracies, weights, explain), Habits(late, keep_ids, arrival), votes, n_classes,
        classes, abstain, labelers, unknown, model, tuple(settings or ()), state, save_every, save_lines, skip_seen,
        events, webhook, os.environ.get("DRIFTVOTE_WEBHOOK_TOKEN"), metrics, metrics_every, metrics_port,
        metrics_address, quiet,
    )  # fmt: skip
    found = run(wanted)
    if as_json:
        typer.echo(json.dumps(found, indent=2), err=True)
    elif not quiet:
        typer.echo("\n".join(shown_summary(found)), err=True)
    if strict and found["malformed_lines"]:
        raise typer.Exit(2)
