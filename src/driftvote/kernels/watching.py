"""Counting what is watched for drift, block by block, and comparing the last blocks with all before them.

A block is `BLOCK` rows by their absolute numbers. What is counted of a row depends on nothing but the row: for each
labeler whether it votes and whether it votes as most of the *others* do, and the class that most vote for. So as long
as nothing drifts, blocks are alike, whatever the labelers are; no estimate is in it that could wobble.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from driftvote.kernels._jit import jit
from driftvote.kernels.counting import BLOCK, CLASSES, Words, count_classes, count_two_classes, n_digits
from driftvote.kernels.layout import Codes, Ints

SPANS = (1, 2, 4, 8, 16, 32, 64, 128)
"""Blocks that are taken for "since the change", each in its turn."""
FINE = 4
"""A span of this many blocks or fewer is looked at after every block, a longer one after every quarter of it."""
KEPT = SPANS[-1] + 1
"""Running totals that are kept, one a block."""
REMEMBERED = 2 * BLOCK * SPANS[-1]
"""Rows that are kept to say who changed and when: the longest span, and as many before it."""
LEAST = 16
"""Votes on either side of a change without which nothing is said of a labeler."""
STEADY = 8
"""Blocks that count for "block to block it varies as coins do" before any have been seen."""

CLOCK, START, FIRED_WHAT, FIRED_WHO, FIRED_SPAN, HEAD = 0, 1, 2, 3, 4, 5
NOTHING, AGREEMENT, COVERAGE, BALANCE = 0, 1, 2, 3


class Watched(NamedTuple):
    """What is remembered of a stream. Its size depends on labelers and classes, never on the rows.

    The last axis of `totals` and `base` holds, one after the other: for each labeler the rows on which it and most of
    the others voted, those of them on which they agreed, its votes; for each class the rows on which most voted for
    it; then sums over blocks of squares and products of the same, which say how much blocks vary.
    """

    ring: Codes  # (REMEMBERED, labelers): row t sits in slot t mod REMEMBERED
    totals: Ints  # (KEPT, numbers): sums up to the end of block b - 1 in slot b mod KEPT
    base: Ints  # (numbers,): the same where the present episode begins
    born: Ints  # (labelers,): the block in which a labeler first voted, -1 before that
    head: Ints  # (HEAD,): rows seen, the block at which the episode began, and what was found
    n_classes: int


@jit
def n_numbers(n_labelers: int, n_shares: int) -> int:
    """Length of a line of totals."""
    return 7 * n_labelers + 3 * n_shares + 1


@jit
def close_block(rows: Codes, first: int, watched: Watched, block: int, words: Words, digits: Words) -> None:
    """Add a block that is complete, and stands in `rows` from `first` on, to the totals."""
    n, shares = watched.ring.shape[1], min(watched.n_classes, CLASSES)
    before, after = watched.totals[block % KEPT], watched.totals[(block + 1) % KEPT]
    after[:] = 0
    if watched.n_classes == 2:
        count_two_classes(rows, first, words, digits, after)
    else:
        count_classes(rows, first, watched.n_classes, after)
    at = 3 * n + shares
    decided = 0
    for s in range(shares):
        decided += after[3 * n + s]
    for h in range(n):
        seen, hits, votes = after[h], after[n + h], after[2 * n + h]
        after[at + h] = hits * hits
        after[at + n + h] = hits * seen
        after[at + 2 * n + h] = seen * seen
        after[at + 3 * n + h] = votes * votes
        if votes > 0 and watched.born[h] < 0:
            watched.born[h] = block
    at += 4 * n
    for s in range(shares):
        after[at + s] = after[3 * n + s] * after[3 * n + s]
        after[at + shares + s] = after[3 * n + s] * decided
    after[at + 2 * shares] = decided * decided
    for d in range(after.shape[0]):
        after[d] += before[d]


@jit
def spread_of(hits: int, seen: int, squares: float, products: float, lengths: float, blocks: int) -> float:
    """How much blocks vary, against coins of the same rate: 1 for coins, more where rows come in runs."""
    if blocks < 2 or hits == 0 or hits == seen:
        return 1.0
    rate = hits / seen
    chance = rate * (1.0 - rate) * seen / blocks  # of the sum of squares below, for each block
    found = (squares - 2.0 * rate * products + rate * rate * lengths) / ((blocks - 1) * chance)
    return max(1.0, (STEADY + (blocks - 1) * found) / (STEADY + blocks - 1))


@jit
def part(hits: int, seen: int, rate: float) -> float:
    """Surprise, in nats, at so many hits if the rate were this one."""
    told = 0.0
    if hits > 0:
        told += hits * math.log(hits / (seen * rate))
    if hits < seen:
        told += (seen - hits) * math.log((seen - hits) / (seen * (1.0 - rate)))
    return told


@jit
def surprise(hits: int, seen: int, hits_before: int, seen_before: int) -> float:
    """Twice the log-likelihood ratio of "two rates" against "one": about the square of a normal deviate."""
    rate = (hits + hits_before) / (seen + seen_before)
    if rate <= 0.0 or rate >= 1.0:
        return 0.0
    return 2.0 * (part(hits, seen, rate) + part(hits_before, seen_before, rate))


@jit
def may_stray(hits: int, seen: int, hits_before: int, seen_before: int, limit: float) -> bool:
    """Whether the normal deviate, which takes no logarithm, comes near the limit at all."""
    if seen < LEAST or seen_before < LEAST:
        return False
    both, all_hits = float(seen + seen_before), float(hits + hits_before)
    apart = float(hits) * seen_before - float(hits_before) * seen
    return apart * apart * both > 0.5 * limit * all_hits * (both - all_hits) * seen * seen_before


@jit
def glance(
    totals: Ints, base: Ints, now: int, then: int, sizes: tuple[int, int], rows: tuple[int, int], limit: float
) -> bool:
    """Whether anything may have changed between the lines `then` and `now` of the totals.

    A cheap look that nearly always says no; `sizes` are labelers and classes, `rows` those since and before.
    """
    n, shares = sizes
    for h in range(n):
        hits, seen = totals[then, n + h], totals[then, h]
        if may_stray(totals[now, n + h] - hits, totals[now, h] - seen, hits - base[n + h], seen - base[h], limit):
            return True
        votes = totals[then, 2 * n + h]
        always = votes - base[2 * n + h] == rows[1] and totals[now, 2 * n + h] - votes == rows[0]
        voted, voted_b = totals[now, 2 * n + h] - votes, votes - base[2 * n + h]
        if not always and may_stray(voted, rows[0], voted_b, rows[1], limit):
            return True
    decided, decided_b = 0, 0
    for s in range(3 * n, 3 * n + shares):
        decided += totals[now, s] - totals[then, s]
        decided_b += totals[then, s] - base[s]
    for s in range(3 * n, 3 * n + (shares if shares > 2 else 1)):
        if may_stray(totals[now, s] - totals[then, s], decided, totals[then, s] - base[s], decided_b, limit):
            return True
    return False


@jit
def compare(watched: Watched, block: int, span: int, limit: float) -> bool:
    """Whether the last blocks differ from all before them in the episode; says in `head` by what."""
    n, shares = watched.ring.shape[1], min(watched.n_classes, CLASSES)
    now, then, base = watched.totals[block % KEPT], watched.totals[(block - span) % KEPT], watched.base
    start, change = watched.head[START], block - span
    at = 3 * n + shares
    best = limit
    watched.head[FIRED_WHAT] = NOTHING
    for h in range(n):
        hits, seen = now[n + h] - then[n + h], now[h] - then[h]
        hits_b, seen_b = then[n + h] - base[n + h], then[h] - base[h]
        if may_stray(hits, seen, hits_b, seen_b, limit):
            aa, am = then[at + h] - base[at + h], then[at + n + h] - base[at + n + h]
            mm = then[at + 2 * n + h] - base[at + 2 * n + h]
            told = surprise(hits, seen, hits_b, seen_b) / spread_of(hits_b, seen_b, aa, am, mm, change - start)
            if told > best:
                best = told
                watched.head[FIRED_WHAT], watched.head[FIRED_WHO] = AGREEMENT, h
        since = max(start, watched.born[h])
        if watched.born[h] < 0 or since >= change:
            continue
        votes, rows = now[2 * n + h] - then[2 * n + h], span * BLOCK
        votes_b, rows_b = then[2 * n + h] - base[2 * n + h], (change - since) * BLOCK
        if may_stray(votes, rows, votes_b, rows_b, limit):
            vv = then[at + 3 * n + h] - base[at + 3 * n + h]
            varies = spread_of(votes_b, rows_b, vv, votes_b * BLOCK, rows_b * BLOCK, change - since)
            told = surprise(votes, rows, votes_b, rows_b) / varies
            if told > best:
                best = told
                watched.head[FIRED_WHAT], watched.head[FIRED_WHO] = COVERAGE, h
    compare_shares(watched, block, span, best)
    watched.head[FIRED_SPAN] = span
    return bool(watched.head[FIRED_WHAT] != NOTHING)


@jit
def compare_shares(watched: Watched, block: int, span: int, best: float) -> None:
    """The same for the share of each class."""
    n, shares = watched.ring.shape[1], min(watched.n_classes, CLASSES)
    now, then, base = watched.totals[block % KEPT], watched.totals[(block - span) % KEPT], watched.base
    blocks = block - span - watched.head[START]
    at = 7 * n + shares
    seen, seen_b = 0, 0
    for s in range(3 * n, 3 * n + shares):
        seen += now[s] - then[s]
        seen_b += then[s] - base[s]
    for s in range(shares if shares > 2 else 1):
        hits, hits_b = now[3 * n + s] - then[3 * n + s], then[3 * n + s] - base[3 * n + s]
        if may_stray(hits, seen, hits_b, seen_b, best):
            ll, ld = then[at + s] - base[at + s], then[at + shares + s] - base[at + shares + s]
            dd = then[at + 2 * shares] - base[at + 2 * shares]
            told = surprise(hits, seen, hits_b, seen_b) / spread_of(hits_b, seen_b, ll, ld, dd, blocks)
            if told > best:
                best = told
                watched.head[FIRED_WHAT], watched.head[FIRED_WHO] = BALANCE, s


@jit
def look(watched: Watched, limit: float) -> bool:
    """After a block: whether any span that is due differs from what was before it."""
    n, shares = watched.ring.shape[1], min(watched.n_classes, CLASSES)
    block, start = watched.head[CLOCK] // BLOCK, watched.head[START]
    for span in SPANS:
        change = block - span
        if change <= start:
            break
        if span > FINE and block % (span // FINE) != 0:
            break  # longer spans are due no more often
        rows = (span * BLOCK, (change - start) * BLOCK)
        near = glance(watched.totals, watched.base, block % KEPT, change % KEPT, (n, shares), rows, limit)
        if near and compare(watched, block, span, limit):
            return True
    return False


@jit
def keep(rows: Codes, first: int, last: int, watched: Watched) -> None:
    """Rows first .. last - 1, the latest of the stream, into the ring."""
    for t in range(max(first, last - REMEMBERED), last):
        slot = (watched.head[CLOCK] - last + t) % REMEMBERED
        for h in range(rows.shape[1]):
            watched.ring[slot, h] = rows[t, h]


@jit
def watch_rows(rows: Codes, begin: int, watched: Watched, limit: float) -> int:
    """Let rows in from `begin` on, up to the end of them or of the block at which a change is found.

    Returns how many of the rows are in.
    """
    n_rows, n = rows.shape
    words, digits = np.empty((2, n), np.uint64), np.empty((2, n_digits(n)), np.uint64)
    place, kept, found = begin, begin, False
    while place < n_rows and not found:
        seen = watched.head[CLOCK]
        block, count = seen // BLOCK, min(BLOCK - seen % BLOCK, n_rows - place)
        place += count
        watched.head[CLOCK] = seen + count
        if (seen + count) % BLOCK != 0 or block < watched.head[START]:
            continue
        if count == BLOCK:
            close_block(rows, place - BLOCK, watched, block, words, digits)
        else:  # its first rows came earlier
            keep(rows, kept, place, watched)
            kept = place
            close_block(watched.ring, block * BLOCK % REMEMBERED, watched, block, words, digits)
        found = look(watched, limit)
    keep(rows, kept, place, watched)
    return place
