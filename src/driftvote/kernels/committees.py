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
            if ratio[r] != 0.0:
                features[r] = shape.features[r] - ratio[r] * shape.minus[r]
        ended = worst_case(features, shape.cost, low, high, tab, proofs.duals[m])
        proofs.left[m] = unexplained(features, shape.cost, proofs.duals[m])
        proofs.bounds[m] = NO_BOUND
        if ended != INFEASIBLE:
            proofs.bounds[m] = min(1.0, max(0.0, weak_bound(proofs.left[m], low, high, proofs.duals[m])))


@jit
def carry_all(facts: Facts, shape: Shape, proofs: Proofs) -> None:
    """The bounds that the same multipliers prove for new agreements; a contradiction stays one."""
    n_rows = shape.kinds.shape[0]
    low, high, ratio = np.empty(n_rows), np.empty(n_rows), np.empty(n_rows)
    i, j = np.empty(n_rows, dtype=np.int64), np.empty(n_rows, dtype=np.int64)
    for m in range(proofs.places.shape[0]):
        if proofs.bounds[m] < NO_BOUND:
            _places(proofs.places[m], shape, i, j)
            fill_ends(facts, shape.kinds, i, j, low, high, ratio)
            proofs.bounds[m] = min(1.0, max(0.0, weak_bound(proofs.left[m], low, high, proofs.duals[m])))


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
