"""The choice of the window under any of the bounds, watching agreements alone or votes as well.

The test is that of Algorithm 1, line 5; what differs is the threshold, which may look at how much a statistic varies.
Sums are integers; the few floating operations on them are the same, in the same order, wherever this runs.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from driftvote.kernels._jit import jit
from driftvote.kernels.layout import Floats, Ints
from driftvote.kernels.tallies import Tally, n_pairs_of, sum_up

MCDIARMID, BERNSTEIN, NORMAL = 0, 1, 2


class Watch(NamedTuple):
    """The window rule, in the form that kernels need."""

    sizes: Ints  # window sizes, increasing
    bound: int
    # (windows - 1,) each, for the step from one window to the next; theory.py computes them.
    plain: Floats  # threshold by boundedness alone, or by the normal quantile, for a half range or a deviation of 1
    by_spread: Floats  # Bernstein's, for each unit of the standard deviation
    by_range: Floats  # Bernstein's, for each unit of the half range
    votes: bool  # watch who votes and for what, too


@jit
def threshold(level: int, variance: float, half_range: float, watch: Watch) -> float:
    """How far the means over window level + 1 and window level may be apart; values span 2 half_range.

    `variance` is that of the rows of window level + 1, divided by their number.
    """
    plain = watch.plain[level]
    if watch.bound == NORMAL:
        return plain * math.sqrt(doubted(level, variance, half_range, watch))
    if watch.bound == BERNSTEIN:
        spread = watch.by_spread[level] * math.sqrt(variance)
        # Both hold at the same time (docs/windows.md), so the smaller one does.
        return min(plain * half_range, spread + watch.by_range[level] * half_range)
    return plain * half_range


@jit
def doubted(level: int, variance: float, half_range: float, watch: Watch) -> float:
    """A variance with four values' worth of doubt, so that a labeler that never varied is not beyond doubt."""
    return variance + 4.0 * half_range * half_range / watch.sizes[level + 1]


@jit
def strays(level: int, near: int, wide: int, squares: float, scale: int, watch: Watch) -> bool:
    """Whether a statistic exceeds its threshold; `near` and `wide` are its sums over the two windows, times
    `scale`, and `squares` the sum of its squares over the wide one."""
    r, big = watch.sizes[level], watch.sizes[level + 1]
    gap = abs(r * wide - big * near) / float(r * big * scale)
    mean = wide / float(big * scale)
    variance = max(0.0, squares / big - mean * mean)
    half_range = (scale + 1.0) / (2.0 * scale)
    if watch.bound == NORMAL:  # the same as below without a root
        limit = watch.plain[level]
        return gap * gap > limit * limit * doubted(level, variance, half_range, watch)
    return gap > threshold(level, variance, half_range, watch)


@jit
def pair_strays(level: int, pair: int, tally: Tally, watch: Watch) -> bool:
    """Whether the agreement of a pair has changed."""
    scale = tally.n_classes - 1
    wide, both = tally.stats[level + 1, pair], tally.stats[level + 1, n_pairs_of(tally) + pair]
    agreed = (wide + both) / (scale + 1.0)
    squares = agreed + (both - agreed) / float(scale * scale)
    return strays(level, tally.stats[level, pair], wide, squares, scale, watch)


@jit
def votes_stray(level: int, labeler: int, tally: Tally, watch: Watch) -> bool:
    """Whether a labeler's coverage (+1 votes, -1 abstains) or votes by class (+1, -1, 0 abstains) have changed."""
    r, big = watch.sizes[level], watch.sizes[level + 1]
    n_classes = tally.n_classes
    at = 2 * n_pairs_of(tally) + labeler * n_classes
    near, wide = 0, 0
    for c in range(n_classes):
        near += tally.stats[level, at + c]
        wide += tally.stats[level + 1, at + c]
    if strays(level, 2 * near - r, 2 * wide - big, float(big), 1, watch):
        return True
    # Of two classes one share says all.
    for c in range(0 if n_classes > 2 else 1, n_classes):
        low, high = tally.stats[level, at + c], tally.stats[level + 1, at + c]
        if strays(level, 2 * low - near, 2 * high - wide, float(wide), 1, watch):
            return True
    return False


@jit
def accepts(level: int, tally: Tally, watch: Watch) -> bool:
    """Whether window level + 1 is accepted after window level; the sums of both are there."""
    for pair in range(n_pairs_of(tally)):
        if pair_strays(level, pair, tally, watch):
            return False
    if watch.votes:
        for labeler in range(tally.ring.shape[1]):
            if votes_stray(level, labeler, tally, watch):
                return False
    return True


@jit
def choose(tally: Tally, watch: Watch) -> int:
    """Index of the window that the rule stops at, after the rows seen so far; its sums are then there."""
    last = watch.sizes.shape[0] - 1
    level = 0
    sum_up(0, watch.sizes, tally)
    while level < last and watch.sizes[level + 1] <= tally.clock[0]:
        sum_up(level + 1, watch.sizes, tally)
        if not accepts(level, tally, watch):
            break
        level += 1
    return level
