"""Files of questions and answers: reading them, comparing them with the votes, and what the answers change.

A file is labeled twice: without the answers first, which gives the drift events, what each label model says of the
answered rows, and the labels before. Then an answer counts for the whole stretch between two drift events.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from driftvote.arrays import Ints
from driftvote.cli.pipeline import LabeledBatch, StreamLabeler, VoteFile, read_ahead
from driftvote.cli.progress import rows_done
from driftvote.drift.events import DriftEvent
from driftvote.errors import DriftvoteError
from driftvote.files.rows import VoteRows, plain_column
from driftvote.files.table import FileOptions, open_table
from driftvote.models import LabelModel
from driftvote.models.questions import Scores, known_stretches, stretch_starts
from driftvote.report.findings import counted
from driftvote.votes import BAD, VoteFormat, parse_number

ROW, DISPUTE, WHY, VERIFIED = "row", "dispute", "why", "verified"
"""Columns of a file of questions, beside those of the votes."""


def check_asks(model: LabelModel, option: str) -> None:
    """Refuse a model that is no mixture: questions are about rows on which its label models disagree."""
    estimator = getattr(model, "estimator", None)
    if estimator is None or estimator.name != "mixture":
        raise DriftvoteError(
            f"{option} needs a mixture of label models, the default; omit --model, or pass --set estimator=mixture"
        )


def refuse_many_streams(many_streams: bool, option: str) -> None:
    """Refuse several streams at once: rows are known by their numbers in one stream."""
    if many_streams:
        raise DriftvoteError(f"{option} is about one stream; select it with --only VALUE")


@dataclass(frozen=True)
class AskedRow:
    """A line of a file of questions."""

    where: str  # the file and the line
    row: int  # number of the row among the votes as they are read, from 0
    code: int  # the answer as a class code, -1 if there is none
    cells: dict[str, str]  # the other cells, by column

    def check(self, rows: VoteRows, place: int, file: VoteFile) -> None:
        """Refuse a row of votes that is no longer as it was when it was asked for."""
        id_column, compared = file.roles.id, 0
        if id_column in self.cells and id_column in rows.kept.schema.names:
            asked, compared = self.cells[id_column], 1
            now = text_cells(rows.kept.column(id_column).slice(place, 1))[0]
            if asked != now and (parse_number(asked) is None or parse_number(asked) != parse_number(now)):
                raise self._changed(str(id_column), repr(asked), repr(now), file)
        codes = rows.codes[place].tolist()
        for name, code in zip(rows.labelers, codes, strict=True):
            if name in self.cells:
                compared += 1
                if _code(self.cells[name], file.form) != code:
                    now = "no vote" if code < 0 else repr(str(file.form.decode_one(code)))
                    raise self._changed(name, repr(self.cells[name]) if self.cells[name] else "no vote", now, file)
        if not compared:
            raise DriftvoteError(
                f"{self.where}: it has neither the id nor a vote of row {self.row}, so it cannot be compared with"
                f" {file.table.shown}; keep the columns that driftvote ask wrote"
            )
        if self.code >= 0 and rows.verified is not None and rows.verified[place] not in (-1, self.code):
            other = file.form.decode_one(int(rows.verified[place]))
            raise DriftvoteError(
                f"{self.where}, column {VERIFIED!r}: row {self.row} is {file.form.decode_one(self.code)!r}, and"
                f" {other!r} in column {file.roles.verified!r} of {file.table.shown}; keep one of them"
            )

    def _changed(self, column: str, asked: str, now: str, file: VoteFile) -> DriftvoteError:
        return DriftvoteError(
            f"{self.where}, column {column!r}: row {self.row} had {asked}, and {file.table.shown} has {now} now; ask"
            " again if the votes have changed, or read them with the options that driftvote ask had"
        )


def text_cells(column: Any) -> list[str]:
    """Cells as text, without blanks around them."""
    import pyarrow as pa

    return [(cell or "").strip() for cell in plain_column(column).cast(pa.string()).to_pylist()]


def _plain(cell: str) -> str:
    """A cell without the apostrophe of --safe-csv."""
    return cell[1:] if cell[:1] == "'" and cell[1:].lstrip()[:1] in tuple("=+-@") else cell


def _code(cell: str, form: VoteFormat) -> int:
    """The code of a cell; people write Safe for safe, and spreadsheets TRUE for true."""
    code = form.code_of(cell or None, lenient=True)
    if code != BAD:
        return code
    alike = [place for place, value in enumerate(form.classes) if str(value).casefold() == cell.casefold()]
    return alike[0] if len(alike) == 1 else BAD


def find_encoding(path: Path) -> str:
    """UTF-8, or else what spreadsheets write; a wrong guess shows, because votes and answers are compared."""
    content = path.read_bytes()
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16"
    try:
        content.decode()
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8"


def read_questions(paths: Sequence[Path], form: VoteFormat) -> list[AskedRow]:
    """The lines of files of questions, in the order of their rows; a bad answer, or a second one for a row, is refused.

    A file may come back from a spreadsheet: with another delimiter, encoding or line ends, or with a byte order mark.
    """
    found: dict[int, AskedRow] = {}
    for path in paths:
        with open_table(str(path), FileOptions(encoding=find_encoding(path))) as table:
            table.complete()
            table.require([ROW, VERIFIED])
            line = 0
            for batch in table.batches(table.names):
                columns = {
                    _plain(name): text_cells(column) for name, column in zip(table.names, batch.columns, strict=True)
                }
                for cells in zip(*columns.values(), strict=True):
                    one = _asked_row(dict(zip(columns, map(_plain, cells), strict=True)), table, line, form)
                    line += 1
                    if one is None:
                        continue
                    before = found.get(one.row)
                    if before is not None and before.code >= 0 and one.code >= 0:
                        raise DriftvoteError(
                            f"{one.where}, column {VERIFIED!r}: row {one.row} is answered already ({before.where});"
                            " keep one of the answers"
                        )
                    if before is None or one.code >= 0:
                        found[one.row] = one
    return [found[row] for row in sorted(found)]


def _asked_row(cells: dict[str, str], table: Any, line: int, form: VoteFormat) -> AskedRow | None:
    row, answer = cells.pop(ROW), cells.pop(VERIFIED)
    if not row and not answer:
        return None  # an empty line at the end of a sheet
    where, number = f"{table.shown}: {table.place(line)}", parse_number(row)
    if not isinstance(number, int) or not 0 <= number < 1 << 62:
        raise DriftvoteError(
            f"{where}, column {ROW!r}: {row!r} is not the number of a row; keep the numbers that driftvote ask wrote"
        )
    code = _code(answer, form)
    if answer and code < 0:
        raise DriftvoteError(
            f"{where}, column {VERIFIED!r}: {answer!r} for row {number} is none of the classes {form.show_classes()};"
            " correct it, or leave it empty"
        )
    return AskedRow(where, number, code, cells)


def check_rows(asked: Sequence[AskedRow], rows: VoteRows, first: int, file: VoteFile) -> Ints:
    """The places of asked rows in a batch that begins with row `first`, or an error if one of them has changed."""
    own = [one for one in asked if first <= one.row < first + len(rows)]
    for one in own:
        one.check(rows, one.row - first, file)
    return np.array([one.row - first for one in own], np.int64)


def check_all_there(asked: Sequence[AskedRow], n_rows: int, file: VoteFile) -> None:
    """Refuse a row after the last one; `asked` are in the order of their rows."""
    if asked and asked[-1].row >= n_rows:
        one = asked[-1]
        raise DriftvoteError(
            f"{one.where}, column {ROW!r}: there is no row {one.row}, {file.table.shown} has rows 0 to {n_rows - 1};"
            " read the votes with the options that driftvote ask had, or ask again"
        )


class Answers:
    """Answers to questions about a file, and what they change in its labels."""

    def __init__(self, asked: Sequence[AskedRow], file: VoteFile) -> None:
        self.rows = [one for one in asked if one.code >= 0]
        self.n_questions = len(asked)
        self.moved = 0  # labels that differ from those without answers
        self._file = file
        self._numbers = np.array([one.row for one in self.rows], np.int64)
        self._codes = np.array([one.code for one in self.rows], np.int64)
        self._before = np.zeros(0, np.int16)  # labels without the answers
        self._disputed: list[tuple[int, int]] = []  # label before and answer, of rows in dispute

    @classmethod
    def read(cls, paths: Sequence[Path] | None, file: VoteFile) -> Answers | None:
        """The answers in files of questions; None if no file is named."""
        if not paths:
            return None
        refuse_many_streams(file.options.many_streams, "--verified")
        return cls(read_questions(paths, file.form), file)

    def tell(self, labeler: StreamLabeler, quiet: bool) -> None:
        """Label the file without the answers, then let the labeler's model use each answer for its whole stretch."""
        model = labeler.model()
        check_asks(model, "--verified")
        if not self.rows:
            return
        first_row, events, scores, labels = model.n_rows, list[DriftEvent](), list[Scores](), list[Any]()
        for rows, labeled, first in label_batches(
            self._file, StreamLabeler(self._file, model.copy, {None: model.copy()}), quiet, "labeling without answers"
        ):
            places = check_rows(self.rows, rows, first, self._file)
            if len(places):
                assert labeled.stream is not None
                scores.append(labeled.stream.score(places))
                own = np.searchsorted(self._numbers, first + places)
                before = zip(labeled.codes[places].tolist(), self._codes[own].tolist(), strict=True)
                self._disputed += [pair for pair, in_it in zip(before, scores[-1].disputed, strict=True) if in_it]
            events += [event for _, event in labeled.events]
            labels.append(labeled.codes.astype(np.int16))
        self._before = np.concatenate(labels)
        check_all_there(self.rows, len(self._before), self._file)
        joined = Scores(*(np.concatenate(part) for part in zip(*scores, strict=True)))
        model.know(known_stretches(first_row + self._numbers, joined, self._codes, stretch_starts(events)))

    def add_to(self, rows: VoteRows, first: int) -> VoteRows:
        """A batch that begins with row `first`, with the answers as verified classes."""
        own = slice(*np.searchsorted(self._numbers, (first, first + len(rows))))
        if own.start == own.stop:
            return rows
        verified = np.full(len(rows), -1, rows.codes.dtype) if rows.verified is None else rows.verified.copy()
        verified[self._numbers[own] - first] = self._codes[own]
        return replace(rows, verified=verified)

    def compare(self, labeled: LabeledBatch, first: int) -> None:
        """Count the labels of a batch that begins with row `first` that the answers have moved."""
        if self.rows:
            self.moved += int(np.count_nonzero(labeled.codes != self._before[first : first + len(labeled.codes)]))

    def to_dict(self, model: LabelModel, n_rows: int) -> dict[str, Any]:
        """What the answers changed, for the summary; weights are those at the last row."""
        found: dict[str, Any] = {
            "used": len(self.rows),
            "unanswered": self.n_questions - len(self.rows),
            "labels_moved": self.moved,
            "share_moved": self.moved / max(1, n_rows),
            "weights_before": {one.name: round(one.before_answers, 4) for one in model.label_models},
            "weights": {one.name: round(one.weight, 4) for one in model.label_models},
        }
        if self._disputed:
            tie = 1.0 / self._file.form.n_classes
            right = sum(float(label == answer) if label >= 0 else tie for label, answer in self._disputed)
            low, high = wilson_interval(right, len(self._disputed))
            found["disputed_before"] = {
                "rows": len(self._disputed),
                "accuracy": round(right / len(self._disputed), 4),
                "low": round(low, 4),
                "high": round(high, 4),
            }
        return found

    @staticmethod
    def lines(found: dict[str, Any]) -> Iterator[str]:
        """The same as lines of text."""
        left = f", {found['unanswered']} open" if found["unanswered"] else ""
        moved = f"{counted(found['labels_moved'], 'label')} ({found['share_moved']:.1%})"
        yield f"answers  {found['used']} used{left}; they moved {moved}"
        if found["used"]:
            before = found["weights_before"]
            shown = ", ".join(f"{name} {before[name]:.2f} -> {now:.2f}" for name, now in found["weights"].items())
            yield f"weights  {shown}"
        if "disputed_before" in found:
            score = found["disputed_before"]
            yield (
                f"disputed {score['accuracy']:.0%} of such rows were right before the answers"
                f" (95% interval {score['low']:.0%} to {score['high']:.0%}, from {counted(score['rows'], 'answer')})"
            )


def label_batches(
    file: VoteFile, labeler: StreamLabeler, quiet: bool, what: str, answers: Answers | None = None
) -> Iterator[tuple[VoteRows, LabeledBatch, int]]:
    """The rows of a file with answers, batch by batch, with their labels and the number of the first."""
    first = 0
    with rows_done(what, quiet) as listen:
        for rows in read_ahead(file.batches(typed=False)):
            rows = rows if answers is None else answers.add_to(rows, first)
            yield rows, labeler.label(rows), first
            first += len(rows)
            listen(first, file.table.done())


def wilson_interval(right: float, n: int, z: float = 1.96) -> tuple[float, float]:
    """The 95% interval of a share of which `right` of `n` are seen.

    >>> [round(end, 3) for end in wilson_interval(8, 10)]
    [0.49, 0.943]
    """
    share, spread = right / n, z * z / n
    middle, half = share + spread / 2, z * math.sqrt(share * (1 - share) / n + spread / (4 * n))
    return max(0.0, (middle - half) / (1 + spread)), min(1.0, (middle + half) / (1 + spread))
