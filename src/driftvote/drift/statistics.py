"""The statistics that are compared to find drift, and how they are counted, 64 rows at a time.

A statistic is a rate: of so many rows that count for it (tries), so many are hits. Each depends on nothing but the row,
so the rates of two stretches of rows differ by chance only, as long as nothing drifts. There are three kinds:

- `AGREEMENT` of a labeler: of the rows on which it votes and one class leads among the *others*, those on which it
  votes for that class;
- `COVERAGE` of a labeler: of all rows, those on which it votes;
- `BALANCE` of a class: of the rows on which one class leads, those on which it is this one.

Votes of 64 rows are packed into machine words: bit t of `votes[c, h]` is set if labeler h votes for class c in row t.
Codes below 0 are no votes: -1 abstains, and codes below that are random fills of abstentions.

Two rates are compared by a likelihood ratio (`surprise`). Real rows come in runs, which coins do not: so the ratio is
divided by how much stretches of rows varied before, against coins of the same rate (`spread`).

To add a statistic of the panel: a constant, its entries in `list_statistics`, its branch in `flag_rows`, and its kind
of event in `EVENT_KINDS`.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from driftvote.arrays import Bools, Codes, Ints
from driftvote.core.jit import inner, jit
from driftvote.core.state import Words
from driftvote.drift import events

BLOCK = 64
"""Rows in a block, and bits in a word."""
SHARES = 8
"""Class shares that are compared; of more classes, every eighth is counted together."""
FEW = 4
"""Up to so many classes it is faster to ask for each of them than to branch on the vote."""
LEAST = 16
"""Rows that must count for a statistic on either side, or the two sides are not compared."""
STEADY = 8
"""Stretches that count for "it varies as coins do", or as shorter stretches do, before any have been seen."""

AGREEMENT, COVERAGE, BALANCE = 0, 1, 2
EVENT_KINDS = {BALANCE: events.BALANCE}
"""The kind of event, for each statistic of the panel as a whole."""

SOLE, TIED, CLOSE = 0, 1, 2
"""Places in `margins`, see `find_majority`."""
HITS, TRIES = 0, 1
"""Places in the middle axis of running totals."""


class Statistics(NamedTuple):
    """The statistics of a panel, in the order in which they are compared."""

    kind: Ints
    member: Ints  # the labeler or the class

    def entries(self) -> list[tuple[int, int]]:
        """Return (kind, member) of each statistic."""
        return list(zip(self.kind.tolist(), self.member.tolist(), strict=True))


def list_statistics(n_labelers: int, n_classes: int) -> Statistics:
    """Return the statistics of a panel.

    >>> list_statistics(2, 2).entries() == [(AGREEMENT, 0), (COVERAGE, 0), (AGREEMENT, 1), (COVERAGE, 1), (BALANCE, 0)]
    True
    """
    shares = 1 if n_classes == 2 else min(n_classes, SHARES)  # of two classes, the share of one says all
    kind = [AGREEMENT, COVERAGE] * n_labelers + [BALANCE] * shares
    return Statistics(np.array(kind), np.concatenate([np.repeat(np.arange(n_labelers), 2), np.arange(shares)]))


@inner
def pack_votes(rows: Codes, first: int, last: int, votes: Words) -> None:
    """Pack rows first .. last - 1, no more than 64, into `votes`."""
    row, one, eight = np.uint64(first), np.uint64(1), np.uint64(8)
    if votes.shape[0] <= FEW and last - first == BLOCK:
        # Eight rows at a time, which the compiler writes out, where 64 would be a loop.
        for c in range(np.uint64(votes.shape[0])):
            for h in range(np.uint64(rows.shape[1])):
                word, this = np.uint64(0), np.int64(c)
                for group in range(eight):
                    bits, begin = np.uint64(0), row + group * eight
                    for step in range(eight):
                        bits |= np.uint64(np.int64(rows[begin + step, h]) == this) << step
                    word |= bits << (group * eight)
                votes[c, h] = word
        return
    votes[:] = np.uint64(0)
    for h in range(np.uint64(rows.shape[1])):
        for step in range(np.uint64(last - first)):
            vote = rows[row + step, h]
            if vote >= 0:
                votes[np.uint64(vote), h] |= one << step


@inner
def find_majority(votes: Words, panel: Bools, digits: Words, leads: Words, margins: Words) -> None:
    """Find the class that most of the panel vote for, in 64 rows at once.

    `leads[c]` becomes the rows on which no class has more votes than c. `margins` becomes the rows on which one class
    leads (`SOLE`), on which two do (`TIED`), and on which another class is one vote behind (`CLOSE`). `digits` is for
    work: the votes of each class, and in the last line those of the leader, in binary, a digit of each row in a word.
    """
    none, every = np.uint64(0), ~np.uint64(0)
    n_classes, n_digits = votes.shape[0], digits.shape[1]
    digits[:] = none
    for c in range(n_classes):
        for h in range(votes.shape[1]):
            carry = votes[c, h] if panel[h] else none
            for p in range(n_digits):
                digit = digits[c, p]
                digits[c, p] = digit ^ carry
                carry &= digit
    leads[:] = every
    top, some = digits[n_classes], none
    for place in range(n_digits):  # the highest digit first: a class that lacks one that another has is behind
        p = n_digits - 1 - place
        for c in range(n_classes):
            top[p] |= leads[c] & digits[c, p]
        for c in range(n_classes):
            leads[c] &= digits[c, p] | ~top[p]
        some |= top[p]
    one, two, three, close = none, none, none, none
    for c in range(n_classes):
        three |= two & leads[c]
        two |= one & leads[c]
        one |= leads[c]
        carry, same = every, every  # whether one vote more would be the lead
        for p in range(n_digits):
            same &= ~(digits[c, p] ^ carry ^ top[p])
            carry &= digits[c, p]
        close |= same & ~carry
    margins[SOLE], margins[TIED], margins[CLOSE] = one & ~two & some, two & ~three & some, close


@jit
def flag_rows(kind: int, member: int, votes: Words, leads: Words, margins: Words) -> tuple[Any, Any]:
    """Return the rows that are hits of a statistic, and those that count for it, as bits of two words."""
    n_classes, cast, leading = votes.shape[0], np.uint64(0), np.uint64(0)
    if kind == BALANCE:
        for c in range(member, n_classes, SHARES):
            leading |= leads[c]
        return leading & margins[SOLE], margins[SOLE]
    for c in range(n_classes):
        cast |= votes[c, member]
        leading |= votes[c, member] & leads[c]
    if kind == COVERAGE:
        return cast, ~np.uint64(0)
    # The others alone: a lead of one vote that the labeler is part of is a tie of the others; a tie that it is part of
    # is a lead of another class.
    hits = leading & margins[SOLE] & ~margins[CLOSE]
    return hits, hits | (leading & margins[TIED]) | (cast & ~leading & margins[SOLE])


@jit
def surprise(hits: int, tries: int, hits_before: int, tries_before: int) -> float:
    """Return twice the log-likelihood ratio of "two rates" against "one": about the square of a normal deviate."""
    rate = (hits + hits_before) / (tries + tries_before)
    if rate <= 0.0 or rate >= 1.0:
        return 0.0
    nats = 0.0
    for count, of in ((hits, tries), (hits_before, tries_before)):
        part = 0.0
        if count > 0:
            part += count * math.log(count / (of * rate))
        if count < of:
            part += (of - count) * math.log((of - count) / (of * (1.0 - rate)))
        nats += part
    return 2.0 * nats


@inner
def spread(totals: Ints, column: int, first: int, change: int, span: int, prior: float) -> float:
    """Return how much stretches of up to `span` blocks vary before the change, against coins of the same rate.

    1 for coins, more where rows come in runs. `totals` are running totals (lines, 2, columns), line b modulo the number
    of lines before block b; `first` and `change` are blocks. Stretches have 1, 2, 4 ... blocks: where there are few
    long ones, they are taken to vary as the shorter ones do, and before those as `prior` says.
    """
    lines, ratio, length = totals.shape[0], prior, 1
    while length <= span and change - 2 * length >= first:
        groups = (change - first) // length
        begin = change - groups * length
        tries = totals[change % lines, TRIES, column] - totals[begin % lines, TRIES, column]
        hits = totals[change % lines, HITS, column] - totals[begin % lines, HITS, column]
        if 0 < hits < tries:
            rate, squares = hits / tries, 0.0
            for g in range(groups):
                low, high = (begin + g * length) % lines, (begin + (g + 1) * length) % lines
                seen = totals[high, TRIES, column] - totals[low, TRIES, column]
                apart = totals[high, HITS, column] - totals[low, HITS, column] - rate * seen
                squares += apart * apart
            measured = squares * groups / ((groups - 1) * rate * (1.0 - rate) * tries)
            mixed = (STEADY * ratio + (groups - 1) * measured) / (STEADY + groups - 1)
            ratio = max(1.0, mixed) if length == 1 else max(ratio, mixed)
        length *= 2
    return ratio


def _find_deviate(probability: float) -> float:
    """Return the normal deviate that is exceeded, on either side, with this probability."""
    low, high = 0.0, 40.0
    for _ in range(80):
        middle = (low + high) / 2.0
        low, high = (middle, high) if math.erfc(middle / math.sqrt(2.0)) > probability else (low, middle)
    return high


find_deviate = inner(_find_deviate)


@lru_cache(maxsize=256)
def normal_deviate(probability: float) -> float:
    """Return the normal deviate that is exceeded, on either side, with this probability.

    >>> round(normal_deviate(0.05), 3)
    1.96
    """
    return _find_deviate(probability)
