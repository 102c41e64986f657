"""Counting for a report: rows go by once and leave sums, extremes and counts in buckets of time."""

from __future__ import annotations

from typing import NamedTuple

from driftvote.kernels._jit import jit
from driftvote.kernels.layout import Codes, Floats, Ints

# Columns of `Buckets.counts`.
ROWS, SILENT, TIED, DOUBTFUL, OVERRULED, SETTLED, OPENED, GOLD = range(8)


class Rows(NamedTuple):
    """A block of rows, with what was said of them."""

    votes: Codes  # (rows, labelers)
    labels: Ints
    majority: Ints
    proba: Floats  # (rows, classes)
    windows: Ints
    accuracies: Floats  # (rows, labelers)
    coverage: Floats  # (rows, labelers): inside the window


class Buckets(NamedTuple):
    """Stretches of equally many rows, one line each."""

    counts: Ints  # (buckets, 8): see the columns above
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
def tally_row(rows: Rows, t: int, line: int, buckets: Buckets) -> int:
    """Window, accuracies, coverage and votes of one row; returns how many labelers voted."""
    window = rows.windows[t]
    buckets.window_low[line] = min(buckets.window_low[line], window)
    buckets.window_high[line] = max(buckets.window_high[line], window)
    buckets.window_sum[line] += window
    voters = 0
    for h in range(rows.votes.shape[1]):
        if rows.votes[t, h] >= 0:
            buckets.cast[line, h] += 1
            voters += 1
        if rows.coverage[t, h] > 0.0:
            p = rows.accuracies[t, h]
            buckets.low[line, h] = min(buckets.low[line, h], p)
            buckets.high[line, h] = max(buckets.high[line, h], p)
            buckets.total[line, h] += p
            buckets.known[line, h] += 1
            buckets.covered[line, h] += rows.coverage[t, h]
    return voters


@jit
def count_votes(row: Codes, label: int, totals: Totals) -> None:
    """Agreements between labelers and with the label, and votes by class."""
    last = totals.votes_by_class.shape[1] - 1
    for i in range(row.shape[0]):
        if row[i] < 0:
            continue
        totals.votes_by_class[i, min(row[i], last)] += 1
        if label >= 0:
            totals.labeled[i] += 1
            if row[i] == label:
                totals.with_label[i] += 1
        for j in range(i + 1, row.shape[0]):
            if row[j] >= 0:
                totals.both[i, j] += 1
                if row[i] == row[j]:
                    totals.same[i, j] += 1
    if label >= 0:
        totals.labels_by_class[min(label, last)] += 1


@jit
def surest(proba: Floats) -> float:
    """Probability of the most likely class."""
    best = proba[0]
    for c in range(1, proba.shape[0]):
        best = max(best, proba[c])
    return float(best)


@jit
def tally_rows(rows: Rows, first: int, step: int, below: float, buckets: Buckets, totals: Totals, flags: Codes) -> None:
    """Add rows, the first of which has the number `first`, to buckets of `step` rows.

    `flags` says of each row whether it differs from the majority (1), is doubtful (2), or both (3).
    """
    for t in range(rows.votes.shape[0]):
        line = (first + t) // step
        label, majority = rows.labels[t], rows.majority[t]
        voters = tally_row(rows, t, line, buckets)
        count_votes(rows.votes[t], label, totals)
        flags[t] = 0
        buckets.counts[line, ROWS] += 1
        if voters == 0:
            buckets.counts[line, SILENT] += 1
            continue
        if label != majority:
            flags[t] += 1
            kind = OPENED if label < 0 else (SETTLED if majority < 0 else OVERRULED)
            buckets.counts[line, kind] += 1
        if label < 0:
            buckets.counts[line, TIED] += 1
        if label < 0 or surest(rows.proba[t]) < below:
            flags[t] += 2
            buckets.counts[line, DOUBTFUL] += 1


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
