"""What a stream remembers: a ring buffer of the last rows, and running totals of agreements and votes.

The window is chosen every `stride` rows, so running totals are stored every `stride` rows: the sum over a window is a
difference of two of them, and a row costs the same whatever the number of windows. All sums are integers, so nothing
is lost however long the stream, and the numbers do not depend on how rows are cut into chunks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from driftvote.arrays import Arrays, Codes, Floats, Ints, code_dtype
from driftvote.core.jit import by_address, inner, jit
from driftvote.errors import StateError

ALL_PAST = 2**62
"""The window size that stands for "no limit"; no stream reaches it."""

STRETCHES, SHARES = 32, 8
"""Stretches of rows that show how agreements follow the classes, at most, and classes whose votes are looked at; of
more, every eighth is counted together."""

TOTALS_BYTES = 1 << 25
"""Memory for stored totals; larger windows are followed by counting the rows that leave them."""

MOST_PLANES, FEW_ROWS = 16, 8
"""Classes up to which, and rows from which on, rows are counted up to 64 at a time: as bits of words."""

# A row's key is 31 bits of a product, so that no product leaves 64 bits and plain Python gives the same.
_MASK = 2**31 - 1
SPREAD = 1_540_483_477


Keys = npt.NDArray[np.int32]
Words = npt.NDArray[np.uint64]
Classes = npt.NDArray[np.int16]


class StreamState(NamedTuple):
    """The memory of one stream. Its size depends on the windows, the labelers and the classes, never on the rows.

    The last axis of `now`, `totals`, `lags` and `sums` holds, one after the other: pair agreements times
    K - 1 and joint votes (pairs in lexicographic order), votes by labeler and class, and votes that were not
    abstentions.
    """

    ring: Codes  # (capacity, labelers): row t (from 0) sits in slot t mod capacity; no slots for all the past
    keys: Keys  # (capacity,): equal rows have equal keys; narrow, because a fit reads all of its window
    verified: Classes  # (capacity,): the verified class of a row, -1 where there is none
    now: Ints  # running totals over all rows
    totals: Ints  # (slots, ...): the same after 1, 1 + stride, 1 + 2 stride ... rows
    lags: Ints  # (far windows, ...): the same as many rows ago as a window has that is too large for the slots
    sums: Ints  # (windows + 2, ...): sums over each window, as far as the last choice needed them; then those of all
    # rows before the floor, and room for work
    room: Floats  # (shares + 1, stretches + 1): for work, see `windows.gap_at_equal_shares`
    words: Words  # (classes + 1, labelers): for work, see `count_rows`
    settled: Ints  # (windows - 1,): until which row a comparison is decided, see `windows.gap_accepted`; not saved
    clock: Ints  # (1,): rows seen
    floor: Ints  # (1,): the first row that counts, where the last drift event began; 0 before there is one
    follows: Ints  # (1,): 0 where the label model says that the window rule does not count: every row since the floor
    sizes: Ints  # (windows,): window sizes, increasing
    stride: int
    n_classes: int
    unique_keys: bool  # distinct rows have distinct keys: so few labelers and classes that a key spells the row


@inner
def vote_of(code: int) -> int:
    """Return the class that counts for a cell: its own, the random fill's (-2 - class), or -1."""
    return code if code >= -1 else -2 - code


@inner
def n_pairs_of(state: StreamState) -> int:
    """Return the number of pairs of labelers."""
    n = state.ring.shape[1]
    return n * (n - 1) // 2


@inner
def key_of(rows: Codes, place: int, n_classes: int, unique: bool) -> int:
    """Return a number that equal rows share."""
    n = rows.shape[1]
    key = 0
    if unique:
        for i in range(n):
            key = key * (n_classes + 1) + int(vote_of(rows[place, i])) + 1
        return key
    for i in range(n):
        key = (key * SPREAD + int(vote_of(rows[place, i])) + 2) & _MASK
    return key


