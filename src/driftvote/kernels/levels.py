"""The choice of the window for a block of rows at once: the same verdicts as row by row.

For a fixed pair and window the test of Algorithm 1 is one contiguous integer operation over the rows of a block.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from driftvote.kernels._jit import jit
from driftvote.kernels.layout import Block, History, Rule, Scratch, Sums

# Tests whose limit is this many steps away at best are made one by one; others are looked at when they must be.
WORTH_A_LOOK = 64
SURE_ROWS = 24


@jit
def int32_of(value: int) -> Any:
    """Kept in 32 bits, where eight fit into a register."""
    return np.int32(value)


@jit
def int64_of(value: int) -> Any:
    """Widened, where products need it."""
    return np.int64(value)


@jit
def line_now(history: History, line: int, block: Block) -> Sums:
    """Running sum of a line at the rows of the block."""
    slot = block.time % history.capacity
    return history.table[line, slot : slot + block.n_rows]


@jit
def line_then(history: History, line: int, k: int, size: int, block: Block) -> Sums:
    """The same, window k before."""
    if k < history.n_near:
        slot = (block.time - size) % history.capacity
        return history.table[line, slot : slot + block.n_rows]
    return history.lagged[k - history.n_near, line, block.offset : block.offset + block.n_rows]


@jit
def mark_doubling(now: Sums, then: Sums, twice: Sums, limit: int, fail: Sums) -> None:
    """|S_(k+1) - 2 S_k| > limit, for windows that double; all in 32 bits."""
    high = np.int32(limit)
    low = np.int32(-limit)
    for t in range(now.shape[0]):
        d = np.int32(2 * then[t] - twice[t] - now[t])
        fail[t] = np.int32(1) if (d > high) | (d < low) else fail[t]


@jit
def mark_any(now: Sums, then: Sums, later: Sums, near: int, far: int, limit: int, fail: Sums) -> None:
    """|near S_(k+1) - far S_k| > limit, for any two windows."""
    for t in range(now.shape[0]):
        d = near * int64_of(int32_of(now[t] - later[t])) - far * int64_of(int32_of(now[t] - then[t]))
        fail[t] = np.int32(1) if (d > limit) | (d < -limit) else fail[t]


@jit
def largest_gap(history: History, rule: Rule, k: int, n_pairs: int, block: Block, t: int) -> int:
    """Largest |near S_(k+1) - far S_k| of all pairs at row t of the block."""
    near, far = rule.near[k], rule.far[k]
    time, capacity = block.time + t, history.capacity
    now, then, later = time % capacity, (time - rule.sizes[k]) % capacity, (time - rule.sizes[k + 1]) % capacity
    gap = 0
    for line in range(n_pairs):
        total = history.table[line, now]
        if k < history.n_near:
            small = int64_of(int32_of(total - history.table[line, then]))
        else:
            small = int64_of(int32_of(total - history.lagged[k - history.n_near, line, block.offset + t]))
        if k + 1 < history.n_near:
            large = int64_of(int32_of(total - history.table[line, later]))
        else:
            large = int64_of(int32_of(total - history.lagged[k + 1 - history.n_near, line, block.offset + t]))
        gap = max(gap, abs(near * large - far * small))
    return gap


@jit
def choose_levels(history: History, rule: Rule, n_pairs: int, block: Block, scratch: Scratch) -> None:
    """Algorithm 1, lines 3 to 6, for every row of the block."""
    n_rows = block.n_rows
    alive, level, fail = scratch.alive[:n_rows], scratch.level[:n_rows], scratch.fail[:n_rows]
    alive[:] = 1
    level[:] = 0
    for k in range(rule.sizes.shape[0] - 1):
        # A window can be reached from the row on at which it is full.
        full = min(n_rows, max(0, rule.sizes[k + 1] - block.time))
        alive[:full] = 0
        if full == n_rows:
            break
        if rule.certain[k]:
            add_to(level, alive)
            continue
        test_level(history, rule, k, n_pairs, block, fail)
        if settle_level(level, alive, fail) == 0:
            break


@jit
def add_to(level: Sums, alive: Sums) -> None:
    """Rows that are still alive go one level up."""
    for t in range(level.shape[0]):
        level[t] = np.int32(level[t] + alive[t])


@jit
def settle_level(level: Sums, alive: Sums, fail: Sums) -> int:
    """Rows that fail stay where they are, the others go one level up; how many those are."""
    left = np.int32(0)
    for t in range(level.shape[0]):
        stays = np.int32(alive[t] & (np.int32(1) - fail[t]))
        alive[t] = stays
        level[t] = np.int32(level[t] + stays)
        left = np.int32(left + stays)
    return int(left)


@jit
def test_level(history: History, rule: Rule, k: int, n_pairs: int, block: Block, fail: Sums) -> None:
    """Mark the rows at which window k + 1 is refused after window k.

    One row changes the gap of a pair by at most 2 far (K - 1): three of its terms move, by that much together. So a
    row that passes (or fails) with room to spare settles the rows after it. Wide windows, whose far ends lie outside
    the cache, are therefore looked at once in a while only.
    """
    limit = rule.limit[k]
    most = 2 * rule.far[k] * (rule.n_classes - 1)
    fail[:] = 0
    t = max(0, rule.sizes[k + 1] - block.time)  # before that the larger window is not full
    if limit < WORTH_A_LOOK * most:
        mark_rows(history, rule, k, n_pairs, block, t, block.n_rows, fail)
        return
    while t < block.n_rows:
        gap = largest_gap(history, rule, k, n_pairs, block, t)
        sure = (limit - gap) // most if gap <= limit else (gap - limit - 1) // most
        if sure >= SURE_ROWS:
            last = min(block.n_rows, t + 1 + sure)
            if gap > limit:
                fail[t:last] = 1
        else:
            last = min(block.n_rows, t + 4 * SURE_ROWS)
            mark_rows(history, rule, k, n_pairs, block, t, last, fail)
        t = last


@jit
def mark_rows(
    history: History, rule: Rule, k: int, n_pairs: int, block: Block, first: int, last: int, fail: Sums
) -> None:
    """Test rows first .. last - 1 one by one, pair by pair."""
    near, far, limit = rule.near[k], rule.far[k], rule.limit[k]
    out = fail[first:last]
    for line in range(n_pairs):
        now = line_now(history, line, block)[first:last]
        then = line_then(history, line, k, rule.sizes[k], block)[first:last]
        later = line_then(history, line, k + 1, rule.sizes[k + 1], block)[first:last]
        if near == 1 and far == 2:
            mark_doubling(now, then, later, limit, out)
        else:
            mark_any(now, then, later, near, far, limit, out)
