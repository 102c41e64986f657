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
from typing import NamedTuple

import numpy as np

from driftvote.arrays import Bools, Codes, Floats, Ints
from driftvote.core.jit import inner, jit
from driftvote.core.state import Words, count_bits
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
    find_deviate,
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
    sides, moved = new_sides(rows, n_classes), new_moves(rows.shape[1], n_classes)
    about, first, last = compare_all(rows, *found, sides, moved)
    agreement = {h: z for h, z in zip(moved.order.tolist(), moved.agreement.tolist(), strict=True) if h >= 0}
    coverage = {h: z for h, z in enumerate(moved.coverage.tolist()) if z}
    coverage = dict(sorted(coverage.items(), key=lambda item: -abs(item[1])))

    required = math.sqrt(threshold)
    by_agreement = max((abs(z) for z in agreement.values()), default=0.0)
    by_coverage = max((abs(z) for z in coverage.values()), default=0.0)
    by_panel, panel_kind = max(
        zip(moved.panel.tolist(), moved.kind.tolist(), strict=True), key=lambda statistic: statistic[0]
    )
    strongest = max(by_agreement, by_coverage, by_panel)
    if strongest < required * CLEAR:
        return None
    if strongest == by_panel:
        kind, agreement, coverage = EVENT_KINDS[panel_kind], {}, {}
    elif strongest == by_coverage:
        kind = events.COVERAGE
        agreement = {h: z for h, z in agreement.items() if abs(z) >= required}
    else:
        kind = _kind_of_labelers(agreement, int(moved.size[0]))
    parts = rows[max(0, about - SIDE_ROWS) : about], rows[about:]
    (accuracies, half_widths), lengths = _estimate_both(parts, estimate), np.array([[len(part)] for part in parts])
    return Change(
        first_row + len(rows) - 1,
        first_row + about,
        (first_row + first, first_row + last),
        kind,
        agreement,
        coverage,
        _moved_pairs(sides, [*agreement, *(h for h in coverage if h not in agreement)]),
        accuracies,
        np.clip(accuracies - half_widths, 0.0, 1.0),
        np.clip(accuracies + half_widths, 0.0, 1.0),
        moved.votes / lengths,
        moved.leads / np.maximum(1, moved.leads.sum(axis=1, keepdims=True)),
    )


def _estimate_both(parts: Sequence[Codes], estimate: EstimateFunction) -> AccuracyEstimate:
    """Return accuracies before and after the change, and half the bands around them, in two lines."""
    before, after = (estimate(part) for part in parts)
    return AccuracyEstimate(
        np.array([before.accuracies, after.accuracies]), np.array([before.half_widths, after.half_widths])
    )


def _kind_of_labelers(agreement: dict[int, float], n_present: int) -> str:
    """Return the kind of a change of these labelers."""
    up, down = (sum(sign * z > 0 for z in agreement.values()) for sign in (1, -1))
    if up + down >= 3 and 2 * (up + down) > n_present:
        return events.EVERYTHING
    return events.MIXED if up and down else events.BETTER if up else events.WORSE


def _moved_pairs(sides: Sides, labelers: list[int]) -> tuple[tuple[int, int], ...]:
    """Return the pairs with one of these labelers whose agreement changed most, the clearest first."""
    if not labelers:
        return ()
    moved = np.empty((len(labelers), sides.votes.shape[2]))
    compare_pairs(np.array(labelers), sides, moved)
    size = {
        (min(h, j), max(h, j)): abs(z)
        for h, line in zip(labelers, moved.tolist(), strict=True)
        for j, z in enumerate(line)
        if j != h
    }
    required = normal_deviate(NAMED / max(1, len(size)))
    clear = [pair for pair in size if size[pair] >= required]
    return tuple(sorted(clear, key=lambda pair: -size[pair])[:MOST_PAIRS])


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


