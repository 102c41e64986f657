"""The command line's side of reports: is one wanted, can it be made, and what goes into it."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from driftvote.cli.inputs import Votes
from driftvote.cli.labeling import Answer
from driftvote.errors import DriftvoteError, MissingExtraError
from driftvote.files.atomic import WholeFiles
from driftvote.files.rows import VoteRows

ENDINGS = (".html", ".htm", ".json")


class Reporting:
    """Collects a report while rows are labeled; does nothing if none is wanted."""

    def __init__(self, path: Path | None, many: bool, review_below: float) -> None:
        self.path = path
        self.settings: dict[str, Any] = {}
        self.review_below = review_below
        self._builder: Any = None
        if path is None:
            return
        if path.suffix.lower() not in ENDINGS:
            raise DriftvoteError(f"{path}: a report is written as .html or .json; name it so")
        if path.suffix.lower() != ".json" and (find_spec("plotly") is None or find_spec("jinja2") is None):
            raise MissingExtraError(
                f"{path}: a report needs plotly and jinja2; install them with pip install 'driftvote[report]', or write"
                " report.json, which needs neither"
            )
        if many:
            raise DriftvoteError(
                f"{path}: a report is about one stream; name it with --only VALUE, or leave --report out"
            )

    def add(self, votes: Votes, rows: VoteRows, answer: Answer) -> None:
        """Take a batch in."""
        if self.path is None:
            return
        if self._builder is None:
            self._builder = self._begin(votes, answer)
        ids = None if votes.roles.id is None else _ids(rows, votes.roles.id)
        times = None if rows.times is None else rows.times.to_numpy()
        codes = _in_order(rows, answer.labelers)
        self._builder.add(codes, answer.stream, times=times, ids=ids, gold=rows.gold)

    def _begin(self, votes: Votes, answer: Answer) -> Any:
        from driftvote.report import ReportBuilder

        only = "" if votes.given.only is None else f", stream {votes.given.only}"
        return ReportBuilder(
            labelers=list(answer.labelers),
            classes=list(votes.form.classes),
            title=f"{votes.table.shown}{only}",
            source=votes.table.shown,
            settings=self.settings,
            reading=_reading(votes),
            has_gold=votes.roles.gold is not None,
            review_below=self.review_below,
        )

    def write(self, files: WholeFiles) -> None:
        """Write it beside its place; it appears with the other files."""
        if self.path is None or self._builder is None:
            return
        from driftvote.report import write_report

        write_report(self._builder.finish(), files.named(self.path))


def _reading(votes: Votes) -> dict[str, object]:
    """How the file was read, for the page."""
    layout = "one vote a line" if votes.roles.long else "a column for each labeler"
    sort = {"order": "sorted by time"} if votes.given.sort else {}
    return {
        "file": votes.table.shown,
        "layout": layout,
        "classes": votes.how_read(),
        **votes.describe()["columns"],
        **sort,
    }


def _in_order(rows: VoteRows, labelers: tuple[str, ...]) -> Any:
    """The votes in the order of the model's labelers, which a saved state may have brought along."""
    if rows.labelers == labelers:
        return rows.codes
    codes = np.full((len(rows), len(labelers)), -1, rows.codes.dtype)
    for place, name in enumerate(rows.labelers):
        codes[:, labelers.index(name)] = rows.codes[:, place]
    return codes


def _ids(rows: VoteRows, name: str) -> Any:
    if name not in rows.kept.schema.names:
        return None
    return rows.kept.column(name).to_numpy(zero_copy_only=False)
