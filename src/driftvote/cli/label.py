"""`driftvote label` writes the labels of a file of votes, `driftvote report` a page about them."""

from __future__ import annotations

import sys
import time
from collections.abc import Hashable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from driftvote.cli.answers import Answers
from driftvote.cli.options import (
    Force,
    InputOptions,
    Json,
    ModelOptions,
    Quiet,
    ReviewBelow,
    SafeCsv,
    To,
    flat_settings,
    option,
    print_summary,
    takes_options,
)
from driftvote.cli.pipeline import (
    LabeledBatch,
    ResultColumns,
    StreamLabeler,
    VoteFile,
    check_paths,
    open_votes,
    read_ahead,
    write_behind,
)
from driftvote.cli.progress import rows_done
from driftvote.cli.state import SavedModels, hash_file
from driftvote.core.jit import on_compilation
from driftvote.drift.events import DriftEvent
from driftvote.errors import DriftvoteError
from driftvote.files.atomic import WholeFiles
from driftvote.files.classes import rare_classes
from driftvote.files.rows import VoteRows
from driftvote.files.state import hold_state
from driftvote.files.table import format_of
from driftvote.files.write import Writer, closing_writer, open_writer
from driftvote.report import ReportBuilder, check_report_path, write_report
from driftvote.settings import REVIEW_BELOW
from driftvote.votes import show_name, show_names

_compiled: list[str] = []
"""Kernels that this process has compiled: its time then says little about later runs."""

on_compilation(_compiled.append)

MAX_JSON_EVENTS = 100
"""Drift events in the JSON summary: the latest ones."""

MAX_SHOWN_EVENTS = 3
"""Drift events in the printed summary."""


AnswerFiles = Annotated[
    list[Path] | None,
    option("--verified", help="Answered questions of driftvote ask; may be repeated."),
]


@dataclass(frozen=True, kw_only=True)
class LabelOptions:
    """What a run of `label` or `report` writes."""

    out: Annotated[
        str | None, option("--out", "-o", help="File for the labels, format by ending; - is standard output.")
    ]
    report: Annotated[Path | None, option("--report", help="Also write a report: .html or .json.")] = None
    state: Annotated[Path | None, option("--state", help="Continue from this state, and save it again.")] = None
    again: Annotated[
        bool, option("--again", help="Learn from a file even if the state has learned from it already.")
    ] = False
    answers: AnswerFiles = None
    review_below: ReviewBelow = REVIEW_BELOW
    accuracies: Annotated[bool, option("--accuracies", help="Add the accuracy of each labeler at each row.")] = False
    weights: Annotated[
        bool,
        option("--weights", help="Add each labeler's weight: the log-odds that its vote adds to its class on average."),
    ] = False
    to: To = None
    safe_csv: SafeCsv = False
    force: Force = False
    quiet: Quiet = False
    json: Json = False


@takes_options()
def label(votes: InputOptions, model: ModelOptions, options: LabelOptions) -> None:
    """Label the rows of a file: a row for each item in time order, a column for each labeler, empty cells for no vote.

    Example: driftvote label votes.csv -o labels.parquet --report report.html
    """
    _run_and_print(votes, model, options)


