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
from driftvote.kernels.layout import Bools, Codes, Floats, Ints

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
"""Stretches that count for "it varies as coins do", or as shorter stretches do, before any have been seen."""

CLOCK, START, FIRED_WHAT, FIRED_WHO, FIRED_SPAN, PENDING, HEAD = 0, 1, 2, 3, 4, 5, 6
NOTHING, AGREEMENT, COVERAGE, BALANCE = 0, 1, 2, 3


class Watched(NamedTuple):
    """What is remembered of a stream. Its size depends on labelers and classes, never on the rows.

    The last axis of `totals` and `base` holds, one after the other: for each labeler the rows on which it and most of
    the others voted, those of them on which they agreed, its votes; for each class the rows on which most voted for
    it; the rows on which one class led, and all rows.
    """

    ring: Codes  # (REMEMBERED, labelers): row t sits in slot t mod REMEMBERED
    totals: Ints  # (KEPT, numbers): sums up to the end of block b - 1 in slot b mod KEPT
    base: Ints  # (numbers,): the same where the present episode begins
    born: Ints  # (labelers,): the block in which a labeler first voted, -1 before that
    prior: Floats  # (numbers,): how much each varied in episodes that are over, against coins
    head: Ints  # (HEAD,): rows seen, the block at which the episode began, and what was found
    n_classes: int


@jit
def n_numbers(n_labelers: int, n_shares: int) -> int:
    """Length of a line of totals."""
    return 3 * n_labelers + n_shares + 2


@jit
def close_block(
    rows: Codes, first: int, watched: Watched, block: int, everybody: Bools, words: Words, digits: Words
) -> None:
    """Add a block that is complete, and stands in `rows` from `first` on, to the totals."""
    n, shares = watched.ring.shape[1], min(watched.n_classes, CLASSES)
    before, after = watched.totals[block % KEPT], watched.totals[(block + 1) % KEPT]
    after[:] = 0
    if watched.n_classes == 2:
        count_two_classes(rows, first, everybody, words, digits, after)
    else:
        count_classes(rows, first, everybody, words, digits, after)
    for h in range(n):
        if after[2 * n + h] > 0 and watched.born[h] < 0:
            watched.born[h] = block
    after[3 * n + shares] = 0
    for s in range(3 * n, 3 * n + shares):
        after[3 * n + shares] += after[s]
    after[3 * n + shares + 1] = BLOCK
    for d in range(after.shape[0]):
        after[d] += before[d]


