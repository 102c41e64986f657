"""2 AGREEMENTS: how often each pair of labelers agreed over the last r rows, for every window r.

Sums are integers and therefore exact: nothing drifts however long the stream, and a million rows at
once leave the same numbers as a million single rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from driftvote.kernels.agreements import recount
from driftvote.kernels.layout import Codes, Floats, Ints, Memory, code_dtype


def n_pairs(n_labelers: int) -> int:
    """Unordered pairs of labelers."""
    return n_labelers * (n_labelers - 1) // 2


def ring_rows(ring: Codes, first: int, last: int) -> Codes:
    """Rows first .. last - 1 of a ring in which row t sits in slot t mod capacity; a view where they do not wrap."""
    begin, end = first % max(1, len(ring)), last % max(1, len(ring))
    if first == last:
        return ring[:0]
    return ring[begin:end] if begin < end else np.concatenate([ring[begin:], ring[:end]])


@dataclass
class StreamState:
    """All that a stream remembers: plain arrays, bounded by the largest window.

    `memory.ring` holds the last rows, `memory.sums` and `memory.votes` one line a window.
    """

    memory: Memory

    @classmethod
    def empty(cls, sizes: Ints, capacity: int, n_labelers: int, n_classes: int) -> StreamState:
        return cls(
            Memory(
                # Pages of the ring are taken from the system only when rows reach them.
                ring=np.zeros((capacity, n_labelers), code_dtype(n_classes)),
                sums=np.zeros((len(sizes), n_pairs(n_labelers)), np.int64),
                votes=np.zeros((len(sizes), n_labelers), np.int64),
                clock=np.zeros(1, np.int64),
            )
        )

    @property
    def n_rows(self) -> int:
        """Rows seen since the stream began."""
        return int(self.memory.clock[0])

    @property
    def n_labelers(self) -> int:
        return int(self.memory.votes.shape[1])

    @property
    def nbytes(self) -> int:
        """Bytes held, whatever the number of rows."""
        return sum(part.nbytes for part in self.memory)

    def recent_rows(self) -> Codes:
        """The remembered rows, oldest first (a copy)."""
        capacity = len(self.memory.ring)
        if self.n_rows <= capacity:
            return self.memory.ring[: self.n_rows].copy()
        return np.roll(self.memory.ring, -(self.n_rows % max(capacity, 1)), axis=0)

    def rows_since(self, row: int) -> Codes:
        """Remembered rows from this row of the stream on, oldest first."""
        return ring_rows(self.memory.ring, row, self.n_rows)

    def set_recent_rows(self, rows: Codes) -> None:
        """Put remembered rows (oldest first) where the clock says they belong."""
        capacity = len(self.memory.ring)
        slots = (self.n_rows - len(rows) + np.arange(len(rows))) % max(capacity, 1)
        self.memory.ring[slots] = rows

    def take(self, sums: Ints, votes: Ints, rows: Codes) -> None:
        """Sums and votes after these rows, the last of them into the ring, and the clock forward."""
        self.memory.sums[:] = sums
        self.memory.votes[:] = votes
        capacity = len(self.memory.ring)
        last = rows[-capacity:]
        slot = (self.n_rows + len(rows) - len(last)) % capacity
        before = min(len(last), capacity - slot)
        self.memory.ring[slot : slot + before] = last[:before]
        self.memory.ring[: len(last) - before] = last[before:]
        self.memory.clock[0] += len(rows)

    def with_labelers(self, sizes: Ints, n_classes: int, newcomers: Codes) -> StreamState:
        """The state as if `newcomers` (their codes on the remembered rows) had always been there."""
        old, n_old = self.memory, self.n_labelers
        wider = StreamState.empty(sizes, len(old.ring), n_old + newcomers.shape[1], n_classes)
        wider.memory.clock[:] = old.clock
        rows = np.hstack([self.recent_rows(), newcomers])
        wider.set_recent_rows(rows)
        if (newcomers == -1).all():
            # Silent so far: their pairs sum to zero, and the others keep theirs.
            i, j = np.triu_indices(n_old, 1)
            n_new = wider.n_labelers
            wider.memory.sums[:, i * n_new - i * (i + 1) // 2 + j - i - 1] = old.sums
            wider.memory.votes[:, :n_old] = old.votes
        else:
            recount(rows, n_classes, sizes, wider.memory.sums, wider.memory.votes)
        return wider


def agreement_matrix(sums: Ints, n_labelers: int, window: int, n_classes: int) -> Floats:
    """C over one window, with 1 on the diagonal.

    >>> agreement_matrix(np.array([4, 0, -2]), 3, 4, 2)
    array([[ 1. ,  1. ,  0. ],
           [ 1. ,  1. , -0.5],
           [ 0. , -0.5,  1. ]])
    """
    matrix = np.eye(n_labelers)
    i, j = np.triu_indices(n_labelers, 1)
    matrix[i, j] = matrix[j, i] = sums / (window * (n_classes - 1))
    return matrix
