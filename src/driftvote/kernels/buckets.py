"""Counting for a report: rows go by once and leave sums, extremes and counts in buckets of time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from driftvote.kernels._jit import jit
from driftvote.kernels.layout import Codes, Floats, Ints

# Columns of `Buckets.counts`.
ROWS, SILENT, TIED, DOUBTFUL, OVERRULED, SETTLED, OPENED, GOLD, UNLABELED = range(9)


class Rows(NamedTuple):
    """A block of rows, with what was said of them."""

    votes: Codes  # (rows, labelers)
    labels: Ints
    majority: Ints  # filled in while counting
    proba: Floats  # (rows, classes)
    windows: Ints
    accuracies: Floats  # (rows, labelers)
    coverage: Floats  # (rows, labelers): inside the window


class Buckets(NamedTuple):
    """Stretches of equally many rows, one line each."""

    counts: Ints  # (buckets, 9): see the columns above
    window_low: Ints
    window_high: Ints
    window_sum: Ints
    low: Floats  # (buckets, labelers): accuracy, over the rows whose window holds a vote of the labeler
    high: Floats
    total: Floats
    known: Ints  # (buckets, labelers): how many rows those are
    covered: Floats  # (buckets, labelers): sum of the coverage over those rows
    cast: Ints  # (buckets, labelers): votes cast in the bucket itself


class Totals(NamedTuple):
    """Counts over the whole stream."""

    both: Ints  # (labelers, labelers): rows on which both voted; upper triangle
    same: Ints  # and voted alike
    with_label: Ints  # (labelers,): votes for the class that became the label
    labeled: Ints  # (labelers,): votes on rows that got a label
    votes_by_class: Ints  # (labelers, classes shown); the last class stands for all beyond it too
    labels_by_class: Ints  # (classes shown,)


class GoldTotals(NamedTuple):
    """Counts against true labels."""

    right: Ints  # (buckets, 3): rows labeled right by the model, by majority, by all the past
    tied: Ints  # (buckets, 3): rows that they left open
    hits: Ints  # (labelers,): right votes
    tried: Ints  # (labelers,): votes on rows with a true label
    confusion: Ints  # (classes shown, classes shown + 1): true class, label; the last column is "no label"


@jit
def tally_labelers(rows: Rows, start: int, stop: int, line: int, buckets: Buckets) -> None:
    """Accuracies, coverage and votes of rows that fall into one bucket.

    Labeler by labeler, so that sums stay in registers; within a labeler in the order of the rows and on top of what
    the bucket holds, so that the borders of batches do not show in the last bits.
    """
    for h in range(rows.votes.shape[1]):
        low, high = buckets.low[line, h], buckets.high[line, h]
        total, covered = buckets.total[line, h], buckets.covered[line, h]
        known, cast = 0, 0
        for t in range(start, stop):
            cast += rows.votes[t, h] >= 0
            if rows.coverage[t, h] > 0.0:
                p = rows.accuracies[t, h]
                if p < low:
                    low = p
                if p > high:
                    high = p
                total += p
                covered += rows.coverage[t, h]
                known += 1
        buckets.low[line, h], buckets.high[line, h] = low, high
        buckets.total[line, h], buckets.covered[line, h] = total, covered
        buckets.known[line, h] += known
        buckets.cast[line, h] += cast


@jit
def tally_windows(windows: Ints, start: int, stop: int, line: int, buckets: Buckets) -> None:
    """Window lengths of rows that fall into one bucket."""
    low, high, total = buckets.window_low[line], buckets.window_high[line], 0
    for t in range(start, stop):
        low, high = min(low, windows[t]), max(high, windows[t])
        total += windows[t]
    buckets.window_low[line], buckets.window_high[line] = low, high
    buckets.window_sum[line] += total


@jit
def count_pairs(columns: Codes, totals: Totals) -> None:
    """Rows on which both labelers of a pair voted, and alike; `columns` are the votes by labeler (labelers, rows)."""
    n, n_rows = columns.shape
    for i in range(n):
        for j in range(i + 1, n):
            both, same = 0, 0
            for t in range(n_rows):
                together = (columns[i, t] >= 0) & (columns[j, t] >= 0)
                both += together
                same += together & (columns[i, t] == columns[j, t])
            totals.both[i, j] += both
            totals.same[i, j] += same


@jit
def count_votes(columns: Codes, labels: Ints, totals: Totals) -> None:
    """Votes of each labeler by class and with the label, and labels by class."""
    last = totals.votes_by_class.shape[1] - 1
    for h in range(columns.shape[0]):
        labeled, alike = 0, 0
        for t in range(columns.shape[1]):
            vote = columns[h, t]
            if vote >= 0:
                totals.votes_by_class[h, min(vote, last)] += 1
                labeled += labels[t] >= 0
                alike += vote == labels[t]
        totals.labeled[h] += labeled
        totals.with_label[h] += alike
    for t in range(columns.shape[1]):
        if labels[t] >= 0:
            totals.labels_by_class[min(labels[t], last)] += 1


@jit
def plain_majority(votes: Codes, t: int, support: Ints) -> int:
    """The class with the most votes of row t; -1 when several have them, -2 when nobody votes.

    `support` has a place for abstentions and one for each class, all zero, and is left so. Votes are as good as random
    to a processor, so nothing here branches on one.
    """
    n = votes.shape[1]
    for h in range(n):
        support[votes[t, h] + 1] += 1
    support[0] = -1
    most, tops, best = 0, 0, -2
    for h in range(n):
        most = max(most, support[votes[t, h] + 1])
    for h in range(n):
        top = support[votes[t, h] + 1] == most
        tops += top
        best = int(votes[t, h]) if top else best
    for h in range(n):
        support[votes[t, h] + 1] = 0
    support[0] = 0
    return best if tops == most else -1


@jit
def tally_labels(rows: Rows, start: int, stop: int, line: int, below: float, buckets: Buckets, flags: Codes) -> None:
    """Labels beside the plain majority, and doubtful labels, of rows that fall into one bucket."""
    support = np.zeros(rows.proba.shape[1] + 1, np.int64)
    counts = buckets.counts
    counts[line, ROWS] += stop - start
    for t in range(start, stop):
        label, majority = rows.labels[t], plain_majority(rows.votes, t, support)
        rows.majority[t] = max(majority, -1)
        flags[t] = 0
        if majority == -2:
            counts[line, SILENT] += 1
            counts[line, UNLABELED] += label < 0
            continue
        if label != majority:
            flags[t] = 1
            counts[line, OPENED if label < 0 else (SETTLED if majority < 0 else OVERRULED)] += 1
        best = rows.proba[t, 0]
        for c in range(1, rows.proba.shape[1]):
            best = max(best, rows.proba[t, c])
        if label < 0 or best < below:
            flags[t] += 2
            counts[line, DOUBTFUL] += 1
            counts[line, TIED] += label < 0
            counts[line, UNLABELED] += label < 0


@jit
def tally_rows(rows: Rows, first: int, step: int, below: float, buckets: Buckets, flags: Codes) -> None:
    """Add rows, the first of which has the number `first`, to buckets of `step` rows; fills in the plain majority.

    `flags` says of each row whether its label is not the majority's (1), is doubtful (2), or both (3).
    """
    start = 0
    while start < rows.votes.shape[0]:
        line = (first + start) // step
        stop = min(rows.votes.shape[0], (line + 1) * step - first)
        tally_windows(rows.windows, start, stop, line, buckets)
        tally_labelers(rows, start, stop, line, buckets)
        tally_labels(rows, start, stop, line, below, buckets, flags)
        start = stop


@jit
def tally_gold(votes: Codes, gold: Ints, said: Ints, first: int, step: int, buckets: Buckets, out: GoldTotals) -> None:
    """Compare with true labels; `said` holds the labels of the model, of majority and of all the past (3, rows)."""
    last = out.confusion.shape[0] - 1
    for t in range(votes.shape[0]):
        if gold[t] < 0:
            continue
        line = (first + t) // step
        buckets.counts[line, GOLD] += 1
        for who in range(said.shape[0]):
            if said[who, t] < 0:
                out.tied[line, who] += 1
            elif said[who, t] == gold[t]:
                out.right[line, who] += 1
        label = last + 1 if said[0, t] < 0 else min(said[0, t], last)
        out.confusion[min(gold[t], last), label] += 1
        for h in range(votes.shape[1]):
            if votes[t, h] >= 0:
                out.tried[h] += 1
                if votes[t, h] == gold[t]:
                    out.hits[h] += 1
