"""The distinct rows of a window, each with how often it occurs.

Rows repeat: six labelers of two classes have 64 patterns, whatever the window. Fitting to patterns instead of rows is
what makes a fit cheap. Where rows hardly ever repeat, a fit reads at most `FIT_ROWS` rows of its window, evenly spread:
accuracies are then known to within half a per cent, and a fit costs the same however long the window is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from driftvote.arrays import Floats, Ints
from driftvote.core.jit import inner
from driftvote.core.state import SPREAD, StreamState, vote_of

FEW_KEYS = 1 << 12
"""Up to so many distinct rows each has a slot of its own: clearing the slots costs less than hashing."""

FIT_ROWS = 1 << 15
"""Rows of a window that a fit reads where more distinct rows than `FEW_KEYS` are possible."""

_CELLS = 1 << 21  # numbers in a table of classes x patterns: with many classes a fit reads fewer rows


class Patterns(NamedTuple):
    """Room for the patterns of a window, and for the work of a fit; kernels allocate nothing."""

    places: npt.NDArray[np.int32]  # (slots,): pattern + 1 of a key, 0 where there is none
    slots: Ints  # (capacity,): where in the ring buffer the pattern stands
    codes: npt.NDArray[np.uint16]  # (labelers, capacity): the vote plus 1, 0 for an abstention
    rows: Floats  # (capacity,): how many rows of the window show it, or stand for those that do
    truth: Ints  # (capacity,): the verified class, -1 where there is none
    quiet: Floats  # (capacity,): the weight of each of its abstentions
    majority: Floats  # (classes, capacity): the classes with the most votes, in equal shares; or the verified class
    post: Floats  # (classes, capacity): probabilities of the classes
    work: Floats  # (classes, capacity): scores, then probabilities times rows
    size: Ints  # (1,): how many patterns there are
    few: bool  # each possible pattern has a place of its own


def possible_rows(n_labelers: int, n_classes: int, most: int = FEW_KEYS) -> int:
    """Return how many distinct rows there can be, if they are at most `most`, otherwise 0.

    >>> possible_rows(6, 2), possible_rows(20, 2)
    (729, 0)
    """
    keys = (n_classes + 1) ** n_labelers
    return keys if keys <= most else 0


def new_patterns(n_labelers: int, n_classes: int) -> Patterns:
    """Return room for the patterns of any window of such a panel."""
    few = possible_rows(n_labelers, n_classes) * (n_classes + 1)
    capacity = few if few else max(1024, min(FIT_ROWS, _CELLS // n_classes))
    slots = 8
    while slots < 2 * capacity:
        slots *= 2
    return Patterns(
        places=np.zeros(few if few else slots, np.int32),
        slots=np.empty(capacity, np.int64),
        codes=np.empty((n_labelers, capacity), np.uint16),
        rows=np.empty(capacity),
        truth=np.empty(capacity, np.int64),
        quiet=np.empty(capacity),
        majority=np.empty((n_classes, capacity)),
        post=np.empty((n_classes, capacity)),
        work=np.empty((n_classes, capacity)),
        size=np.zeros(1, np.int64),
        few=few > 0,
    )


@inner
def same_votes(state: StreamState, left: int, right: int) -> bool:
    """Return whether two remembered rows are the same."""
    for i in range(state.ring.shape[1]):
        if vote_of(state.ring[left, i]) != vote_of(state.ring[right, i]):
            return False
    return True


@inner
def find_patterns(state: StreamState, window: int, patterns: Patterns) -> float:
    """Fill in the patterns of the last `window` rows; return how many rows they stand for.

    Where few patterns are possible each has a place of its own, and nothing is hashed or compared. Otherwise rows are
    read from the latest back, one of every so many; verified rows are all read, as long as there is room.
    """
    ring, keys, verified = state.ring, state.keys, state.verified
    capacity, n, k = ring.shape[0], ring.shape[1], state.n_classes
    places, slots, rows = patterns.places, patterns.slots, patterns.rows
    room, mask = slots.shape[0], places.shape[0] - 1
    few = patterns.few
    step = 1 if few else 1 + (window - 1) // room
    for at in range(places.shape[0]):
        places[at] = 0
    size = 0
    slot = (state.clock[0] - 1) % capacity
    for ago in range(window):
        key, known = int(keys[slot]), int(verified[slot])
        if known >= 0 or ago % step == 0:
            weight = 1.0 if known >= 0 else float(step)
            if few:
                place = key * (k + 1) + known + 1
                at = places[place] - 1
            else:
                mixed = (key + 7 * (known + 1)) * SPREAD
                place = (mixed ^ (mixed >> 21)) & mask
                at = places[place] - 1
                while at >= 0:
                    other = slots[at]
                    alike = keys[other] == key and verified[other] == known
                    if alike and (state.unique_keys or same_votes(state, other, slot)):
                        break
                    place = (place + 1) & mask
                    at = places[place] - 1
            if at >= 0:
                rows[at] += weight
            elif size < room:
                slots[size] = slot
                rows[size] = weight
                size += 1
                places[place] = size
        slot = slot - 1 if slot > 0 else capacity - 1
    patterns.size[0] = size
    total = 0.0
    for q in range(size):
        patterns.truth[q] = verified[slots[q]]
        total += rows[q]
        for i in range(n):
            patterns.codes[i, q] = vote_of(ring[slots[q], i]) + 1
    return total


@inner
def start_from_majority(patterns: Patterns) -> None:
    """Fill in equal shares for the classes with the most votes; verified rows with their class."""
    majority, codes = patterns.majority, patterns.codes
    n_classes = majority.shape[0]
    for q in range(patterns.size[0]):
        truth = patterns.truth[q]
        for c in range(n_classes):
            majority[c, q] = 1.0 if c == truth else 0.0
        if truth >= 0:
            continue
        top, leaders = 0.0, 0
        for i in range(codes.shape[0]):
            if codes[i, q] > 0:
                majority[codes[i, q] - 1, q] += 1.0
                top = max(top, majority[codes[i, q] - 1, q])
        for c in range(n_classes):
            leaders += majority[c, q] == top
        for c in range(n_classes):
            majority[c, q] = 1.0 / leaders if majority[c, q] == top else 0.0
