"""Sums over the chosen windows, for all rows of a block: from eight to eight rows off the history, between by bits."""

from __future__ import annotations

import numpy as np

from driftvote.kernels._jit import jit
from driftvote.kernels.bits import GROUP, agreeing
from driftvote.kernels.history import factor_of
from driftvote.kernels.layout import Block, Bytes, History, Rule, Scratch, Sums
from driftvote.kernels.levels import byte_then, place_then, sums_then

# Loops count from 0 over slices, or have unsigned indices: an index that might be negative costs a test, and the loop
# its vectors. Slices count their references; where there would be one for every pair, indices are better.


@jit
def slide(
    agree: Bytes, both: Bytes, factor: int, running: Sums, sums: Sums, line: int, first_group: int, n_groups: int
) -> None:
    """Window sums of a line row by row, for many groups at once: one row comes, one goes."""
    k, one, here = np.int32(factor), np.int32(1), np.uint64(line)
    came, went, counts, counted = agree[0], agree[1], both[0], both[1]
    for step in range(GROUP):
        shift, first = np.int32(step), np.uint64(step * n_groups + first_group)
        for g in range(np.uint64(running.shape[0])):
            gain = np.int32((np.int32(came[g]) >> shift & one) - (np.int32(went[g]) >> shift & one))
            fewer = np.int32((np.int32(counts[g]) >> shift & one) - (np.int32(counted[g]) >> shift & one))
            running[g] = np.int32(running[g] + np.int32(np.int32(k * gain) - fewer))
            sums[here, first + g] = running[g]


@jit
def slide_voting(
    came: Bytes, went: Bytes, factor: int, running: Sums, sums: Sums, line: int, first_group: int, n_groups: int
) -> None:
    """The same where nobody abstains."""
    k, one, here = np.int32(factor), np.int32(1), np.uint64(line)
    for step in range(GROUP):
        shift, first = np.int32(step), np.uint64(step * n_groups + first_group)
        for g in range(np.uint64(running.shape[0])):
            gain = np.int32((np.int32(came[g]) >> shift & one) - (np.int32(went[g]) >> shift & one))
            running[g] = np.int32(running[g] + np.int32(k * gain))
            sums[here, first + g] = running[g]


@jit
def subtract(now: Sums, place: int, then: Sums, place_before: int, line: int, out: Sums) -> None:
    """What lies between the running sums of a line at two times."""
    row, first, before = np.uint64(line), np.uint64(place), np.uint64(place_before)
    for g in range(np.uint64(out.shape[0])):
        out[g] = np.int32(now[row, first + g] - then[row, before + g])


@jit
def sums_of_window(
    k: int, first: int, last: int, history: History, rule: Rule, block: Block, scratch: Scratch, sums: Sums
) -> None:
    """Sums over window k at every row of groups first .. last - 1 of the block."""
    n_groups, length, lag = scratch.alive.shape[0], last - first, history.lag_of[k]
    planes = history.planes if lag < 0 else history.past[lag]
    byte = byte_then(history, k, rule.sizes[k], block, first)
    earlier, then = sums_then(history, k), place_then(history, k, rule.sizes[k], block) + first
    running, agree, both = scratch.running[:length], scratch.agree[:, :length], scratch.both[:, :length]
    came, went, counts, counted = agree[0], agree[1], both[0], both[1]
    table, places, masked, n_digits = history.table, history.places, history.masked, history.n_digits
    for line in range(table.shape[0]):
        i, j = places[line, 0], places[line, 1]
        agreeing(history.planes, block.byte + first, i, j, n_digits, masked, came, counts)
        agreeing(planes, byte, i, j, n_digits, masked, went, counted)
        subtract(table, block.slot + first, earlier, then, line, running)
        if masked:
            slide(agree, both, factor_of(i, rule.n_classes), running, sums, line, first, n_groups)
        else:
            slide_voting(came, went, rule.n_classes, running, sums, line, first, n_groups)


@jit
def put_where(level: Sums, k: int, first: int, last: int, n_groups: int, values: Sums, out: Sums) -> None:
    """Values into the places of groups first .. last - 1 whose window is k."""
    this = np.int32(k)
    for line in range(np.uint64(out.shape[0])):
        for step in range(GROUP):
            begin = np.uint64(step * n_groups + first)
            for g in range(np.uint64(last - first)):
                chosen = level[begin + g] == this
                out[line, begin + g] = values[line, begin + g] if chosen else out[line, begin + g]


@jit
def groups_with(level: Sums, k: int, n_groups: int) -> tuple[int, int, bool]:
    """First and last group (exclusive) with a row whose window is k, and whether all rows between have it."""
    first, last, rows = n_groups, 0, 0
    for t in range(level.shape[0]):
        if level[t] == k:
            first, last, rows = min(first, t % n_groups), max(last, t % n_groups + 1), rows + 1
    return first, last, rows == (last - first) * GROUP


@jit
def take_sums(history: History, rule: Rule, block: Block, scratch: Scratch) -> None:
    """Sums over the chosen windows."""
    level, n_groups = scratch.level, scratch.alive.shape[0]
    low, high = level.min(), level.max()
    if low == high:
        sums_of_window(low, 0, n_groups, history, rule, block, scratch, scratch.sums)
        return
    for k in range(low, high + 1):
        first, last, alone = groups_with(level, k, n_groups)
        if last == 0:
            continue
        sums = scratch.sums if alone else scratch.other_sums
        sums_of_window(k, first, last, history, rule, block, scratch, sums)
        if not alone:
            put_where(level, k, first, last, n_groups, sums, scratch.sums)
