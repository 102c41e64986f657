"""Running sums over the recent past, one for each group of eight rows, advanced by a stretch of rows at once."""

from __future__ import annotations

import numpy as np

from driftvote.kernels._jit import jit
from driftvote.kernels.bits import GROUP, agreeing, count_ones, ones_of
from driftvote.kernels.layout import Bytes, History, Ints, Memory, Rule, Sums


@jit
def run_up(agree: Bytes, both: Bytes, factor: int, start: int, out: Sums) -> int:
    """Running sum before each group, from the numbers of agreements and of rows that count; returns the last."""
    total = np.int32(start)
    k = np.int32(factor)
    for g in range(out.shape[0]):
        out[g] = total
        total = np.int32(total + np.int32(np.int32(k * np.int32(agree[g])) - np.int32(both[g])))
    return int(total)


@jit
def factor_of(i: int, n_classes: int) -> int:
    """A pair counts K for each agreement (less 1 for each row on which both count), a labeler 1 for each vote."""
    return n_classes if i >= 0 else 1


@jit
def write_slot(slots: Sums, n_slots: int, slot: int, value: int) -> None:
    """One entry of a line of the table, and its copy behind the last slot."""
    slots[slot] = value
    if slot < slots.shape[0] - n_slots:
        slots[n_slots + slot] = value


@jit
def extend_line(line: int, group: int, n_groups: int, history: History, n_classes: int, work: Bytes) -> None:
    """Running sums of one line before groups group + 1 .. group + n_groups; the one before `group` is there."""
    slots, n_slots = history.table[line], history.n_slots
    i, j = history.places[line, 0], history.places[line, 1]
    done = 0
    while done < n_groups:
        slot, byte = (group + done) % n_slots, (group + done) % history.n_bytes
        length = min(n_groups - done, n_slots - slot, history.n_bytes - byte, work.shape[1])
        agree, both = work[0, :length], work[1, :length]
        agreeing(history.planes, byte, i, j, history.n_digits, history.masked, agree, both)
        count_ones(agree)
        count_ones(both)
        end = run_up(agree, both, factor_of(i, n_classes), slots[slot], slots[slot : slot + length])
        # The first slots stand again behind the last, so that no slice of a block wraps.
        for t in range(slot, min(slot + length, slots.shape[0] - n_slots)):
            slots[n_slots + t] = slots[t]
        done += length
        write_slot(slots, n_slots, (group + done) % n_slots, end)


@jit
def extend_lagged(line: int, f: int, n_groups: int, full: int, history: History, n_classes: int, work: Bytes) -> None:
    """The same as it was one lagged window earlier. It goes on where `full` groups end: later ones may lack rows."""
    i, j = history.places[line, 0], history.places[line, 1]
    agree, both = work[0, :n_groups], work[1, :n_groups]
    agreeing(history.past[f], 0, i, j, history.n_digits, history.masked, agree, both)
    count_ones(agree)
    count_ones(both)
    out = history.lagged[f, line]
    out[n_groups] = run_up(agree, both, factor_of(i, n_classes), history.ends[f, line], out[:n_groups])
    history.ends[f, line] = out[full]


@jit
def extend_lines(
    first: int, last: int, group: int, n_groups: int, full: int, active: Ints, history: History, n_classes: int
) -> None:
    """Advance lines first .. last - 1, and the active ones of their lagged windows, by the groups of a stretch."""
    work = np.empty((2, n_groups), np.uint8)
    for line in range(first, last):
        extend_line(line, group, n_groups, history, n_classes, work)
        for f in active:
            extend_lagged(line, f, n_groups, full, history, n_classes, work)


@jit
def begin_history(sizes: Ints, history: History, n_classes: int) -> None:
    """Time 0: nothing but rows without votes before it (where nobody abstains, rows on which all said class 0)."""
    history.planes[:, :] = 0
    for line in range(history.table.shape[0]):
        each = 0 if history.masked or history.places[line, 0] < 0 else n_classes - 1
        write_slot(history.table[line], history.n_slots, history.n_slots - 1, -GROUP * each)
        write_slot(history.table[line], history.n_slots, 0, 0)
        for k in range(sizes.shape[0]):
            if history.lag_of[k] >= 0:
                history.ends[history.lag_of[k], line] = -sizes[k] * each


@jit
def sum_at(line: int, time: int, history: History, n_classes: int) -> int:
    """Running sum of a line at a time whose group is in the table."""
    group = time // GROUP
    agree, both = np.empty(1, np.uint8), np.empty(1, np.uint8)
    i, j = history.places[line, 0], history.places[line, 1]
    agreeing(history.planes, group % history.n_bytes, i, j, history.n_digits, history.masked, agree, both)
    return int(history.table[line, group % history.n_slots]) + part_of(
        agree, both, time % GROUP, factor_of(i, n_classes)
    )


@jit
def part_of(agree: Bytes, both: Bytes, rows: int, factor: int) -> int:
    """What the first rows of a group add."""
    mask = (1 << rows) - 1
    return factor * int(ones_of(int(agree[0]) & mask)) - int(ones_of(int(both[0]) & mask))


@jit
def wrapped(value: int) -> int:
    """A difference of sums that wrap at 32 bits, as the number that it is."""
    return (int(value) + 2**31) % 2**32 - 2**31


@jit
def settle_sums(time: int, origin: int, place: int, history: History, memory: Memory, rule: Rule) -> None:
    """Window sums and vote counts at a time of the history; `place` is that of its group in the stretch."""
    n_pairs = memory.sums.shape[1]
    agree, both = np.empty(1, np.uint8), np.empty(1, np.uint8)
    for line in range(history.table.shape[0]):
        now = sum_at(line, time, history, rule.n_classes)
        for k in range(rule.sizes.shape[0]):
            size = rule.sizes[k]
            if GROUP * (history.n_slots - 1) > size + 2 * GROUP or history.lag_of[k] < 0:
                before = sum_at(line, max(0, time - size), history, rule.n_classes)
            else:
                f, i, j = history.lag_of[k], history.places[line, 0], history.places[line, 1]
                agreeing(history.past[f], place, i, j, history.n_digits, history.masked, agree, both)
                part = part_of(agree, both, time % GROUP, factor_of(i, rule.n_classes))
                before = int(history.lagged[f, line, place]) + part
                if time < size:
                    before = 0
            if line < n_pairs:
                memory.sums[k, line] = wrapped(now - before)
            else:
                memory.votes[k, line - n_pairs] = wrapped(now - before)
    if not history.masked:
        for k in range(rule.sizes.shape[0]):
            memory.votes[k, :] = min(origin + time, rule.sizes[k])
