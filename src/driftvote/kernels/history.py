"""Running sums over the recent past, advanced by a stretch of rows at once."""

from __future__ import annotations

from driftvote.kernels._jit import jit
from driftvote.kernels.agreements import vote_of
from driftvote.kernels.layout import Codes, History, Ints, Memory, Stretch, Sums


@jit
def turn(rows: Codes, first: int, counted: Codes, cast: Codes) -> None:
    """Rows `first` onwards of a ring as columns: the class that counts, and the class that was cast.

    Rows before the beginning of the stream (first < 0) are abstentions.
    """
    n_slots = rows.shape[0]
    n_rows = counted.shape[1]
    for t in range(n_rows):
        if first + t < 0:
            for i in range(rows.shape[1]):
                counted[i, t] = -1
                cast[i, t] = -1
            continue
        slot = (first + t) % n_slots
        for i in range(rows.shape[1]):
            code = rows[slot, i]
            counted[i, t] = vote_of(code)
            cast[i, t] = code if code >= 0 else -1


@jit
def run_up_pair(left: Codes, right: Codes, n_classes: int, start: int, out: Sums) -> None:
    """Running sum of a pair's agreements (times K - 1) from `start`."""
    agree = n_classes - 1
    total = start
    for t in range(out.shape[0]):
        step = agree if left[t] == right[t] else -1
        if left[t] < 0 or right[t] < 0:
            step = 0
        total += step
        out[t] = total


@jit
def run_up_votes(codes: Codes, start: int, out: Sums) -> None:
    """Running count of a labeler's votes from `start`."""
    total = start
    for t in range(out.shape[0]):
        total += 1 if codes[t] >= 0 else 0
        out[t] = total


@jit
def run_up(counted: Codes, cast: Codes, line: int, places: Ints, n_classes: int, start: int, out: Sums) -> None:
    """One line over a stretch: a pair's agreements, or (places: -1, labeler) a labeler's votes."""
    n_rows = out.shape[0]
    i, j = places[line, 0], places[line, 1]
    if i < 0:
        run_up_votes(cast[j, :n_rows], start, out)
    else:
        run_up_pair(counted[i, :n_rows], counted[j, :n_rows], n_classes, start, out)


@jit
def store(history: History, line: int, time: int, values: Sums) -> None:
    """Put the sums at times time, time + 1 ... into their slots, and the first slots again behind the last."""
    capacity = history.capacity
    tail = history.table.shape[1] - capacity
    slot = time % capacity
    for t in range(values.shape[0]):
        history.table[line, slot] = values[t]
        if slot < tail:
            history.table[line, capacity + slot] = values[t]
        slot += 1
        if slot == capacity:
            slot = 0


@jit
def extend_lines(
    first: int, last: int, stretch: Stretch, history: History, memory: Memory, n_classes: int, work: Sums
) -> None:
    """Advance lines first .. last - 1 by a stretch; `memory` is still as before it.

    Each line gets its running sum, and the same as it was one far window ago.
    """
    seen = memory.clock[0]
    n_pairs = memory.sums.shape[1]
    for line in range(first, last):
        start = history.table[line, seen % history.capacity]
        run_up(stretch.counted, stretch.cast, line, history.places, n_classes, start, work)
        store(history, line, seen + 1, work)
        for f in range(history.lagged.shape[0]):
            k = history.n_near + f
            inside = memory.sums[k, line] if line < n_pairs else memory.votes[k, line - n_pairs]
            out = history.lagged[f, line, : work.shape[0]]
            run_up(stretch.left_counted[f], stretch.left_cast[f], line, history.places, n_classes, start - inside, out)


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
    return (value + 2**31) % 2**32 - 2**31


@jit
def rebuild(rows: Codes, history: History, memory: Memory, n_classes: int, work: tuple[Codes, Codes, Sums]) -> None:
    """Fill the slots from the remembered rows (oldest first), so that they end at the clock."""
    counted, cast, sums = work
    begin = memory.clock[0] - rows.shape[0]
    turn(rows, 0, counted, cast)
    for line in range(history.table.shape[0]):
        sums[0] = 0
        store(history, line, begin, sums[:1])
        run_up(counted, cast, line, history.places, n_classes, 0, sums)
        store(history, line, begin + 1, sums)
