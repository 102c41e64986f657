"""Sums over every window of the grid for the sharper window rules: agreements, joint votes, votes by class.

The window is looked at every `stride` rows, so running totals are kept every `stride` rows: the sum over a window is a
difference of two of them, and a row costs the same whatever the number of windows.
"""

from __future__ import annotations

from typing import NamedTuple

from driftvote.kernels._jit import jit
from driftvote.kernels.agreements import vote_of
from driftvote.kernels.layout import Codes, Ints

# A row's key is 31 bits of a product, so that no product leaves 64 bits and plain Python gives the same.
_MASK = 2**31 - 1
SPREAD = 1_540_483_477


class Tally(NamedTuple):
    """What a stream remembers. Its size depends on the grid, the labelers and the classes, never on the rows.

    The last axis of `now`, `totals`, `lags` and `stats` holds, one after the other: pair agreements times K - 1 and
    joint votes (pairs in lexicographic order), votes by labeler and class, and votes that were not abstentions.
    """

    ring: Codes  # (remembered, labelers): row t (from 0) sits in slot t mod capacity
    keys: Ints  # (remembered,): equal rows have equal keys
    known: Ints  # (remembered,): the verified class of a row, -1 where nobody has said
    now: Ints  # running totals over all rows
    totals: Ints  # (slots, ...): the same after 1, 1 + stride, 1 + 2 stride ... rows
    lags: Ints  # (far windows, ...): the same as many rows ago as a window has that is too wide for the slots
    stats: Ints  # (windows, ...): sums over each window, as far as they have been looked at
    clock: Ints  # (1,): rows seen
    stride: int
    n_classes: int


@jit
def n_pairs_of(tally: Tally) -> int:
    """Pairs of labelers."""
    n = tally.ring.shape[1]
    return n * (n - 1) // 2


@jit
def keys_tell_all(n_labelers: int, n_classes: int) -> bool:
    """Whether different rows have different keys: so few labelers and classes that a key can spell the row out."""
    rows = 1.0
    for _ in range(n_labelers):
        rows *= n_classes + 1
    return rows <= _MASK


@jit
def key_of(rows: Codes, place: int, n_classes: int) -> int:
    """A number that equal rows share."""
    n = rows.shape[1]
    key = 0
    if keys_tell_all(n, n_classes):
        for i in range(n):
            key = key * (n_classes + 1) + int(vote_of(rows[place, i])) + 1
        return key
    for i in range(n):
        key = (key * SPREAD + int(vote_of(rows[place, i])) + 2) & _MASK
    return key


@jit
def count_row(rows: Codes, place: int, n_classes: int, sign: int, sums: Ints) -> None:
    """Add or take away one row: agreements (K - 1 for a pair that agrees, -1 for one that does not) and votes."""
    n = rows.shape[1]
    pairs = n * (n - 1) // 2
    by_class, by_labeler = 2 * pairs, 2 * pairs + n * n_classes
    agree = sign * (n_classes - 1)
    pair = 0
    for i in range(n):
        code = rows[place, i]
        vote = int(vote_of(code))
        if vote < 0:
            pair += n - 1 - i
            continue
        sums[by_class + i * n_classes + vote] += sign
        if code >= 0:
            sums[by_labeler + i] += sign
        for j in range(i + 1, n):
            other = vote_of(rows[place, j])
            if other >= 0:
                sums[pairs + pair] += sign
                sums[pair] += agree if other == vote else -sign
            pair += 1


@jit
def absorb(rows: Codes, place: int, sizes: Ints, tally: Tally) -> None:
    """Let one row in."""
    capacity, n_far = tally.ring.shape[0], tally.lags.shape[0]
    seen = tally.clock[0]
    for f in range(n_far):
        size = sizes[sizes.shape[0] - n_far + f]
        if seen >= size:
            count_row(tally.ring, (seen - size) % capacity, tally.n_classes, 1, tally.lags[f])
    slot = seen % capacity
    for i in range(rows.shape[1]):
        tally.ring[slot, i] = rows[place, i]
    tally.keys[slot] = key_of(rows, place, tally.n_classes)
    tally.known[slot] = -1
    count_row(rows, place, tally.n_classes, 1, tally.now)
    if seen % tally.stride == 0:
        at = (seen // tally.stride) % tally.totals.shape[0]
        for d in range(tally.now.shape[0]):
            tally.totals[at, d] = tally.now[d]
    tally.clock[0] = seen + 1


@jit
def absorb_rows(rows: Codes, sizes: Ints, tally: Tally) -> None:
    """Let rows in, one after the other."""
    for t in range(rows.shape[0]):
        absorb(rows, t, sizes, tally)


@jit
def replay(rows: Codes, sizes: Ints, tally: Tally) -> None:
    """Let remembered rows in again; the clock says how many came before them, which are gone and leave no window."""
    first = tally.clock[0]
    capacity, n_far = tally.ring.shape[0], tally.lags.shape[0]
    for t in range(rows.shape[0]):
        seen = first + t
        slot = seen % capacity
        for i in range(rows.shape[1]):
            tally.ring[slot, i] = rows[t, i]
        tally.keys[slot] = key_of(rows, t, tally.n_classes)
        count_row(rows, t, tally.n_classes, 1, tally.now)
        if seen % tally.stride == 0:
            tally.totals[(seen // tally.stride) % tally.totals.shape[0]] = tally.now
    tally.clock[0] = first + rows.shape[0]
    for f in range(n_far):
        size = sizes[sizes.shape[0] - n_far + f]
        for t in range(rows.shape[0] - min(size, rows.shape[0])):
            count_row(rows, t, tally.n_classes, 1, tally.lags[f])


@jit
def sum_up(level: int, sizes: Ints, tally: Tally) -> None:
    """Fill `stats[level]`: the sums over the last rows, as many as the window has or as there are."""
    stats, seen = tally.stats[level], tally.clock[0]
    far = level - (sizes.shape[0] - tally.lags.shape[0])
    first = seen - min(sizes[level], seen)
    if far >= 0:
        for d in range(stats.shape[0]):
            stats[d] = tally.now[d] - tally.lags[far, d]
        return
    if first == 0:
        for d in range(stats.shape[0]):
            stats[d] = tally.now[d]
        return
    # Totals were kept after 1 + q stride rows; the rows between `first` and the next such moment are counted.
    q = (first - 1 + tally.stride - 1) // tally.stride
    begin = 1 + q * tally.stride
    if begin > seen:
        begin = seen
        stats[:] = 0
    else:
        at = q % tally.totals.shape[0]
        for d in range(stats.shape[0]):
            stats[d] = tally.now[d] - tally.totals[at, d]
    for t in range(first, begin):
        count_row(tally.ring, t % tally.ring.shape[0], tally.n_classes, 1, stats)
