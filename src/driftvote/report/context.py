"""All that a report shows, as one documented dataclass: the page and its JSON twin are made from nothing else.

Shares and accuracies run from 0 to 1; `None` stands for "unknown" (nothing is ever NaN). Rows count from 0. A list with
one entry a bucket runs along the time axis; a table has one line a labeler and one entry a bucket.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from driftvote.drift import DriftEvent
from driftvote.report.parts import (
    Agreement,
    ClassSummary,
    Differences,
    Example,
    LabelerSummary,
    Number,
    Tally,
    Time,
    Timeline,
    WindowDrop,
)

FORMAT = 1
"""Version of the JSON twin; it changes when a field changes its meaning or goes away."""


@dataclass(frozen=True)
class Score:
    """How a way of labeling did against the true labels.

    Attributes
    ----------
    name: the way of labeling.
    accuracy: share of the rows labeled right; a row left open counts 1/K.
    over_time: the same in each stretch of `Gold.stretches`.
    """

    name: str
    accuracy: float
    over_time: list[Number]


@dataclass(frozen=True)
class Stretch:
    """A stretch of rows in which shares are taken.

    Attributes
    ----------
    first_row, last_row: where it begins and ends.
    time: time of its first row.
    """

    first_row: int
    last_row: int
    time: Time


@dataclass(frozen=True)
class Gold:
    """The labels against the true ones.

    Attributes
    ----------
    rows: rows with a true label.
    stretches: stretches of time in which accuracy is measured.
    scores: the model first, then the ways it is compared with.
    confusion_classes: names of the classes of `confusion`, by how often they are true.
    confusion: rows by true class (lines) and label (columns; the last one is "no label").
    """

    rows: int
    stretches: list[Stretch]
    scores: list[Score]
    confusion_classes: list[str]
    confusion: list[list[int]]


@dataclass(frozen=True)
class Committee:
    """A set of labelers whose majority has a certified error.

    Attributes
    ----------
    labelers: its members.
    error: the certified bound on its error.
    note: under which assumptions.
    """

    labelers: list[str]
    error: float
    note: str = ""


@dataclass(frozen=True)
class NearCopy:
    """Two labelers that agree more than their accuracies explain.

    Attributes
    ----------
    first, second: their names.
    agreement: share of common rows on which they vote alike.
    expected: the share that their accuracies explain.
    """

    first: str
    second: str
    agreement: float
    expected: Number = None


@dataclass(frozen=True)
class Dependence:
    """Whether labelers err together.

    Attributes
    ----------
    effective_labelers: how many independent labelers they are worth.
    near_copies: pairs that are nearly copies.
    note: how it was found.
    """

    effective_labelers: Number = None
    near_copies: list[NearCopy] = field(default_factory=list)
    note: str = ""


@dataclass(frozen=True)
class Report:
    """All that a report shows.

    Attributes
    ----------
    format: version of the JSON twin.
    driftvote: version of driftvote that made it.
    title: of the page.
    source: where the votes came from.
    findings: what there is to know, in sentences.
    tally: counts of rows.
    reading: how the votes were read, by name.
    settings: the model's settings, by name.
    labelers: one entry a labeler.
    classes: one entry a class.
    timeline: what changed over time.
    window_drops: places where the window shrank sharply, largest first.
    agreement: how often labelers vote alike.
    differences: where the labels are not the majority's.
    doubtful: the most doubtful rows, for review.
    gold: the labels against true ones; None without them.
    events: drift that was noticed, as `driftvote.DriftEvent`; None where nothing looks for it.
    committee: a certified committee; None where none was sought.
    dependence: labelers that err together; None where it was not looked at.
    """

    format: int
    driftvote: str
    title: str
    source: str
    findings: list[str]
    tally: Tally
    reading: dict[str, str]
    settings: dict[str, str]
    labelers: list[LabelerSummary]
    classes: list[ClassSummary]
    timeline: Timeline
    window_drops: list[WindowDrop]
    agreement: Agreement
    differences: Differences
    doubtful: list[Example]
    gold: Gold | None = None
    events: list[DriftEvent] | None = None
    committee: Committee | None = None
    dependence: Dependence | None = None

    def save(self, path: str | Path) -> None:
        """Write the page (`.html`) or its JSON twin (`.json`), whole or not at all."""
        from driftvote.report.page import write_report

        write_report(self, path)

    def as_dict(self) -> dict[str, Any]:
        """Plain dicts, lists, numbers and text: what the JSON twin holds."""
        from driftvote.report.twin import to_plain

        return to_plain(self)

    def __repr__(self) -> str:
        return f"Report({self.title!r}: {self.tally.rows:,} rows, {len(self.labelers)} labelers)"

    def _repr_html_(self) -> str:
        """What a notebook shows: the findings; `save` writes the page."""
        from html import escape

        lines = "".join(f"<li>{escape(line)}</li>" for line in self.findings)
        return f"<h3>{escape(self.title)}</h3><ul>{lines}</ul>"