@inner
def count_row(rows: Codes, place: int, n_classes: int, sums: Ints) -> None:
    """Add one row to `sums`: agreements (K - 1 for a pair that agrees, -1 for one that does not) and votes."""
    n = rows.shape[1]
    pairs = n * (n - 1) // 2
    by_class, by_labeler = 2 * pairs, 2 * pairs + n * n_classes
    agree = n_classes - 1
    pair = 0
    for i in range(n):
        code = rows[place, i]
        vote = int(vote_of(code))
        if vote < 0:
            pair += n - 1 - i
            continue
        sums[by_class + i * n_classes + vote] += 1
        if code >= 0:
            sums[by_labeler + i] += 1
        for j in range(i + 1, n):
            other = int(vote_of(rows[place, j]))
            both = 1 if other >= 0 else 0
            sums[pairs + pair] += both
            sums[pair] += agree if other == vote else -both
            pair += 1


@inner
def count_bits(word: Any) -> int:
    """Return how many bits of a word are set."""
    x = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return int((x * np.uint64(0x0101010101010101)) >> np.uint64(56))


@inner
def count_rows(rows: Codes, first: int, count: int, n_classes: int, words: Words, sums: Ints) -> None:
    """Add rows, no more than 64, to `sums`, as `count_row` does: all at once, with a bit for each row in a word."""
    if count < FEW_ROWS or n_classes > MOST_PLANES:
        for place in range(first, first + count):
            count_row(rows, place, n_classes, sums)
        return
    n = rows.shape[1]
    pairs = n * (n - 1) // 2
    by_class, by_labeler = 2 * pairs, 2 * pairs + n * n_classes
    whole, begin = count // 8 * 8, np.uint64(first)
    for h in range(n):
        cast, own = np.uint64(0), 0
        for c in range(n_classes):
            word = np.uint64(0)
            for group in range(np.uint64(whole // 8)):  # eight rows at a time, which the compiler writes out
                bits, eight = np.uint64(0), begin + group * np.uint64(8)
                for step in range(np.uint64(8)):
                    bits |= np.uint64(vote_of(rows[eight + step, h]) == c) << step
                word |= bits << (group * np.uint64(8))
            for step in range(np.uint64(whole), np.uint64(count)):
                word |= np.uint64(vote_of(rows[begin + step, h]) == c) << step
            words[c, h] = word
            cast |= word
            sums[by_class + h * n_classes + c] += count_bits(word)
        words[n_classes, h] = cast
        for place in range(first, first + count):
            own += rows[place, h] >= 0
        sums[by_labeler + h] += own
    pair = 0
    for i in range(n):
        for j in range(i + 1, n):
            agreed = np.uint64(0)
            for c in range(n_classes):
                agreed |= words[c, i] & words[c, j]
            both = count_bits(words[n_classes, i] & words[n_classes, j])
            sums[pairs + pair] += both
            sums[pair] += n_classes * count_bits(agreed) - both
            pair += 1


@inner
def store_totals(state: StreamState, row: int) -> None:
    """Store the running totals after a row that is a multiple of the stride."""
    if state.totals.shape[0] > 0:
        at = (row // state.stride) % state.totals.shape[0]
        for d in range(state.now.shape[0]):
            state.totals[at, d] = state.now[d]


@inner
def count_past(first: int, count: int, state: StreamState, sums: Ints) -> None:
    """Add remembered rows, no more than 64, from number `first` on to `sums`."""
    capacity = state.ring.shape[0]
    slot = first % capacity
    before = min(count, capacity - slot)
    count_rows(state.ring, slot, before, state.n_classes, state.words, sums)
    if before < count:  # the ring buffer ends between them
        count_rows(state.ring, 0, count - before, state.n_classes, state.words, sums)


@inner
def add_rows(rows: Codes, first: int, count: int, state: StreamState, follow: bool) -> None:
    """Add rows, no more than 64, to the ring and the totals; `follow` those that leave the largest windows."""
    capacity, n_far = state.ring.shape[0], state.lags.shape[0] if follow else 0
    seen = state.clock[0]
    for moment in range(2):
        # A lone row may take the place of the one that leaves. Where several come, the ring has room for them all, and
        # a row may come and leave at once.
        for f in range(n_far if moment == (count > 1) else 0):
            size = state.sizes[state.sizes.shape[0] - n_far + f]
            if seen + count > size:
                leaves = max(seen, size)
                count_past(leaves - size, seen + count - leaves, state, state.lags[f])
        slot = seen % capacity if capacity > 0 else 0
        for t in range(first, first + count if capacity > 0 and moment == 0 else first):
            for i in range(rows.shape[1]):
                state.ring[slot, i] = rows[t, i]
            state.keys[slot] = key_of(rows, t, state.n_classes, state.unique_keys)
            state.verified[slot] = -1
            slot = slot + 1 if slot + 1 < capacity else 0  # a division would take longer than all the rest
    count_rows(rows, first, count, state.n_classes, state.words, state.now)
    state.clock[0] = seen + count


@inner
def rows_to_stride(row: int, stride: int) -> int:
    """Return how many rows, from number `row` on, there are up to the next multiple of the stride; at most 64."""
    return min(64, 1 + (stride - row % stride) % stride)


@jit
def replay_rows(rows: Codes, state: StreamState) -> None:
    """Add remembered rows to an empty state; the clock says how many came before them, which no window reaches."""
    state = by_address(state)
    first, t, n_far, follow = state.clock[0], 0, state.lags.shape[0], False
    while t < rows.shape[0]:
        count = min(rows_to_stride(first + t, state.stride), rows.shape[0] - t)
        add_rows(rows, t, count, state, follow)
        t += count
        if (first + t - 1) % state.stride == 0:
            store_totals(state, first + t - 1)
    for f in range(n_far):
        size = state.sizes[state.sizes.shape[0] - n_far + f]
        for place in range(rows.shape[0] - min(size, rows.shape[0])):
            count_row(rows, place, state.n_classes, state.lags[f])


@inner
def rows_that_count(state: StreamState) -> int:
    """Return how many of the rows seen a window may hold: those since the floor."""
    return state.clock[0] - state.floor[0]


@inner
def rows_of_window(level: int, state: StreamState) -> int:
    """Return the rows of a window: its size, or as many as count."""
    return min(state.sizes[level], rows_that_count(state))


@inner
def move_floor(first: int, state: StreamState) -> None:
    """Let windows hold no row before `first`."""
    seen, capacity = state.clock[0], state.ring.shape[0]
    before = state.sums[state.sizes.shape[0]]
    state.floor[0] = first
    for d in range(before.shape[0]):
        before[d] = 0
    if seen - first <= capacity:  # no window reaches a floor that is older
        t = first
        while t < seen:
            count = min(64, seen - t)
            count_past(t, count, state, before)
            t += count
        for d in range(state.now.shape[0]):
            before[d] = state.now[d] - before[d]


@jit
def set_floor(first: int, state: StreamState) -> None:
    """Let windows hold no row before `first`."""
    move_floor(first, by_address(state))


@inner
def sum_window(level: int, state: StreamState) -> None:
    """Fill `sums[level]`: the sums over the last rows, as many as the window has or as count."""
    sums, seen = state.sums[level], state.clock[0]
    far = level - (state.sizes.shape[0] - state.lags.shape[0])
    first = seen - rows_of_window(level, state)
    if first == state.floor[0]:
        for d in range(sums.shape[0]):
            sums[d] = state.now[d] - state.sums[state.sizes.shape[0], d]
        return
    if far >= 0:
        for d in range(sums.shape[0]):
            sums[d] = state.now[d] - state.lags[far, d]
        return
    # Totals were stored after 1 + q stride rows; the rows between `first` and the next such moment are counted.
    q = (first - 1 + state.stride - 1) // state.stride
    begin = 1 + q * state.stride
    if begin > seen:
        begin = seen
        for d in range(sums.shape[0]):
            sums[d] = 0
    else:
        at = q % state.totals.shape[0]
        for d in range(sums.shape[0]):
            sums[d] = state.now[d] - state.totals[at, d]
    while first < begin:
        count = min(64, begin - first)
        count_past(first, count, state, sums)
        first += count


def n_pairs(n_labelers: int) -> int:
    """Return the number of unordered pairs of labelers."""
    return n_labelers * (n_labelers - 1) // 2


def empty_state(sizes: Sequence[int] | Ints, n_labelers: int, n_classes: int, stride: int, spare: int) -> StreamState:
    """Return the state of a stream without rows, whose window is chosen every `stride` rows.

    The ring holds `spare` rows more than the largest window: as many as a fit may be old.
    """
    sizes = np.asarray(sizes, np.int64)
    width = 2 * n_pairs(n_labelers) + n_labelers * n_classes + n_labelers
    all_past = int(sizes[-1]) == ALL_PAST
    capacity = 0 if all_past else int(sizes[-1]) + spare
    n_near, slots = len(sizes), 0
    if not all_past:
        n_near = int((sizes <= TOTALS_BYTES // (8 * width) * stride).sum())
        slots = int(sizes[n_near - 1]) // stride + 2 if n_near else 0
    # The system hands out the pages of large arrays of zeros only when rows reach them; no slot is read before that.
    return StreamState(
        ring=np.zeros((capacity, n_labelers), code_dtype(n_classes)),
        keys=np.zeros(capacity, np.int32),
        verified=np.zeros(capacity, np.int16),
        now=np.zeros(width, np.int64),
        totals=np.zeros((slots, width), np.int64),
        lags=np.zeros((len(sizes) - n_near, width), np.int64),
        sums=np.zeros((len(sizes) + 2, width), np.int64),
        room=np.empty((SHARES + 1, STRETCHES + 1)),
        words=np.empty((n_classes + 1, n_labelers), np.uint64),
        settled=np.zeros(len(sizes) - 1, np.int64),
        clock=np.zeros(1, np.int64),
        floor=np.zeros(1, np.int64),
        follows=np.ones(1, np.int64),
        sizes=sizes,
        stride=stride,
        n_classes=n_classes,
        unique_keys=(n_classes + 1) ** n_labelers <= _MASK,
    )


def recent_slots(state: StreamState) -> Ints:
    """Return the slots of the remembered rows, oldest first."""
    capacity, seen = len(state.ring), int(state.clock[0])
    remembered = min(seen, capacity)
    return np.asarray((seen - remembered + np.arange(remembered)) % max(1, capacity))


def rebuild_state(rows: Codes, verified: Ints | Classes, seen: int, like: StreamState) -> StreamState:
    """Return the state of a stream of `seen` rows of which these are the last; settings are those of `like`."""
    spare = len(like.ring) - int(like.sizes[-1])
    state = empty_state(like.sizes, rows.shape[1], like.n_classes, like.stride, spare)
    state.clock[0] = seen - len(rows)
    # Totals may begin anywhere: only differences are used, and those of rows that are remembered.
    replay_rows(np.ascontiguousarray(rows), state)
    if len(rows):
        state.verified[recent_slots(state)[-len(rows) :]] = verified
    return state


def widen_totals(totals: Ints, n_old: int, n_new: int, n_classes: int) -> Ints:
    """Return totals laid out for more labelers; the newcomers have not voted."""
    i, j = np.triu_indices(n_old, 1)
    pairs = i * n_new - i * (i + 1) // 2 + j - i - 1
    by_class = 2 * n_pairs(n_new)
    by_labeler = by_class + n_new * n_classes
    places = np.concatenate(
        [pairs, n_pairs(n_new) + pairs, by_class + np.arange(n_old * n_classes), by_labeler + np.arange(n_old)]
    )
    wide = np.zeros(by_labeler + n_new, np.int64)
    wide[places] = totals
    return wide


def agreement_matrix(sums: Ints, n_labelers: int, window: int, n_classes: int) -> Floats:
    """Return the agreements C over one window, with 1 on the diagonal.

    >>> agreement_matrix(np.array([4, 0, -2]), 3, 4, 2)
    array([[ 1. ,  1. ,  0. ],
           [ 1. ,  1. , -0.5],
           [ 0. , -0.5,  1. ]])
    """
    matrix = np.eye(n_labelers)
    i, j = np.triu_indices(n_labelers, 1)
    matrix[i, j] = matrix[j, i] = sums / (window * (n_classes - 1))
    return matrix


def check_array(
    arrays: Arrays,
    name: str,
    like: np.dtype[np.generic] | type,
    shape: tuple[int, ...],
    low: float = -np.inf,
    high: float = np.inf,
) -> None:
    """Refuse a saved state whose array `name` cannot belong to this model: of another type, shape or range."""
    if name not in arrays:
        raise StateError(f"the state lacks the array {name!r}")
    array = arrays[name]
    if array.dtype != np.dtype(like) or array.shape != shape:
        raise StateError(
            f"the state's array {name!r} is {array.dtype} of shape {array.shape}, not {np.dtype(like)} of shape {shape}"
        )
    if array.size and not (array.min() >= low and array.max() <= high and np.isfinite(array).all()):  # NaN is neither
        raise StateError(f"the state's array {name!r} holds values out of range: from {array.min()} to {array.max()}")
