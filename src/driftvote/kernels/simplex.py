"""A small linear program, solved in place: the worst distribution of the patterns of a few labelers.

HiGHS needs more than a millisecond a call, as long as thousands of rows take to label; committees of three or
five are programs of 8 to 32 columns, which the dual simplex method settles in microseconds. Any multipliers give a
valid bound (`weak_bound`), so neither rounding nor stopping early can make a certificate wrong, only loose.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from driftvote.kernels._jit import jit
from driftvote.kernels.layout import Bools, Floats, Ints

OPTIMAL, INFEASIBLE, STOPPED = 0, 1, 2
_FEASIBLE = 1e-9  # how far a value may be beyond its bounds
_PIVOT = 1e-9  # entries below this are rounding, not directions
_NUDGE = 1e-10  # costs are moved by this much, so that equal ones never make the method turn in circles


class Tableau(NamedTuple):
    """The basic variables as functions of the others. Variables: patterns 0 .. N-1, then a range for each row."""

    body: Floats  # (rows + 1, N - 1)
    value: Floats  # (rows + 1,): basic variables now
    gain: Floats  # (N - 1,): what the objective gains from each variable that is not basic
    basic: Ints  # (rows + 1,)
    other: Ints  # (N - 1,)
    high: Bools  # (N - 1,): whether it sits at its upper bound


@jit
def new_tableau(n_rows: int, n_columns: int) -> Tableau:
    """Room for a program of this shape."""
    return Tableau(
        np.empty((n_rows + 1, n_columns - 1)),
        np.empty(n_rows + 1),
        np.empty(n_columns - 1),
        np.empty(n_rows + 1, dtype=np.int64),
        np.empty(n_columns - 1, dtype=np.int64),
        np.empty(n_columns - 1, dtype=np.bool_),
    )


@jit
def _begin(features: Floats, cost: Floats, tab: Tableau) -> None:
    """All mass on the most expensive pattern: no other can gain, so only the rows may be violated."""
    n_rows, n_columns = features.shape
    first = 0
    for a in range(1, n_columns):
        if cost[a] > cost[first]:
            first = a
    place = 0
    for a in range(n_columns):
        if a == first:
            continue
        tab.other[place] = a
        tab.high[place] = False
        nudge = _NUDGE * (1.0 + ((a * 40503) % 65536) / 65536.0)
        tab.gain[place] = cost[a] - cost[first] - nudge
        for r in range(n_rows):
            tab.body[r, place] = features[r, a] - features[r, first]
        tab.body[n_rows, place] = -1.0
        place += 1
    for r in range(n_rows):
        tab.value[r] = features[r, first]
        tab.basic[r] = n_columns + r
    tab.value[n_rows] = 1.0
    tab.basic[n_rows] = first


@jit
def _leaving(tab: Tableau, low: Floats, high: Floats, n_columns: int) -> int:
    """The basic variable that is furthest beyond its bounds; -1 when none is."""
    worst, found = _FEASIBLE, -1
    for i in range(tab.basic.shape[0]):
        name = tab.basic[i]
        if name < n_columns:
            excess = -tab.value[i]
        else:
            r = name - n_columns
            excess = max(low[r] - tab.value[i], tab.value[i] - high[r])
        if excess > worst:
            worst, found = excess, i
    return found


@jit
def _entering(tab: Tableau, row: int, sign: float, low: Floats, high: Floats, n_columns: int) -> int:
    """The variable that moves the leaving one by `sign` and loses the least; among equals the largest entry."""
    best, size, found = np.inf, 0.0, -1
    for j in range(tab.other.shape[0]):
        name = tab.other[j]
        if name >= n_columns and high[name - n_columns] - low[name - n_columns] < 1e-15:
            continue
        entry = tab.body[row, j] * sign
        if tab.high[j]:
            entry = -entry
        if entry < _PIVOT:
            continue
        ratio = abs(tab.gain[j]) / entry
        if ratio < best - 1e-12 or (ratio < best + 1e-12 and entry > size):
            best, size, found = min(best, ratio), entry, j
    return found


@jit
def _exchange(tab: Tableau, row: int, column: int, target: float, at_high: bool, moved: float) -> None:
    """Variable `column` becomes basic in place of the one in `row`, which goes to its bound `target`."""
    body = tab.body
    step = (target - tab.value[row]) / body[row, column]
    for i in range(tab.value.shape[0]):
        tab.value[i] += body[i, column] * step
    tab.value[row] = moved + step
    pivot = 1.0 / body[row, column]
    body[row] *= -pivot
    body[row, column] = pivot
    for i in range(body.shape[0]):
        if i != row:
            factor = body[i, column]
            if factor != 0.0:
                body[i, column] = 0.0
                body[i] += factor * body[row]
    factor = tab.gain[column]
    tab.gain[column] = 0.0
    for j in range(tab.gain.shape[0]):
        tab.gain[j] += factor * body[row, j]
    tab.basic[row], tab.other[column] = tab.other[column], tab.basic[row]
    tab.high[column] = at_high


@jit
def worst_case(features: Floats, cost: Floats, low: Floats, high: Floats, tab: Tableau, duals: Floats) -> int:
    """Maximise E[cost] over distributions of the columns with low <= E[features] <= high (all finite).

    The dual simplex method; fills the multipliers of the rows and returns how it ended.
    """
    n_rows, n_columns = features.shape
    _begin(features, cost, tab)
    status = STOPPED
    for _ in range(20 * (n_rows + n_columns) + 100):
        row = _leaving(tab, low, high, n_columns)
        if row < 0:
            status = OPTIMAL
            break
        name = tab.basic[row]
        target, sign = 0.0, 1.0
        if name >= n_columns:
            target = low[name - n_columns]
            if tab.value[row] > high[name - n_columns]:
                target, sign = high[name - n_columns], -1.0
        column = _entering(tab, row, sign, low, high, n_columns)
        if column < 0:
            status = INFEASIBLE
            break
        name, moved = tab.other[column], 0.0
        if name >= n_columns:
            moved = high[name - n_columns] if tab.high[column] else low[name - n_columns]
        _exchange(tab, row, column, target, sign < 0.0, moved)
    duals[:] = 0.0
    for j in range(tab.other.shape[0]):
        if tab.other[j] >= n_columns:
            duals[tab.other[j] - n_columns] = tab.gain[j]
    return status


@jit
def unexplained(features: Floats, cost: Floats, duals: Floats) -> float:
    """The largest cost of a column that the multipliers leave: max over a of cost(a) - sum of y_r F_r(a)."""
    most = -np.inf
    for a in range(features.shape[1]):
        left = cost[a]
        for r in range(features.shape[0]):
            left -= duals[r] * features[r, a]
        most = max(most, left)
    return most


@jit
def weak_bound(left: float, low: Floats, high: Floats, duals: Floats) -> float:
    """What any multipliers prove: E[cost] <= left + sum of y_r times the end of row r that makes it largest."""
    total = left
    for r in range(duals.shape[0]):
        total += max(duals[r] * low[r], duals[r] * high[r])
    return total