class Sides(NamedTuple):
    """Rows before and after a change as words, and room to compare the two sides in.

    Rows come in parts of 64 or fewer, which end at the change and at whole blocks before it. They are counted by line:
    the rows before the first whole block, each block before the change, all rows since.
    """

    size: Ints  # (5,): see ROWS and below
    votes: Words  # (parts, classes, labelers): see `pack_votes`
    cast: Words  # (parts, labelers): rows on which a labeler votes
    leads: Words  # (parts, classes): see `find_majority`
    margins: Words  # (parts, 3)
    digits: Words
    hits: Words  # (parts,): of one statistic
    tries: Words
    totals: Ints  # (lines + 1, 2, 1): running totals of these
    strata: Floats  # (strata, 2, 2): hits and tries, before and after
    flags: Bools  # (2, rows): hits and tries


ROWS, SPLIT, PARTS, BEFORE, BEGIN = 0, 1, 2, 3, 4
"""Places in `Sides.size`: rows, those before the change, parts, those before the change; the line from which the totals
count."""


class Moves(NamedTuple):
    """What moved, as normal deviates, below 0 for a fall."""

    size: Ints  # (1,): labelers that were there before the change
    order: Ints  # (labelers,): those whose agreement with the others changed, the clearest first; then -1
    agreement: Floats  # (labelers,): in that order
    coverage: Floats  # (labelers,): 0 for those that vote as often as before
    kind: Ints  # (statistics of the panel,)
    member: Ints
    panel: Floats  # (statistics of the panel,): how far, up or down
    votes: Ints  # (2, labelers): votes before and after
    leads: Ints  # (2, classes): rows on which a class leads alone
    everyone: Bools  # (labelers,): for work, as all below
    judges: Bools
    waiting: Bools
    sizes: Floats
    begin: Ints


def new_sides(rows: Codes, n_classes: int) -> Sides:
    """Return room for these rows."""
    parts, n = len(rows) // BLOCK + 2, rows.shape[1]
    return Sides(
        size=np.zeros(5, np.int64),
        votes=np.empty((parts, n_classes, n), np.uint64),
        cast=np.empty((parts, n), np.uint64),
        leads=np.empty((parts, n_classes), np.uint64),
        margins=np.empty((parts, 3), np.uint64),
        digits=np.empty((n_classes + 1, n.bit_length()), np.uint64),
        hits=np.empty(parts, np.uint64),
        tries=np.empty(parts, np.uint64),
        totals=np.empty((parts + 2, 2, 1), np.int64),
        strata=np.empty((min(n_classes, SHARES), 2, 2)),
        flags=np.empty((2, len(rows)), np.bool_),
    )


def new_moves(n_labelers: int, n_classes: int) -> Moves:
    """Return room for what moved."""
    kind, member = list_statistics(0, n_classes)
    return Moves(
        size=np.empty(1, np.int64),
        order=np.empty(n_labelers, np.int64),
        agreement=np.empty(n_labelers),
        coverage=np.empty(n_labelers),
        kind=kind,
        member=member,
        panel=np.empty(len(kind)),
        votes=np.empty((2, n_labelers), np.int64),
        leads=np.empty((2, n_classes), np.int64),
        everyone=np.ones(n_labelers, np.bool_),
        judges=np.empty(n_labelers, np.bool_),
        waiting=np.empty(n_labelers, np.bool_),
        sizes=np.empty(n_labelers),
        begin=np.empty(n_labelers, np.int64),
    )


@inner
def pack_sides(rows: Codes, sides: Sides) -> None:
    """Pack rows before and after the change at row `sides.size[SPLIT]`."""
    n_rows, split, part, first = rows.shape[0], sides.size[SPLIT], 0, 0
    lead = split % BLOCK
    while first < n_rows:
        last = lead if first < lead else min(first + BLOCK, n_rows)
        pack_votes(rows, first, last, sides.votes[part])
        for h in range(rows.shape[1]):
            word = np.uint64(0)
            for c in range(sides.votes.shape[1]):
                word |= sides.votes[part, c, h]
            sides.cast[part, h] = word
        part += 1
        first = last
    sides.size[ROWS], sides.size[PARTS] = n_rows, part
    sides.size[BEFORE] = split // BLOCK + (1 if lead > 0 else 0)


