"""Pair sums over every window of the grid, advanced by one row."""

from __future__ import annotations

from driftvote.kernels._jit import jit
from driftvote.kernels.layout import Codes, Ints, Memory


@jit
def vote_of(code: int) -> int:
    """The class that counts for this cell: its own, the random fill's (-2 - class), or -1."""
    return code if code >= -1 else -2 - code


@jit
def count_row(row: Codes, n_classes: int, sign: int, sums: Ints, votes: Ints) -> None:
    """Add (sign +1) or take away (sign -1) one row's pair agreements and votes.

    A pair that agrees counts K - 1, one that disagrees -1, one with an abstention 0: the rescaled
    agreement of the one-coin model times K - 1, so that everything stays an integer.
    """
    n = row.shape[0]
    agree = sign * (n_classes - 1)
    pair = 0
    for i in range(n):
        code = row[i]
        if code >= 0:
            votes[i] += sign
        vote = vote_of(code)
        if vote < 0:
            pair += n - 1 - i
            continue
        for j in range(i + 1, n):
            other = vote_of(row[j])
            if other == vote:
                sums[pair] += agree
            elif other >= 0:
                sums[pair] -= sign
            pair += 1


@jit
def absorb_row(row: Codes, n_classes: int, sizes: Ints, memory: Memory) -> None:
    """Let one row enter every window, and the row that each window loses leave it."""
    capacity = memory.ring.shape[0]
    seen = memory.clock[0]
    for k in range(sizes.shape[0]):
        size = sizes[k]
        if seen >= size:
            leaving = memory.ring[(seen - size) % capacity]
            count_row(leaving, n_classes, -1, memory.sums[k], memory.votes[k])
        count_row(row, n_classes, 1, memory.sums[k], memory.votes[k])
    if capacity > 0:  # "all past" never loses a row and keeps no ring
        slot = seen % capacity
        for i in range(row.shape[0]):
            memory.ring[slot, i] = row[i]
    memory.clock[0] = seen + 1


@jit
def recount(rows: Codes, n_classes: int, sizes: Ints, sums: Ints, votes: Ints) -> None:
    """Fill sums and votes from the remembered rows (oldest first), by definition."""
    n_rows = rows.shape[0]
    for k in range(sizes.shape[0]):
        sums[k, :] = 0
        votes[k, :] = 0
        for t in range(max(0, n_rows - sizes[k]), n_rows):
            count_row(rows[t], n_classes, 1, sums[k], votes[k])
