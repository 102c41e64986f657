"""The parts of a report that every stream has: counts, labelers, time line, rows."""

from __future__ import annotations

from dataclasses import dataclass

Number = float | None
Time = str | float | int | None


@dataclass(frozen=True)
class Tally:
    """Counts of rows.

    Attributes
    ----------
    rows: rows read.
    labeled: rows that got a label.
    silent: rows on which nobody voted.
    tied: rows with votes whose weights were tied, so that they got no label.
    doubtful: rows with votes that are tied or whose label is less probable than `review_below`.
    review_below: probability under which a label is doubtful.
    votes: votes cast.
    abstentions: cells without a vote.
    """

    rows: int
    labeled: int
    silent: int
    tied: int
    doubtful: int
    review_below: float
    votes: int
    abstentions: int


@dataclass(frozen=True)
class LabelerSummary:
    """One labeler over the whole stream.

    Attributes
    ----------
    name: its name.
    votes: votes cast.
    coverage: share of the rows on which it voted.
    accuracy: estimated accuracy at the end (when it votes).
    accuracy_low, accuracy_high: the band around it.
    lowest, highest: extremes of the estimate over the stream, windows of fewer than 64 rows left out.
    changed: whether the estimate moved so far that bands twice as wide as drawn do not touch.
    before, after: the two estimates that noise explains least, in time order (None when it explains them).
    weight: what a vote of it counted at the last row.
    with_label: share of its votes that went to the class that became the label.
    classes_voted: classes that it voted for at least once.
    usual_class: the class that it voted for most.
    usual_share: share of its votes for that class.
    gold_accuracy: share of its votes that match the true labels.
    shown: whether the chart of accuracies begins with it.
    """

    name: str
    votes: int
    coverage: float
    accuracy: Number
    accuracy_low: Number
    accuracy_high: Number
    lowest: Number
    highest: Number
    changed: bool
    before: Number
    after: Number
    weight: Number
    with_label: Number
    classes_voted: int
    usual_class: str | None
    usual_share: Number
    gold_accuracy: Number
    shown: bool


@dataclass(frozen=True)
class ClassSummary:
    """One class.

    Attributes
    ----------
    name: its name ("other classes" stands for those beyond the first few hundred).
    votes: votes for it.
    labels: rows labeled with it.
    gold: rows whose true label it is; None without true labels.
    """

    name: str
    votes: int
    labels: int
    gold: int | None


@dataclass(frozen=True)
class Timeline:
    """The stream in buckets of equally many rows; extremes inside a bucket are kept.

    Attributes
    ----------
    step: rows in a bucket (the last one may have fewer).
    first_row, last_row: rows at which each bucket begins and ends.
    first_time, last_time: times of those rows; empty when no times were given.
    by_time: whether the charts' axis is the time (it grows from bucket to bucket) and not the row.
    window_low, window_mean, window_high: window lengths in the bucket.
    accuracy: mean estimate of each labeler.
    accuracy_low, accuracy_high: its extremes in the bucket.
    band_low, band_high: extremes widened by the 95% range of estimation noise at the bucket's shortest window.
    coverage: share of the bucket's rows on which each labeler voted.
    doubtful: share of the rows that are doubtful.
    differs: share of the rows whose label is not the majority's.
    """

    step: int
    first_row: list[int]
    last_row: list[int]
    first_time: list[Time]
    last_time: list[Time]
    by_time: bool
    window_low: list[int]
    window_mean: list[float]
    window_high: list[int]
    accuracy: list[list[Number]]
    accuracy_low: list[list[Number]]
    accuracy_high: list[list[Number]]
    band_low: list[list[Number]]
    band_high: list[list[Number]]
    coverage: list[list[float]]
    doubtful: list[float]
    differs: list[float]


@dataclass(frozen=True)
class WindowDrop:
    """A place where the window shrank to a quarter or less: the past stopped being a guide.

    Attributes
    ----------
    row: first row of the bucket in which the window was shortest.
    time: its time.
    before: the longest window before.
    after: the shortest window after.
    """

    row: int
    time: Time
    before: int
    after: int


@dataclass(frozen=True)
class Vote:
    """One labeler's part in one row.

    Attributes
    ----------
    labeler: its name.
    vote: the class it voted for.
    weight: what the vote counted: the log-odds added to that class.
    """

    labeler: str
    vote: str
    weight: float


@dataclass(frozen=True)
class Example:
    """One row, and why it got its label.

    Attributes
    ----------
    row: its number.
    id: the caller's id of it.
    time: its time.
    label: the label; None when tied.
    majority: the plain majority; None when tied.
    gold: the true label, where known.
    probability: probability of the most likely class.
    window: rows that the weights were estimated from.
    votes: who voted what with which weight, heaviest first.
    """

    row: int
    id: str | None
    time: Time
    label: str | None
    majority: str | None
    gold: str | None
    probability: float
    window: int
    votes: list[Vote]


@dataclass(frozen=True)
class Differences:
    """Where the labels are not the plain majority's.

    Attributes
    ----------
    overruled: rows on which the majority's class was overruled.
    settled: rows on which the majority was tied and the weights decided.
    opened: rows on which the majority had a class and the weights were tied.
    examples: some of those rows, spread over the stream.
    """

    overruled: int
    settled: int
    opened: int
    examples: list[Example]


@dataclass(frozen=True)
class Agreement:
    """How often labelers vote alike.

    Attributes
    ----------
    share: for each pair, share of the rows with votes of both on which they are the same; None when never together.
    rows: for each pair, the rows with votes of both.
    """

    share: list[list[Number]]
    rows: list[list[int]]
