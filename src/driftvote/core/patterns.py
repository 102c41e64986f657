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

FEW_CLASSES = 16
"""Up to so many, votes are counted class by class, several patterns at once."""

_CELLS = 1 << 21  # numbers in a table of classes x patterns: with many classes a fit reads fewer rows


class Patterns(NamedTuple):
    """Room for the patterns of a window, and for the work of a fit; kernels allocate nothing."""

    places: npt.NDArray[np.int32]  # (slots,): pattern + 1 of a key, 0 where there is none; or how many rows show it
    latest: npt.NDArray[np.int32]  # (slots,): where in the ring buffer a key was seen, where each has its place
    slots: Ints  # (capacity,): where in the ring buffer the pattern stands
    codes: npt.NDArray[np.uint16]  # (labelers, capacity): the vote plus 1, 0 for an abstention
    rows: Floats  # (capacity,): how many rows of the window show it, or stand for those that do
    truth: Ints  # (capacity,): the verified class, -1 where there is none
    votes: Floats  # (capacity,): labelers that vote
    quiet: Floats  # (capacity,): the weight of each of its abstentions
    majority: Floats  # (classes, capacity): the classes with the most votes, in equal shares; or the verified class
    post: Floats  # (classes, capacity): probabilities of the classes
    work: Floats  # (classes, capacity): scores, then probabilities times rows
    totals: Floats  # (capacity,): for work
    size: Ints  # (3,): how many patterns there are, how many of them are verified, and in how many somebody abstains
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
        latest=np.zeros(few, np.int32),
        slots=np.empty(capacity, np.int64),
        codes=np.empty((n_labelers, capacity), np.uint16),
        rows=np.empty(capacity),
        truth=np.empty(capacity, np.int64),
        votes=np.empty(capacity),
        quiet=np.empty(capacity),
        majority=np.empty((n_classes, capacity)),
        post=np.empty((n_classes, capacity)),
        work=np.empty((n_classes, capacity)),
        totals=np.empty(capacity),
        size=np.zeros(3, np.int64),
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
def count_keys(state: StreamState, window: int, patterns: Patterns) -> int:
    """Find the patterns of the last `window` rows where each possible one has a place; return how many there are."""
    places, latest, k = patterns.places, patterns.latest, state.n_classes + 1
    keys, verified, slots, rows = state.keys, state.verified, patterns.slots, patterns.rows
    capacity, end = state.ring.shape[0], state.clock[0] % state.ring.shape[0]
    for place in range(places.shape[0]):
        places[place] = 0
    for part in range(2):  # the ring buffer may end inside of the window
        first, last = max(0, end - window), end
        if part == 1:
            first, last = capacity - max(0, window - end), capacity
        for slot in range(first, last):
            place = keys[slot] * k + verified[slot] + 1
            places[place] += 1
            latest[place] = slot
    size = 0
    for place in range(places.shape[0]):
        if places[place] > 0:
            slots[size], rows[size] = latest[place], float(places[place])
            size += 1
    return size


@inner
def hash_rows(state: StreamState, window: int, patterns: Patterns) -> int:
    """Find the patterns of the last `window` rows, one of every so many of them; return how many there are.

    Rows are read from the latest back. Verified rows are all read, as long as there is room.
    """
    keys, verified, capacity = state.keys, state.verified, state.ring.shape[0]
    places, slots, rows = patterns.places, patterns.slots, patterns.rows
    room, mask = slots.shape[0], places.shape[0] - 1
    step = 1 + (window - 1) // room
    for at in range(places.shape[0]):
        places[at] = 0
    size = 0
    slot = (state.clock[0] - 1) % capacity
    for ago in range(window):
        key, known = int(keys[slot]), int(verified[slot])
        if known >= 0 or ago % step == 0:
            weight = 1.0 if known >= 0 else float(step)
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
    return size


@inner
def find_patterns(state: StreamState, window: int, patterns: Patterns) -> float:
    """Fill in the patterns of the last `window` rows; return how many rows they stand for."""
    size = count_keys(state, window, patterns) if patterns.few else hash_rows(state, window, patterns)
    total, verified, ring, slots, rows, codes = 0.0, 0, state.ring, patterns.slots, patterns.rows, patterns.codes
    for q in range(size):
        slot = slots[q]
        truth = state.verified[slot]
        patterns.truth[q] = truth
        verified += truth >= 0
        total += rows[q]
        for i in range(ring.shape[1]):
            codes[i, q] = vote_of(ring[slot, i]) + 1
    patterns.size[0], patterns.size[1] = size, verified
    return total


@inner
def start_from_majority(patterns: Patterns) -> None:
    """Fill in equal shares for the classes with the most votes; verified rows with their class."""
    majority, codes, votes, size = patterns.majority, patterns.codes, patterns.votes, patterns.size[0]
    n_classes = majority.shape[0]
    for q in range(size):
        votes[q] = 0.0
        for c in range(n_classes):
            majority[c, q] = 0.0
    for i in range(codes.shape[0]):
        for c in range(n_classes if n_classes <= FEW_CLASSES else 0):  # the compiler takes several patterns at once
            for q in range(size):
                majority[c, q] += 1.0 if codes[i, q] == c + 1 else 0.0
        for q in range(size):
            votes[q] += 1.0 if codes[i, q] > 0 else 0.0
            if n_classes > FEW_CLASSES and codes[i, q] > 0:
                majority[codes[i, q] - 1, q] += 1.0
    patterns.size[2] = 0
    for q in range(size):
        top, leaders, truth = 0.0, 0, patterns.truth[q]
        patterns.size[2] += votes[q] < codes.shape[0]
        for c in range(n_classes):
            top = max(top, majority[c, q])
        for c in range(n_classes):
            leaders += majority[c, q] == top
        for c in range(n_classes):
            majority[c, q] = 1.0 / leaders if majority[c, q] == top else 0.0
        if truth >= 0:
            for c in range(n_classes):
                majority[c, q] = 1.0 if c == truth else 0.0
