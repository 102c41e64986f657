"""The different rows of a window, each with how often it occurs and who voted for what.

Rows repeat: six labelers of two classes have 64 patterns, whatever the window. Fitting to patterns instead of rows is
what makes a fit cheap.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from driftvote.kernels._jit import jit
from driftvote.kernels.agreements import vote_of
from driftvote.kernels.layout import Codes, Ints
from driftvote.kernels.tallies import SPREAD, Tally, keys_tell_all

FEW_KEYS = 1 << 12
"""Up to so many different rows each has a place of its own: clearing the places costs less than searching them."""


class Patterns(NamedTuple):
    """Votes pattern by pattern: those of pattern q are `who[start[q]:start[q + 1]]` voting for `what[...]`.

    `cell` is the place of that vote, given the first class, in a flattened table of labelers x classes x (classes + 1).
    """

    start: Ints  # (patterns + 1,)
    who: Ints  # (votes,)
    what: Ints  # (votes,)
    cell: Ints  # (votes,)
    rows: Ints  # (patterns,): how many rows show it
    truth: Ints  # (patterns,): the verified class, -1 where nobody has said


@jit
def same_votes(ring: Codes, left: int, right: int) -> bool:
    """Whether two remembered rows are the same."""
    for i in range(ring.shape[1]):
        if vote_of(ring[left, i]) != vote_of(ring[right, i]):
            return False
    return True


@jit
def few_keys(tally: Tally) -> int:
    """How many different rows there can be, if they are few, otherwise 0; keys are then below this number."""
    keys = 1
    for _ in range(tally.ring.shape[1]):
        keys = min(keys * (tally.n_classes + 1), FEW_KEYS + 1)
    return keys if keys <= FEW_KEYS else 0


@jit
def count_few_patterns(tally: Tally, window: int, few: int, slots: Ints, count: Ints) -> int:
    """The same where there can be but few patterns: a place for each, and nothing to search."""
    capacity, values = tally.ring.shape[0], tally.n_classes + 1
    places = np.zeros(few, np.int32)  # pattern + 1
    n_patterns = 0
    slot = (tally.clock[0] - window) % capacity
    for _ in range(window):
        place = tally.keys[slot] * values + tally.known[slot] + 1
        at = places[place]
        if at > 0:
            count[at - 1] += 1
        else:
            slots[n_patterns] = slot
            count[n_patterns] = 1
            n_patterns += 1
            places[place] = n_patterns
        slot = slot + 1 if slot + 1 < capacity else 0
    return n_patterns


@jit
def count_patterns(tally: Tally, window: int, slots: Ints, count: Ints) -> int:
    """Find the patterns of the last `window` rows, in the order of their first rows; returns how many there are."""
    capacity, n_classes = tally.ring.shape[0], tally.n_classes
    exact = keys_tell_all(tally.ring.shape[1], n_classes)
    few = few_keys(tally) * (n_classes + 1)
    if few > 0:
        return count_few_patterns(tally, window, few, slots, count)
    mask = 7
    while mask < 2 * window:
        mask = 2 * mask + 1
    places = np.zeros(mask + 1, np.int32)  # pattern + 1, by key; 0 is free
    n_patterns = 0
    slot = (tally.clock[0] - window) % capacity
    for _ in range(window):
        key, known = tally.keys[slot], tally.known[slot]
        mixed = (key + 7 * (known + 1)) * SPREAD
        place = (mixed ^ (mixed >> 21)) & mask
        while True:
            at = places[place] - 1
            if at < 0:
                places[place] = n_patterns + 1
                slots[n_patterns] = slot
                count[n_patterns] = 1
                n_patterns += 1
                break
            other = slots[at]
            alike = tally.keys[other] == key and tally.known[other] == known
            if alike and (exact or same_votes(tally.ring, other, slot)):
                count[at] += 1
                break
            place = (place + 1) & mask
        slot = slot + 1 if slot + 1 < capacity else 0
    return n_patterns


@jit
def find_patterns(tally: Tally, window: int) -> Patterns:
    """The patterns of the last `window` rows."""
    n = tally.ring.shape[1]
    slots = np.empty(window, np.int64)
    count = np.empty(window, np.int64)
    n_patterns = count_patterns(tally, window, slots, count)
    start = np.zeros(n_patterns + 1, np.int64)
    truth = np.empty(n_patterns, np.int64)
    for q in range(n_patterns):
        votes = 0
        for i in range(n):
            if vote_of(tally.ring[slots[q], i]) >= 0:
                votes += 1
        start[q + 1] = start[q] + votes
        truth[q] = tally.known[slots[q]]
    who = np.empty(start[n_patterns], np.int64)
    what = np.empty(start[n_patterns], np.int64)
    for q in range(n_patterns):
        at = start[q]
        for i in range(n):
            vote = vote_of(tally.ring[slots[q], i])
            if vote >= 0:
                who[at] = i
                what[at] = vote
                at += 1
    k = tally.n_classes
    cell = who * (k * (k + 1)) + what
    return Patterns(start, who, what, cell, count[:n_patterns].copy(), truth)
