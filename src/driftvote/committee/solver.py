"""The linear program through SciPy's HiGHS: all columns at once, or only those that can matter.

Maximise E[cost] over distributions of the columns with low <= E[features] <= high. Large programs start from a few
columns and add those that the current multipliers leave the most cost to, until none is left: the same optimum,
proved by the same weak duality (`proved`), with hundreds of columns in place of tens of thousands.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from driftvote.errors import MissingExtraError
from driftvote.kernels.layout import Floats, Ints

DIRECT = 1024
"""Up to so many columns HiGHS gets them all."""
_BATCH = 128  # columns added in a round
_CLOSE = 1e-9  # a proof within this of the value ends the rounds


@dataclass(frozen=True)
class Solved:
    """Value and masses of the worst distribution; multipliers of the rows, and the bound that they prove."""

    value: float
    columns: Ints
    masses: Floats
    duals: Floats
    bound: float
    rounds: int


@dataclass(frozen=True)
class Contradiction:
    """No distribution meets the constraints: by how much all rows must give way, and which ones are in conflict."""

    needed: float
    rows: Ints


def proved(features: Floats, cost: Floats, low: Floats, high: Floats, duals: Floats) -> float:
    """The bound that multipliers prove, by arithmetic alone: max(cost - y F) + sum of the larger of y low, y high."""
    return float((cost - duals @ features).max() + np.maximum(duals * low, duals * high).sum())


def maximise(features: Floats, cost: Floats, low: Floats, high: Floats) -> Solved | Contradiction:
    """Solve; the bound is proved over every column, whatever the solver's tolerances."""
    count = features.shape[1]
    if count <= DIRECT:
        pool: Ints = np.arange(count)
    else:
        start = _first_columns(features, cost)
        found = _feasible_columns(features, low, high, start)
        if isinstance(found, Contradiction):
            return found
        pool = found
    for rounds in range(1, 10_000):  # noqa: B007 (told below)
        masses, duals = _restricted(features[:, pool], cost[pool], low, high)
        if masses is None:
            return _conflict(features[:, pool], low, high)
        value = float(cost[pool] @ masses)
        bound = proved(features, cost, low, high, duals)
        left = cost - duals @ features
        fresh = _most(left, pool, left[pool].max() + 1e-10)
        if bound - value <= _CLOSE or not len(fresh):
            break
        pool = np.concatenate([pool, fresh])
    used = masses > 0
    return Solved(value, pool[used], masses[used], duals, bound, rounds)


def _most(left: Floats, pool: Ints, above: float) -> Ints:
    """The columns outside the pool that the multipliers leave the most to."""
    outside = left.copy()
    outside[pool] = -np.inf
    best = np.argpartition(outside, -_BATCH)[-_BATCH:] if len(outside) > _BATCH else np.arange(len(outside))
    return np.sort(best[outside[best] > above])


def _first_columns(features: Floats, cost: Floats) -> Ints:
    """Columns to begin with: extremes of every row, dear ones and cheap ones."""
    corners = {int(row.argmax()) for row in features} | {int(row.argmin()) for row in features}
    return np.array(sorted(corners | {0, len(cost) - 1, int(cost.argmax()), int(cost.argmin())}), np.int64)


def _feasible_columns(features: Floats, low: Floats, high: Floats, pool: Ints) -> Ints | Contradiction:
    """Add columns until some distribution on them meets every row."""
    while True:
        excess, duals, _ = _least_excess(features[:, pool], low, high)
        if excess <= 1e-11:
            return pool
        left = -(duals @ features)
        fresh = _most(left, pool, left[pool].max() + 1e-12)
        if not len(fresh):
            return _conflict(features[:, pool], low, high)
        pool = np.concatenate([pool, fresh])


def _conflict(features: Floats, low: Floats, high: Floats) -> Contradiction:
    excess, duals, _ = _least_excess(features, low, high)
    return Contradiction(excess, np.flatnonzero(np.abs(duals) > 1e-7))


def _call(cost: Floats, upper: Floats, ends: Floats, equal: Floats, values: Floats) -> Any:
    """HiGHS: minimise cost x with upper x <= ends, equal x = values, x >= 0."""
    try:
        from scipy.optimize import linprog
    except ImportError:
        raise MissingExtraError(
            "the worst-case program needs SciPy's solver; install it with pip install 'driftvote[lp]'"
        ) from None
    program: dict[str, Any] = {"A_eq": equal, "b_eq": values}
    if len(ends):
        program |= {"A_ub": upper, "b_ub": ends}
    tight = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    solved = linprog(cost, method="highs", options=tight, **program)
    if solved.status not in (0, 2):  # a solver that gives up at the tight tolerances still has its usual ones
        solved = linprog(cost, method="highs", **program)
    return solved


def _restricted(features: Floats, cost: Floats, low: Floats, high: Floats) -> tuple[Any, Floats]:
    """Masses and multipliers of the program on some columns; masses are None when nothing meets the rows."""
    same = low == high
    equal = np.vstack([np.ones(features.shape[1]), features[same]])
    upper, ends = np.vstack([features[~same], -features[~same]]), np.concatenate([high[~same], -low[~same]])
    solved = _call(-cost, upper, ends, equal, np.concatenate([[1.0], low[same]]))
    duals = np.zeros(len(low))
    if solved.x is None:
        return None, duals
    marginals = -solved.ineqlin.marginals
    half = len(marginals) // 2
    duals[~same] = marginals[:half] - marginals[half:]
    duals[same] = -solved.eqlin.marginals[1:]
    masses = np.maximum(solved.x, 0.0)
    return masses / masses.sum(), duals


def _least_excess(features: Floats, low: Floats, high: Floats) -> tuple[float, Floats, Floats]:
    """The smallest amount by which all rows must give way together, with multipliers and masses."""
    n_rows, count = features.shape
    give = np.full((2 * n_rows, 1), -1.0)
    upper = np.hstack([np.vstack([features, -features]), give])
    cost = np.concatenate([np.zeros(count), [1.0]])
    equal = np.concatenate([np.ones(count), [0.0]])[None, :]
    solved = _call(cost, upper, np.concatenate([high, -low]), equal, np.ones(1))
    marginals = solved.ineqlin.marginals
    return float(solved.x[-1]), -(marginals[:n_rows] - marginals[n_rows:]), solved.x[:-1]
