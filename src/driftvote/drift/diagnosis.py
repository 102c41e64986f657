"""Which labelers changed, when and how, once the detector has found that a statistic changed.

A labeler is judged by how often it votes as most of the others do. The labeler that changed most is named and set
aside, so that the others are judged without it, and again until no change is left that chance does not explain. A
change of the class balance moves agreement too where labelers are better at one class; so a labeler is named only if
its agreement changed both over all rows and inside each class that the others vote for (Cochran, Mantel and Haenszel's
comparison).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from driftvote.arrays import Bools, Codes, Floats, Ints
from driftvote.core.jit import jit
from driftvote.drift import events
from driftvote.drift.bands import AccuracyEstimate
from driftvote.drift.events import LabelerChange
from driftvote.drift.statistics import (
    BLOCK,
    CLOSE,
    EVENT_KINDS,
    HITS,
    LEAST,
    SHARES,
    SOLE,
    TIED,
    TRIES,
    Words,
    count_bits,
    find_majority,
    flag_rows,
    list_statistics,
    normal_deviate,
    pack_votes,
    spread,
    surprise,
)

NAMED = 0.01
"""Probability, for all labelers together, that one is named which did not change."""
TOGETHER = 0.8
"""Labelers whose change is nearly as clear as the clearest are named with it."""
DROP = 4.0
"""The change lies where the log-likelihood is within this much of its highest: about 95 of 100 times."""
CLEAR = 0.75
"""A cause must be this clear, as a share of what the detector asks for; otherwise nothing is reported."""
MOST_TIMES = 4.0
"""A class counts for the comparison of a labeler if its share has grown or fallen by this factor at most."""
MOST_PAIRS = 8
"""Pairs that an event lists."""
SIDE_ROWS = 8192
"""Rows before a change, at most, from which accuracies and shares are estimated."""

EstimateFunction = Callable[[Codes], AccuracyEstimate]
"""Estimates the accuracies of all labelers from some rows alone."""


class Finding(NamedTuple):
    """What the detector found: the statistic that changed, and the row at which its last blocks begin."""

    kind: int
    member: int
    change: int


@dataclass(frozen=True)
class Change:
    """A change and its cause. Arrays have two lines: before the change, and after it."""

    row: int  # at which it was detected; rows count from the first of the stream
    about: int
    since: tuple[int, int]
    kind: str
    agreement: dict[int, float]  # labeler -> normal deviate of its agreement, below 0 for worse; the clearest first
    coverage: dict[int, float]  # labeler -> normal deviate of its coverage
    pairs: tuple[tuple[int, int], ...]
    accuracies: Floats  # (2, labelers)
    low: Floats  # (2, labelers): ends of the 95% band
    high: Floats
    votes: Floats  # (2, labelers): share of the rows on which a labeler votes
    balance: Floats  # (2, classes): of the rows on which one class leads, the share of each

    @property
    def settled(self) -> int:
        """The first row of the blocks that hold nothing from before the change; the last block always is one."""
        return min(-(-self.since[1] // BLOCK) * BLOCK, self.row + 1 - BLOCK)


def diagnose(
    rows: Codes, first_row: int, n_classes: int, found: Finding, threshold: float, estimate: EstimateFunction
) -> Change | None:
    """Return the change in these rows, of which the first has the number `first_row`; None without a clear cause.

    There is no clear cause when a labeler joined, or when several small changes came together.
    """
    hits, tries = Sides(rows, n_classes, 0).flags(found.kind, found.member)
    about, since = locate(_as_flags(hits, len(rows)), _as_flags(tries, len(rows)), found.change)
    sides = Sides(rows, n_classes, about)
    first_votes = np.where((rows >= 0).any(axis=0), (rows >= 0).argmax(axis=0), len(rows))
    present = first_votes < about  # others joined later, which is no drift
    coverage = _moved_coverage(sides, first_votes, present)
    steady = present.copy()
    steady[list(coverage)] = False
    agreement = _moved_agreement(sides, steady if steady.sum() >= 2 else present, present)

    required = math.sqrt(threshold)
    by_agreement = max((abs(z) for z in agreement.values()), default=0.0)
    by_coverage = max((abs(z) for z in coverage.values()), default=0.0)
    panel = _moved_panel(sides)
    panel_kind = max(panel, key=lambda kind: panel[kind])
    strongest = max(by_agreement, by_coverage, panel[panel_kind])
    if strongest < required * CLEAR:
        return None
    if strongest == panel[panel_kind]:
        kind, agreement, coverage = EVENT_KINDS[panel_kind], {}, {}
    elif strongest == by_coverage:
        kind = events.COVERAGE
        agreement = {h: z for h, z in agreement.items() if abs(z) >= required}
    else:
        kind = _kind_of_labelers(agreement, int(present.sum()))
    parts = rows[max(0, about - SIDE_ROWS) : about], rows[about:]
    return Change(
        first_row + len(rows) - 1,
        first_row + about,
        (first_row + since[0], first_row + since[1]),
        kind,
        agreement,
        coverage,
        _moved_pairs(sides, list({**agreement, **coverage})),
        *(np.stack(both) for both in zip(*(_describe(part, n_classes, estimate) for part in parts), strict=True)),
    )


def locate(hits: Bools, tries: Bools, change: int) -> tuple[int, tuple[int, int]]:
    """Return the likeliest row of a change of rate, and the first and last row that are nearly as likely.

    >>> hits = np.array([True, True, True, False] * 50 + [False, False, False, True] * 50)
    >>> locate(hits, np.ones(400, bool), 192)
    (199, (194, 204))
    """
    n_rows = len(hits)
    hit, tried = np.cumsum(hits & tries), np.cumsum(tries)
    where = change
    for _ in range(3):
        before = _rate(int(hit[where - 1]), int(tried[where - 1]))
        after = _rate(int(hit[-1] - hit[where - 1]), int(tried[-1] - tried[where - 1]))
        first = max(1, min(change, where) - max(4 * BLOCK, n_rows - change))
        # Evidence that the change came at or before a row: the sum from there to the end.
        gains = math.log(after / before), math.log((1.0 - after) / (1.0 - before))
        evidence = np.cumsum((np.where(hits[first:], *gains) * tries[first:])[::-1])[::-1]
        where = first + int(np.argmax(evidence))
    likely = first + np.flatnonzero(evidence >= evidence[where - first] - DROP)
    return where, (int(likely[0]), int(likely[-1]))


def _rate(count: int, of: int) -> float:
    return (count + 0.5) / (of + 1.0)


def _as_flags(words: Words, n_rows: int) -> Bools:
    return np.unpackbits(words.view(np.uint8), count=n_rows, bitorder="little").view(np.bool_)


def _kind_of_labelers(agreement: dict[int, float], n_present: int) -> str:
    """Return the kind of a change of these labelers."""
    up, down = (sum(sign * z > 0 for z in agreement.values()) for sign in (1, -1))
    if up + down >= 3 and 2 * (up + down) > n_present:
        return events.EVERYTHING
    return events.MIXED if up and down else events.BETTER if up else events.WORSE


def _moved_agreement(sides: Sides, panel: Bools, present: Bools) -> dict[int, float]:
    """Return the labelers whose agreement with the others changed, the clearest first."""
    required = normal_deviate(NAMED / max(1, int(present.sum())))
    named: dict[int, float] = {}
    waiting, panel = present.copy(), panel.copy()
    while waiting.any() and panel.sum() >= 2:
        overall, inside = sides.agreement(panel)
        alike = np.sign(overall) == np.sign(inside)
        size = np.where(waiting & alike, np.minimum(np.abs(overall), np.abs(inside)), 0.0)
        if size.max() < required:
            break
        new = np.flatnonzero(size >= max(required, TOGETHER * float(size.max())))
        if panel.sum() <= 3:  # of so few, each depends on the others: one at a time
            new = np.array([int(size.argmax())])
        for h in new[np.argsort(-size[new], kind="stable")].tolist():
            named[h] = float(np.sign(overall[h]) * size[h])
        waiting[new] = False
        panel[new] = False
    return named


def _moved_coverage(sides: Sides, first_votes: Ints, present: Bools) -> dict[int, float]:
    """Return the labelers that vote on more or fewer rows, the clearest first."""
    begin = first_votes // BLOCK  # a labeler that joined in these rows is judged since then
    moved = np.where(present, sides.coverage(begin), 0.0)
    required = normal_deviate(NAMED / max(1, int(present.sum())))
    order = np.argsort(-np.abs(moved), kind="stable").tolist()
    return {h: float(moved[h]) for h in order if abs(moved[h]) >= required}


def _moved_panel(sides: Sides) -> dict[int, float]:
    """Return how far the statistics of the panel as a whole moved: the largest deviate of each kind."""
    largest = dict.fromkeys(EVENT_KINDS, 0.0)
    for kind, member in list_statistics(0, sides.votes.shape[1]).entries():
        hits, tries = sides.flags(kind, member)
        moved, _ = sides.deviates(hits[:, None], tries[:, None])
        largest[kind] = max(largest[kind], abs(float(moved[0])))
    return largest


def _moved_pairs(sides: Sides, labelers: list[int]) -> tuple[tuple[int, int], ...]:
    """Return the pairs with one of these labelers whose agreement changed most, the clearest first."""
    size: dict[tuple[int, int], float] = {}
    for h in labelers:
        moved = sides.pairs(h).tolist()
        size |= {(min(h, j), max(h, j)): abs(z) for j, z in enumerate(moved) if j != h}
    required = normal_deviate(NAMED / max(1, len(size)))
    clear = [pair for pair in sorted(size, key=lambda pair: -size[pair]) if size[pair] >= required]
    return tuple(clear[:MOST_PAIRS])


def _describe(rows: Codes, n_classes: int, estimate: EstimateFunction) -> tuple[Floats, ...]:
    """Return one line of each array of a `Change`: accuracies, ends of their bands, coverage, class shares."""
    accuracies, half_widths = estimate(rows)
    low, high = np.clip(accuracies - half_widths, 0.0, 1.0), np.clip(accuracies + half_widths, 0.0, 1.0)
    coverage = np.count_nonzero(rows >= 0, axis=0) / max(1, len(rows))
    leads, margins = Sides(rows, n_classes, 0).whole_majority
    counts = np.zeros((2, 1, n_classes), np.int64)
    sum_lines(leads & margins[:, SOLE, None], 0, counts[:, 0])
    return accuracies, low, high, coverage, counts[1, 0] / max(1, counts[1].sum())


def labeler_changes(change: Change, names: Sequence[str]) -> tuple[LabelerChange, ...]:
    """Return the labelers that changed: first in the way that the event is about, then in other ways."""
    difference = change.accuracies[1] - change.accuracies[0]
    # Beside the clearest change, small ones may be echoes of it: the estimates must have moved the same way.
    moved = {h: z for place, (h, z) in enumerate(change.agreement.items()) if not place or difference[h] * z > 0.0}
    if change.kind == events.EVERYTHING:
        # So many changed that no others are left to compare them with: bands that do not overlap decide.
        apart = np.where(change.low[1] > change.high[0], 1.0, np.where(change.high[1] < change.low[0], -1.0, 0.0))
        moved |= {int(h): float(apart[h]) for h in np.flatnonzero(apart) if h not in moved}
    by_accuracy = {h: "better" if z > 0 else "worse" for h, z in moved.items()}
    by_coverage = {h: "votes more" if z > 0 else "votes less" for h, z in change.coverage.items()}
    first, second = (by_coverage, by_accuracy) if change.kind == events.COVERAGE else (by_accuracy, by_coverage)
    return tuple(
        LabelerChange(
            name=names[h],
            change=word,
            accuracy_before=float(change.accuracies[0, h]),
            low_before=float(change.low[0, h]),
            high_before=float(change.high[0, h]),
            accuracy_after=float(change.accuracies[1, h]),
            low_after=float(change.low[1, h]),
            high_after=float(change.high[1, h]),
            coverage_before=float(change.votes[0, h]),
            coverage_after=float(change.votes[1, h]),
        )
        for h, word in (first | {h: word for h, word in second.items() if h not in first}).items()
    )


class Sides:
    """Rows before and after a change at row `split`, as words; methods count them and compare the two sides.

    Counts come by line: the rows before the first whole block, each block before the change, all rows since.
    """

    def __init__(self, rows: Codes, n_classes: int, split: int) -> None:
        self.n_rows, self.split = len(rows), split
        words = np.empty((len(rows) // BLOCK + 2, n_classes, rows.shape[1]), np.uint64)
        self.votes = words[: pack_rows(rows, split, words)]  # (parts, classes, labelers)
        self.cast = np.bitwise_or.reduce(self.votes, axis=1)
        lead, tail = split % BLOCK, (len(rows) - split) % BLOCK
        self.n_blocks = split // BLOCK
        self.n_before = self.n_blocks + (lead > 0)  # parts before the change
        self.every = np.full(len(self.votes), ~np.uint64(0))  # the rows of each part
        if lead:
            self.every[0] = (1 << lead) - 1
        if tail:
            self.every[-1] = (1 << tail) - 1

    def majority(self, panel: Bools) -> tuple[Words, Words]:
        """Return `leads` (parts, classes) and `margins` (parts, 3) among the panel, see `find_majority`."""
        n_parts, n_classes, n = self.votes.shape
        leads, margins = np.empty((n_parts, n_classes), np.uint64), np.empty((n_parts, 3), np.uint64)
        find_majorities(self.votes, panel, np.empty((n_classes + 1, n.bit_length()), np.uint64), leads, margins)
        return leads, margins

    @cached_property
    def whole_majority(self) -> tuple[Words, Words]:
        """The majority among all labelers."""
        return self.majority(np.ones(self.votes.shape[2], np.bool_))

    def flags(self, kind: int, member: int) -> tuple[Words, Words]:
        """Return hits and tries of a statistic, as words."""
        hits, tries = np.empty((2, len(self.votes)), np.uint64)
        flag_parts(kind, member, self.votes, *self.whole_majority, hits, tries)
        return hits & self.every, tries & self.every

    def deviates(
        self, hits: Words, tries: Words, lines: Ints | None = None, begin: Ints | None = None
    ) -> tuple[Floats, Floats]:
        """Return how far each rate moved, as a normal deviate below 0 for a fall, and its spread before the change.

        If given, `lines` are the tries by line, and a column begins to count at line `begin`.
        """
        n_columns = hits.shape[1]
        totals = np.zeros((self.n_blocks + 3, 2, n_columns), np.int64)
        sum_lines(hits, self.n_before, totals[:, HITS])
        if lines is None:
            sum_lines(tries, self.n_before, totals[:, TRIES])
        else:
            np.cumsum(lines, axis=0, out=totals[1:, TRIES])
        moved, spreads = np.empty((2, n_columns))
        compare_sides(totals, np.zeros(n_columns, np.int64) if begin is None else begin, moved, spreads)
        return moved, spreads

    def coverage(self, begin: Ints) -> Floats:
        """Return how far the coverage of each labeler moved, which began to vote in block `begin` of the rows."""
        lines = np.arange(self.n_blocks + 2)[:, None]
        # Lines end at the change, blocks of the rows do not: the first line of a labeler holds only a part of it.
        tries = np.where(lines < begin, 0, np.where(lines == begin, self.split % BLOCK, BLOCK))
        tries[-1] = self.n_rows - self.split
        return self.deviates(self.cast, self.cast, tries, begin)[0]

    def pairs(self, h: int) -> Floats:
        """Return how far the agreement of each labeler with labeler `h` moved."""
        alike = np.bitwise_or.reduce(self.votes & self.votes[:, :, h, None], axis=1)
        return self.deviates(alike, self.cast & self.cast[:, h, None])[0]

    def agreement(self, panel: Bools) -> tuple[Floats, Floats]:
        """Return how far the agreement of each labeler with most of the others in the panel moved.

        Over all rows, and inside each class that the others vote for, added up as Cochran, Mantel and Haenszel do.
        """
        n_parts, n_classes, n = self.votes.shape
        leads, margins = self.majority(panel)
        hits, tries = np.zeros((2, n_parts, n), np.uint64)
        counts = np.zeros((min(n_classes, SHARES), 2, 2, n))  # stratum, hits and tries, before and after
        count_agreement(self.votes, self.cast, leads, margins, panel, self.n_before, hits, tries, counts)
        overall, spreads = self.deviates(hits, tries)
        inside = np.empty(n)
        compare_strata(counts, spreads, inside)
        return overall, inside


@jit
def sum_lines(words: Words, n_before: int, totals: Ints) -> None:
    """Fill in running totals of the bits that are set in each column, by line; the first line holds 0.

    Lines are those of `Sides`: parts before the change one by one, then all parts since.
    """
    last = totals.shape[0] - 1
    for column in range(words.shape[1]):
        total = 0
        for part in range(words.shape[0]):
            total += count_bits(words[part, column])
            totals[min(last, last - n_before + part), column] = total


@jit
def count_agreement(
    votes: Words,
    cast: Words,
    leads: Words,
    margins: Words,
    panel: Bools,
    n_before: int,
    hits: Words,
    tries: Words,
    counts: Floats,
) -> None:
    """Find the rows on which each labeler votes as most of the others in the panel do, and those that count for it.

    `counts` gets how many they are by class of the others, hits and tries, before and after the change.
    """
    none = np.uint64(0)
    for part in range(votes.shape[0]):
        sole, tied, close = margins[part, SOLE], margins[part, TIED], margins[part, CLOSE]
        side = 0 if part < n_before else 1
        for h in range(votes.shape[2]):
            leading = none
            for c in range(votes.shape[1]):
                leading |= votes[part, c, h] & leads[part, c]
            # A member's own vote is taken out of the count, see `flag_rows`.
            lone, shared = (close, tied) if panel[h] else (none, none)
            for c in range(votes.shape[1]):
                mine, lead = votes[part, c, h], leads[part, c]
                right = mine & lead & sole & ~lone
                counted = right | (lead & ~mine & ((cast[part, h] & sole) | (leading & shared)))
                hits[part, h] |= right
                tries[part, h] |= counted
                counts[c % SHARES, HITS, side, h] += count_bits(right)
                counts[c % SHARES, TRIES, side, h] += count_bits(counted)


@jit
def compare_strata(counts: Floats, spreads: Floats, inside: Floats) -> None:
    """Fill in how far rates moved inside the strata, as a normal deviate (Cochran, Mantel and Haenszel)."""
    for h in range(inside.shape[0]):
        n_before, n_after = 0.0, 0.0
        for c in range(counts.shape[0]):
            n_before += counts[c, TRIES, 0, h]
            n_after += counts[c, TRIES, 1, h]
        n_before, n_after = max(n_before, 1.0), max(n_after, 1.0)
        top, variance = 0.0, 0.0
        for c in range(counts.shape[0]):
            b, a = counts[c, HITS, 0, h], counts[c, HITS, 1, h]
            big, m = counts[c, TRIES, 0, h], counts[c, TRIES, 1, h]
            # Where a class has all but gone, or has just come, rows that seem to be of it are mistakes of the others.
            if big * n_after <= MOST_TIMES * m * n_before and m * n_before <= MOST_TIMES * big * n_after:
                both = max(m + big, 2.0)
                rate = (a + b) / both
                top += (a * big - b * m) / both
                variance += m * big * rate * (1.0 - rate) / (both - 1.0)
        inside[h] = top / math.sqrt(variance * spreads[h]) if variance > 0.0 else 0.0


@jit
def pack_rows(rows: Codes, split: int, words: Words) -> int:
    """Pack rows in parts of 64 or fewer, which end at the change and at whole blocks before it; return their number."""
    n_rows, lead, part, first = rows.shape[0], split % BLOCK, 0, 0
    while first < n_rows:
        last = lead if first < lead else min(first + BLOCK, n_rows)
        pack_votes(rows, first, last, words[part])
        part += 1
        first = last
    return part


@jit
def find_majorities(votes: Words, panel: Bools, digits: Words, leads: Words, margins: Words) -> None:
    """Apply `find_majority` to each part."""
    for part in range(votes.shape[0]):
        find_majority(votes[part], panel, digits, leads[part], margins[part])


@jit
def flag_parts(kind: int, member: int, votes: Words, leads: Words, margins: Words, hits: Words, tries: Words) -> None:
    """Apply `flag_rows` to each part."""
    for part in range(votes.shape[0]):
        hits[part], tries[part] = flag_rows(kind, member, votes[part], leads[part], margins[part])


@jit
def compare_sides(totals: Ints, begin: Ints, moved: Floats, spreads: Floats) -> None:
    """Compare the rows since the change with those before it, for each column of running totals; see `deviates`."""
    change = totals.shape[0] - 2
    for column in range(totals.shape[2]):
        hits_before, tries_before = totals[change, HITS, column], totals[change, TRIES, column]
        hits = totals[change + 1, HITS, column] - hits_before
        tries = totals[change + 1, TRIES, column] - tries_before
        spreads[column] = spread(totals, column, begin[column] + 1, change, 1, 1.0)
        moved[column] = 0.0
        # The detector has seen enough votes; after the very row of the change there may be few, and still clear.
        if tries > 0 and tries_before >= LEAST:
            size = math.sqrt(max(0.0, surprise(hits, tries, hits_before, tries_before)) / spreads[column])
            moved[column] = size if hits * tries_before > hits_before * tries else -size
