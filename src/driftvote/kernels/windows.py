"""The choice of the window: Algorithm 1, lines 3 to 6, in integers."""

from __future__ import annotations

from driftvote.kernels._jit import jit
from driftvote.kernels.layout import Ints, Memory, Rule


@jit
def holds(level: int, sums: Ints, rule: Rule) -> bool:
    """Whether window level + 1 is accepted after window level: the test of line 5."""
    near = rule.near[level]
    far = rule.far[level]
    limit = rule.limit[level]
    for pair in range(sums.shape[1]):
        if abs(near * sums[level + 1, pair] - far * sums[level, pair]) > limit:
            return False
    return True


@jit
def choose_level(memory: Memory, rule: Rule) -> int:
    """Index of the window that Algorithm 1 stops at, after the rows seen so far."""
    seen = memory.clock[0]
    last = rule.sizes.shape[0] - 1
    level = 0
    while level < last and rule.sizes[level + 1] <= seen:
        if not rule.certain[level] and not holds(level, memory.sums, rule):
            break
        level += 1
    return level
