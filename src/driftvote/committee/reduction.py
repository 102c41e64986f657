"""The program's columns and rows, reduced by symmetry.

A column is a pattern: who is right, who is wrong, who abstains. Labelers that the program cannot tell apart form a
block; averaging a solution over their exchanges changes neither constraints nor objective, so only *how many* of a
block are right or wrong matters. A panel of blocks of one is the program as it is written in the paper.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from driftvote.committee.known import Known
from driftvote.errors import SettingError
from driftvote.kernels.committees import (
    ACCURACY,
    ACCURACY_HIGH,
    ACCURACY_LOW,
    AGREEMENT,
    AGREEMENT_HIGH,
    AGREEMENT_LOW,
    COVERAGE,
    fill_ends,
)
from driftvote.kernels.layout import Floats, Ints

MOST_COLUMNS = 2**16
"""Patterns up to here are listed: 16 labelers that always vote, or 10 that may abstain."""

TIES = {"half": 0.5, "error": 1.0, "right": 0.0}
"""What a tied row counts: a coin toss, an error, or (the paper's formula, for even sets) nothing."""


@dataclass(frozen=True)
class Layout:
    """Columns and rows for blocks of these sizes, before anybody's numbers are filled in."""

    sizes: tuple[int, ...]
    right: Ints  # (columns, blocks): how many of the block are right
    wrong: Ints
    kinds: Ints  # (rows,)
    first: Ints  # (rows,): block
    second: Ints  # (rows,): the other block of a pair; the same one for a pair within a block
    features: Floats  # (rows, columns)
    minus: Floats  # (rows, columns): taken away `ratio` times, for accuracies of those who abstain

    def filled(self, ratio: Floats) -> Floats:
        """The features of the rows, given the accuracies that the ratios stand for."""
        return np.ascontiguousarray(self.features - ratio[:, None] * self.minus) if ratio.any() else self.features


def n_columns(sizes: tuple[int, ...], abstaining: tuple[bool, ...]) -> int:
    """How many patterns there are, counted without listing them."""
    total = 1
    for size, may in zip(sizes, abstaining, strict=True):
        total *= (size + 1) * (size + 2) // 2 if may else size + 1
    return total


@lru_cache(maxsize=64)
def layout(sizes: tuple[int, ...], abstaining: tuple[bool, ...], n_classes: int, capped: bool = True) -> Layout:
    """Columns and rows for blocks of these sizes; `abstaining` says which may abstain.

    Without `capped` nobody's accuracy has an upper bound, and those who abstain need no row for it.
    """
    count = n_columns(sizes, abstaining)
    if count > MOST_COLUMNS:
        raise SettingError(
            f"{sum(sizes)} labelers have {count:,} patterns of right and wrong, more than the {MOST_COLUMNS:,} that can"
            " be listed; use find_committee, which looks at committees of up to 9"
        )
    states = [
        [(r, w) for r in range(size + 1) for w in range(size - r + 1) if may or r + w == size]
        for size, may in zip(sizes, abstaining, strict=True)
    ]
    table = np.array(list(itertools.product(*states)), np.int64).reshape(count, len(sizes), 2)
    right, wrong = np.ascontiguousarray(table[:, :, 0]), np.ascontiguousarray(table[:, :, 1])
    rows = _rows(sizes, abstaining, n_classes, capped)
    features = np.zeros((len(rows), count))
    minus = np.zeros((len(rows), count))
    for place, (kind, b, c) in enumerate(rows):
        if kind < AGREEMENT:
            rate = right[:, b] / sizes[b]
            votes = (right[:, b] + wrong[:, b]) / sizes[b]
            features[place] = votes if kind == COVERAGE else rate
            minus[place] = votes if kind in (ACCURACY_LOW, ACCURACY_HIGH) else 0.0
        else:
            features[place] = _pair_feature(kind, right, wrong, sizes, (b, c), n_classes)
    kinds, first, second = (np.array(part, np.int64) for part in zip(*rows, strict=True))
    for array in (right, wrong, features, minus):
        array.flags.writeable = False  # kept for the next call
    return Layout(sizes, right, wrong, kinds, first, second, features, minus)


def _rows(
    sizes: tuple[int, ...], abstaining: tuple[bool, ...], n_classes: int, capped: bool
) -> list[tuple[int, int, int]]:
    rows = []
    for b, may in enumerate(abstaining):
        kinds = [ACCURACY_LOW, *([ACCURACY_HIGH] if capped else []), COVERAGE] if may else [ACCURACY]
        rows += [(kind, b, b) for kind in kinds]
    pair_kinds = [AGREEMENT] if n_classes == 2 else [AGREEMENT_LOW, AGREEMENT_HIGH]
    for b in range(len(sizes)):
        for c in range(b, len(sizes)):
            if b != c or sizes[b] > 1:
                rows += [(kind, b, c) for kind in pair_kinds]
    return rows


def _pair_feature(
    kind: int, right: Ints, wrong: Ints, sizes: tuple[int, ...], pair: tuple[int, int], n_classes: int
) -> Floats:
    """A pair's share of the agreement in each pattern, averaged over the pairs of two blocks.

    Two that are right agree; one right and one wrong disagree. Two that are wrong agree when there are two
    classes; with more they may or may not, so the upper end counts them as different and the lower end as equal.
    """
    b, c = pair

    def both(left: Any, other: Any) -> Floats:
        if b == c:  # ordered pairs of different labelers of one block; `left` and `other` are then the same counts
            return left[:, b] * (left[:, b] - 1) / (sizes[b] * (sizes[b] - 1))
        return left[:, b] * other[:, c] / (sizes[b] * sizes[c])

    votes = both(right + wrong, right + wrong)
    same = both(right, right) + (0.0 if kind == AGREEMENT_HIGH else both(wrong, wrong))
    return (n_classes * same - votes) / (n_classes - 1)


def blocks_of(facts: Known, weights: Floats) -> list[list[int]]:
    """Labelers that can be exchanged without changing the program, block by block."""
    blocks: list[list[int]] = []
    for i in range(len(facts)):
        home = next((block for block in blocks if _exchangeable(facts, weights, block[0], i)), None)
        if home is None:
            blocks.append([i])
        else:
            home.append(i)
    return blocks


def _exchangeable(facts: Known, weights: Floats, i: int, j: int) -> bool:
    ranges = (facts.accuracy_low, facts.accuracy_high, facts.coverage_low, facts.coverage_high, weights)
    if any(values[i] != values[j] for values in ranges):
        return False
    others = [k for k in range(len(facts)) if k not in (i, j)]
    tables = (facts.agreement_low, facts.agreement_high)
    return all(np.array_equal(table[i, others], table[j, others]) for table in tables)


def row_ends(facts: Known, kinds: Ints, i: Ints, j: Ints) -> tuple[Floats, Floats, Floats]:
    """Low end, high end and ratio of rows about labelers i (and j)."""
    low, high, ratio = np.empty(len(kinds)), np.empty(len(kinds)), np.empty(len(kinds))
    fill_ends(facts.facts(), kinds, i, j, low, high, ratio)
    return low, high, ratio


def costs(shape: Layout, weights: Floats, ties: str) -> Floats:
    """What each pattern costs: 1 where the weighted vote is wrong, the price of a tie where it is tied.

    With more than two classes wrong votes are taken to fall on one class: the worst that can happen.
    """
    if ties not in TIES:
        raise SettingError(f"ties must be 'half', 'error' or 'right', not {ties!r}")
    margin = (shape.right - shape.wrong) @ weights
    near = 1e-12 * max(1.0, float(np.abs(weights).sum()))
    return np.where(margin < -near, 1.0, np.where(margin <= near, TIES[ties], 0.0))
