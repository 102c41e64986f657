"""Blocks of time: the same estimates and labels as row by row, with loops that run along time.

Blocks are independent of each other given the history: they vectorise, and they can be shared among threads.
"""

from __future__ import annotations

from driftvote.kernels._jit import jit
from driftvote.kernels.bits import GROUP
from driftvote.kernels.block_estimates import estimate_block
from driftvote.kernels.block_labels import vote_block, write_block
from driftvote.kernels.block_sums import take_sums
from driftvote.kernels.layout import Block, Floats, History, Outputs, Rule, Scratch, Span, Sums
from driftvote.kernels.levels import choose_levels


@jit
def rows_inside(group: int, first: int, last: int) -> int:
    """Rows of a group, as bits, that lie at times first .. last - 1."""
    begin, end = max(0, first - GROUP * group), min(GROUP, last - GROUP * group)
    return (1 << end) - (1 << begin) if end > begin else 0


@jit
def fill_gaps(level: Sums) -> None:
    """Places without a row get a window that others have, so that no other is worked out for them."""
    top = level.max()
    for t in range(level.shape[0]):
        level[t] = top if level[t] < 0 else level[t]


@jit
def label_blocks(span: Span, draws: Floats, history: History, rule: Rule, scratch: Scratch, out: Outputs) -> None:
    """Everything for a span of rows whose history is in place, block by block."""
    n = scratch.estimates.shape[0]
    n_groups = scratch.alive.shape[0]
    for group in range(span.first // GROUP // n_groups * n_groups, (span.last + GROUP - 1) // GROUP, n_groups):
        block = Block(group, group - span.group, group % history.n_slots, group % history.n_bytes)
        for g in range(n_groups):
            scratch.alive[g] = rows_inside(group + g, span.first, span.last)
        scratch.level[:] = -1
        choose_levels(history, rule, span.origin, n * (n - 1) // 2, block, scratch)
        fill_gaps(scratch.level)
        take_sums(history, rule, block, scratch)
        estimate_block(history, rule, scratch)
        vote_block(history, rule, block, scratch)
        begin = GROUP * group
        first, last = max(span.first, begin), min(span.last, begin + GROUP * n_groups)
        write_block(first - begin, last - begin, span.row + first, draws, rule, scratch, out)
