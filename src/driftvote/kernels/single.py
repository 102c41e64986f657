"""One row, fast: the state and the settings come as one array of integers, so that little is left to do between
Python and the machine code. What happens inside is `label_row`, as for every other row."""

from __future__ import annotations

import numpy as np

from driftvote.kernels._jit import jit
from driftvote.kernels.agreements import room_for_changes
from driftvote.kernels.chunk import Desk, label_row
from driftvote.kernels.layout import Codes, Floats, Ints, Memory, Rule

# Places in the array of integers: these numbers first, then the arrays one after the other.
LABELERS, CLASSES, WINDOWS, DILUTED, FILLS, LOWEST, VALUES, HEAD = 0, 1, 2, 3, 4, 5, 6, 7

# Places in what comes back, followed by probabilities, accuracies, vote counts and codes of the row.
CODE, WINDOW, VOTES, TAIL = 0, 1, 2, 3


@jit
def read_codes(row: Ints, n_values: int, lowest: int, values: Ints, out: Codes) -> int:
    """Values as codes; returns how many are votes, or -1 when a value has no code."""
    n_votes = 0
    for i in range(row.shape[0]):
        place = row[i] - lowest
        if place < 0 or place >= n_values or values[place] < -1:
            return -1
        out[i] = values[place]
        n_votes += 1 if out[i] >= 0 else 0
    return n_votes


@jit
def label_one(row: Ints, ring: Codes, held: Ints, limits: Floats, draw: float, said: Floats) -> bool:
    """Learn from one row and label it, unless something about it is unusual; then nothing changes."""
    n, n_classes, m = held[LABELERS], held[CLASSES], held[WINDOWS]
    n_pairs = n * (n - 1) // 2
    at = HEAD
    values = held[at : at + held[VALUES]]
    at += held[VALUES]
    codes = np.empty(n, ring.dtype)
    n_votes = read_codes(row, held[VALUES], held[LOWEST], values, codes)
    if n_votes < 0 or (held[FILLS] and n_votes < n):
        return False
    clock = held[at : at + 1]
    sums = held[at + 1 : at + 1 + m * n_pairs].reshape((m, n_pairs))
    at += 1 + m * n_pairs
    votes = held[at : at + m * n].reshape((m, n))
    at += m * n
    sizes = held[at : at + m]
    at += m
    near, far, limit = held[at : at + m - 1], held[at + m - 1 : at + 2 * m - 2], held[at + 2 * m - 2 : at + 3 * m - 3]
    at += 3 * m - 3
    certain, known = held[at : at + m - 1], held[at + m - 1 : at + 2 * m - 2]
    memory = Memory(ring, sums, votes, clock)
    rule = Rule(sizes, near, far, limit, certain, n_classes, limits[0], limits[1], held[DILUTED] != 0, False)
    desk = Desk(
        known,
        room_for_changes(n, m),
        np.empty(n, np.int64),
        np.empty(n),
        np.empty(n_classes),
        np.empty(n_classes, np.int64),
    )
    proba, estimates = said[TAIL : TAIL + n_classes], said[TAIL + n_classes : TAIL + n_classes + n]
    label, window = label_row(codes, draw, memory, rule, desk, estimates, proba)
    said[CODE], said[WINDOW], said[VOTES] = label, window, n_votes
    for h in range(n):
        said[TAIL + n_classes + n + h] = desk.votes[h]
        said[TAIL + n_classes + 2 * n + h] = codes[h]
    return True
