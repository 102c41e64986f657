"""The choice of the window: Algorithm 1, lines 3 to 6, in integers."""

from __future__ import annotations

import numpy as np

from driftvote.kernels._jit import jit
from driftvote.kernels.layout import Ints, Memory, Rule


@jit
def largest_gap(narrow: Ints, wide: Ints, near: int, far: int) -> int:
    """Largest |near S_(k+1) - far S_k| of all pairs, as in the test of line 5."""
    gap = 0
    for pair in range(wide.shape[0]):
        gap = max(gap, abs(near * wide[pair] - far * narrow[pair]))
    return gap


@jit
def holds(level: int, memory: Memory, rule: Rule, known: Ints) -> bool:
    """Whether window level + 1 is accepted after window level.

    One row changes the gap of a pair by at most 2 far (K - 1): three of its terms move, by that much together. So a
    row that passes (or fails) with room to spare settles the rows after it: `known` says until which row (a negative
    number: until which row it fails). That is true whatever the rows are, as long as they follow.
    """
    seen = memory.clock[0]
    if abs(known[level]) >= seen:
        return bool(known[level] > 0)
    limit = rule.limit[level]
    most = 2 * rule.far[level] * (rule.n_classes - 1)
    gap = largest_gap(memory.sums[level], memory.sums[level + 1], rule.near[level], rule.far[level])
    if gap <= limit:
        known[level] = seen + (limit - gap) // most
        return True
    known[level] = -(seen + (gap - limit - 1) // most)
    return False


@jit
def nothing_known(rule: Rule) -> Ints:
    """The notes of `holds` before the first row."""
    return np.zeros(rule.limit.shape[0], np.int64)


@jit
def choose_level(memory: Memory, rule: Rule, known: Ints) -> int:
    """Index of the window that Algorithm 1 stops at, after the rows seen so far."""
    seen = memory.clock[0]
    last = rule.sizes.shape[0] - 1
    level = 0
    while level < last and rule.sizes[level + 1] <= seen:
        if not rule.certain[level] and not holds(level, memory, rule, known):
            break
        level += 1
    return level