@takes_options()
def report(
    votes: InputOptions,
    out: Annotated[Path, typer.Option("--out", "-o", help="The report: .html, or .json for the same content.")],
    model: ModelOptions,
    answers: AnswerFiles = None,
    review_below: ReviewBelow = REVIEW_BELOW,
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Label the rows of a file and show the result on one page that works offline.

    Example: driftvote report votes.csv -o report.html --gold truth
    """
    written = LabelOptions(out=None, report=out, answers=answers, review_below=review_below, force=force)
    _run_and_print(votes, model, replace(written, quiet=quiet, json=as_json))


def _run_and_print(votes: InputOptions, model: ModelOptions, options: LabelOptions) -> None:
    summary, lines = label_file(votes, model, options)
    print_summary(summary, lines, options.json, options.quiet, to_stderr=options.out == "-")


def label_file(votes: InputOptions, model: ModelOptions, options: LabelOptions) -> tuple[dict[str, Any], list[str]]:
    """Label a file and write labels, report and state; the summary comes back as a dict and as lines of text.

    All files are written under temporary names first. Then labels, report and state get their names, in this order: a
    crash in between leaves labels that the state does not know, and the same command (with --force) produces both again
    from the same start. The other way round, rows would be lost.
    """
    outputs = {"--out": options.out, "--report": options.report}
    check_paths(votes.file, outputs, options.force, options.state)
    for path in options.answers or ():
        check_paths(str(path), outputs, force=True, state=options.state)
    _check_report(options.report, votes.many_streams)
    with ExitStack() as stack:
        stack.enter_context(hold_state(options.state))
        saved = SavedModels.read(options.state, votes.many_streams)
        if options.state is not None:
            saved.check_classes(votes.declared(), options.state)
        file = stack.enter_context(open_votes(votes, saved.form, model.min_labelers))
        if options.state is not None:
            file_hash = hash_file(file.table.path)
            if not options.again:
                saved.check_new_input(file_hash, options.state, file.table.shown)
            saved.last_input = {"mark": file_hash, "file": file.table.shown, "output": options.out}
        labeler = make_labeler(
            file, model, saved, options.state, accuracies=options.accuracies, weights=options.weights
        )
        answers = Answers.read(options.answers, file)
        if answers is not None:
            answers.tell(labeler, options.quiet)
        files = stack.enter_context(WholeFiles())
        builder = None if options.report is None else _report_builder(file, model, options, labeler)
        totals = _label_all(file, options, labeler, files, builder, answers)
        summary = totals.to_dict(labeler, {**outputs, "--state": options.state})
        if builder is not None:
            write_report(builder.finish(), files.named(str(options.report)))
        if options.state is not None:
            SavedModels(labeler.models, saved.last_input).write(files.open(options.state))
    return summary, totals.lines(summary)


def make_labeler(
    file: VoteFile, model: ModelOptions, saved: SavedModels, state: Path | None, **keys: bool
) -> StreamLabeler:
    """A labeler with the models of the state, and new ones for other streams; wrong settings are refused."""
    fresh = model.make(file.form)
    if file.roles.verified is not None:
        for each in (fresh, *saved.models.values()):
            each.check_learns_from_verified()
    if saved.models and state is not None and not model.are_default:
        saved.check_settings(model, state)
    keep = {"keep_models": True} if state is not None else {}
    return StreamLabeler(file, lambda: model.make(file.form), saved.models, **keep | keys)


def _label_all(
    file: VoteFile,
    options: LabelOptions,
    labeler: StreamLabeler,
    files: WholeFiles,
    builder: ReportBuilder | None,
    answers: Answers | None,
) -> LabelTotals:
    """Label all rows: one thread reads ahead, this one labels, another one writes."""
    totals = LabelTotals(file, options.review_below, answers)
    columns = ResultColumns(file.form, file.roles.kept, options.review_below)
    writer = None if options.out is None else open_output(options.out, options.to, options.safe_csv, files)

    def finish(item: tuple[VoteRows, LabeledBatch]) -> None:
        rows, labeled = item
        if writer is not None:
            writer.write(columns.batch(labeled, rows.kept))
        totals.add(labeled, rows)

    with (
        rows_done("labeling", options.quiet) as listen,
        closing_writer(writer, options.out),
        write_behind(finish) as put,
    ):
        done = 0
        for rows in read_ahead(file.batches(writer is None or writer.typed)):
            rows = rows if answers is None else answers.add_to(rows, done)
            labeled = labeler.label(rows)
            if answers is not None:
                answers.compare(labeled, done)
            if builder is not None and labeled.stream is not None:
                ids = None if file.roles.id is None else _ids(rows, file.roles.id)
                times = None if rows.times is None else rows.times.to_numpy()
                builder.add(labeled.stream.votes, labeled.stream, times=times, ids=ids, gold=rows.gold)
            put((rows, labeled))
            done += len(rows)
            listen(done, file.table.done())
    return totals


def open_output(out: str, to: str | None, safe_csv: bool, files: WholeFiles) -> Writer:
    """The writer of a table, to one of `files` or to standard output."""
    if out == "-":
        return open_writer(to or "csv", sys.stdout.buffer, "standard output", safe_csv)
    return open_writer(output_format(out, to), files.open(out), out, safe_csv)


def output_format(path: str, to: str | None) -> str:
    """The format of a file to write; compressed files are refused."""
    kind, compressed = format_of(path, to, "--to")
    if compressed:
        raise DriftvoteError(f"{path}: compressed text is read, not written; name it .parquet, or compress it later")
    return kind


# -- the report ----------------------------------------------------------------------------------


def _check_report(path: Path | None, many_streams: bool) -> None:
    """Refuse a report that cannot be written, before a long file is labeled."""
    if path is None:
        return
    check_report_path(path)
    if many_streams:
        raise DriftvoteError(f"{path}: a report is about one stream; select it with --only VALUE, or omit --report")


def _report_builder(
    file: VoteFile, model: ModelOptions, options: LabelOptions, labeler: StreamLabeler
) -> ReportBuilder:
    settings = {name: value for name, value in flat_settings(labeler.any_model()).items() if value is not None}
    only = "" if file.options.only is None else f", stream {file.options.only}"
    return ReportBuilder(
        labelers=[],
        classes=list(file.form.classes),
        title=f"{file.table.shown}{only}",
        source=file.table.shown,
        settings={"model": model.model, **settings},
        reading={
            "file": file.table.shown,
            "layout": "one vote per line" if file.roles.long else "a column for each labeler",
            "classes": file.describe_classes(),
            **file.to_dict()["columns"],
            **({"order": "sorted by time"} if file.options.sort else {}),
        },
        has_gold=file.roles.gold is not None,
        review_below=options.review_below,
    )


def _ids(rows: VoteRows, name: str) -> Any:
    if name not in rows.kept.schema.names:
        return None
    return rows.kept.column(name).to_numpy(zero_copy_only=False)


# -- the summary ---------------------------------------------------------------------------------


class LabelTotals:
    """Counts over all batches of a run, for its summary."""

    def __init__(self, file: VoteFile, review_below: float, answers: Answers | None = None) -> None:
        self.file = file
        self.answers = answers
        self.rows = 0
        self.counts = np.zeros(file.form.n_classes + 1, np.int64)  # rows by class; ties last
        self.votes = np.zeros(file.form.n_classes, np.int64)  # by class, where classes were found in the file
        self.review = 0
        self.n_events = 0
        self.events: list[tuple[Hashable, DriftEvent]] = []  # the latest ones, with the name of their stream
        self._review_below = review_below
        self._gold_rows = self._right = 0.0
        self._start = time.perf_counter()

    def add(self, labeled: LabeledBatch, rows: VoteRows) -> None:
        """Count a batch of labels and the rows that they are of."""
        gold = rows.gold  # true class codes, -1 where unknown
        if not self.file.declared:
            self.votes += np.bincount(rows.codes.ravel().astype(np.int64) + 1, minlength=len(self.votes) + 1)[1:]
        codes, n_classes = labeled.codes, self.file.form.n_classes
        self.rows += len(codes)
        self.counts += np.bincount(np.where(codes < 0, n_classes, codes), minlength=n_classes + 1)
        self.review += int(np.count_nonzero(labeled.needs_review(self._review_below)))
        self.n_events += len(labeled.events)
        self.events = [*self.events, *labeled.events][-MAX_JSON_EVENTS:]
        if gold is not None:
            known = gold >= 0
            self._gold_rows += int(known.sum())
            tied = int((codes[known] < 0).sum())
            self._right += int((codes[known] == gold[known]).sum()) + tied / n_classes

    def labels(self) -> dict[str, int]:
        """Rows by label."""
        return {str(value): int(n) for value, n in zip(self.file.form.classes, self.counts, strict=False)}

    def to_dict(self, labeler: StreamLabeler, outputs: dict[str, Any] | None = None) -> dict[str, Any]:
        """The summary for --json; `outputs` are paths by option."""
        seconds = time.perf_counter() - self._start
        summary: dict[str, Any] = {
            **self.file.to_dict(),
            "rows": self.rows,
            "labels": self.labels(),
            "no_label": int(self.counts[-1]),
            "needs_review": self.review,
            "n_events": self.n_events,
            "events": [event_to_dict(stream, event) for stream, event in self.events],
            "seconds": round(seconds, 3),
            "rows_per_second": round(self.rows / seconds) if seconds else None,
            "outputs": {key: str(path) for key, path in (outputs or {}).items() if path is not None},
            "notes": [
                *self.file.notes,
                *([] if self.file.declared else rare_classes(self.file.form, self.votes.tolist())),
            ],
        }
        if self._gold_rows:
            summary["gold"] = {"rows": int(self._gold_rows), "accuracy": self._right / self._gold_rows}
        if list(labeler.models) == [None]:
            model = labeler.model()
            if self.answers is not None:
                summary["answers"] = self.answers.to_dict(model, self.rows)
            summary["labelers"] = list(model.labelers)
            summary["window"] = model.window
            summary["accuracies"] = dict(zip(model.labelers, model.accuracies.tolist(), strict=True))
            summary["rows_seen"] = model.n_rows
        else:
            summary["labelers"] = list(labeler.any_model().labelers)
            summary["streams"] = len(labeler.models) + labeler.n_finished
        return summary

    def lines(self, summary: dict[str, Any]) -> list[str]:
        """The summary as lines of text."""
        rows = max(1, self.rows)
        shares = [f"{show_name(name)} {count / rows:.1%}" for name, count in list(summary["labels"].items())[:8]]
        if summary["no_label"]:
            shares.append(f"tied {summary['no_label'] / rows:.1%}")
        lines = [
            *summary["notes"],
            read_line(summary),
            f"classes  {self.file.describe_classes()}",
            f"labels   {', '.join(shares)}; {self.review:,} rows ({self.review / rows:.1%}) need review",
        ]
        if "accuracies" in summary:
            shown = show_accuracies(summary["accuracies"])
            lines.append(f"now      window of {summary['window']:,} rows; accuracy {shown}")
        if self.n_events > MAX_SHOWN_EVENTS:
            lines.append(f"drift    {self.n_events:,} events, the last of them:")
        lines += [event_line(event_to_dict(stream, event)) for stream, event in self.events[-MAX_SHOWN_EVENTS:]]
        if "gold" in summary:
            gold = summary["gold"]
            lines.append(f"gold     {gold['accuracy']:.2%} of {gold['rows']:,} rows with a true class are correct")
        lines += [] if self.answers is None else self.answers.lines(summary["answers"])
        lines += [f"wrote    {path}" for path in summary["outputs"].values()]
        speed = f"{summary['rows_per_second'] or 0:,} rows per second"
        rest = "of which a part for compiling, which happens once" if _compiled else speed
        return [*lines, f"time     {summary['seconds']:.1f} s, {rest}"]


def event_to_dict(stream: Hashable, event: DriftEvent) -> dict[str, Any]:
    """An event with the name of its stream, if it has one."""
    return ({} if stream is None else {"stream": str(stream)}) | event.to_dict()


def read_line(summary: dict[str, Any]) -> str:
    """The line of a printed summary that says what was read."""
    streams = f" in {summary['streams']:,} streams" if "streams" in summary else ""
    labelers = f"{len(summary['labelers'])} labelers: {show_names(summary['labelers'])}"
    return f"read     {summary['file']}: {summary['rows']:,} rows{streams}, {labelers}"


def event_line(event: dict[str, Any]) -> str:
    """The line of a printed summary about a drift event."""
    stream = f"stream {event['stream']}: " if "stream" in event else ""
    return f"drift    {stream}{event['sentence']} (noticed at row {event['row']:,})"


def show_accuracies(accuracies: dict[str, float]) -> str:
    """The best eight labelers with their accuracies."""
    order = sorted(accuracies.items(), key=lambda pair: -pair[1])
    more = f" and {len(order) - 8} more" if len(order) > 8 else ""
    return ", ".join(f"{show_name(name)} {value:.2f}" for name, value in order[:8]) + more