@inner
def find_majorities(panel: Bools, sides: Sides) -> None:
    """Apply `find_majority` to each part."""
    for part in range(sides.size[PARTS]):
        find_majority(sides.votes[part], panel, sides.digits, sides.leads[part], sides.margins[part])


@inner
def flag_parts(kind: int, member: int, sides: Sides) -> None:
    """Apply `flag_rows` to each part. Bits beyond the last row of a part may be tries of coverage."""
    for part in range(sides.size[PARTS]):
        hits, tries = flag_rows(kind, member, sides.votes[part], sides.leads[part], sides.margins[part])
        sides.hits[part], sides.tries[part] = hits, tries


@jit
def locate(hits: Bools, tries: Bools, change: int) -> tuple[int, int, int]:
    """Return the likeliest row of a change of rate, and the first and last row that are nearly as likely.

    >>> hits = np.array([True, True, True, False] * 50 + [False, False, False, True] * 50)
    >>> locate(hits, np.ones(400, bool), 192)
    (199, 194, 204)
    """
    n_rows, where, first, top, gain, loss = hits.shape[0], change, 0, 0.0, 0.0, 0.0
    for _ in range(3):
        hit, tried, all_hit, all_tried = 0, 0, 0, 0
        for t in range(n_rows):
            if t == where:
                hit, tried = all_hit, all_tried
            all_hit += hits[t] and tries[t]
            all_tried += tries[t]
        before = (hit + 0.5) / (tried + 1.0)
        after = (all_hit - hit + 0.5) / (all_tried - tried + 1.0)
        first = max(1, min(change, where) - max(4 * BLOCK, n_rows - change))
        gain, loss = math.log(after / before), math.log((1.0 - after) / (1.0 - before))
        # Evidence that the change came at or before a row: the sum from there to the end.
        evidence, top = 0.0, -math.inf
        for ago in range(1, n_rows - first + 1):
            if tries[n_rows - ago]:
                evidence += gain if hits[n_rows - ago] else loss
            if evidence >= top:
                where, top = n_rows - ago, evidence
    evidence, earliest, latest = 0.0, where, -1
    for ago in range(1, n_rows - first + 1):
        if tries[n_rows - ago]:
            evidence += gain if hits[n_rows - ago] else loss
        if evidence >= top - DROP:
            earliest = n_rows - ago
            latest = max(latest, earliest)
    return where, earliest, latest


@inner
def add_up(sides: Sides) -> None:
    """Fill in running totals of hits and tries, by line; the first holds 0."""
    totals, last = sides.totals, sides.size[SPLIT] // BLOCK + 2
    hits, tries, line = 0, 0, last - sides.size[BEFORE]
    totals[:2] = 0
    for part in range(sides.size[PARTS]):
        hits += count_bits(sides.hits[part])
        tries += count_bits(sides.tries[part])
        totals[line, HITS, 0], totals[line, TRIES, 0] = hits, tries
        line = min(last, line + 1)


@inner
def compare_totals(sides: Sides) -> tuple[float, float]:
    """Return how far a rate moved, as a normal deviate below 0 for a fall, and its spread before the change."""
    change = sides.size[SPLIT] // BLOCK + 1
    totals = sides.totals[: change + 2]
    hits_before, tries_before = totals[change, HITS, 0], totals[change, TRIES, 0]
    hits, tries = totals[change + 1, HITS, 0] - hits_before, totals[change + 1, TRIES, 0] - tries_before
    width = spread(totals, 0, sides.size[BEGIN] + 1, change, 1, 1.0)
    # The detector has seen enough votes; after the very row of the change there may be few, and still clear.
    if tries == 0 or tries_before < LEAST:
        return 0.0, width
    size = math.sqrt(max(0.0, surprise(hits, tries, hits_before, tries_before)) / width)
    return (size if hits * tries_before > hits_before * tries else -size), width


