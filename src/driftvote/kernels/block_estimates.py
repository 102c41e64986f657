"""Accuracies of all labelers at all rows of a block: Algorithm 1, lines 8 to 12, with loops that run along time."""

from __future__ import annotations

import numpy as np

from driftvote.kernels._jit import jit
from driftvote.kernels.accuracies import accuracy_of, pair_index, skill
from driftvote.kernels.layout import Floats, History, Ints, Rule, Scratch, Sums
from driftvote.kernels.levels import int64_of


@jit
def find_strongest(sums: Sums, places: Ints, lines: Ints, without: int, largest: int, best: Sums, chosen: Sums) -> None:
    """The first pair with the largest |sum| at every row, leaving one labeler out; into `chosen`.

    No sum is larger than `largest`. Where a sum and the number of its pair fit into 32 bits together, the strongest
    pair is a maximum; `lines` is room for the numbers of the pairs.
    """
    n_pairs, count, mask = lines.shape[0], 0, 1
    for line in range(n_pairs):
        if places[line, 0] != without and places[line, 1] != without:
            lines[count] = line
            count += 1
    while mask < n_pairs:
        mask *= 2
    if (largest + 1) * mask < 2**31:
        best[:] = 0
        for place in range(0, count - 1, 2):
            raise_keys(sums, lines[place], lines[place + 1], mask, best)
        raise_keys(sums, lines[count - 1], lines[count - 1], mask, best)
        # Places of a block that hold no row may hold any sums; they too must name a pair that exists.
        last = np.int32(n_pairs - 1)
        for t in range(best.shape[0]):
            chosen[t] = min(last, np.int32(np.int32(mask - 1) - np.int32(best[t] & np.int32(mask - 1))))
        return
    best[:] = -1
    for place in range(count):
        compare_pair(sums, lines[place], best, chosen)


@jit
def raise_keys(sums: Sums, one: int, other: int, factor: int, best: Sums) -> None:
    """The largest of |sum| times `factor` (a power of two) and, below that, of the smallest numbers of pairs so far."""
    i, j, k, last = np.uint64(one), np.uint64(other), np.int32(factor), np.int32(factor - 1)
    first, second = np.int32(last - np.int32(one)), np.int32(last - np.int32(other))
    for t in range(np.uint64(best.shape[0])):
        left = np.int32(np.int32(np.int32(abs(sums[i, t])) * k) | first)
        right = np.int32(np.int32(np.int32(abs(sums[j, t])) * k) | second)
        best[t] = max(best[t], max(left, right))


@jit
def compare_pair(sums: Sums, line: int, best: Sums, chosen: Sums) -> None:
    """Note where a pair is stronger than all before it."""
    here, this = np.uint64(line), np.int32(line)
    for t in range(np.uint64(best.shape[0])):
        size = np.int32(abs(sums[here, t]))
        better = size > best[t]
        best[t] = size if better else best[t]
        chosen[t] = this if better else chosen[t]


@jit
def skills(sums: Sums, left: int, right: int, across: int, scale: Floats, out: Floats, labeler: int) -> None:
    """Skill of a labeler at every row, from the sums of three pairs."""
    h, i, j, k = np.uint64(labeler), np.uint64(left), np.uint64(right), np.uint64(across)
    for t in range(np.uint64(scale.shape[0])):
        out[h, t] = skill(sums[i, t], sums[j, t], sums[k, t], scale[t])


@jit
def pick_sums(h: int, n: int, chosen: Sums, places: Ints, sums: Sums, picked: Sums) -> None:
    """The sums behind the skill of labeler h, where each row has a strongest pair of its own."""
    for t in range(chosen.shape[0]):
        line = chosen[t]
        picked[0, t] = sums[pair_index(places[line, 0], h, n), t]
        picked[1, t] = sums[pair_index(places[line, 1], h, n), t]
        picked[2, t] = sums[line, t]


@jit
def halve_skills(out: Floats) -> None:
    """`accuracy_of` for two classes where nobody abstains, written out."""
    for t in range(out.shape[0]):
        out[t] = min(1.0, (1.0 + out[t]) * 0.5)


@jit
def skills_of(h: int, chosen: Sums, places: Ints, scratch: Scratch) -> None:
    """Skill of labeler h at every row, each from the pair that was chosen for it."""
    n = scratch.estimates.shape[0]
    line = chosen[0]
    if (chosen == line).all():
        left, right = pair_index(places[line, 0], h, n), pair_index(places[line, 1], h, n)
        skills(scratch.sums, left, right, line, scratch.scale, scratch.estimates, h)
    else:
        pick_sums(h, n, chosen, places, scratch.sums, scratch.picked)
        skills(scratch.picked, 0, 1, 2, scratch.scale, scratch.estimates, h)


@jit
def estimate_block(history: History, rule: Rule, scratch: Scratch) -> None:
    """Accuracy of every labeler at every row of the block.

    The strongest pair overall is the strongest without h, unless h belongs to it.
    """
    n, n_rows = scratch.estimates.shape
    n_pairs = n * (n - 1) // 2
    places, sums, top, chosen = history.places, scratch.sums, scratch.top, scratch.chosen
    for t in range(n_rows):
        scratch.scale[t] = float(rule.sizes[scratch.level[t]]) * (rule.n_classes - 1)
    lines, largest = np.empty(n_pairs, np.int64), rule.sizes[scratch.level.max()] * (rule.n_classes - 1)
    find_strongest(sums, places, lines, -1, largest, scratch.best, top)
    concerned = np.zeros(n, np.bool_)
    for t in range(n_rows):
        concerned[places[top[t], 0]] = True
        concerned[places[top[t], 1]] = True
    for h in range(n):
        if concerned[h]:
            find_strongest(sums, places, lines, h, largest, scratch.best, chosen)
            skills_of(h, chosen, places, scratch)
        else:
            skills_of(h, top, places, scratch)
        out = scratch.estimates[h]
        if rule.n_classes == 2 and not history.masked:
            halve_skills(out)
            continue
        for t in range(n_rows):
            window = rule.sizes[scratch.level[t]]
            votes = int64_of(sums[n_pairs + h, t]) if history.masked else window
            out[t] = accuracy_of(out[t], votes, window, rule.n_classes, rule.diluted)
