"""The report as data: the dataclasses that the HTML page and the JSON file both show, and their JSON form.

Shares and accuracies run from 0 to 1, `None` means unknown, and no value is NaN. Rows are numbered from 0. A list has
one entry for each bucket of the time axis; a table has one line for each labeler and one entry for each bucket.
"""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from driftvote.arrays import Ints
from driftvote.drift.events import DriftEvent, Time
from driftvote.errors import DriftvoteError, OrderError
from driftvote.times import read_time

Number = float | None

FORMAT = 3  # version of the JSON file. It changes when a field changes its meaning or is removed
DIGITS = 4  # decimals of shares and accuracies: a hundredth of a percent
MAX_DROPS = 50  # sharp falls of the window that a report lists, the largest ones


@dataclass(frozen=True)
class RowCounts:
    """Counts of rows and votes."""

    rows: int  # rows read
    labeled: int  # rows that got a label
    silent: int  # rows without votes
    tied: int  # rows with votes that got no label because their weights were tied
    review: int  # rows with votes that are tied or whose label is less probable than `review_below`
    review_below: float  # probability below which a label should be reviewed
    votes: int  # votes cast
    abstentions: int  # cells without a vote


@dataclass(frozen=True)
class LabelerSummary:
    """One labeler over the whole stream."""

    name: str  # its name
    votes: int  # votes cast
    coverage: float  # share of the rows on which it voted
    accuracy: Number  # estimated accuracy (when it votes) at the end of the stream
    accuracy_low: Number  # low end of the band around it
    accuracy_high: Number  # high end of the band
    weight: Number  # log-odds that a vote of the labeler adds to its class, averaged over its votes
    with_label: Number  # share of its votes for the class that became the label
    classes_voted: int  # number of classes that it voted for
    usual_class: str | None  # the class that it voted for most often
    usual_share: Number  # share of its votes for that class
    gold_accuracy: Number  # share of its votes that match the true labels
    shown: bool  # whether the accuracy chart shows the labeler when the page opens


@dataclass(frozen=True)
class ClassSummary:
    """One class."""

    name: str  # its name; "other classes" stands for all classes after the first few hundred
    votes: int  # votes for it
    labels: int  # rows labeled with it
    gold: int | None  # rows whose true label it is; None without true labels


@dataclass(frozen=True)
class Timeline:
    """The stream in buckets of equally many rows, with the extremes inside each bucket."""

    step: int  # rows in a bucket (the last bucket may have fewer)
    first_row: list[int]  # first row of each bucket
    last_row: list[int]  # last row of each bucket
    first_time: list[Time]  # times of the first rows; empty if no times were given
    last_time: list[Time]  # times of the last rows; empty if no times were given
    by_time: bool  # whether the charts' axis is the time (it grows from bucket to bucket) and not the row
    window_low: list[int]  # shortest window in the bucket
    window_mean: list[float]  # mean window
    window_high: list[int]  # longest window
    accuracy: list[list[Number]]  # mean estimate of each labeler
    band_low: list[list[Number]]  # lowest estimate in the bucket, less the 95% noise range at the shortest window
    band_high: list[list[Number]]  # highest estimate in the bucket, plus that range
    coverage: list[list[float]]  # share of the bucket's rows on which each labeler voted
    review: list[float]  # share of the rows that should be reviewed
    differs: list[float]  # share of the rows whose label differs from the majority's


@dataclass(frozen=True)
class WindowDrop:
    """A fall of the window to a quarter of its length or less."""

    row: int  # first row of the bucket with the shortest window
    time: Time  # its time
    before: int  # the longest window before the fall
    after: int  # the shortest window after it


@dataclass(frozen=True)
class ExampleVote:
    """One vote of an example row."""

    labeler: str  # name of the labeler
    vote: str  # the class it voted for
    share: float  # what the vote adds to the log-odds of the row's label; negative: it speaks against it


@dataclass(frozen=True)
class ExampleRow:
    """One row, and why it got its label: `log_odds` is `base`, plus all shares, plus `others`, plus `together`."""

    row: int  # its number
    id: str | None  # its id
    time: Time  # its time
    label: str | None  # the label; None if tied
    majority: str | None  # the class with the most votes; None if tied
    gold: str | None  # the true label, if known
    probability: float  # probability of the most likely class
    window: int  # rows that the label model was fitted to
    verified: bool  # whether the class was verified: then `base` is all there is
    explained: str  # the class that the parts below are about: the label, or the first of the likeliest if tied
    log_odds: float  # ln p / (1 - p) of its probability, and the sum of all parts below
    base: float  # the same if nobody had voted: class balance, and what abstaining says
    votes: list[ExampleVote]  # the votes and their shares, the largest first, whatever its sign
    others: float  # shares of votes beyond the first 400, which are not listed
    together: float  # what the votes add together beyond their shares: they confirm or repeat each other
    second: str  # the likeliest other class
    second_log_odds: float  # ln p / (1 - p) of its probability; never above `log_odds`


