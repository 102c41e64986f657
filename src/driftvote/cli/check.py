"""`driftvote check`: whether the last rows of a file show drift or need too much review, as an exit code."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from driftvote.cli.label import LabelTotals, event_line, event_to_dict, make_labeler, read_line
from driftvote.cli.options import (
    InputOptions,
    Json,
    ModelOptions,
    Quiet,
    ReviewBelow,
    option,
    print_summary,
    takes_options,
)
from driftvote.cli.pipeline import StreamLabeler, VoteFile, check_paths, open_votes, read_ahead
from driftvote.cli.progress import rows_done
from driftvote.cli.state import SavedModels
from driftvote.drift.events import DriftEvent
from driftvote.errors import DriftvoteError
from driftvote.live.metrics import Counts, collect_metrics, write_metrics
from driftvote.settings import REVIEW_BELOW

DRIFT = 3
DOUBTFUL = 4


@dataclass(frozen=True, kw_only=True)
class CheckOptions:
    """The limits of `check`, and what else it reads and writes."""

    last: Annotated[
        int, option("--last", min=1, help="Check this many rows at the end of each stream.", default=True)
    ] = 1000
    most_doubtful: Annotated[
        float,
        option(
            "--most-doubtful", min=0.0, max=1.0, help="Largest share of these rows that may need review.", default=True
        ),
    ] = 0.25
    review_below: ReviewBelow = REVIEW_BELOW
    state: Annotated[Path | None, option("--state", help="Start from this state; it is not changed.")] = None
    metrics: Annotated[
        Path | None, option("--metrics", help="Also write metrics for Prometheus to this file (.prom).")
    ] = None
    quiet: Quiet = False
    json: Json = False


@takes_options()
def check(votes: InputOptions, model: ModelOptions, options: CheckOptions) -> None:
    """Check a file of votes, for CI: exit code 0 if OK, 3 for drift in the last rows, 4 if too many need review.

    Example: driftvote check votes.csv --last 1000
    """
    result = check_file(votes, model, options)
    print_summary(result, result_lines(result), options.json, options.quiet)
    raise typer.Exit(result["exit_code"])


def check_file(votes: InputOptions, model: ModelOptions, options: CheckOptions) -> dict[str, Any]:
    """Label a file without writing the labels; the result for --json."""
    check_paths(votes.file, {"--metrics": options.metrics}, force=True)
    if votes.many_streams and options.metrics is not None:
        raise DriftvoteError(
            f"{options.metrics}: metrics are about one stream; select it with --only VALUE, or omit --metrics"
        )
    if options.state is not None and not options.state.exists():
        raise DriftvoteError(f"{options.state}: there is no such state file; omit --state to start without one")
    saved = SavedModels.read(options.state, votes.many_streams)
    if options.state is not None:
        saved.check_classes(votes.declared(), options.state)
    with open_votes(votes, saved.form, model.min_labelers) as file:
        labeler = make_labeler(file, model, saved, options.state, keep_models=True)
        totals, doubtful = LabelTotals(file, options.review_below), np.zeros(0, bool)
        events: list[tuple[Hashable, DriftEvent]] = []
        with rows_done("checking", options.quiet) as listen:
            for rows in read_ahead(file.batches(typed=True)):
                labeled = labeler.label(rows)
                totals.add(labeled, rows)
                doubtful = np.append(doubtful, labeled.needs_review(options.review_below))[-options.last :]
                events += labeled.events
                listen(totals.rows, file.table.done())
        result = _result(file, totals, labeler) | _judge(events, doubtful, labeler, options)
    if options.metrics is not None:
        counts = Counts(doubtful_rows=totals.review, tied_rows=int(totals.counts[-1]), labels=totals.labels())
        for _, event in events:
            counts.add_event(event.kind, event.row)
        write_metrics(options.metrics, collect_metrics(labeler.model(), counts))
        result["outputs"] = {"--metrics": str(options.metrics)}
    return result


def _result(file: VoteFile, totals: LabelTotals, labeler: StreamLabeler) -> dict[str, Any]:
    summary = totals.to_dict(labeler)
    kept = ("file", "rows", "labelers", "streams", "window", "accuracies", "needs_review", "gold", "notes", "seconds")
    return {key: summary[key] for key in kept if key in summary} | {"classes": file.describe_classes()}


def _judge(
    events: list[tuple[Hashable, DriftEvent]], doubtful: Any, labeler: StreamLabeler, options: CheckOptions
) -> dict[str, Any]:
    late = [(stream, event) for stream, event in events if event.row >= labeler.model(stream).n_rows - options.last]
    share = int(doubtful.sum()) / max(1, len(doubtful))
    too_doubtful = share > options.most_doubtful
    return {
        "last": len(doubtful),
        "drift": bool(late),
        "events": [event_to_dict(stream, event) for stream, event in late],
        "earlier_events": len(events) - len(late),
        "doubtful": {"rows": int(doubtful.sum()), "share": share, "most": options.most_doubtful},
        "too_doubtful": too_doubtful,
        "exit_code": DRIFT if late else DOUBTFUL if too_doubtful else 0,
    }


def result_lines(result: dict[str, Any]) -> list[str]:
    """The result as lines of text."""
    doubt, earlier = result["doubtful"], result["earlier_events"]
    lines = [*result["notes"], read_line(result), f"classes  {result['classes']}"]
    lines += [event_line(event) for event in result["events"]]
    if not result["events"]:
        lines.append(f"drift    none in the last {result['last']:,} rows{f' ({earlier} before)' if earlier else ''}")
    lines.append(
        f"review   {doubt['rows']:,} of the last {result['last']:,} rows ({doubt['share']:.1%}) need review;"
        f" limit {doubt['most']:.0%}"
    )
    lines += [f"wrote    {path}" for path in result.get("outputs", {}).values()]
    words = {"drift": "drift", "too_doubtful": "too many rows need review"}
    found = " and ".join(word for key, word in words.items() if result[key])
    return [*lines, f"result   {found or 'OK'} (exit code {result['exit_code']})"]
