"""The choice of the window for a block of rows at once: the same verdicts as row by row.

One row changes the gap of a pair, |near S_(k+1) - far S_k|, by at most far K: a term of -1 to K - 1 comes into both
sums and one leaves each, which is (near - far) come - near leave + far go. So the gaps before and after a group of
eight rows settle the test for all of them, unless they come close to the limit; only then the rows are looked at one by
one. For a fixed pair and window the gaps of a block are one contiguous integer operation.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from driftvote.kernels._jit import jit
from driftvote.kernels.bits import GROUP, agreeing_byte
from driftvote.kernels.layout import Block, Bytes, History, Ints, Rule, Scratch, Sums

# From this many groups that a look settles on either side, looks are cheaper than the gaps of all groups.
WORTH_A_LOOK = 6


@jit
def int32_of(value: int) -> Any:
    """Kept in 32 bits, where sixteen fit into a register."""
    return np.int32(value)


@jit
def int64_of(value: int) -> Any:
    """Widened, where products need it."""
    return np.int64(value)


@jit
def sums_then(history: History, k: int) -> Sums:
    """Where the running sums of all lines stand as they were window k earlier."""
    return history.lagged[history.lag_of[k]] if history.lag_of[k] >= 0 else history.table


@jit
def place_then(history: History, k: int, size: int, block: Block) -> int:
    """At which place there the block begins."""
    return block.place if history.lag_of[k] >= 0 else (block.group - size // GROUP) % history.n_slots


# Indices are unsigned: one that might be negative costs a test, and the loop its vectors. Slices that begin at 0 would
# do as well, but each counts its references, and for every pair of every level that is most of the time.


@jit
def widen_doubling(
    table: Sums, earlier: Sums, early: Sums, places: tuple[int, int, int], line: int, gaps: Sums
) -> None:
    """Largest |S_(k+1) - 2 S_k| so far, for windows that double; all in 32 bits."""
    row = np.uint64(line)
    now, then, later = np.uint64(places[0]), np.uint64(places[1]), np.uint64(places[2])
    for g in range(np.uint64(gaps.shape[0])):
        twice = np.int32(early[row, later + g] + table[row, now + g])
        gaps[g] = max(gaps[g], np.int32(abs(np.int32(np.int32(np.int32(2) * earlier[row, then + g]) - twice))))


@jit
def widen_any(
    table: Sums, earlier: Sums, early: Sums, places: tuple[int, int, int], line: int, near: int, far: int, gaps: Ints
) -> None:
    """Largest |near S_(k+1) - far S_k| so far, for any two windows."""
    row = np.uint64(line)
    now, then, later = np.uint64(places[0]), np.uint64(places[1]), np.uint64(places[2])
    for g in range(np.uint64(gaps.shape[0])):
        total = table[row, now + g]
        wide, narrow = int32_of(total - early[row, later + g]), int32_of(total - earlier[row, then + g])
        gaps[g] = max(gaps[g], abs(near * int64_of(wide) - far * int64_of(narrow)))


@jit
def measure_gaps(history: History, rule: Rule, k: int, n_pairs: int, block: Block, scratch: Scratch) -> None:
    """The largest gap of all pairs before each group, and after the last; into `wide_gaps`."""
    near, far = rule.near[k], rule.far[k]
    gaps, wide, table = scratch.gaps, scratch.wide_gaps, history.table
    earlier, early = sums_then(history, k), sums_then(history, k + 1)
    then = place_then(history, k, rule.sizes[k], block)
    places = block.slot, then, place_then(history, k + 1, rule.sizes[k + 1], block)
    gaps[:] = 0
    wide[:] = 0
    for line in range(n_pairs):
        if near == 1 and far == 2:
            widen_doubling(table, earlier, early, places, line, gaps)
        else:
            widen_any(table, earlier, early, places, line, near, far, wide)
    if near == 1 and far == 2:
        for g in range(gaps.shape[0]):
            wide[g] = gaps[g]


@jit
def gap_at(history: History, rule: Rule, k: int, n_pairs: int, block: Block, g: int) -> int:
    """The largest gap of all pairs before one group."""
    near, far = rule.near[k], rule.far[k]
    table, n_slots = history.table, history.n_slots
    now = (block.group + g) % n_slots
    then, later = now - rule.sizes[k] // GROUP, now - rule.sizes[k + 1] // GROUP
    then, later = then if then >= 0 else then + n_slots, later if later >= 0 else later + n_slots
    lag, next_lag = history.lag_of[k], history.lag_of[k + 1]
    gap = 0
    for line in range(n_pairs):
        total = table[line, now]
        before = table[line, then] if lag < 0 else history.lagged[lag, line, block.place + g]
        earlier = table[line, later] if next_lag < 0 else history.lagged[next_lag, line, block.place + g]
        d = near * int64_of(int32_of(total - earlier)) - far * int64_of(int32_of(total - before))
        gap = max(gap, abs(d))
    return gap


@jit
def ready_rows(size: int, time: int) -> int:
    """Rows of a group, as bits, at which a window is full; `time` rows of the stream came before the group."""
    missing = max(0, size - time - 1)
    return 255 & ~((1 << missing) - 1) if missing < GROUP else 0


@jit
def choose_levels(history: History, rule: Rule, origin: int, n_pairs: int, block: Block, scratch: Scratch) -> None:
    """Algorithm 1, lines 3 to 6, for the rows of the block that `alive` names."""
    alive = scratch.alive
    n_groups = alive.shape[0]
    time = origin + GROUP * block.group
    for k in range(rule.sizes.shape[0] - 1):
        if time + GROUP * n_groups < rule.sizes[k + 1]:
            settle_rest(alive, k, scratch.level)
            return
        sure = rule.certain[k] or few_looks_are_enough(history, rule, k, n_pairs, block, time, n_groups)
        if sure and time + 1 >= rule.sizes[k + 1]:
            continue
        if not sure:
            measure_gaps(history, rule, k, n_pairs, block, scratch)
        left = 0
        most = GROUP * rule.far[k] * rule.n_classes  # that a gap can change within a group
        for g in range(n_groups):
            came = int64_of(alive[g])
            passing = came & ready_rows(rule.sizes[k + 1], time + GROUP * g)
            if not sure and passing:
                before, after = scratch.wide_gaps[g], scratch.wide_gaps[g + 1]
                if max(before, after) - most > rule.limit[k]:
                    passing = 0
                elif before + after + most > 2 * rule.limit[k]:
                    passing &= look_at_rows(history, rule, k, n_pairs, block, g)
            if passing != came:
                settle_rows(came & ~passing, k, g, n_groups, scratch.level)
                alive[g] = passing
            left |= passing
        if left == 0:
            return
    settle_rest(alive, rule.sizes.shape[0] - 1, scratch.level)


@jit
def settle_rows(rows: int, k: int, g: int, n_groups: int, level: Sums) -> None:
    """Rows of a group that stay at window k."""
    for step in range(GROUP):
        if rows >> step & 1:
            level[step * n_groups + g] = k


@jit
def settle_rest(alive: Bytes, k: int, level: Sums) -> None:
    """Whoever came this far stays at window k."""
    n_groups = alive.shape[0]
    for step in range(GROUP):
        for g in range(n_groups):
            level[step * n_groups + g] = k if int(alive[g]) >> step & 1 else level[step * n_groups + g]


@jit
def few_looks_are_enough(
    history: History, rule: Rule, k: int, n_pairs: int, block: Block, time: int, n_groups: int
) -> bool:
    """Whether the gaps at a few places of the block settle that all its rows pass.

    A gap says something of the rows on both sides, and the more the wider the windows are; these end in parts of the
    history that are not in the cache.
    """
    limit, most = rule.limit[k], GROUP * rule.far[k] * rule.n_classes
    reach = limit // (2 * most)  # groups, if the gap is half the limit
    if reach < WORTH_A_LOOK or time < rule.sizes[k + 1]:
        return False
    done = 0
    while done < n_groups:
        place = min(done + reach, n_groups)
        room = limit - gap_at(history, rule, k, n_pairs, block, place)
        settled = place + room // most if room >= (place - done) * most else done
        if settled == done:
            return False
        done = settled
    return True


@jit
def byte_then(history: History, k: int, size: int, block: Block, g: int) -> int:
    """Place of a group's bits, window k earlier, in the planes (or among the lagged ones)."""
    if history.lag_of[k] >= 0:
        return block.place + g
    return (block.group + g - size // GROUP) % history.n_bytes


@jit
def look_at_rows(history: History, rule: Rule, k: int, n_pairs: int, block: Block, g: int) -> int:
    """Rows of a group, as bits, at which window k + 1 is accepted after window k, for a group close to the limit.

    Its pairs that are close to it are looked at row by row.
    """
    table, near, far = history.table, rule.near[k], rule.far[k]
    earlier, early = sums_then(history, k), sums_then(history, k + 1)
    now, then = block.slot + g, place_then(history, k, rule.sizes[k], block) + g
    later = place_then(history, k + 1, rule.sizes[k + 1], block) + g
    room = 2 * rule.limit[k] - GROUP * far * rule.n_classes
    passing = 255
    for line in range(n_pairs):
        narrow = int64_of(int32_of(table[line, now] - earlier[line, then]))
        wide = int64_of(int32_of(table[line, now] - early[line, later]))
        narrow_after = int64_of(int32_of(table[line, now + 1] - earlier[line, then + 1]))
        wide_after = int64_of(int32_of(table[line, now + 1] - early[line, later + 1]))
        if abs(near * wide - far * narrow) + abs(near * wide_after - far * narrow_after) > room:
            passing &= look_at_pair(history, rule, k, line, block, g, narrow, wide)
    return passing


@jit
def look_at_pair(history: History, rule: Rule, k: int, line: int, block: Block, g: int, narrow: int, wide: int) -> int:
    """Rows of a group, as bits, at which one pair passes; its window sums before the group are given."""
    near, far, limit, factor = rule.near[k], rule.far[k], rule.limit[k], rule.n_classes
    lag, next_lag = history.lag_of[k], history.lag_of[k + 1]
    i, j, n_digits, masked = history.places[line, 0], history.places[line, 1], history.n_digits, history.masked
    come, counts = agreeing_byte(history.planes, block.byte + g, i, j, n_digits, masked)
    planes = history.planes if lag < 0 else history.past[lag]
    go, counted = agreeing_byte(planes, byte_then(history, k, rule.sizes[k], block, g), i, j, n_digits, masked)
    planes = history.planes if next_lag < 0 else history.past[next_lag]
    leave, once = agreeing_byte(planes, byte_then(history, k + 1, rule.sizes[k + 1], block, g), i, j, n_digits, masked)
    failing = 0
    for step in range(GROUP):
        came = factor * (come >> step & 1) - (counts >> step & 1)
        narrow += came - factor * (go >> step & 1) + (counted >> step & 1)
        wide += came - factor * (leave >> step & 1) + (once >> step & 1)
        failing |= (1 if abs(near * wide - far * narrow) > limit else 0) << step
    return 255 & ~failing