@dataclass(frozen=True)
class RowToVerify:
    """A row near the end of the stream whose true class says most about the labels of the others."""

    row: int  # its number
    id: str | None  # its id
    time: Time  # its time
    classes: dict[str, float]  # the classes in dispute and their probabilities, the likeliest first
    why: str  # what the label models say of it


@dataclass(frozen=True)
class RowsToVerify:
    """Questions, the rows whose true class helps most: `driftvote ask` and `AdaptiveLabelModel.ask` ask for more."""

    rows: list[RowToVerify]  # most valuable first
    expected_change: float  # share of the labels that twenty answers are expected to change
    among: int  # rows at the end of the stream that were considered


@dataclass(frozen=True)
class NextStep:
    """One thing to do."""

    text: str  # a sentence
    section: str  # the section of the page that has the details; empty if there is none


@dataclass(frozen=True)
class MajorityDifferences:
    """Rows whose label differs from the plain majority's."""

    overruled: int  # rows with another class than the majority's
    settled: int  # rows with a tied majority and a label
    opened: int  # rows with a majority and tied weights
    examples: list[ExampleRow]  # some of these rows, spread over the stream


@dataclass(frozen=True)
class PairAgreement:
    """How often labelers cast the same vote."""

    share: list[list[Number]]  # by pair: share of the rows with both votes on which they are equal; None if none
    rows: list[list[int]]  # by pair: rows with both votes


@dataclass(frozen=True)
class RowRange:
    """Consecutive rows in which an accuracy is measured."""

    first_row: int  # the first row
    last_row: int  # the last row


@dataclass(frozen=True)
class MethodScore:
    """Accuracy of one labeling method against the true labels."""

    name: str  # the method
    accuracy: float  # share of the rows labeled correctly; a row without a label counts 1/K
    over_time: list[Number]  # the same in each of `GoldComparison.ranges`


@dataclass(frozen=True)
class GoldComparison:
    """The labels against the true labels."""

    rows: int  # rows with a true label
    ranges: list[RowRange]  # the row ranges in which accuracy is measured
    scores: list[MethodScore]  # the model first, then the methods it is compared with
    confusion_classes: list[str]  # names of the classes of `confusion`
    confusion: list[list[int]]  # rows by true class (lines) and label (columns; the last column is "no label")


@dataclass(frozen=True)
class CommitteeSummary:
    """A set of labelers whose majority vote has a certified error."""

    labelers: list[str]  # its members
    error: float  # the certified bound on the error
    note: str = ""  # the assumptions


@dataclass(frozen=True)
class NearCopy:
    """Two labelers that agree more than their accuracies explain."""

    first: str  # name of the one
    second: str  # name of the other
    agreement: float  # share of common rows on which they cast the same vote
    expected: Number = None  # the share that their accuracies explain


@dataclass(frozen=True)
class DependenceSummary:
    """Labelers that make the same errors."""

    effective_labelers: Number = None  # number of independent labelers that all of them together are worth
    near_copies: list[NearCopy] = field(default_factory=list)  # pairs that are nearly copies
    note: str = ""  # the rows that this was computed from, and other findings


@dataclass(frozen=True)
class LabelModelWeight:
    """One label model of the mixture."""

    name: str  # its name
    weight: float  # its weight at the last row; the weights add up to 1
    before_answers: float  # the weight that the votes alone give it; differs from `weight` where rows are verified

    @property
    def moved(self) -> bool:
        """Whether verified rows moved the weight."""
        return self.weight != self.before_answers


@dataclass(frozen=True)
class Report:
    """Everything that a report shows."""

    format: int  # version of the JSON file
    driftvote: str  # version of driftvote that made the report
    title: str  # title of the page
    source: str  # where the votes came from
    verdict: str  # whether labelers changed, which, since when, and how many labels differ from the majority
    findings: list[str]  # the other main results, in sentences
    next_steps: list[NextStep]  # what to do now, most useful first
    tally: RowCounts  # counts of rows and votes
    reading: dict[str, str]  # how the votes were read, by name
    settings: dict[str, str]  # the model's settings, by name
    labelers: list[LabelerSummary]  # one entry for each labeler
    classes: list[ClassSummary]  # one entry for each class
    timeline: Timeline  # estimates and windows over time
    window_drops: list[WindowDrop]  # sharp falls of the window, largest first; empty if events were looked for
    agreement: PairAgreement  # how often labelers cast the same vote
    differences: MajorityDifferences  # rows whose label differs from the majority's
    review: list[ExampleRow]  # the rows to review, the least certain first
    questions: RowsToVerify | None = None  # rows to ask about; None for models that do not ask
    gold: GoldComparison | None = None  # the labels against the true labels; None without them
    events: list[DriftEvent] | None = None  # drift events; None if the model did not look for drift
    committee: CommitteeSummary | None = None  # the certified committee; None for models without one
    dependence: DependenceSummary | None = None  # labelers that make the same errors; None if it could not be computed
    label_models: list[LabelModelWeight] = field(default_factory=list)  # the mixture; empty for other models

    def save(self, path: str | Path) -> None:
        """Write the page (`.html`) or the same content as JSON (`.json`), whole or not at all."""
        from driftvote.report.page import write_report

        write_report(self, path)

    def to_dict(self) -> dict[str, Any]:
        """The content of the JSON file: plain dicts, lists, numbers and text."""
        plain: dict[str, Any] = _to_plain(self)
        return plain

    def __repr__(self) -> str:
        return f"Report({self.title!r}: {self.tally.rows:,} rows, {len(self.labelers)} labelers)"

    def _repr_html_(self) -> str:
        """The findings, for a notebook; `save` writes the page."""
        lines = "".join(
            f"<li>{escape(line)}</li>" for line in (*self.findings, *(step.text for step in self.next_steps))
        )
        return f"<p><b>{escape(self.title)}</b><br>{escape(self.verdict)}</p><ul>{lines}</ul>"