@inner
def compare_coverage(h: int, begin: int, sides: Sides) -> float:
    """Return how far the coverage of a labeler moved, which began to vote in block `begin` of the rows."""
    totals, split, last = sides.totals, sides.size[SPLIT], sides.size[SPLIT] // BLOCK + 2
    for part in range(sides.size[PARTS]):
        sides.hits[part] = sides.cast[part, h]
    add_up(sides)
    for line in range(last - 1):
        # Lines end at the change, blocks of the rows do not: the first line of a labeler holds only a part of it.
        rows = 0 if line < begin else split % BLOCK if line == begin else BLOCK
        totals[line + 1, TRIES, 0] = totals[line, TRIES, 0] + rows
    totals[last, TRIES, 0] = totals[last - 1, TRIES, 0] + sides.size[ROWS] - split
    sides.size[BEGIN] = begin
    moved, _ = compare_totals(sides)
    sides.size[BEGIN] = 0
    return moved


@inner
def compare_agreement(h: int, judges: bool, sides: Sides) -> tuple[float, float]:
    """Return how far the agreement of a labeler with most of the others moved; it may be one of the judges.

    Over all rows, and inside each class that the others vote for, added up as Cochran, Mantel and Haenszel do. A rate
    inside a class is that of the rows on which the labeler votes as most of the others do, among those that count.
    """
    none, strata, votes = np.uint64(0), sides.strata, sides.votes
    strata[:] = 0.0
    for part in range(sides.size[PARTS]):
        margins, side = sides.margins[part], 0 if part < sides.size[BEFORE] else 1
        sole, leading, hits, tries = margins[SOLE], none, none, none
        for c in range(votes.shape[1]):
            leading |= votes[part, c, h] & sides.leads[part, c]
        # A judge's own vote is taken out of the count, see `flag_rows`.
        lone, shared = (margins[CLOSE], margins[TIED]) if judges else (none, none)
        for c in range(votes.shape[1]):
            mine, lead = votes[part, c, h], sides.leads[part, c]
            right = mine & lead & sole & ~lone
            counted = right | (lead & ~mine & ((sides.cast[part, h] & sole) | (leading & shared)))
            hits |= right
            tries |= counted
            strata[c % SHARES, HITS, side] += count_bits(right)
            strata[c % SHARES, TRIES, side] += count_bits(counted)
        sides.hits[part], sides.tries[part] = hits, tries
    add_up(sides)
    overall, width = compare_totals(sides)
    n_before, n_after = 0.0, 0.0
    for c in range(strata.shape[0]):
        n_before += strata[c, TRIES, 0]
        n_after += strata[c, TRIES, 1]
    n_before, n_after = max(n_before, 1.0), max(n_after, 1.0)
    top, variance = 0.0, 0.0
    for c in range(strata.shape[0]):
        b, a = strata[c, HITS, 0], strata[c, HITS, 1]
        big, m = strata[c, TRIES, 0], strata[c, TRIES, 1]
        # Where a class has all but gone, or has just come, rows that seem to be of it are mistakes of the others.
        if big * n_after <= MOST_TIMES * m * n_before and m * n_before <= MOST_TIMES * big * n_after:
            both = max(m + big, 2.0)
            rate = (a + b) / both
            top += (a * big - b * m) / both
            variance += m * big * rate * (1.0 - rate) / (both - 1.0)
    return overall, top / math.sqrt(variance * width) if variance > 0.0 else 0.0


@inner
def name_labelers(required: float, sides: Sides, moved: Moves) -> None:
    """Fill in the labelers whose agreement with the judges changed, the clearest first, out of those that wait."""
    judges, waiting, sizes, place, n_judges, n_waiting = moved.judges, moved.waiting, moved.sizes, 0, 0, 0
    for h in range(judges.shape[0]):
        n_judges += judges[h]
        n_waiting += waiting[h]
    while n_waiting > 0 and n_judges >= 2:
        find_majorities(judges, sides)
        largest = 0.0
        for h in range(judges.shape[0]):
            sizes[h] = 0.0  # below 0 for a fall
            if waiting[h]:
                overall, inside = compare_agreement(h, judges[h], sides)
                if overall * inside > 0.0:
                    sizes[h] = overall if abs(overall) < abs(inside) else inside
                largest = max(largest, abs(sizes[h]))
        if largest < required:
            return
        # Labelers whose change is nearly as clear are named together; of three or fewer, each depends on the others.
        least, alone = max(required, TOGETHER * largest), n_judges <= 3
        while largest >= least:
            for h in range(judges.shape[0]):
                if abs(sizes[h]) == largest:
                    moved.order[place], moved.agreement[place] = h, sizes[h]
                    place += 1
                    n_waiting -= 1
                    n_judges -= judges[h]
                    waiting[h], judges[h], sizes[h] = False, False, 0.0
                    break
            largest = 0.0
            for h in range(0 if alone else judges.shape[0]):
                largest = max(largest, abs(sizes[h]))


