"""Accuracies of all labelers at all rows of a block: Algorithm 1, lines 8 to 12, with loops that run along time."""

from __future__ import annotations

from typing import Any

import numpy as np

from driftvote.kernels._jit import jit
from driftvote.kernels.accuracies import accuracy_of, pair_index, skill
from driftvote.kernels.layout import Floats, History, Ints, Rule, Scratch, Sums
from driftvote.kernels.levels import int64_of


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
def pick_sums(h: int, n: int, first: int, chosen: Sums, places: Ints, sums: Sums, picked: Sums) -> None:
    """The sums behind the skill of labeler h, where each row has a strongest pair of its own."""
    for t in range(chosen.shape[0]):
        line = chosen[t]
        picked[0, t] = sums[pair_index(places[line, 0], h, n), first + t]
        picked[1, t] = sums[pair_index(places[line, 1], h, n), first + t]
        picked[2, t] = sums[line, first + t]


@jit
def estimate_run(first: int, last: int, pair: int, history: History, scratch: Scratch) -> None:
    """Skills over rows that share their strongest pair."""
    n = scratch.estimates.shape[0]
    n_pairs = n * (n - 1) // 2
    places, sums, picked = history.places, scratch.sums, scratch.picked
    i, j = places[pair, 0], places[pair, 1]
    scale = scratch.scale[first:last]
    for h in range(n):
        out = scratch.estimates[h, first:last]
        if h != i and h != j:
            left, right = pair_index(i, h, n), pair_index(j, h, n)
            skills(sums[left, first:last], sums[right, first:last], sums[pair, first:last], scale, out)
            continue
        find_strongest(sums, places, n_pairs, h, (first, last), scratch)
        chosen = scratch.chosen[first:last]
        line = chosen[0]
        if (chosen == line).all():
            left, right = pair_index(places[line, 0], h, n), pair_index(places[line, 1], h, n)
            skills(sums[left, first:last], sums[right, first:last], sums[line, first:last], scale, out)
            continue
        pick_sums(h, n, first, chosen, places, sums, picked)
        skills(picked[0, : last - first], picked[1, : last - first], picked[2, : last - first], scale, out)


@jit
def halve_skills(out: Floats) -> None:
    """`accuracy_of` for two classes where nobody abstains, written out."""
    for t in range(out.shape[0]):
        out[t] = min(1.0, (1.0 + out[t]) * 0.5)


@jit
def estimate_block(history: History, rule: Rule, scratch: Scratch) -> None:
    """Accuracy of every labeler at every row of the block."""
    n, n_rows = scratch.estimates.shape
    n_pairs = n * (n - 1) // 2
    for t in range(n_rows):
        scratch.scale[t] = float(rule.sizes[scratch.level[t]]) * (rule.n_classes - 1)
    find_strongest(scratch.sums, history.places, n_pairs, -1, (0, n_rows), scratch)
    scratch.top[:] = scratch.chosen
    first = 0
    while first < n_rows:
        pair = scratch.top[first]
        last = first + 1
        while last < n_rows and scratch.top[last] == pair:
            last += 1
        estimate_run(first, last, pair, history, scratch)
        first = last
    for h in range(n):
        out = scratch.estimates[h]
        if rule.n_classes == 2 and not history.masked:
            halve_skills(out)
            continue
        for t in range(n_rows):
            window = rule.sizes[scratch.level[t]]
            votes = int64_of(scratch.sums[n_pairs + h, t]) if history.masked else window
            out[t] = accuracy_of(out[t], votes, window, rule.n_classes, rule.diluted)
