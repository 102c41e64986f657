"""Blocks of time: the same estimates and labels as row by row, with loops that run along time.

Blocks are independent of each other given the history: they vectorise, and they can be shared among threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from driftvote.kernels._jit import jit
from driftvote.kernels.accuracies import accuracy_of, pair_index, skill
from driftvote.kernels.labels import TIE, normalise, pick_class
from driftvote.kernels.layout import Block, Floats, History, Ints, Outputs, Rule, Scratch, Stretch, Sums
from driftvote.kernels.levels import choose_levels, int32_of, int64_of, line_now, line_then
from driftvote.kernels.weights import odds_of

# Up to here a masked product for every class is faster than a branch on the vote.
FEW_CLASSES = 4


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
def find_strongest(sums: Sums, places: Ints, n_pairs: int, without: int, span: tuple[int, int], work: Scratch) -> None:
    """The first pair with the largest |sum| at rows span[0] .. span[1] - 1, leaving one labeler out; into `chosen`."""
    first, last = span
    best, chosen = work.best[first:last], work.chosen[first:last]
    best[:] = -1
    for line in range(n_pairs):
        if places[line, 0] == without or places[line, 1] == without:
            continue
        compare_pair(sums[line, first:last], np.int32(line), best, chosen)


@jit
def compare_pair(row: Sums, line: Any, best: Sums, chosen: Sums) -> None:
    """Note where a pair is stronger than all before it."""
    for t in range(row.shape[0]):
        size = np.int32(abs(row[t]))
        better = size > best[t]
        best[t] = size if better else best[t]
        chosen[t] = line if better else chosen[t]


@jit
def estimate_run(first: int, last: int, pair: int, history: History, rule: Rule, scratch: Scratch) -> None:
    """Accuracies over rows that share their strongest pair."""
    n = scratch.estimates.shape[0]
    n_pairs = n * (n - 1) // 2
    i, j = history.places[pair, 0], history.places[pair, 1]
    for h in range(n):
        out = scratch.estimates[h]
        if h == i or h == j:
            find_strongest(scratch.sums, history.places, n_pairs, h, (first, last), scratch)
            for t in range(first, last):
                line = scratch.chosen[t]
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
    find_strongest(scratch.sums, history.places, n_pairs, -1, (0, n_rows), scratch)
    scratch.top[:n_rows] = scratch.chosen[:n_rows]
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
    if rule.n_classes == 2:
        write_two(draws, block, scratch, out)
    else:
        for t in range(block.n_rows):
            row = block.row + t
            for c in range(rule.n_classes):
                scratch.row_scores[c] = scratch.scores[c, t]
                scratch.row_support[c] = scratch.support[c, t]
            out.labels[row] = pick_class(scratch.row_scores, scratch.row_support, draws[row])
            normalise(scratch.row_scores, out.proba[row])
    for t in range(block.n_rows):
        out.windows[block.row + t] = rule.sizes[scratch.level[t]]
        for h in range(n):
            out.estimates[block.row + t, h] = scratch.estimates[h, t]
    if history.table.shape[0] > n_pairs:
        for t in range(block.n_rows):
            for h in range(n):
                out.votes[block.row + t, h] = scratch.sums[n_pairs + h, t]


@jit
def write_two(draws: Floats, block: Block, scratch: Scratch, out: Outputs) -> None:
    """Labels and probabilities of two classes: `pick_class` and `normalise`, written out."""
    for t in range(block.n_rows):
        row = block.row + t
        down, up = scratch.scores[0, t], scratch.scores[1, t]
        against, favour = scratch.support[0, t], scratch.support[1, t]
        total = down + up
        out.proba[row, 0] = down / total
        out.proba[row, 1] = up / total
        if favour == 0 or against == 0:
            label = 1 if favour > 0 else (0 if against > 0 else -1)
        elif down >= up * TIE and up >= down * TIE:
            label = -1 if draws[row] < 0.0 else int(draws[row] * 2)
        else:
            label = 1 if up > down else 0
        out.labels[row] = label


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
