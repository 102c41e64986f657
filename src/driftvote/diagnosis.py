"""Who changed, and when: asked once the watch has found that something did.

A labeler is judged by how often it votes as most of the others do. Whoever changed most is named and set aside, so
that the others are judged without it, and again until nobody is left that changed beyond chance. A change of the class
balance moves agreement too where labelers are better at one class; so a labeler is named only if its agreement changed
both over all rows and inside each class that the others vote for (Cochran, Mantel and Haenszel's comparison).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from driftvote import drift
from driftvote.kernels.counting import BLOCK, CLASSES, Words
from driftvote.kernels.deviates import deviates
from driftvote.kernels.layout import Bools, Codes, Floats, Ints
from driftvote.kernels.sides import (
    count_agreement,
    count_pairs,
    count_shares,
    count_votes,
    first_votes,
    flag_rows,
    pack_parts,
)
from driftvote.kernels.watching import AGREEMENT, COVERAGE, LEAST

NAMED = 0.01
"""Probability, for all labelers together, that one is named which did not change."""
TOGETHER = 0.8
"""Labelers whose change is nearly as clear as the clearest are named with it."""
DROP = 4.0
"""The change lies where the log-likelihood is within this much of its highest: about 95 of 100 times."""
MOST_PAIRS = 8


@dataclass
class Diagnosis:
    """What a change was. Rows count from the first of the rows that were looked at."""

    about: int
    since: tuple[int, int]
    kind: str = ""
    moved: dict[int, float] = field(default_factory=dict)  # labeler -> deviate of its agreement, below 0 for worse
    votes: dict[int, float] = field(default_factory=dict)  # labeler -> deviate of its coverage
    pairs: tuple[tuple[int, int], ...] = ()


@lru_cache(maxsize=256)
def deviate(probability: float) -> float:
    """The normal deviate that is exceeded, on either side, with this probability.

    >>> round(deviate(0.05), 3)
    1.96
    """
    low, high = 0.0, 40.0
    for _ in range(80):
        middle = (low + high) / 2.0
        low, high = (middle, high) if math.erfc(middle / math.sqrt(2.0)) > probability else (low, middle)
    return high


def packed(rows: Codes, n_classes: int, split: int = 0) -> tuple[Words, Ints]:
    """Rows as bits, in parts that do not lie across a line, and the line of each part."""
    parts = len(rows) // BLOCK + 2
    words, lines = np.empty((parts, n_classes, rows.shape[1]), np.uint64), np.empty(parts, np.int64)
    parts = pack_parts(rows, split, words, lines)
    return words[:parts], lines[:parts]


def row_by_row(rows: Codes, n_classes: int, what: int, who: int) -> tuple[Bools, Bools]:
    """Flags of what the watch found to have changed: hits, and where there could have been one."""
    if what == COVERAGE:
        return rows[:, who] >= 0, np.ones(len(rows), np.bool_)
    words, _ = packed(rows, n_classes)
    flags = np.empty((2, len(words)), np.uint64)
    flag_rows(words, what == AGREEMENT, who, CLASSES, flags[0], flags[1])
    bits = np.unpackbits(flags.view(np.uint8), axis=1, count=len(rows), bitorder="little").view(np.bool_)
    return bits[0], bits[1]


class Sides:
    """Rows before and after a change at row `split`, counted."""

    def __init__(self, rows: Codes, n_classes: int, split: int) -> None:
        self.rows, self.split, self.strata = rows, split, min(n_classes, CLASSES)
        self.words, self.lines = packed(rows, n_classes, split)

    def _table(self, strata: int, width: int) -> Ints:
        return np.zeros((self.split // BLOCK + 2, strata, 2, width), np.int64)

    def agreement(self, panel: Bools) -> Ints:
        """How often each labeler votes as most of the others in the panel do."""
        table = self._table(self.strata, self.rows.shape[1])
        count_agreement(self.words, self.lines, panel, table)
        return table

    def shares(self) -> Ints:
        """How often most vote for each class."""
        table = self._table(1, self.strata)
        count_shares(self.words, self.lines, table)
        return table

    def pairs(self, h: int) -> Ints:
        """How often each labeler votes as this one does."""
        table = self._table(1, self.rows.shape[1])
        count_pairs(self.words, self.lines, h, table)
        return table

    def votes(self) -> tuple[Ints, Ints]:
        """How often each labeler votes; and the row at which it begins to."""
        table, first = self._table(1, self.rows.shape[1]), np.empty(self.rows.shape[1], np.int64)
        n_rows = np.full(len(table), BLOCK)
        n_rows[0], n_rows[-1] = self.split % BLOCK, len(self.rows) - self.split
        count_votes(self.words, self.lines, n_rows, table)
        first_votes(self.rows, first)
        return table, first


def moves(table: Ints) -> tuple[Floats, Floats]:
    """How far each column moved, over all rows and inside the strata."""
    plain, inside = np.empty(table.shape[3]), np.empty(table.shape[3])
    deviates(table, plain, inside)
    return plain, inside


def diagnose(rows: Codes, n_classes: int, found: tuple[int, int, int], limit: float) -> Diagnosis | None:
    """What happened in these rows, given what the watch found: what, who, and at which of the rows it would have begun.

    None if nothing is left that a labeler, the coverage or the class balance would have to answer for.
    """
    what, who, change = found
    told = Diagnosis(*locate(*row_by_row(rows, n_classes, what, who), change))
    sides = Sides(rows, n_classes, told.about)
    votes, first = sides.votes()
    here: Bools = first < told.about  # who had voted before; others joined, which is no drift
    told.votes = _moved_votes(votes, first, here)
    steady = here & ~np.isin(np.arange(len(here)), list(told.votes))
    told.moved = _moved_agreement(sides, steady if steady.sum() >= 2 else here, here)
    shares = float(np.abs(moves(sides.shares())[0]).max())
    return _settled(told, shares, math.sqrt(limit), int(here.sum()), sides)


def _settled(told: Diagnosis, shares: float, clear: float, active: int, sides: Sides) -> Diagnosis | None:
    """The kind of change: the clearest evidence decides."""
    agreement = max((abs(z) for z in told.moved.values()), default=0.0)
    votes = max((abs(z) for z in told.votes.values()), default=0.0)
    strongest = max(agreement, votes, shares)
    if strongest < clear * 0.75:
        return None
    if strongest == shares:
        told.kind, told.moved, told.votes = drift.BALANCE, {}, {}
    elif strongest == votes:
        told.kind = drift.COVERAGE
        told.moved = {h: z for h, z in told.moved.items() if abs(z) >= clear}
    else:
        up, down = (sum(sign * z > 0 for z in told.moved.values()) for sign in (1, -1))
        told.kind = drift.MIXED if up and down else drift.BETTER if up else drift.WORSE
        if up + down >= 3 and 2 * (up + down) > active:
            told.kind = drift.EVERYTHING
    told.pairs = _moved_pairs(sides, list({**told.moved, **told.votes}))
    return told


def locate(hits: Bools, tries: Bools, change: int) -> tuple[int, tuple[int, int]]:
    """The likeliest row of a change of rate, and the rows that are nearly as likely.

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
        seen, gains = hits[first:], (math.log(after / before), math.log((1.0 - after) / (1.0 - before)))
        total = np.cumsum((np.where(seen, *gains) * tries[first:])[::-1])[::-1]
        where = first + int(np.argmax(total))
    likely = first + np.flatnonzero(total >= total[where - first] - DROP)
    return where, (int(likely[0]), int(likely[-1]))