def report_to_json(report: Report) -> str:
    """The report as JSON text; equal reports give equal bytes."""
    # NaN is not JSON: an error here is better than a file that other programs cannot read.
    return json.dumps(report.to_dict(), ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n"


def report_from_json(source: str | Path) -> Report:
    """The report in a JSON file (a `Path`) or in JSON text."""
    try:
        plain = json.loads(source.read_text(encoding="utf-8") if isinstance(source, Path) else source)
    except ValueError as problem:
        raise DriftvoteError(
            f"this is not the JSON of a report ({problem}); pass a file that write_report made"
        ) from None
    version = plain.get("format") if isinstance(plain, dict) else None
    if version != FORMAT:
        raise DriftvoteError(f"this is not a report of format {FORMAT} but of {version!r}; make the report again")
    try:
        report: Report = _from_plain(Report, plain)
    except (KeyError, TypeError) as problem:
        raise DriftvoteError(f"the report is damaged ({problem}); make it again") from None
    return report


def _to_plain(value: Any) -> Any:
    """Dataclasses as dicts, recursively; objects with a `sentence` include it."""
    if dataclasses.is_dataclass(value):
        sentence = {"sentence": value.sentence} if hasattr(value, "sentence") else {}
        return sentence | {entry.name: _to_plain(getattr(value, entry.name)) for entry in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {key: _to_plain(entry) for key, entry in value.items()}
    return [_to_plain(entry) for entry in value] if isinstance(value, (list, tuple)) else value


def _from_plain(kind: Any, plain: Any) -> Any:
    """The value of annotated type `kind` that `_to_plain` turned into `plain`."""
    if dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        fields = [entry.name for entry in dataclasses.fields(kind) if entry.name in plain]  # files of before lack some
        values = {name: _from_plain(hints[name], plain[name]) for name in fields}
        return typing.cast(Any, kind)(**values)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        nested = [a for a in arguments if dataclasses.is_dataclass(a) or typing.get_origin(a) in (list, tuple)]
        return _from_plain(nested[0], plain) if nested and plain is not None else plain
    if origin is list:
        return [_from_plain(arguments[0], entry) for entry in plain]
    if origin is tuple:
        kinds = [arguments[0]] * len(plain) if arguments[-1] is Ellipsis else arguments
        return tuple(_from_plain(one, entry) for one, entry in zip(kinds, plain, strict=True))
    return plain


def rounded(values: Any) -> list[Any]:
    """An array as nested lists of numbers with `DIGITS` decimals, None where it is not finite."""
    array = np.round(np.asarray(values, np.float64), DIGITS)
    plain = array.astype(object)
    plain[~np.isfinite(array)] = None
    return list(plain.tolist())


def plain_time(value: Any) -> Time:
    """A time as a number or as text, dates and times in UTC by ISO 8601; None if it is missing."""
    if value is None or value != value:  # NaN and NaT differ from themselves
        return None
    try:
        kind, number = read_time(value)
    except OrderError:
        return None if isinstance(value, float) else str(value)
    if kind != "datetime":
        return typing.cast(Time, number)
    return str(np.datetime64(number // 1_000_000, "ms")).removesuffix(".000").removesuffix("T00:00:00")


def share(part: float, whole: float) -> Number:
    """`part / whole` with `DIGITS` decimals; None if `whole` is 0."""
    return round(float(part) / float(whole), DIGITS) if whole else None


def group_starts(n: int, size: int) -> Ints:
    """Starts of groups of `size` neighbours; a last group of less than half of that joins the one before.

    >>> group_starts(9, 4), group_starts(11, 4)
    (array([0, 4]), array([0, 4, 8]))
    """
    starts = np.arange(0, n, size)
    return starts[:-1] if len(starts) > 1 and 2 * (n - int(starts[-1])) < size else starts
