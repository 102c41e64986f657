"""Bounds of many committees at once: small worst-case programs, and proofs carried to new agreements."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from driftvote.kernels._jit import jit
from driftvote.kernels.layout import Floats, Ints
from driftvote.kernels.simplex import INFEASIBLE, new_tableau, unexplained, weak_bound, worst_case

# Kinds of rows. Who always votes and two classes need one row with two ends, others one for each end.
ACCURACY, ACCURACY_LOW, ACCURACY_HIGH, COVERAGE, AGREEMENT, AGREEMENT_LOW, AGREEMENT_HIGH = 0, 1, 2, 3, 4, 5, 6

NO_BOUND = 2.0
"""Stands where accuracies and agreements contradict each other: nothing is certified, and anything else is better."""


class Facts(NamedTuple):
    """Ranges of what is known; an entry for each labeler, or for each pair."""

    accuracy_low: Floats
    accuracy_high: Floats
    agreement_low: Floats
    agreement_high: Floats
    coverage_low: Floats
    coverage_high: Floats


class Shape(NamedTuple):
    """Columns and rows of the programs of all committees of one shape."""

    features: Floats  # (rows, columns)
    minus: Floats  # (rows, columns): taken away `ratio` times
    cost: Floats  # (columns,)
    kinds: Ints  # (rows,)
    first: Ints  # (rows,): place in the committee
    second: Ints


class Proofs(NamedTuple):
    """Committees of one shape, and what proves the bound of each."""

    places: Ints  # (committees, size): labelers
    bounds: Floats  # (committees,)
    left: Floats  # (committees,): the cost that the multipliers leave to the worst pattern
    duals: Floats  # (committees, rows): the multipliers


@jit
def fill_ends(facts: Facts, kinds: Ints, i: Ints, j: Ints, low: Floats, high: Floats, ratio: Floats) -> None:
    """Ends of the rows about labelers i (and j), and how often the votes are taken away from the right ones."""
    for r in range(kinds.shape[0]):
        kind, a, b = kinds[r], i[r], j[r]
        low[r], high[r], ratio[r] = -1.0, 1.0, 0.0
        if kind == ACCURACY:
            low[r], high[r] = facts.accuracy_low[a], facts.accuracy_high[a]
        elif kind == ACCURACY_LOW:  # right - low x votes is never negative
            low[r], ratio[r] = 0.0, facts.accuracy_low[a]
        elif kind == ACCURACY_HIGH:
            high[r], ratio[r] = 0.0, facts.accuracy_high[a]
        elif kind == COVERAGE:
            low[r], high[r] = facts.coverage_low[a], facts.coverage_high[a]
        else:
            if kind != AGREEMENT_HIGH:
                low[r] = facts.agreement_low[a, b]
            if kind != AGREEMENT_LOW:
                high[r] = facts.agreement_high[a, b]


@jit
def _places(committee: Ints, shape: Shape, i: Ints, j: Ints) -> None:
    for r in range(shape.kinds.shape[0]):
        i[r] = committee[shape.first[r]]
        j[r] = committee[shape.second[r]]


@jit
def solve_all(facts: Facts, shape: Shape, proofs: Proofs) -> None:
    """The bound of every committee, from its own program."""
    n_rows, n_columns = shape.features.shape
    tab = new_tableau(n_rows, n_columns)
    low, high, ratio = np.empty(n_rows), np.empty(n_rows), np.empty(n_rows)
    i, j = np.empty(n_rows, dtype=np.int64), np.empty(n_rows, dtype=np.int64)
    features = shape.features.copy()
    for m in range(proofs.places.shape[0]):
        _places(proofs.places[m], shape, i, j)
        fill_ends(facts, shape.kinds, i, j, low, high, ratio)
        for r in range(n_rows):
            if shape.kinds[r] == ACCURACY_LOW or shape.kinds[r] == ACCURACY_HIGH:
                features[r] = shape.features[r] - ratio[r] * shape.minus[r]
        ended = worst_case(features, shape.cost, low, high, tab, proofs.duals[m])
        proofs.left[m] = unexplained(features, shape.cost, proofs.duals[m])
        proofs.bounds[m] = NO_BOUND
        if ended != INFEASIBLE:
            proofs.bounds[m] = min(1.0, max(0.0, weak_bound(proofs.left[m], low, high, proofs.duals[m])))


class Carried(NamedTuple):
    """The proofs of many committees, of any shapes, as the few multipliers that are not zero.

    Committees come by size, then in the order of their places; contradictory ones are left out.
    """

    start: Ints  # (committees + 1,): where the multipliers of each begin
    kinds: Ints  # of the rows that they belong to
    first: Ints  # labelers of those rows
    second: Ints
    duals: Floats
    left: Floats  # (committees,)
    places: Ints  # (committees, largest size): members, then -1


@jit
def _end(facts: Facts, kind: int, i: int, j: int, upper: bool) -> float:
    """One end of a row: what `fill_ends` puts there."""
    if kind == ACCURACY:
        return facts.accuracy_high[i] if upper else facts.accuracy_low[i]
    if kind == COVERAGE:
        return facts.coverage_high[i] if upper else facts.coverage_low[i]
    if kind == AGREEMENT or (kind == AGREEMENT_HIGH and upper) or (kind == AGREEMENT_LOW and not upper):
        return facts.agreement_high[i, j] if upper else facts.agreement_low[i, j]
    if (kind == ACCURACY_LOW and not upper) or (kind == ACCURACY_HIGH and upper):
        return 0.0
    return 1.0 if upper else -1.0


@jit
def carry(facts: Facts, proofs: Carried, bounds: Floats) -> int:
    """The bounds that the same multipliers prove for other facts, and the best committee by them.

    Among bounds that are equal up to 1e-9: fewer members, then those that agree most with the panel, then the first.
    """
    least = np.inf
    for m in range(bounds.shape[0]):
        total = proofs.left[m]
        for k in range(proofs.start[m], proofs.start[m + 1]):
            dual = proofs.duals[k]
            total += dual * _end(facts, proofs.kinds[k], proofs.first[k], proofs.second[k], dual > 0.0)
        bounds[m] = min(1.0, max(0.0, total))
        least = min(least, bounds[m])
    standing = _standing(facts)
    found, fewest, best = -1, 0, -np.inf
    for m in range(bounds.shape[0]):
        if bounds[m] <= least + 1e-9:
            size, total = 0, 0.0
            for place in proofs.places[m]:
                if place >= 0:
                    size += 1
                    total += standing[place]
            # Sums in another order differ in their last bits: those are no better standing.
            if found < 0 or (size <= fewest and total > best + 1e-9):
                found, fewest, best = m, size, total
    return found


@jit
def _standing(facts: Facts) -> Floats:
    """Each labeler's agreement with the middle one of the others: a copy that always agrees does not lift it."""
    n = facts.agreement_low.shape[0]
    out = np.empty(n)
    for i in range(n):
        around = facts.agreement_low[i] + facts.agreement_high[i]
        around[i] = np.inf
        around.sort()
        out[i] = around[max(0, n - 2) // 2]
    return out


@jit
def fill_agreements(sums: Ints, scale: float, allowance: float, facts: Facts) -> None:
    """Ranges of the agreements from pair sums over a window (`scale`: window times K - 1)."""
    n = facts.agreement_low.shape[0]
    pair = 0
    for i in range(n):
        for j in range(i + 1, n):
            agreement = sums[pair] / scale
            low, high = max(-1.0, agreement - allowance), min(1.0, agreement + allowance)
            facts.agreement_low[i, j] = facts.agreement_low[j, i] = low
            facts.agreement_high[i, j] = facts.agreement_high[j, i] = high
            pair += 1


@jit
def fill_coverages(votes: Ints, window: int, stray: float, facts: Facts) -> bool:
    """Ranges of the coverages; who never abstained in the window is taken to vote always. Whether anybody did."""
    abstained = False
    for i in range(votes.shape[0]):
        facts.coverage_low[i] = facts.coverage_high[i] = 1.0
        if votes[i] < window:
            abstained = True
            coverage = votes[i] / window
            facts.coverage_low[i] = max(0.0, coverage - stray)
            facts.coverage_high[i] = min(1.0, coverage + stray)
    return abstained
