"""Running sums over the recent past, advanced by a stretch of rows at once."""

from __future__ import annotations

import numpy as np

from driftvote.kernels._jit import jit
from driftvote.kernels.agreements import vote_of
from driftvote.kernels.layout import Codes, History, Ints, Memory, Rule, Stretch, Sums


@jit
def turn(rows: Codes, first: int, n_rows: int, counted: Codes, cast: Codes) -> None:
    """Rows `first` onwards of a ring as columns: the class that counts and, if asked for, the class that was cast.

    Rows before the beginning of the stream (first < 0) are abstentions.
    """
    n = rows.shape[1]
    n_slots = rows.shape[0]
    before = min(n_rows, max(0, -first))
    counted[:, :before] = -1
    cast[:, : min(before, cast.shape[1])] = -1
    slot = (first + before) % n_slots
    for t in range(before, n_rows):
        for i in range(n):
            counted[i, t] = vote_of(rows[slot, i])
        if cast.shape[1] > 0:
            for i in range(n):
                cast[i, t] = rows[slot, i] if rows[slot, i] >= 0 else -1
        slot += 1
        if slot == n_slots:
            slot = 0


@jit
def run_up_pair(left: Codes, right: Codes, n_classes: int, start: int, out: Sums) -> None:
    """Running sum of a pair's agreements (times K - 1) from `start`."""
    agree = np.int32(n_classes - 1)
    total = np.int32(start)
    for t in range(out.shape[0]):
        step = agree if left[t] == right[t] else np.int32(-1)
        total = np.int32(total + (step if left[t] >= 0 and right[t] >= 0 else np.int32(0)))
        out[t] = total


@jit
def run_up_voting_pair(left: Codes, right: Codes, n_classes: int, start: int, out: Sums) -> None:
    """The same where nobody abstains."""
    agree = np.int32(n_classes - 1)
    total = np.int32(start)
    for t in range(out.shape[0]):
        total = np.int32(total + (agree if left[t] == right[t] else np.int32(-1)))
        out[t] = total


@jit
def run_up_votes(codes: Codes, start: int, out: Sums) -> None:
    """Running count of a labeler's votes from `start`."""
    total = np.int32(start)
    for t in range(out.shape[0]):
        total = np.int32(total + (np.int32(1) if codes[t] >= 0 else np.int32(0)))
        out[t] = total


@jit
def run_up(
    counted: Codes, cast: Codes, first: int, places: Ints, n_classes: int, everybody: bool, start: int, out: Sums
) -> None:
    """One line from row `first` of a stretch: a pair's agreements, or (places: -1, labeler) a labeler's votes.

    `everybody`: no row has an abstention in it.
    """
    i, j = places[0], places[1]
    last = first + out.shape[0]
    if i < 0:
        run_up_votes(cast[j, first:last], start, out)
    elif everybody:
        run_up_voting_pair(counted[i, first:last], counted[j, first:last], n_classes, start, out)
    else:
        run_up_pair(counted[i, first:last], counted[j, first:last], n_classes, start, out)


@jit
def extend_line(
    line: int, time: int, n_rows: int, counted: Codes, cast: Codes, history: History, n_classes: int
) -> None:
    """Running sum of one line at times time, time + 1 ..., going on from the slot before."""
    capacity = history.capacity
    slots = history.table[line]
    tail = slots.shape[0] - capacity
    start = slots[(time - 1) % capacity]
    done = 0
    while done < n_rows:
        slot = (time + done) % capacity
        length = min(n_rows - done, capacity - slot)
        out = slots[slot : slot + length]
        run_up(counted, cast, done, history.places[line], n_classes, cast.shape[1] == 0, start, out)
        start = out[length - 1]
        # The first slots stand again behind the last, so that no slice of a block wraps.
        for t in range(slot, min(slot + length, tail)):
            slots[capacity + t] = slots[t]
        done += length


@jit
def extend_lines(
    first: int, last: int, n_rows: int, stretch: Stretch, history: History, memory: Memory, rule: Rule
) -> None:
    """Advance lines first .. last - 1 by a stretch; `memory` is still as before it.

    Each line gets its running sum, and the same as it was one far window ago.
    """
    seen = memory.clock[0]
    sizes, n_classes = rule.sizes, rule.n_classes
    n_pairs = memory.sums.shape[1]
    for line in range(first, last):
        extend_line(line, seen + 1, n_rows, stretch.counted, stretch.cast, history, n_classes)
        start = history.table[line, seen % history.capacity]
        for f in range(history.lagged.shape[0]):
            k = history.n_near + f
            inside = memory.sums[k, line] if line < n_pairs else memory.votes[k, line - n_pairs]
            left, cast, out = stretch.left_counted[f], stretch.left_cast[f], history.lagged[f, line, :n_rows]
            # Before a window is full nothing leaves it: its leaving rows are then written as abstentions.
            everybody = cast.shape[1] == 0 and seen >= sizes[k]
            run_up(left, cast, 0, history.places[line], n_classes, everybody, wrapped(start - inside), out)


@jit
def settle(rows: Codes, history: History, memory: Memory, sizes: Ints, counts_votes: bool) -> None:
    """Bring `memory` to the end of the stretch: window sums from the history, rows into the ring, the clock."""
    seen = memory.clock[0]
    n_rows = rows.shape[0]
    end = seen + n_rows
    capacity = history.capacity
    n_pairs = memory.sums.shape[1]
    n = memory.votes.shape[1]
    for k in range(sizes.shape[0]):
        for line in range(history.table.shape[0]):
            came = history.table[line, end % capacity] - history.table[line, seen % capacity]
            if k < history.n_near:
                now, before = max(0, end - sizes[k]), max(0, seen - sizes[k])
                went = history.table[line, now % capacity] - history.table[line, before % capacity]
            else:
                inside = memory.sums[k, line] if line < n_pairs else memory.votes[k, line - n_pairs]
                went = history.lagged[k - history.n_near, line, n_rows - 1] - (
                    history.table[line, seen % capacity] - inside
                )
            if line < n_pairs:
                memory.sums[k, line] += wrapped(came - went)
            else:
                memory.votes[k, line - n_pairs] += wrapped(came - went)
        if not counts_votes:
            for i in range(n):
                memory.votes[k, i] = min(end, sizes[k])
    n_slots = memory.ring.shape[0]
    for t in range(max(0, n_rows - n_slots), n_rows):
        for i in range(n):
            memory.ring[(seen + t) % n_slots, i] = rows[t, i]
    memory.clock[0] = end


@jit
def wrapped(value: int) -> int:
    """A difference of sums that wrap at 32 bits, as the number that it is."""
    return (int(value) + 2**31) % 2**32 - 2**31


@jit
def rebuild(n_rows: int, history: History, memory: Memory, n_classes: int, counted: Codes, cast: Codes) -> None:
    """Fill the slots from the last `n_rows` rows (as columns), so that they end at the clock."""
    begin = memory.clock[0] - n_rows
    for line in range(history.table.shape[0]):
        slot = begin % history.capacity
        history.table[line, slot] = 0
        if slot < history.table.shape[1] - history.capacity:
            history.table[line, history.capacity + slot] = 0
        extend_line(line, begin + 1, n_rows, counted, cast, history, n_classes)
