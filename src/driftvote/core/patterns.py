"""The distinct rows of a window, each with how often it occurs and its votes.

Rows repeat: six labelers of two classes have 64 patterns, whatever the window. Fitting to patterns instead of rows is
what makes a fit cheap.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from driftvote.arrays import Codes, Floats, Ints
from driftvote.core.jit import inner
from driftvote.core.state import SPREAD, StreamState, vote_of

FEW_KEYS = 1 << 12
"""Up to so many distinct rows each has a slot of its own: clearing the slots costs less than hashing."""


class Patterns(NamedTuple):
    """Votes by pattern: in pattern q labelers `who[start[q]:start[q + 1]]` vote for classes `what[...]`.

    `cell` is the place of that vote, given the first class, in a flattened table of labelers x classes x (classes + 1).
    """

    start: Ints  # (patterns + 1,)
    who: Ints  # (votes,)
    what: Ints  # (votes,)
    cell: Ints  # (votes,)
    rows: Ints  # (patterns,): how many rows show it
    truth: Ints  # (patterns,): the verified class, -1 where there is none


@inner
def same_votes(ring: Codes, left: int, right: int) -> bool:
    """Return whether two remembered rows are the same."""
    for i in range(ring.shape[1]):
        if vote_of(ring[left, i]) != vote_of(ring[right, i]):
            return False
    return True


@inner
def few_keys(state: StreamState) -> int:
    """Return how many distinct rows there can be, if they are few, otherwise 0; keys are then below this number."""
    keys = 1
    for _ in range(state.ring.shape[1]):
        keys = min(keys * (state.n_classes + 1), FEW_KEYS + 1)
    return keys if keys <= FEW_KEYS else 0


@inner
def count_patterns(state: StreamState, window: int, slots: Ints, count: Ints) -> int:
    """Find the patterns of the last `window` rows, in the order of their first rows; return how many there are.

    Most of the time of a fit of a large window goes here. Where few patterns are possible each has a place of its own,
    and nothing is hashed or compared.
    """
    capacity, values = state.ring.shape[0], state.n_classes + 1
    few = few_keys(state) * values
    mask = 7
    while mask < 2 * window:
        mask = 2 * mask + 1
    places = np.zeros(few if few > 0 else mask + 1, np.int32)  # pattern + 1; 0 is free
    n_patterns = 0
    slot = (state.clock[0] - window) % capacity
    if few > 0:
        for _ in range(window):
            place = int(state.keys[slot]) * values + int(state.verified[slot]) + 1
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
    for _ in range(window):
        key, verified = int(state.keys[slot]), int(state.verified[slot])
        mixed = (key + 7 * (verified + 1)) * SPREAD
        place = (mixed ^ (mixed >> 21)) & mask
        while True:
            at = places[place] - 1
            if at < 0:
                slots[n_patterns] = slot
                count[n_patterns] = 1
                n_patterns += 1
                places[place] = n_patterns
                break
            other = slots[at]
            alike = state.keys[other] == key and state.verified[other] == verified
            if alike and (state.unique_keys or same_votes(state.ring, other, slot)):
                count[at] += 1
                break
            place = (place + 1) & mask
        slot = slot + 1 if slot + 1 < capacity else 0
    return n_patterns


@inner
def find_patterns(state: StreamState, window: int) -> Patterns:
    """Return the patterns of the last `window` rows."""
    n = state.ring.shape[1]
    slots = np.empty(window, np.int64)
    count = np.empty(window, np.int64)
    n_patterns = count_patterns(state, window, slots, count)
    start = np.zeros(n_patterns + 1, np.int64)
    truth = np.empty(n_patterns, np.int64)
    for q in range(n_patterns):
        votes = 0
        for i in range(n):
            if vote_of(state.ring[slots[q], i]) >= 0:
                votes += 1
        start[q + 1] = start[q] + votes
        truth[q] = state.verified[slots[q]]
    who = np.empty(start[n_patterns], np.int64)
    what = np.empty(start[n_patterns], np.int64)
    cell = np.empty(start[n_patterns], np.int64)
    k = state.n_classes
    for q in range(n_patterns):
        at = start[q]
        for i in range(n):
            vote = vote_of(state.ring[slots[q], i])
            if vote >= 0:
                who[at] = i
                what[at] = vote
                cell[at] = i * (k * (k + 1)) + int(vote)
                at += 1
    return Patterns(start, who, what, cell, count[:n_patterns], truth)


@inner
def start_from_majority(patterns: Patterns, post: Floats) -> None:
    """Fill `post` with equal shares for the classes with the most votes; verified rows with their class."""
    n_classes = post.shape[1]
    support = np.zeros(n_classes, np.int64)
    for q in range(post.shape[0]):
        truth = patterns.truth[q]
        if truth >= 0:
            for c in range(n_classes):
                post[q, c] = 1.0 if c == truth else 0.0
            continue
        for c in range(n_classes):
            support[c] = 0
        top = 0
        for at in range(patterns.start[q], patterns.start[q + 1]):
            support[patterns.what[at]] += 1
            top = max(top, support[patterns.what[at]])
        leaders = 0
        for c in range(n_classes):
            leaders += support[c] == top
        for c in range(n_classes):
            post[q, c] = 1.0 / leaders if support[c] == top else 0.0
