"""`driftvote watch`: votes come in line by line, answers go out line by line."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from typing import Annotated, Any, get_args

import typer

from driftvote.cli.answers import check_asks
from driftvote.cli.label import show_accuracies
from driftvote.cli.options import FormatOptions, ModelOptions, Quiet, ReviewBelow, option, print_summary, takes_options
from driftvote.cli.pipeline import check_paths
from driftvote.cli.state import SavedModels
from driftvote.errors import DriftvoteError
from driftvote.files.state import hold_state
from driftvote.live import LATE, UNKNOWN, WatchOptions
from driftvote.live.lines import LineSource, stop_on_signals
from driftvote.live.loop import StreamLoop, warm_up
from driftvote.live.metrics import check_metrics_extra
from driftvote.live.state import Position
from driftvote.models import LabelModel
from driftvote.report.findings import counted

_LINES, _ANSWERS, _STATE, _NOTIFY = "Lines", "Answers", "State", "Events and metrics"

_OPTIONS = {
    "labelers": option(
        "--labelers", help="Labelers that may vote: a,b,c (default: every name that appears).", panel=_LINES
    ),
    "unknown": option(
        "--unknown", help="Unknown vote: refuse the line, or count it as an abstention.", panel=_LINES, default=True
    ),
    "late": option(
        "--late",
        help="Line with an earlier time: take it in order of arrival, or refuse it.",
        panel=_LINES,
        default=True,
    ),
    "time_format": option("--time-format", help="Format of the times, e.g. '%d.%m.%Y %H:%M'.", panel=_LINES),
    "arrival": option("--arrival", help="A line without a time gets the time of its arrival.", panel=_LINES),
    "keep_ids": option("--keep-ids", help="Store ids; later lines can give true classes by id.", panel=_LINES),
    "review_below": get_args(ReviewBelow)[1],
    "proba": option("--proba", help="Add the probability of each class.", panel=_ANSWERS),
    "accuracies": option("--accuracies", help="Add the accuracy of each labeler.", panel=_ANSWERS),
    "weights": option(
        "--weights",
        help="Add each labeler's weight: the log-odds that its vote adds to its class on average.",
        panel=_ANSWERS,
    ),
    "explain": option("--explain", help="Add what each vote adds to the label, and the majority.", panel=_ANSWERS),
    "ask": option(
        "--ask",
        help="Add a question now and then, where the true class of a row would help most; ids are stored for it.",
        panel=_ANSWERS,
    ),
    "ask_every": option(
        "--ask-every",
        min=1,
        help="Fewest rows between two questions; a fifth of that after a drift event.",
        panel=_ANSWERS,
        default=True,
    ),
    "state": option("--state", help="Continue from this state, and save it regularly.", panel=_STATE),
    "save_every": option(
        "--save-every", min=0.0, help="Seconds between saves of state and metrics file.", panel=_STATE, default=True
    ),
    "save_lines": option("--save-lines", min=1, help="Also save the state every so many lines.", panel=_STATE),
    "skip_seen": option(
        "--skip-seen", help="The input starts from its beginning: skip the lines that the state has read.", panel=_STATE
    ),
    "again": option("--again", help="Learn again from an input that the state has read.", panel=_STATE),
    "events": option("--events", help="Append drift events to this file as JSON lines.", panel=_NOTIFY),
    "webhook": option(
        "--webhook", envvar="DRIFTVOTE_WEBHOOK", help="Post drift events to this URL as JSON.", panel=_NOTIFY
    ),
    "metrics": option("--metrics", help="Write metrics for Prometheus to this file (.prom).", panel=_NOTIFY),
    "metrics_port": option(
        "--metrics-port", min=0, max=65535, help="Serve metrics for Prometheus on this port.", panel=_NOTIFY
    ),
    "metrics_address": option("--metrics-address", help="Address to serve metrics at.", panel=_NOTIFY, default=True),
    "quiet": get_args(Quiet)[1],
}


@takes_options(_OPTIONS)
def watch(
    form: FormatOptions,
    model: ModelOptions,
    options: WatchOptions,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with code 2 if a line was refused.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON, on standard error.")] = False,
) -> None:
    """Label lines as they come: JSON votes on standard input, a JSON answer for each at once on standard output.

    Example: driftvote watch --classes safe,unsafe --state judges.npz --events events.jsonl < votes.jsonl
    """
    summary = watch_input(form, model, replace(options, webhook_token=os.environ.get("DRIFTVOTE_WEBHOOK_TOKEN")))
    print_summary(summary, summary_lines(summary), as_json, options.quiet, to_stderr=True)
    if strict and summary["malformed_lines"]:
        raise typer.Exit(2)


def watch_input(form: FormatOptions, model: ModelOptions, options: WatchOptions) -> dict[str, Any]:
    """Label standard input to its end, or until a signal; the summary comes back."""
    _check_options(options)
    with hold_state(options.state):
        return _watch_input(form, model, options)


def _watch_input(form: FormatOptions, model: ModelOptions, options: WatchOptions) -> dict[str, Any]:
    stream_model, position = _open_model(form, model, options)
    if options.ask:
        check_asks(stream_model, "--ask")
    lines, rows = position.counts.lines, stream_model.n_rows
    if sys.stdin is None or sys.stdout is None:
        raise DriftvoteError("standard input or output is closed; pipe lines of votes through them")
    with (
        stop_on_signals() as stop,
        StreamLoop(stream_model, options, position, sys.stdout.fileno()) as loop,
    ):
        warm_up(stream_model, loop.log.info)
        if lines:
            last = "" if position.last_id is None else f"id {position.last_id!r}, "
            loop.log.info(f"continuing after line {lines:,} ({last}row {rows - 1:,})")
        if options.metrics is not None and options.metrics.suffix != ".prom":
            loop.log.info(
                f"note: the textfile collector reads only files that end in .prom, not {options.metrics.name}"
            )
        if sys.stdin.isatty():
            loop.log.info("reading lines of votes from the terminal; Ctrl-D ends the input")
        loop.run(LineSource(sys.stdin.fileno(), stop), stop)
    return loop.summary(stop.signal)


def _check_options(options: WatchOptions) -> None:
    """Refuse everything that can be refused before the first line."""
    files = {"--events": options.events, "--metrics": options.metrics, "--state": options.state}
    for name, path in files.items():
        if str(path) == "-":
            raise DriftvoteError(f"{name} -: standard output is for the answers; name a file")
    check_paths("-", {"--events": options.events, "--metrics": options.metrics}, force=True, state=options.state)
    for name, value, choices in (("--unknown", options.unknown, UNKNOWN), ("--late", options.late, LATE)):
        if value not in choices:
            raise DriftvoteError(f"{name} {value}: choose {' or '.join(choices)}")
    if options.skip_seen and options.again:
        raise DriftvoteError(
            "--skip-seen skips lines that the state has read, --again learns from them again; choose one"
        )
    if options.skip_seen and options.state is None:
        raise DriftvoteError("--skip-seen needs --state, which counts the lines read")
    if options.metrics_port is not None:
        check_metrics_extra()


def _open_model(form: FormatOptions, model: ModelOptions, options: WatchOptions) -> tuple[LabelModel, Position]:
    """The model of the state and its position in the stream, or a new model at the start."""
    if form.classes is None and form.abstain is not None:
        raise DriftvoteError("--abstain goes with --classes; declare the classes too")
    declared = form.declared()
    if options.state is None or not options.state.exists():
        if declared is None:
            raise DriftvoteError(
                "the classes of a stream cannot be found in advance; declare them, such as --classes safe,unsafe, or"
                " pass --votes snorkel (0..K-1, -1 is no vote)"
            )
        return model.make(declared), Position()
    saved = SavedModels.read(options.state, many_streams=False)
    saved.check_classes(declared, options.state)
    if not model.are_default:
        saved.check_settings(model, options.state)
    return saved.models[None], Position.read(options.state, options.skip_seen)


def summary_lines(summary: dict[str, Any]) -> list[str]:
    """The summary as lines of text."""
    rows = max(1, summary["rows"])
    total = "" if summary["lines_now"] == summary["lines"] else f"; {counted(summary['lines'], 'line')} in all"
    odd = [
        f"{summary[f'{name}_lines']:,} {name}" for name in ("malformed", "late", "blank") if summary[f"{name}_lines"]
    ]
    taken = ", ".join([counted(summary["lines_now"], "line"), *odd])
    lines = [f"watched  {taken}{total}"]
    if summary["rows"]:
        shares = [f"{name} {count / rows:.1%}" for name, count in list(summary["labels"].items())[:8]]
        if summary["tied_rows"]:
            shares.append(f"tied {summary['tied_rows'] / rows:.1%}")
        review, n_events = summary["doubtful_rows"], sum(summary["events"].values())
        last = f", the last at row {summary['last_event_row']:,}" if n_events else ""
        lines += [
            f"labels   {', '.join(shares)}; {review:,} of {counted(rows, 'row')} ({review / rows:.1%}) need review",
            f"drift    {n_events} event{'' if n_events == 1 else 's'}{last}",
            f"now      window of {counted(summary['window'], 'row')}; accuracy {show_accuracies(summary['labelers'])}",
        ]
        if summary["questions"] or summary["verified_rows"]:
            asked, known = counted(summary["questions"], "question"), counted(summary["verified_rows"], "answer")
            lines.append(f"asked    {asked}; {known} received")
    lines += [f"wrote    {path}" for path in summary["outputs"].values()]
    return [*lines, f"ended    by {summary['ended_by']}"]