@inner
def describe(sides: Sides, moved: Moves) -> None:
    """Count votes and leading classes on either side; the majority is that of all labelers."""
    moved.votes[:] = 0
    moved.leads[:] = 0
    for part in range(max(0, sides.size[BEFORE] - SIDE_ROWS // BLOCK), sides.size[PARTS]):
        side = 0 if part < sides.size[BEFORE] else 1
        for h in range(moved.votes.shape[1]):
            moved.votes[side, h] += count_bits(sides.cast[part, h])
        for c in range(moved.leads.shape[1]):
            moved.leads[side, c] += count_bits(sides.leads[part, c] & sides.margins[part, SOLE])


@jit
def compare_all(rows: Codes, kind: int, member: int, change: int, sides: Sides, moved: Moves) -> tuple[int, int, int]:
    """Find the row of a change in a statistic, and what moved there; return what `locate` does."""
    n_rows, n = rows.shape
    about, first, last = 0, 0, 0
    for turn in range(2):  # as blocks, to find the row of the change; then on either side of it
        sides.size[SPLIT] = about
        pack_sides(rows, sides)
        find_majorities(moved.everyone, sides)
        if turn == 0:
            flag_parts(kind, member, sides)
            for t in range(n_rows):
                bit = np.uint64(t % BLOCK)
                sides.flags[HITS, t] = (sides.hits[t // BLOCK] >> bit) & np.uint64(1) != 0
                sides.flags[TRIES, t] = (sides.tries[t // BLOCK] >> bit) & np.uint64(1) != 0
            about, first, last = locate(sides.flags[HITS], sides.flags[TRIES], change)
    describe(sides, moved)
    for s in range(moved.kind.shape[0]):
        flag_parts(moved.kind[s], moved.member[s], sides)
        add_up(sides)
        size, _ = compare_totals(sides)
        moved.panel[s] = abs(size)
    present, steady = 0, 0
    for h in range(n):
        t = 0
        while t < n_rows and rows[t, h] < 0:
            t += 1
        moved.begin[h], moved.waiting[h] = t // BLOCK, t < about  # others joined later, which is no drift
        present += t < about
        moved.order[h] = -1
    moved.size[0] = present
    required = find_deviate(NAMED / max(1, present))
    for h in range(n):
        # A labeler that joined in these rows is judged since then.
        size = compare_coverage(h, moved.begin[h], sides) if moved.waiting[h] else 0.0
        moved.coverage[h] = size if abs(size) >= required else 0.0
        moved.judges[h] = moved.waiting[h] and abs(size) < required
        steady += moved.judges[h]
    for h in range(n if steady < 2 else 0):
        moved.judges[h] = moved.waiting[h]
    name_labelers(required, sides, moved)
    return about, first, last


@jit
def compare_pairs(labelers: Ints, sides: Sides, moved: Floats) -> None:
    """Fill in how far the agreement of each labeler with each of these ones moved (those, all labelers)."""
    for line in range(labelers.shape[0]):
        h = labelers[line]
        for j in range(moved.shape[1]):
            for part in range(sides.size[PARTS]):
                alike = np.uint64(0)
                for c in range(sides.votes.shape[1]):
                    alike |= sides.votes[part, c, h] & sides.votes[part, c, j]
                sides.hits[part], sides.tries[part] = alike, sides.cast[part, h] & sides.cast[part, j]
            add_up(sides)
            moved[line, j], _ = compare_totals(sides)
