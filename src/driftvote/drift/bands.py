"""Confidence bands around accuracies: how far an estimate may be from the truth.

There are two kinds. From the bound (`bound_half_width`): what the theorem of the method promises, in any stream of
independent labelers, and therefore wide: mostly 1 below some ten thousand rows. Calibrated (`calibrated_half_width`):
the noise of the estimate, by the formula below, scaled so that it held the truth 95 times in 100 in simulated streams.

A labeler h is judged through the two others (i, j) that agree most: q_h = sqrt(C_ih C_jh / C_ij), with q the skill
(K p - 1) / (K - 1). In the one-coin model the three agreements of a window of r rows have known variances and
covariances, so the delta method gives the standard error of q_h in closed form. With coverage c and
g(x) = (1 + (K - 2) x) / (K - 1),

    4 r Var(q_h) / q_h^2 = sum over the three pairs of (g(q_a q_b) / (c_a c_b q_a^2 q_b^2) - 1)
                           + 2 (g(q_h) / (c_h q_h^2) - 1) - 2 (g(q_i) / (c_i q_i^2) - 1) - 2 (g(q_j) / (c_j q_j^2) - 1).

The skills are those of accuracies pulled a little to the middle, so that an estimate of 1 is not taken for certain.
It holds noise only: drift inside the window, labelers that err together and the choice of the window are not in it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from driftvote import theory
from driftvote.arrays import Codes, Floats, Ints

FACTORS = {"triplet": 1.014, "em": 1.021}
"""By estimator: what the 95% range of noise is multiplied by. Written by `make bands`, with the evidence in
docs/events.md."""

Z95 = 1.959964
"""Half the width of a 95% range, in standard errors."""

_LEAST = 1e-9


class AccuracyEstimate(NamedTuple):
    """The accuracy of each labeler when it votes, by some rows alone, and half the calibrated 95% band around it."""

    accuracies: Floats
    half_widths: Floats

    @classmethod
    def of_rows(cls, accuracies: Floats, rows: Codes, n_classes: int, filled: bool, estimator: str) -> AccuracyEstimate:
        """Return accuracies that were estimated from these rows, with their bands."""
        coverage = np.count_nonzero(rows >= 0, axis=0) / max(1, len(rows))
        n_rows = np.array([float(len(rows))])
        half = calibrated_half_width(accuracies[None], coverage[None], n_rows, n_classes, filled, estimator)
        return cls(accuracies, half[0])


def half_width(accuracies: Floats, coverage: Floats, windows: Floats, n_classes: int, filled: bool = False) -> Floats:
    """Return half the 95% range of noise of each accuracy (lines x labelers), given coverage and window of each line.

    `filled` says that abstentions are random votes. A line whose two best labelers carry no skill gets 1, the widest.

    >>> p = np.array([[0.9, 0.8, 0.7]])
    >>> half_width(p, np.ones((1, 3)), np.array([400.0]), 2).round(3)
    array([[0.079, 0.067, 0.058]])
    """
    if accuracies.shape[1] < 3:
        return np.ones(accuracies.shape)  # a labeler is judged by two others
    scale = (n_classes - 1.0) / n_classes
    # An estimate of exactly 1 is not certain: two more votes on either side, as Agresti and Coull do for shares.
    votes = coverage * np.maximum(windows, 1.0)[:, None]
    cautious = (accuracies * votes + 2.0) / (votes + 4.0)
    skill = np.clip((cautious - 1.0 / n_classes) / scale, 0.0, 1.0)
    if filled:
        return np.minimum(_error(skill * coverage, np.ones_like(coverage), windows, n_classes) * Z95 * scale
                          / np.maximum(coverage, _LEAST), 1.0)  # fmt: skip
    return np.minimum(_error(skill, coverage, windows, n_classes) * Z95 * scale, 1.0)


def calibrated_half_width(
    accuracies: Floats, coverage: Floats, windows: Floats, n_classes: int, filled: bool, estimator: str
) -> Floats:
    """Return half the calibrated 95% band of each accuracy."""
    half = half_width(accuracies, coverage, windows, n_classes, filled)
    return np.asarray(np.minimum(FACTORS[estimator] * half, 1.0))


def bound_half_width(
    windows: Floats, n_labelers: int, n_classes: int, n_windows: int, delta: float, tau: float
) -> Floats:
    """Return half the band that the theorem gives for each window, if nothing drifts inside it.

    It holds with probability 1 - delta, if every labeler is right with probability at least 1/K + tau. `n_windows` is
    the number of windows that were to choose from. Never above 1.

    >>> bound_half_width(np.array([4096.0, 524288.0]), 6, 2, 20, 0.1, 0.3).round(2)
    array([1.  , 0.17])
    """
    factor = theory.deviation_factor(n_labelers, n_windows, delta) * theory.range_factor(n_classes)
    half = [theory.accuracy_bound(factor / math.sqrt(max(1.0, rows)), tau, n_classes) for rows in windows.tolist()]
    return np.minimum(np.array(half), 1.0)


def _error(skill: Floats, coverage: Floats, windows: Floats, n_classes: int) -> Floats:
    """Return the standard error of the skills."""
    helpers = _two_best_others(skill * coverage)
    lines = np.arange(len(skill))[:, None]
    i, j = helpers[..., 0], helpers[..., 1]
    q, c = skill, np.maximum(coverage, _LEAST)
    qi, qj = (np.maximum(skill[lines, other], _LEAST) for other in (i, j))
    ci, cj = c[lines, i], c[lines, j]

    def g(x: Floats) -> Floats:
        return np.asarray((1.0 + (n_classes - 2.0) * x) / (n_classes - 1.0))

    # Everything times q_h^2, so that a labeler without skill divides by nothing.
    pairs = g(q * qi) / (c * ci * qi**2) + g(q * qj) / (c * cj * qj**2) + q**2 * g(qi * qj) / (ci * cj * (qi * qj) ** 2)
    shared = 2.0 * g(q) / c - 2.0 * q**2 * (g(qi) / (ci * qi**2) + g(qj) / (cj * qj**2))
    return np.sqrt(np.maximum(pairs + shared - q**2, 0.0) / (4.0 * np.maximum(windows, 1.0)[:, None]))


def _two_best_others(strength: Floats) -> Ints:
    """Return the two strongest others of each labeler, for each line."""
    order = np.argsort(-strength, axis=1, kind="stable")
    n = strength.shape[1]
    first, second, third = order[:, 0:1], order[:, 1:2], order[:, min(2, n - 1)][:, None]
    me = np.arange(n)[None, :]
    i = np.where(me == first, second, first)
    j = np.where((me == first) | (me == second), third, second)
    return np.stack([i, j], axis=2)
