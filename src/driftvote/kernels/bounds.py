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
    certain: int  # so many steps are accepted whatever the rows are


class Comparison(NamedTuple):
    """One window beside the next: plain numbers, because arrays are dear to hand from function to function."""

    near: int  # rows of the one
    wide: int  # rows of the next
    bound: int
    plain: float
    by_spread: float
    by_range: float


@jit
def comparison(level: int, watch: Watch) -> Comparison:
    """Window `level` beside the next."""
    return Comparison(
        watch.sizes[level],
        watch.sizes[level + 1],
        watch.bound,
        watch.plain[level],
        watch.by_spread[level],
        watch.by_range[level],
    )


@jit
def threshold(variance: float, half_range: float, test: Comparison) -> float:
    """How far the means over the two windows may be apart; values span 2 half_range.

    `variance` is that of the rows of the wider window, divided by their number.
    """
    if test.bound == NORMAL:
        # Four values' worth of doubt about the variance: a labeler that never varied is not beyond doubt.
        return test.plain * math.sqrt(variance + 4.0 * half_range * half_range / test.wide)
    if test.bound == BERNSTEIN:
        spread = test.by_spread * math.sqrt(variance)
        # Both hold at the same time (docs/windows.md), so the smaller one does.
        return min(test.plain * half_range, spread + test.by_range * half_range)
    return test.plain * half_range


@jit
def strays(near: int, wide: int, squares: int, scale: int, test: Comparison) -> bool:
    """Whether a statistic exceeds its threshold; `near` and `wide` are its sums over the two windows, times
    `scale`, and `squares` the sum of its squares over the wide one, times `scale` squared."""
    r, big = test.near, test.wide
    if test.bound == NORMAL:
        # The same as below, both sides squared and times (r big scale)^2: this is where the time of a look goes, and
        # here it takes neither a root nor a division.
        apart, limit = float(r * wide - big * near), test.plain * r
        spread = max(0.0, float(big) * squares - float(wide) * wide)
        return apart * apart > limit * limit * (spread + float(big) * ((scale + 1) * (scale + 1)))
    gap = abs(r * wide - big * near) / float(r * big * scale)
    mean = wide / float(big * scale)
    variance = max(0.0, squares / float(big * scale * scale) - mean * mean)
    return gap > threshold(variance, (scale + 1.0) / (2.0 * scale), test)


@jit
def agreements_stray(near: Ints, wide: Ints, n_pairs: int, n_classes: int, test: Comparison) -> bool:
    """Whether the agreement of some pair has changed; `near` and `wide` are the sums over the two windows."""
    scale = n_classes - 1
    for pair in range(n_pairs):
        both = wide[n_pairs + pair]
        agreed = (wide[pair] + both) // n_classes
        if strays(near[pair], wide[pair], agreed * (scale * scale) + both - agreed, scale, test):
            return True
    return False


@jit
def votes_stray(near: Ints, wide: Ints, at: int, n_classes: int, test: Comparison) -> bool:
    """Whether a labeler's coverage (+1 votes, -1 abstains) or votes by class (+1, -1, 0 abstains) have changed."""
    low, high = 0, 0
    for c in range(n_classes):
        low += near[at + c]
        high += wide[at + c]
    if strays(2 * low - test.near, 2 * high - test.wide, test.wide, 1, test):
        return True
    # Of two classes one share says all.
    for c in range(0 if n_classes > 2 else 1, n_classes):
        if strays(2 * near[at + c] - low, 2 * wide[at + c] - high, high, 1, test):
            return True
    return False


@jit
def accepts(level: int, tally: Tally, watch: Watch) -> bool:
    """Whether window level + 1 is accepted after window level; the sums of both are there."""
    near, wide = tally.stats[level], tally.stats[level + 1]
    n_pairs, n_classes = n_pairs_of(tally), tally.n_classes
    test = comparison(level, watch)
    if agreements_stray(near, wide, n_pairs, n_classes, test):
        return False
    if watch.votes:
        for labeler in range(tally.ring.shape[1]):
            if votes_stray(near, wide, 2 * n_pairs + labeler * n_classes, n_classes, test):
                return False
    return True


@jit
def choose(tally: Tally, watch: Watch) -> int:
    """Index of the window that the rule stops at, after the rows seen so far; its sums are then there."""
    last = watch.sizes.shape[0] - 1
    level = 0
    while level < watch.certain and watch.sizes[level + 1] <= tally.clock[0]:
        level += 1
    sum_up(level, watch.sizes, tally)
    while level < last and watch.sizes[level + 1] <= tally.clock[0]:
        sum_up(level + 1, watch.sizes, tally)
        if not accepts(level, tally, watch):
            break
        level += 1
    return level
