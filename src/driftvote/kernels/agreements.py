"""Pair sums over every window of the grid, advanced by one row."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from driftvote.kernels._jit import jit
from driftvote.kernels.layout import Codes, Ints, Memory

Terms = npt.NDArray[np.int16]

# Changes are written in runs of a multiple of this many, whatever the number of labelers: that is a few vector
# instructions, where n - 1 - i turns would be a test and a jump for every pair. What is written too much is overwritten
# by the next labeler's changes, or lies behind the last pair.
SPAN = 32


# Indices of single rows are unsigned: an index that might be negative costs a test, and the loop its vectors; slices
# that begin at 0 would do as well, but each counts its references, and in these short loops that is most of the time.
_ONE = np.uint64(1)
_SPAN = np.uint64(SPAN)


@jit
def vote_of(code: int) -> int:
    """The class that counts for this cell: its own, the random fill's (-2 - class), or -1."""
    return code if code >= -1 else -2 - code


@jit
def spread(rows: Codes, place: int, out: Terms) -> bool:
    """The classes that count in one of the rows, followed by abstentions; whether every labeler cast its vote."""
    n = np.uint64(rows.shape[1])
    row = np.uint64(place)
    least = 0
    for i in range(n):
        code = rows[row, i]
        least = min(least, int(code))
        out[i] = vote_of(code)
    for i in range(_SPAN):
        out[n + i] = -1
    return least >= 0


@jit
def pair_changes(votes: Terms, n_labelers: int, n_classes: int, came: Terms, first: int, out: Terms) -> None:
    """What each pair's sum gains when one row comes (its terms are given) and another goes (its votes are given).

    A pair that agrees counts K - 1, one that disagrees -1, one with an abstention 0: the rescaled
    agreement of the one-coin model times K - 1, so that everything stays an integer. Written from place `first`
    on; all arrays have SPAN entries more than they need.
    """
    n = np.uint64(n_labelers)
    agree, none = np.int16(n_classes - 1), np.int16(0)
    pair, place = np.uint64(0), np.uint64(first)
    for i in range(n - _ONE):
        vote = votes[i]
        differ = np.int16(-1) if vote >= 0 else none
        same = agree if vote >= 0 else none
        length = n - _ONE - i
        for c in range((length + _SPAN - _ONE) // _SPAN * _SPAN):
            other = votes[i + _ONE + c]
            out[place + c] = np.int16(came[pair + c] - (none if other < 0 else (same if other == vote else differ)))
        pair += length
        place += length


@jit
def add_changes(changes: Terms, sums: Ints) -> None:
    """All windows at once: their sums lie one after the other."""
    flat = sums.reshape((sums.shape[0] * sums.shape[1],))
    for place in range(flat.shape[0]):
        flat[place] += int64_from(changes[place])


@jit
def int64_from(value: Any) -> Any:
    """A change, wide enough to be added to a sum."""
    return np.int64(value)


@jit
def count_votes(row: Codes, sign: int, votes: Ints, k: int) -> None:
    """Add (sign +1) or take away (sign -1) a row's votes to those in window k."""
    for i in range(row.shape[0]):
        votes[k, i] += sign if row[i] >= 0 else 0


@jit
def absorb_row(row: Codes, n_classes: int, sizes: Ints, memory: Memory, work: Terms) -> None:
    """Let one row enter every window, and the row that each window loses leave it.

    `work` is for the changes; see `room_for_changes`.
    """
    n, n_pairs = row.shape[0], memory.sums.shape[1]
    capacity = memory.ring.shape[0]
    seen = memory.clock[0]
    now = seen % capacity if capacity > 0 else 0
    votes, came, changes = work[: n + SPAN], work[n + SPAN : n + n_pairs + 2 * SPAN], work[n + n_pairs + 2 * SPAN :]
    everybody = spread(row.reshape((1, n)), 0, votes)
    changes[: n_pairs + SPAN] = 0
    pair_changes(votes, n, n_classes, changes, 0, came)
    for pair in range(n_pairs):
        came[pair] = -came[pair]
    for k in range(sizes.shape[0]):
        if seen < sizes[k]:
            votes[:] = -1
            count_votes(row, 1, memory.votes, k)
        else:
            slot = now - sizes[k] if now >= sizes[k] else now - sizes[k] + capacity
            if not (spread(memory.ring, slot, votes) and everybody):
                count_votes(memory.ring[slot], -1, memory.votes, k)
                count_votes(row, 1, memory.votes, k)
        pair_changes(votes, n, n_classes, came, k * n_pairs, changes)
    add_changes(changes, memory.sums)
    if capacity > 0:  # "all past" never loses a row and keeps no ring
        for i in range(n):
            memory.ring[now, i] = row[i]
    memory.clock[0] = seen + 1


@jit
def room_for_changes(n: int, n_windows: int) -> Terms:
    """The working array of `absorb_row`: votes and changes of one row, changes of every window."""
    n_pairs = n * (n - 1) // 2
    return np.empty(n + n_pairs + n_windows * n_pairs + 3 * SPAN, np.int16)


@jit
def recount(rows: Codes, n_classes: int, sizes: Ints, sums: Ints, votes: Ints) -> None:
    """Fill sums and votes from the remembered rows (oldest first), by definition."""
    n_rows, n = rows.shape
    n_pairs = sums.shape[1]
    wide, gone = np.empty(n + SPAN, np.int16), np.empty(n_pairs + SPAN, np.int16)
    none = np.zeros(n_pairs + SPAN, np.int16)
    sums[:, :] = 0
    votes[:, :] = 0
    for t in range(n_rows):
        spread(rows, t, wide)
        pair_changes(wide, n, n_classes, none, 0, gone)
        for k in range(sizes.shape[0]):
            if t >= n_rows - sizes[k]:
                count_votes(rows[t], 1, votes, k)
                for pair in range(n_pairs):
                    sums[k, pair] -= gone[pair]
