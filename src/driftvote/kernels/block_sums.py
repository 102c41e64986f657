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
def slide(agree: Bytes, both: Bytes, factor: int, running: Sums, sums: Sums, line: int) -> None:
    """Window sums of a line row by row, for all groups at once: one row comes, one goes."""
    n_groups = np.uint64(running.shape[0])
    k, one, here = np.int32(factor), np.int32(1), np.uint64(line)
    came, went, counts, counted = agree[0], agree[1], both[0], both[1]
    for step in range(GROUP):
        shift, first = np.int32(step), np.uint64(step) * n_groups
        for g in range(n_groups):
            gain = np.int32((np.int32(came[g]) >> shift & one) - (np.int32(went[g]) >> shift & one))
            fewer = np.int32((np.int32(counts[g]) >> shift & one) - (np.int32(counted[g]) >> shift & one))
            running[g] = np.int32(running[g] + np.int32(np.int32(k * gain) - fewer))
            sums[here, first + g] = running[g]


@jit
def slide_voting(came: Bytes, went: Bytes, factor: int, running: Sums, sums: Sums, line: int) -> None:
    """The same where nobody abstains."""
    n_groups = np.uint64(running.shape[0])
    k, one, here = np.int32(factor), np.int32(1), np.uint64(line)
    for step in range(GROUP):
        shift, first = np.int32(step), np.uint64(step) * n_groups
        for g in range(n_groups):
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
def sums_of_window(k: int, history: History, rule: Rule, block: Block, scratch: Scratch, sums: Sums) -> None:
    """Sums over window k at every row of the block."""
    running, lag = scratch.running, history.lag_of[k]
    planes = history.planes if lag < 0 else history.past[lag]
    byte = byte_then(history, k, rule.sizes[k], block, 0)
    earlier, then = sums_then(history, k), place_then(history, k, rule.sizes[k], block)
    came, went, counts, counted = scratch.agree[0], scratch.agree[1], scratch.both[0], scratch.both[1]
    table, places, masked, n_digits = history.table, history.places, history.masked, history.n_digits
    for line in range(table.shape[0]):
        i, j = places[line, 0], places[line, 1]
        agreeing(history.planes, block.byte, i, j, n_digits, masked, came, counts)
        agreeing(planes, byte, i, j, n_digits, masked, went, counted)
        subtract(table, block.slot, earlier, then, line, running)
        if masked:
            slide(scratch.agree, scratch.both, factor_of(i, rule.n_classes), running, sums, line)
        else:
            slide_voting(came, went, rule.n_classes, running, sums, line)


@jit
def put_where(level: Sums, k: int, values: Sums, out: Sums) -> None:
    """Values into the places whose window is k."""
    this = np.int32(k)
    for line in range(np.uint64(out.shape[0])):
        for t in range(np.uint64(out.shape[1])):
            out[line, t] = values[line, t] if level[t] == this else out[line, t]


@jit
def take_sums(history: History, rule: Rule, block: Block, scratch: Scratch) -> None:
    """Sums over the chosen windows."""
    low, high = scratch.level.min(), scratch.level.max()
    sums_of_window(high, history, rule, block, scratch, scratch.sums)
    for k in range(low, high):
        if (scratch.level == k).any():
            sums_of_window(k, history, rule, block, scratch, scratch.other_sums)
            put_where(scratch.level, k, scratch.other_sums, scratch.sums)
