"""`driftvote ask`: the few rows of a file whose true class says most about the others, to be answered by a person."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from driftvote.arrays import Ints
from driftvote.cli.answers import (
    DISPUTE,
    ROW,
    VERIFIED,
    WHY,
    Answers,
    check_all_there,
    check_asks,
    check_rows,
    find_encoding,
    label_batches,
    read_questions,
    refuse_many_streams,
    text_cells,
)
from driftvote.cli.label import AnswerFiles, make_labeler, open_output, output_format, read_line
from driftvote.cli.options import (
    Force,
    InputOptions,
    Json,
    ModelOptions,
    Quiet,
    SafeCsv,
    To,
    option,
    print_summary,
    takes_options,
)
from driftvote.cli.pipeline import (
    ResultColumns,
    StreamLabeler,
    VoteFile,
    check_paths,
    open_votes,
    read_ahead,
    refuse_repeated,
)
from driftvote.cli.state import SavedModels
from driftvote.drift.events import DriftEvent
from driftvote.errors import DriftvoteError, one_line
from driftvote.files.atomic import WholeFiles
from driftvote.files.rows import VoteRows, plain_column
from driftvote.files.table import FileOptions, open_table
from driftvote.files.write import closing_writer
from driftvote.models.questions import LOOK_AHEAD, Chosen, Pool, dispute, stretch_starts
from driftvote.report.findings import counted

SCORED = 1 << 14
"""Rows that are scored at a time: label models x classes of each are held."""

KEYS = "123456789abcdefghijklmnoprtvwxyz"
"""Keys for classes; the letters s, u and q skip, undo and stop."""


@dataclass(frozen=True, kw_only=True)
class AskOptions:
    """What a run of `ask` looks for and writes."""

    out: Annotated[str, option("--out", "-o", help="File for the questions, format by ending; - is standard output.")]
    n: Annotated[int, option("-n", "--number", min=1, help="Maximum number of questions.", default=True)] = 20
    interactive: Annotated[
        bool, option("--interactive", help="Ask at the terminal, one key per answer; continue with --out if it exists.")
    ] = False
    answers: AnswerFiles = None
    state: Annotated[Path | None, option("--state", help="Start from this state; it is not changed.")] = None
    to: To = None
    safe_csv: SafeCsv = False
    force: Force = False
    quiet: Quiet = False
    json: Json = False

    @property
    def goes_on(self) -> bool:
        """Whether questions that are there already are asked."""
        return self.interactive and not self.force and Path(self.out).exists()

    def check(self, votes: InputOptions) -> None:
        """Refuse what can be refused before anything is read."""
        refuse_many_streams(votes.many_streams, "ask")
        if self.interactive and "-" in (self.out, votes.file):
            raise DriftvoteError("--interactive reads keys from standard input; name a file of votes and a file for -o")
        if self.out != "-" and output_format(self.out, self.to) == "npz":
            raise DriftvoteError(f"{self.out}: questions are text; name it .csv, .jsonl or .parquet")
        for source in (votes.file, *map(str, self.answers or ())):
            check_paths(source, {"--out": self.out}, self.force or self.goes_on, self.state)


@takes_options()
def ask(votes: InputOptions, model: ModelOptions, options: AskOptions) -> None:
    """Write the rows whose true class would help most; fill in `verified`, then run label with --verified.

    Example: driftvote ask votes.csv -n 20 -o questions.csv
    """
    summary, lines = ask_about_file(votes, model, options)
    print_summary(summary, lines, options.json, options.quiet, to_stderr=options.out == "-")


def ask_about_file(votes: InputOptions, model: ModelOptions, options: AskOptions) -> tuple[dict[str, Any], list[str]]:
    """Find questions and write them, or ask them; the summary comes back as a dict and as lines of text."""
    start = time.perf_counter()
    options.check(votes)
    with ExitStack() as stack:
        saved = SavedModels.read(options.state, many_streams=False)
        if options.state is not None:
            saved.check_classes(votes.declared(), options.state)
        file = stack.enter_context(open_votes(votes, saved.form, model.min_labelers))
        labeler = make_labeler(file, model, saved, options.state)
        check_asks(labeler.model(), "ask")
        if options.interactive and file.form.n_classes > len(KEYS):
            raise DriftvoteError(
                f"--interactive has keys for {len(KEYS)} classes, and there are {file.form.n_classes}; fill in the"
                " column verified instead"
            )
        summary: dict[str, Any] = {**file.to_dict(), "notes": list(file.notes)}
        if options.goes_on:
            sheet = QuestionSheet.read(options, file)
        else:
            refuse_repeated([ROW, *file.roles.kept, *file.roles.labelers, DISPUTE, WHY, VERIFIED])
            found = find_questions(file, labeler, Answers.read(options.answers, file), options)
            sheet = found.sheet(file, options)
            summary |= found.to_dict(labeler)
            sheet.write()
        if options.interactive:
            interview(sheet, file)
    summary |= {
        "questions": len(sheet),
        "answered": sum(map(bool, sheet.answers)),
        "outputs": {"--out": options.out},
        "next": next_command(votes, model, options) if len(sheet) else None,
        "seconds": round(time.perf_counter() - start, 3),
    }
    return summary, summary_lines(summary, file)


def next_command(votes: InputOptions, model: ModelOptions, options: AskOptions) -> str:
    """The command that uses the answers."""
    files = [part for path in (*(options.answers or ()), options.out) for part in ("--verified", str(path))]
    usual = model.are_default and votes == InputOptions(file=votes.file) and options.state is None
    command = shlex.join(["driftvote", "label", votes.file, "-o", "labels.csv", *files])
    return command if usual else f"{command}, with the options of this command"


def summary_lines(summary: dict[str, Any], file: VoteFile) -> list[str]:
    """The summary as lines of text."""
    lines, n = list(summary["notes"]), summary["questions"]
    if "rows" in summary:
        share = f"{summary['disputed_rows'] / max(1, summary['rows']):.1%}"
        lines += [
            read_line(summary),
            f"classes  {file.describe_classes()}",
            f"disputed {counted(summary['disputed_rows'], 'row')} ({share}), in {counted(summary['kinds'], 'kind')} of"
            " disagreement",
            f"asked    {counted(n, 'question')}; {LOOK_AHEAD} answers are expected to change"
            f" {summary['expected_change']:.1%} of the labels",
        ]
        lines += [f"note: {summary['note']}"] if summary["note"] else []
    if summary["answered"]:
        lines.append(f"answered {summary['answered']} of {n}")
    lines += [f"wrote    {path}" for path in summary["outputs"].values()]
    if n:
        fill_in = "" if summary["answered"] else f"write the true classes into column {VERIFIED!r}, then: "
        lines.append(f"next     {fill_in}{summary['next']}")
    return lines


# -- finding questions -----------------------------------------------------------------------------


@dataclass(frozen=True)
class FoundQuestions:
    """Rows in dispute, and those among them to ask for."""

    chosen: Chosen
    rows: Ints  # numbers of the chosen rows in the file as it is read, most valuable first
    named: Any  # for each, the class that each label model names
    proba: Any  # and the probabilities of the classes
    n_rows: int
    n_disputed: int
    n_kinds: int

    def to_dict(self, labeler: StreamLabeler) -> dict[str, Any]:
        """What was found, for the summary."""
        return {
            "labelers": list(labeler.any_model().labelers),
            "rows": self.n_rows,
            "disputed_rows": self.n_disputed,
            "kinds": self.n_kinds,
            "expected_change": round(self.chosen.expected_change, 6),
            "note": self.chosen.note,
        }

    def sheet(self, file: VoteFile, options: AskOptions) -> QuestionSheet:
        """The questions with all columns of their rows."""
        import pyarrow as pa

        wanted = np.sort(self.rows)
        pieces = fetch_rows(file, wanted)
        order, values = np.searchsorted(wanted, self.rows), ResultColumns(file.form)
        codes = np.concatenate([piece.codes for piece in pieces])[order]
        columns: dict[str, Any] = {name: _join_column(pieces, name).take(pa.array(order)) for name in file.roles.kept}
        columns |= {name: values.votes(codes[:, place]) for place, name in enumerate(pieces[0].labelers)}
        refuse_repeated([ROW, *file.roles.kept, *pieces[0].labelers, DISPUTE, WHY, VERIFIED])
        likes = list(self.chosen.likes.values())
        about = [
            dispute(named, proba, file.form, like)
            for named, proba, like in zip(self.named, self.proba.astype(np.float64), likes, strict=True)
        ]
        shown = [" / ".join(f"{value} {share:.0%}" for value, share in classes.items()) for classes, _ in about]
        columns = {ROW: pa.array(self.rows), **columns, DISPUTE: pa.array(shown, pa.string())}
        columns[WHY] = pa.array([why for _, why in about], pa.string())
        return QuestionSheet(columns, [""] * len(self.rows), options)


def find_questions(
    file: VoteFile, labeler: StreamLabeler, answers: Answers | None, options: AskOptions
) -> FoundQuestions:
    """Label the file, and choose among the rows on which the label models disagree."""
    if answers is not None:
        answers.tell(labeler, options.quiet)
    model = labeler.model()
    pool, before, events = Pool(model.seed), model.n_rows, list[DriftEvent]()
    found: list[tuple[Any, Any, Any]] = []  # of rows in dispute: numbers, classes named, probabilities
    for rows, labeled, first in label_batches(file, labeler, options.quiet, "looking for questions", answers):
        stream = labeled.stream
        assert stream is not None
        events += [event for _, event in labeled.events]
        for begin in range(0, len(rows), SCORED):
            places = np.arange(begin, min(begin + SCORED, len(rows)))
            scores = stream.score(places)
            pool.add(before + first + places, scores, None if rows.verified is None else rows.verified[places])
            at = np.flatnonzero(scores.disputed)
            proba = stream.proba[places[at]].astype(np.float16)  # enough for percents
            found.append((first + places[at], scores.named[at].astype(np.int16), proba))
    numbers, named, proba = (np.concatenate(part) for part in zip(*found, strict=True))
    starts = stretch_starts(events)
    chosen = pool.choose(options.n, starts)
    picked = np.array(chosen.rows, np.int64) - before
    at = np.searchsorted(numbers, picked)
    kinds = np.column_stack([np.searchsorted(np.array(starts, np.int64), before + numbers, side="right"), named])
    n_kinds = len(np.unique(kinds, axis=0))
    return FoundQuestions(chosen, picked, named[at], proba[at], pool.n_rows, len(numbers), n_kinds)


def fetch_rows(file: VoteFile, wanted: Ints) -> list[VoteRows]:
    """Rows by their numbers, which are in order."""
    pieces, first = list[VoteRows](), 0
    for rows in read_ahead(file.batches(typed=False)):
        own = wanted[slice(*np.searchsorted(wanted, (first, first + len(rows))))]
        if len(own) or not pieces:
            pieces.append(rows.take(own - first))
        first += len(rows)
        if not len(wanted) or wanted[-1] < first:
            break
    return pieces


def _join_column(pieces: Sequence[VoteRows], name: str) -> Any:
    import pyarrow as pa

    return pa.concat_arrays([plain_column(piece.kept.column(name)) for piece in pieces])


# -- asking ----------------------------------------------------------------------------------------


class QuestionSheet:
    """A table of questions, whose column `verified` is filled in."""

    def __init__(self, columns: dict[str, Any], answers: list[str], options: AskOptions) -> None:
        self.columns = columns
        self.answers = answers
        self._options = options

    def __len__(self) -> int:
        return len(self.answers)

    @classmethod
    def read(cls, options: AskOptions, file: VoteFile) -> QuestionSheet:
        """The questions in a file; they must be about the votes as they are now."""
        asked, first = read_questions([Path(options.out)], file.form), 0
        for rows in read_ahead(file.batches(typed=False)):
            check_rows(asked, rows, first, file)
            first += len(rows)
        check_all_there(asked, first, file)
        with open_table(options.out, FileOptions(encoding=find_encoding(Path(options.out)))) as table:
            batches = list(table.batches(table.names))
            names = table.names
        columns = {name: _concat([batch.column(place) for batch in batches]) for place, name in enumerate(names)}
        return cls(columns, text_cells(columns.pop(VERIFIED)), options)

    def write(self) -> None:
        """Write the file, whole or not at all."""
        import pyarrow as pa

        options = self._options
        answers = pa.array([answer or None for answer in self.answers], pa.string())
        batch = pa.RecordBatch.from_arrays([*self.columns.values(), answers], names=[*self.columns, VERIFIED])
        with WholeFiles() as files:
            writer = open_output(options.out, options.to, options.safe_csv, files)
            with closing_writer(writer, options.out):
                writer.write(batch)


def _concat(chunks: list[Any]) -> Any:
    import pyarrow as pa

    return pa.concat_arrays([plain_column(chunk) for chunk in chunks]) if chunks else pa.array([], pa.string())


def interview(sheet: QuestionSheet, file: VoteFile) -> None:
    """Ask the questions without an answer; the file is written after each answer, so nothing is lost."""
    todo = [place for place, answer in enumerate(sheet.answers) if not answer]
    keys = dict(zip(KEYS, map(str, file.form.classes), strict=False))
    at = 0
    while at < len(todo):
        for line in show_question(sheet, todo[at], file):
            typer.echo(one_line(line), err=True)
        help_line = "  ".join([*(f"{key} {value}" for key, value in keys.items()), "s skip", "u undo", "q stop"])
        typer.echo(f"  [{one_line(help_line)}] ", nl=False, err=True)
        key = read_key()
        typer.echo(one_line(keys.get(key, key)), err=True)
        if key == "q":
            break
        if key == "s":
            at += 1
        elif key == "u":
            at = max(0, at - 1)
            sheet.answers[todo[at]] = ""
            sheet.write()
        elif key in keys:
            sheet.answers[todo[at]] = keys[key]
            sheet.write()
            at += 1


def show_question(sheet: QuestionSheet, place: int, file: VoteFile) -> list[str]:
    """A question as lines of text: the columns of its row, the votes, and what is in dispute."""
    cells = {name: text_cells(column.slice(place, 1))[0] for name, column in sheet.columns.items()}
    row, shown, why = cells.pop(ROW), cells.pop(DISPUTE, ""), cells.pop(WHY, "")
    votes: dict[str, list[str]] = {}
    lines = ["", f"question {place + 1} of {len(sheet)}, row {row}"]
    for name, cell in cells.items():
        if name in file.roles.kept:
            lines.append(f"  {name}: {cell}")
        elif cell:
            votes.setdefault(cell, []).append(name)
    lines += [f"  {len(names)} vote {cell}: {', '.join(names)}" for cell, names in votes.items()]
    return [*lines, f"  {shown}? {why}"]


def read_key() -> str:
    """A key from the terminal; elsewhere the next line, and q at the end of the input."""
    if not sys.stdin.isatty():
        line = sys.stdin.readline()
        return line.strip().lower() if line else "q"
    try:
        return str(typer.getchar()).lower()
    except EOFError:
        return "q"