def _rate(count: int, of: int) -> float:
    return (count + 0.5) / (of + 1.0)


def _moved_agreement(sides: Sides, panel: Bools, here: Bools) -> dict[int, float]:
    """Labelers whose agreement with the rest changed, the clearest first."""
    enough = deviate(NAMED / max(1, int(here.sum())))
    named: dict[int, float] = {}
    open_, panel = here.copy(), panel.copy()
    while open_.any() and panel.sum() >= 2:
        plain, inside = moves(sides.agreement(panel))
        alike = np.sign(plain) == np.sign(inside)
        size = np.where(open_ & alike, np.minimum(np.abs(plain), np.abs(inside)), 0.0)
        if size.max() < enough:
            break
        new = np.flatnonzero(size >= max(enough, TOGETHER * float(size.max())))
        if panel.sum() <= 3:  # of so few, each leans on the others: one at a time
            new = np.array([int(size.argmax())])
        for h in new[np.argsort(-size[new], kind="stable")].tolist():
            named[h] = float(np.sign(plain[h]) * size[h])
        open_[new] = False
        panel[new] = False
    return named


def _moved_votes(votes: Ints, first: Ints, here: Bools) -> dict[int, float]:
    """Labelers that vote on more or fewer rows, the clearest first."""
    moved = np.zeros(len(here))
    begin = first // BLOCK  # a labeler that joined in these rows is judged since then
    lead, split = int(votes[0, 0, 1, 0]), int(votes[:-1, 0, 1, 0].sum())
    for block in np.unique(begin[here]).tolist():
        if split - block * BLOCK >= LEAST:
            those = np.flatnonzero(here & (begin == block))
            table = votes[block:, :, :, those].copy()
            table[0, 0, 1] = lead  # blocks end at the change, so that this line began before the labeler did
            moved[those] = moves(table)[0]
    enough = deviate(NAMED / max(1, int(here.sum())))
    order = np.argsort(-np.abs(moved), kind="stable").tolist()
    return {h: float(moved[h]) for h in order if abs(moved[h]) >= enough}


def _moved_pairs(sides: Sides, who: list[int]) -> tuple[tuple[int, int], ...]:
    """Pairs of which one changed, with the clearest change of agreement, clearest first."""
    found: dict[tuple[int, int], float] = {}
    for h in who:
        moved = moves(sides.pairs(h))[0].tolist()
        found |= {(min(h, j), max(h, j)): abs(z) for j, z in enumerate(moved) if j != h}
    enough = deviate(NAMED / max(1, len(found)))
    clear = [pair for pair in sorted(found, key=lambda pair: -found[pair]) if found[pair] >= enough]
    return tuple(clear[:MOST_PAIRS])
