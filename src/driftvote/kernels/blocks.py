"""Blocks of time: the same estimates and labels as row by row, with loops that run along time.

Blocks are independent of each other given the history: they vectorise, and they can be shared among threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from driftvote.kernels._jit import jit
from driftvote.kernels.accuracies import accuracy_of, pair_index, skill
from driftvote.kernels.labels import TIE, normalise, pick_class
from driftvote.kernels.layout import Block, Codes, Floats, History, Ints, Outputs, Rule, Scratch, Stretch, Sums
from driftvote.kernels.levels import choose_levels, int64_of, line_now, line_then
from driftvote.kernels.weights import odds_of

# Up to here a masked product for every class is faster than a branch on the vote.
FEW_CLASSES = 4


# Loops count from 0 over slices: an index that might be negative costs a test, and the loop its vectors.


@jit
def subtract(now: Sums, then: Sums, out: Sums) -> None:
    """What lies between two running sums."""
    for t in range(out.shape[0]):
        out[t] = np.int32(now[t] - then[t])


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
            subtract(now[first:last], then[first:last], scratch.sums[line, first:last])
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
def skills(lefts: Sums, rights: Sums, across: Sums, scale: Floats, out: Floats) -> None:
    """Skill at every row, from the sums of three pairs."""
    for t in range(out.shape[0]):
        out[t] = skill(lefts[t], rights[t], across[t], scale[t])


@jit
def estimate_run(first: int, last: int, pair: int, history: History, scratch: Scratch) -> None:
    """Skills over rows that share their strongest pair."""
    n = scratch.estimates.shape[0]
    n_pairs = n * (n - 1) // 2
    places, sums = history.places, scratch.sums
    i, j = places[pair, 0], places[pair, 1]
    scale = scratch.scale[first:last]
    for h in range(n):
        out = scratch.estimates[h, first:last]
        if h != i and h != j:
            left, right = pair_index(i, h, n), pair_index(j, h, n)
            skills(sums[left, first:last], sums[right, first:last], sums[pair, first:last], scale, out)
            continue
        find_strongest(sums, places, n_pairs, h, (first, last), scratch)
        for t in range(last - first):
            line = scratch.chosen[first + t]
            a, b = pair_index(places[line, 0], h, n), pair_index(places[line, 1], h, n)
            out[t] = skill(sums[a, first + t], sums[b, first + t], sums[line, first + t], scale[t])


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
        estimate_run(first, last, pair, history, scratch)
        first = last
    counted = history.table.shape[0] > n_pairs
    for h in range(n):
        out = scratch.estimates[h]
        for t in range(n_rows):
            window = rule.sizes[scratch.level[t]]
            votes = int64_of(scratch.sums[n_pairs + h, t]) if counted else window
            out[t] = accuracy_of(out[t], votes, window, rule.n_classes, rule.diluted)


@jit
def fill_odds(accuracies: Floats, rule: Rule, out: Floats) -> None:
    """Odds of one labeler at every row."""
    for t in range(out.shape[0]):
        out[t] = odds_of(accuracies[t], rule)


@jit
def multiply_votes(codes: Codes, c: int, odds: Floats, scores: Floats) -> None:
    """The odds of a labeler into the product of class c, where it voted for it."""
    for t in range(scores.shape[0]):
        scores[t] *= odds[t] if codes[t] == c else 1.0


@jit
def count_votes(codes: Codes, c: int, support: Sums) -> None:
    """One more vote for class c, where the labeler voted for it."""
    for t in range(support.shape[0]):
        support[t] = np.int32(support[t] + (np.int32(1) if codes[t] == c else np.int32(0)))


@jit
def vote_block(stretch: Stretch, rule: Rule, block: Block, scratch: Scratch) -> None:
    """Products of odds and numbers of votes of each class, labelers in order."""
    n_rows = block.n_rows
    scratch.scores[:, :n_rows] = 1.0
    scratch.support[:, :n_rows] = 0
    odds = scratch.odds[:n_rows]
    for h in range(scratch.estimates.shape[0]):
        codes = stretch.counted[h, block.offset : block.offset + n_rows]
        fill_odds(scratch.estimates[h, :n_rows], rule, odds)
        if rule.n_classes > FEW_CLASSES:
            for t in range(n_rows):
                if codes[t] >= 0:
                    scratch.scores[codes[t], t] *= odds[t]
                    scratch.support[codes[t], t] += 1
            continue
        for c in range(rule.n_classes):
            multiply_votes(codes, c, odds, scratch.scores[c, :n_rows])
            count_votes(codes, c, scratch.support[c, :n_rows])


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
    windows = out.windows[block.row : block.row + block.n_rows]
    for t in range(block.n_rows):
        windows[t] = rule.sizes[scratch.level[t]]
    estimates = out.estimates[block.row : block.row + block.n_rows]
    for t in range(block.n_rows):
        for h in range(n):
            estimates[t, h] = scratch.estimates[h, t]
    if history.table.shape[0] > n_pairs:
        votes = out.votes[block.row : block.row + block.n_rows]
        for t in range(block.n_rows):
            for h in range(n):
                votes[t, h] = scratch.sums[n_pairs + h, t]


@jit
def write_two(draws: Floats, block: Block, scratch: Scratch, out: Outputs) -> None:
    """Labels and probabilities of two classes: `pick_class` and `normalise`, written out."""
    labels = out.labels[block.row : block.row + block.n_rows]
    proba = out.proba[block.row : block.row + block.n_rows]
    ties = draws[block.row : block.row + block.n_rows]
    downs, ups = scratch.scores[0, : block.n_rows], scratch.scores[1, : block.n_rows]
    against, favour = scratch.support[0, : block.n_rows], scratch.support[1, : block.n_rows]
    for t in range(block.n_rows):
        down, up = downs[t], ups[t]
        total = down + up
        proba[t, 0] = down / total
        proba[t, 1] = up / total
        label = 1 if up > down else 0
        if down >= up * TIE and up >= down * TIE:
            label = -1 if ties[t] < 0.0 else int(ties[t] * 2)
        if favour[t] == 0 or against[t] == 0:  # only voted classes compete
            label = 1 if favour[t] > 0 else (0 if against[t] > 0 else -1)
        labels[t] = label


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