@jit
def spread_of(totals: Ints, hits: int, seen: int, first: int, change: int, span: int, prior: float) -> float:
    """How much stretches as long as `span` vary before the change, against coins of the same rate: 1 for coins, more
    where rows come in runs.

    `hits` and `seen` are columns of the totals, `first` and `change` blocks. Stretches of 1, 2, 4 ... blocks: where
    there are few long ones, they are taken to vary as the shorter ones do.
    """
    spread, length = prior, 1
    while length <= span and change - 2 * length >= first:
        groups = (change - first) // length
        begin = change - groups * length
        all_seen = totals[change % KEPT, seen] - totals[begin % KEPT, seen]
        all_hits = totals[change % KEPT, hits] - totals[begin % KEPT, hits]
        if 0 < all_hits < all_seen:
            rate, squares = all_hits / all_seen, 0.0
            for g in range(groups):
                low, high = (begin + g * length) % KEPT, (begin + (g + 1) * length) % KEPT
                apart = totals[high, hits] - totals[low, hits] - rate * (totals[high, seen] - totals[low, seen])
                squares += apart * apart
            found = squares * groups / ((groups - 1) * rate * (1.0 - rate) * all_seen)
            mixed = (STEADY * spread + (groups - 1) * found) / (STEADY + groups - 1)
            spread = max(1.0, mixed) if length == 1 else max(spread, mixed)
        length *= 2
    return spread


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
def end_episode(watched: Watched, change: int) -> None:
    """Remember how much everything varied in the episode that ends at this block."""
    n, shares = watched.ring.shape[1], min(watched.n_classes, CLASSES)
    first = max(watched.head[START], watched.head[CLOCK] // BLOCK - KEPT + 1)
    for hits in range(n, 3 * n + shares):
        seen = hits - n if hits < 2 * n else 3 * n + shares + 1 if hits < 3 * n else 3 * n + shares
        watched.prior[hits] = spread_of(watched.totals, hits, seen, first, change, FINE, watched.prior[hits])


@jit
def compare(watched: Watched, block: int, span: int, limit: float) -> bool:
    """Whether the last blocks differ from all before them in the episode; says in `head` by what."""
    n, shares = watched.ring.shape[1], min(watched.n_classes, CLASSES)
    decided, rows = 3 * n + shares, 3 * n + shares + 1
    start = watched.head[START]
    best = limit
    watched.head[FIRED_WHAT] = NOTHING
    for h in range(n):
        told = strayed(watched, n + h, h, start, block, span, best)
        if told > best:
            best = told
            watched.head[FIRED_WHAT], watched.head[FIRED_WHO] = AGREEMENT, h
        since = max(start, watched.born[h])
        told = strayed(watched, 2 * n + h, rows, since, block, span, best) if watched.born[h] >= 0 else 0.0
        if told > best:
            best = told
            watched.head[FIRED_WHAT], watched.head[FIRED_WHO] = COVERAGE, h
    for s in range(shares if shares > 2 else 1):
        told = strayed(watched, 3 * n + s, decided, start, block, span, best)
        if told > best:
            best = told
            watched.head[FIRED_WHAT], watched.head[FIRED_WHO] = BALANCE, s
    watched.head[FIRED_SPAN] = span
    return bool(watched.head[FIRED_WHAT] != NOTHING)


@jit
def strayed(watched: Watched, hits: int, seen: int, since: int, block: int, span: int, limit: float) -> float:
    """How surprising the last blocks are in one column of the totals, if they come near the limit; otherwise 0."""
    totals, base, change = watched.totals, watched.base, block - span
    if since >= change:
        return 0.0
    now, then = block % KEPT, change % KEPT
    a, m = totals[now, hits] - totals[then, hits], totals[now, seen] - totals[then, seen]
    b = totals[then, hits] - base[hits]
    # Rows since a labeler's first vote, or since the episode began.
    before = totals[then, seen] - base[seen] - (since - watched.head[START]) * BLOCK
    if not may_stray(a, m, b, before, limit):
        return 0.0
    first = max(since, block - KEPT + 1)
    return surprise(a, m, b, before) / spread_of(totals, hits, seen, first, change, span, watched.prior[hits])


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
    """Let rows in from `begin` on, up to the end of them or of the block at which a change is told.

    Returns how many of the rows are in.
    """
    (n_rows, n), n_classes = rows.shape, watched.n_classes
    everybody = np.ones(n, np.bool_)
    words, digits = np.empty((n_classes, n), np.uint64), np.empty((n_classes, n_digits(n)), np.uint64)
    place, kept, found = begin, begin, False
    while place < n_rows and not found:
        seen = watched.head[CLOCK]
        block, count = seen // BLOCK, min(BLOCK - seen % BLOCK, n_rows - place)
        place += count
        watched.head[CLOCK] = seen + count
        if (seen + count) % BLOCK != 0 or block < watched.head[START]:
            continue
        if count == BLOCK:
            close_block(rows, place - BLOCK, watched, block, everybody, words, digits)
        else:  # its first rows came earlier
            keep(rows, kept, place, watched)
            kept = place
            close_block(watched.ring, block * BLOCK % REMEMBERED, watched, block, everybody, words, digits)
        # What is found is told a block later: with more rows since the change, it is clearer who it was.
        if watched.head[PENDING]:
            watched.head[PENDING], found = 0, True
            watched.head[FIRED_SPAN] += 1
        elif look(watched, limit):
            watched.head[PENDING] = 1
    keep(rows, kept, place, watched)
    return place
