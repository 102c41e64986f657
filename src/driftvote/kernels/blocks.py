"""Blocks of time: the same choices, estimates and labels as row by row, with loops that run along time.

For a fixed pair and window the test of Algorithm 1 is one contiguous integer operation over the rows of a block, and
blocks are independent of each other given the history: they vectorise, and they can be shared among threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from driftvote.kernels._jit import jit
from driftvote.kernels.accuracies import accuracy_of, pair_index, skill
from driftvote.kernels.labels import normalise, pick_class
from driftvote.kernels.layout import Block, Floats, History, Ints, Outputs, Rule, Scratch, Stretch, Sums
from driftvote.kernels.weights import odds_of

# Up to here a masked product for every class is faster than a branch on the vote.
FEW_CLASSES = 4


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
    for t in range(now.shape[0]):
        d = int32_of(2 * then[t] - twice[t] - now[t])
        if d > limit or d < -limit:
            fail[t] = 1


@jit
def mark_any(now: Sums, then: Sums, later: Sums, near: int, far: int, limit: int, fail: Sums) -> None:
    """|near S_(k+1) - far S_k| > limit, for any two windows."""
    for t in range(now.shape[0]):
        d = near * int64_of(int32_of(now[t] - later[t])) - far * int64_of(int32_of(now[t] - then[t]))
        if d > limit or d < -limit:
            fail[t] = 1


@jit
def choose_levels(history: History, rule: Rule, n_pairs: int, block: Block, scratch: Scratch) -> None:
    """Algorithm 1, lines 3 to 6, for every row of the block."""
    n_rows = block.n_rows
    alive, level = scratch.alive, scratch.level
    alive[:n_rows] = 1
    level[:n_rows] = 0
    for k in range(rule.sizes.shape[0] - 1):
        # A window can be reached from the row on at which it is full.
        full = min(n_rows, max(0, rule.sizes[k + 1] - block.time))
        alive[:full] = 0
        if not alive[:n_rows].any():
            break
        if not rule.certain[k]:
            test_level(history, rule, k, n_pairs, block, scratch.fail)
            for t in range(n_rows):
                alive[t] = alive[t] & (1 - scratch.fail[t])
        for t in range(n_rows):
            level[t] += alive[t]


@jit
def test_level(history: History, rule: Rule, k: int, n_pairs: int, block: Block, fail: Sums) -> None:
    """Mark the rows at which window k + 1 is refused after window k."""
    near, far, limit = rule.near[k], rule.far[k], rule.limit[k]
    fail[: block.n_rows] = 0
    for line in range(n_pairs):
        now = line_now(history, line, block)
        then = line_then(history, line, k, rule.sizes[k], block)
        later = line_then(history, line, k + 1, rule.sizes[k + 1], block)
        if near == 1 and far == 2:
            mark_doubling(now, then, later, int32_of(limit), fail[: block.n_rows])
        else:
            mark_any(now, then, later, near, far, limit, fail[: block.n_rows])


@jit
def take_sums(history: History, rule: Rule, block: Block, scratch: Scratch) -> None:
    """Sums over the chosen windows: runs of rows with the same window are one slice each."""
    first = 0
    while first < block.n_rows:
        k = scratch.level[first]
        last = first + 1
        while last < block.n_rows and scratch.level[last] == k:
            last += 1
        for line in range(history.table.shape[0]):
            now = line_now(history, line, block)
            then = line_then(history, line, k, rule.sizes[k], block)
            out = scratch.sums[line]
            for t in range(first, last):
                out[t] = int32_of(now[t] - then[t])
        first = last


@jit
def find_strongest(sums: Sums, places: Ints, n_pairs: int, without: int, best: Sums, top: Sums) -> None:
    """The first pair with the largest |sum| at every row, leaving one labeler out."""
    n_rows = best.shape[0]
    best[:] = -1
    for line in range(n_pairs):
        if places[line, 0] == without or places[line, 1] == without:
            continue
        row = sums[line]
        for t in range(n_rows):
            size = abs(row[t])
            if size > best[t]:
                best[t] = size
                top[t] = line


@jit
def estimate_run(first: int, last: int, pair: int, history: History, rule: Rule, scratch: Scratch) -> None:
    """Accuracies over rows that share their strongest pair."""
    n = scratch.estimates.shape[0]
    n_pairs = n * (n - 1) // 2
    i, j = history.places[pair, 0], history.places[pair, 1]
    for h in range(n):
        out = scratch.estimates[h]
        if h == i or h == j:
            tops = scratch.top_without[first:last]
            find_strongest(scratch.sums[:, first:last], history.places, n_pairs, h, scratch.best[first:last], tops)
            for t in range(first, last):
                line = tops[t - first]
                a, b = history.places[line, 0], history.places[line, 1]
                left, right = scratch.sums[pair_index(a, h, n), t], scratch.sums[pair_index(b, h, n), t]
                out[t] = skill(left, right, scratch.sums[line, t], scratch.scale[t])
            continue
        lefts, rights = scratch.sums[pair_index(i, h, n)], scratch.sums[pair_index(j, h, n)]
        across = scratch.sums[pair]
        for t in range(first, last):
            out[t] = skill(lefts[t], rights[t], across[t], scratch.scale[t])


@jit
def estimate_block(history: History, rule: Rule, block: Block, scratch: Scratch) -> None:
    """Accuracy of every labeler at every row of the block."""
    n_rows = block.n_rows
    n = scratch.estimates.shape[0]
    n_pairs = n * (n - 1) // 2
    for t in range(n_rows):
        scratch.scale[t] = float(rule.sizes[scratch.level[t]]) * (rule.n_classes - 1)
    find_strongest(scratch.sums[:, :n_rows], history.places, n_pairs, -1, scratch.best[:n_rows], scratch.top[:n_rows])
    first = 0
    while first < n_rows:
        pair = scratch.top[first]
        last = first + 1
        while last < n_rows and scratch.top[last] == pair:
            last += 1
        estimate_run(first, last, pair, history, rule, scratch)
        first = last
    counted = history.table.shape[0] > n_pairs
    for h in range(n):
        out = scratch.estimates[h]
        for t in range(n_rows):
            window = rule.sizes[scratch.level[t]]
            votes = int64_of(scratch.sums[n_pairs + h, t]) if counted else window
            out[t] = accuracy_of(out[t], votes, window, rule.n_classes, rule.diluted)


@jit
def vote_block(stretch: Stretch, rule: Rule, block: Block, scratch: Scratch) -> None:
    """Products of odds and numbers of votes of each class, labelers in order."""
    n_rows = block.n_rows
    scratch.scores[:, :n_rows] = 1.0
    scratch.support[:, :n_rows] = 0
    for h in range(scratch.estimates.shape[0]):
        codes = stretch.counted[h, block.offset : block.offset + n_rows]
        out = scratch.estimates[h]
        odds = scratch.odds
        for t in range(n_rows):
            odds[t] = odds_of(out[t], rule)
        if rule.n_classes > FEW_CLASSES:
            for t in range(n_rows):
                if codes[t] >= 0:
                    scratch.scores[codes[t], t] *= odds[t]
                    scratch.support[codes[t], t] += 1
            continue
        for c in range(rule.n_classes):
            scores, support = scratch.scores[c], scratch.support[c]
            for t in range(n_rows):
                voted = codes[t] == c
                scores[t] *= odds[t] if voted else 1.0
                support[t] += 1 if voted else 0


@jit
def write_block(draws: Floats, rule: Rule, block: Block, scratch: Scratch, history: History, out: Outputs) -> None:
    """Labels, probabilities, windows, accuracies and vote counts of the block into the outputs."""
    n = scratch.estimates.shape[0]
    n_pairs = n * (n - 1) // 2
    counted = history.table.shape[0] > n_pairs
    for t in range(block.n_rows):
        row = block.row + t
        for c in range(rule.n_classes):
            scratch.row_scores[c] = scratch.scores[c, t]
            scratch.row_support[c] = scratch.support[c, t]
        out.labels[row] = pick_class(scratch.row_scores, scratch.row_support, draws[row])
        normalise(scratch.row_scores, out.proba[row])
        out.windows[row] = rule.sizes[scratch.level[t]]
        for h in range(n):
            out.estimates[row, h] = scratch.estimates[h, t]
        if counted:
            for h in range(n):
                out.votes[row, h] = scratch.sums[n_pairs + h, t]


@jit
def label_blocks(
    span: Block, stretch: Stretch, draws: Floats, history: History, rule: Rule, scratch: Scratch, out: Outputs
) -> None:
    """Everything for a span of rows whose history is in place, block by block."""
    n = scratch.estimates.shape[0]
    size = scratch.level.shape[0]
    for done in range(0, span.n_rows, size):
        block = Block(span.time + done, span.offset + done, span.row + done, min(size, span.n_rows - done))
        choose_levels(history, rule, n * (n - 1) // 2, block, scratch)
        take_sums(history, rule, block, scratch)
        estimate_block(history, rule, block, scratch)
        vote_block(stretch, rule, block, scratch)
        write_block(draws, rule, block, scratch, history, out)
