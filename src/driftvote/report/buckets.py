"""Counts of a stream of any length in a bounded number of time buckets.

Row t belongs to bucket t // step. When all buckets are full, neighbours are merged and the step doubles. Sums are
integers, so the content of a bucket depends on the rows alone, never on the batches that they came in.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from driftvote.arrays import Bools, Codes, Floats, Ints
from driftvote.core.jit import jit

Arrays = dict[str, npt.NDArray[Any]]

ONE = 1 << 32  # a share of 1 in sums of shares, which are integers
WEIGHT_ONE = 1 << 24  # a weight of 1 in sums of weights, which have a larger range

MIN_BUCKETS, MAX_BUCKETS = 64, 1024
MAX_CELLS = 1 << 16  # buckets times labelers: a thousand labelers get fewer buckets, not more memory or a larger page


class LabeledRows(NamedTuple):
    """Rows with votes, labels and estimates. Rows are the last axis."""

    votes: Codes  # (labelers, rows)
    labels: Ints  # (3, rows): labels of the model, the majority, weights from every row so far; -1 without a label
    gold: Ints  # true classes, -1 where unknown
    probability: Floats  # of the most likely class
    windows: Ints
    accuracies: Floats  # (labelers, rows)
    coverage: Floats  # (labelers, rows): share of the window's rows with a vote
    weights: Floats  # (labelers, rows): log-odds that the vote added
    differs: Bools  # rows with votes whose label is not the majority's
    review: Bools  # rows with votes that are tied or whose label is not probable enough

    @classmethod
    def none(cls, n_labelers: int) -> LabeledRows:
        """No rows."""
        labels, table = np.zeros((3, 0), np.int64), np.zeros((n_labelers, 0))
        line, flags = np.zeros(0), np.zeros(0, np.bool_)
        votes, codes = table.astype(np.int16), labels[0]
        return cls(votes, labels, codes, line, codes, table, table, table, flags, flags)


_COMBINE: dict[str, Any] = {"window_low": np.minimum, "window_high": np.maximum, "low": np.minimum, "high": np.maximum}
_EMPTY = {"window_low": np.iinfo(np.int64).max, "low": np.inf, "high": -np.inf}


def one_bucket_per_row(rows: LabeledRows) -> Arrays:
    """Each row as a bucket of its own. Arrays are added up unless `_COMBINE` has another function for them."""
    (label, majority, _), differs = rows.labels, rows.differs
    cast, known = rows.votes >= 0, rows.coverage > 0.0
    voted, labeled, checked = cast.any(axis=0), label >= 0, rows.gold >= 0
    arrays = {
        "rows": np.ones(len(label), np.int64),
        "labeled": labeled,
        "silent": ~voted,
        "tied": voted & ~labeled,
        "review": rows.review,
        "overruled": differs & labeled & (majority >= 0),
        "settled": differs & labeled & (majority < 0),
        "opened": differs & ~labeled,
        "gold": checked,
        "right": checked & (rows.labels == rows.gold),  # one line for each of `LabeledRows.labels`
        "open": checked & (rows.labels < 0),
        "window_low": rows.windows,
        "window_high": rows.windows,
        "window_sum": rows.windows,
        # One line for each labeler. Accuracies count on rows whose window holds a vote of the labeler.
        "low": np.where(known, rows.accuracies, np.inf),
        "high": np.where(known, rows.accuracies, -np.inf),
        "accuracy": (np.where(known, rows.accuracies, 0.0) * ONE).astype(np.int64),
        "coverage": (rows.coverage * ONE).astype(np.int64),
        "known": known,
        "cast": cast,
    }
    return {name: array.astype(np.int64) if array.dtype == np.bool_ else array for name, array in arrays.items()}


def count_totals(rows: LabeledRows, n_shown: int) -> Arrays:
    """Totals over rows. Of the classes, `n_shown` are counted; the last of them stands for all classes after it too."""
    n, label, gold = len(rows.votes), rows.labels[0], rows.gold
    cast = rows.votes >= 0
    both, same = np.zeros((2, n, n), np.int64)
    count_pairs(rows.votes, both, same)
    votes_shown, gold_shown, label_shown = (np.minimum(codes, n_shown - 1) for codes in (rows.votes, gold, label))
    cells = (gold_shown * (n_shown + 1) + np.where(label < 0, n_shown, label_shown))[gold >= 0]
    return {
        # By pair of labelers, upper triangle: rows on which both voted, and cast the same vote.
        "both": both,
        "same": same,
        # By labeler: votes on rows with a label, for that label, on rows with a true label, for that label; weights.
        "labeled": (cast & (label >= 0)).sum(axis=1),
        "with_label": (cast & (rows.votes == label)).sum(axis=1),
        "gold_votes": (cast & (gold >= 0)).sum(axis=1),
        "gold_hits": (cast & (rows.votes == gold)).sum(axis=1),
        "weight": (rows.weights * WEIGHT_ONE).astype(np.int64).sum(axis=1),
        # By class. In the confusion matrix, labels are the columns, and the last column is "no label".
        "votes_by_class": np.array([_histogram(line, n_shown) for line in votes_shown], np.int64).reshape(n, n_shown),
        "labels_by_class": _histogram(label_shown, n_shown),
        "confusion": np.bincount(cells, minlength=n_shown * (n_shown + 1)).reshape(n_shown, n_shown + 1),
    }


def _histogram(codes: Codes, n_classes: int) -> Ints:
    """How often each class code occurs; -1 is not counted."""
    return np.bincount(codes + 1, minlength=n_classes + 1)[1:]


@jit
def count_pairs(votes: Codes, both: Ints, same: Ints) -> None:
    """Add the rows on which both labelers of a pair voted, and voted alike; votes are (labelers, rows)."""
    n, n_rows = votes.shape
    for i in range(n):
        for j in range(i + 1, n):
            together, alike = 0, 0
            for t in range(n_rows):
                voted = (votes[i, t] >= 0) & (votes[j, t] >= 0)
                together += voted
                alike += voted & (votes[i, t] == votes[j, t])
            both[i, j] += together
            same[i, j] += alike


def max_buckets(n_labelers: int) -> int:
    """Number of buckets for so many labelers: even, and fewer for very many labelers."""
    return int(np.clip(MAX_CELLS // max(n_labelers, 1) // 2 * 2, MIN_BUCKETS, MAX_BUCKETS))


class StreamCounts:
    """Buckets and totals of a stream, in memory that does not grow with its rows."""

    def __init__(self, n_labelers: int, n_classes_shown: int, capacity: int | None = None) -> None:
        self.capacity = capacity or max_buckets(n_labelers)
        self.n_classes_shown = n_classes_shown
        self.step = 1
        self.n_rows = 0
        self.totals = count_totals(LabeledRows.none(n_labelers), n_classes_shown)
        self.times: npt.NDArray[Any] | None = None  # of the first and the last row of each bucket
        self._buckets = self._empty(one_bucket_per_row(LabeledRows.none(n_labelers)))

    def _empty(self, like: Arrays) -> Arrays:
        return {
            name: np.full((*array.shape[:-1], self.capacity), _EMPTY.get(name, 0), array.dtype)
            for name, array in like.items()
        }

    @property
    def buckets(self) -> Arrays:
        """The arrays of `one_bucket_per_row` for the buckets that hold rows."""
        return {name: array[..., : -(-self.n_rows // self.step)] for name, array in self._buckets.items()}

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for array in (*self._buckets.values(), *self.totals.values()))

    def make_room(self) -> int:
        """Number of rows that fit; full buckets are merged first."""
        if self.n_rows == self.capacity * self.step:
            self.step *= 2
            half = np.arange(self.capacity // 2)
            full, self._buckets = self._buckets, self._empty(self._buckets)
            self._combine(full, 2 * half, half)
            if self.times is not None:
                self.times[half] = np.column_stack([self.times[0::2, 0], self.times[1::2, 1]])
        return self.capacity * self.step - self.n_rows

    def add(self, rows: LabeledRows, times: npt.NDArray[Any] | None) -> None:
        """Count rows for which there is room."""
        lines = (self.n_rows + np.arange(len(rows.gold))) // self.step
        starts = np.flatnonzero(np.diff(lines, prepend=-1))
        self._combine(one_bucket_per_row(rows), starts, lines[starts])
        for name, more in count_totals(rows, self.n_classes_shown).items():
            self.totals[name] += more
        if times is not None:
            self.times = np.empty((self.capacity, 2), object) if self.times is None else self.times
            for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(lines)], strict=True):
                if (self.n_rows + start) % self.step == 0:
                    self.times[lines[start], 0] = times[start]
                self.times[lines[start], 1] = times[end - 1]
        self.n_rows += len(lines)

    def _combine(self, parts: Arrays, starts: Ints, lines: Ints) -> None:
        """Combine groups of neighbours among `parts`, which begin at `starts`, and add them to the buckets `lines`."""
        for name, values in parts.items():
            combine, table = _COMBINE.get(name, np.add), self._buckets[name]
            table[..., lines] = combine(table[..., lines], combine.reduceat(values, starts, axis=-1))

    def add_labelers(self, n_labelers: int) -> None:
        """Make room for more labelers; the new ones have cast no votes so far."""
        wide = StreamCounts(n_labelers, self.n_classes_shown, self.capacity)
        for old, new in ((self._buckets, wide._buckets), (self.totals, wide.totals)):
            for name, array in old.items():
                new[name][tuple(slice(size) for size in array.shape)] = array
        self._buckets, self.totals = wide._buckets, wide.totals
