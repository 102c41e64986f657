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
from driftvote.arrays import Floats
from driftvote.core.engine import Estimates
from driftvote.core.jit import inner, jit

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
    def of_fit(cls, fit: Estimates, filled: bool, estimator: str) -> AccuracyEstimate:
        """Return the accuracies of one fit, with their bands."""
        windows, n_classes = fit.windows.astype(np.float64), fit.panel.n_classes
        half = calibrated_half_width(fit.accuracies, fit.coverage, windows, n_classes, filled, estimator)
        return cls(fit.accuracies[0], half[0])


def half_width(accuracies: Floats, coverage: Floats, windows: Floats, n_classes: int, filled: bool = False) -> Floats:
    """Return half the 95% range of noise of each accuracy (lines x labelers), given coverage and window of each line.

    `filled` says that abstentions are random votes. A line whose two best labelers carry no skill gets 1, the widest.

    >>> p = np.array([[0.9, 0.8, 0.7]])
    >>> half_width(p, np.ones((1, 3)), np.array([400.0]), 2).round(3)
    array([[0.079, 0.067, 0.058]])
    """
    if accuracies.shape[1] < 3:
        return np.ones(accuracies.shape)  # a labeler is judged by two others
    half = np.empty(accuracies.shape)
    p, c, rows = (np.ascontiguousarray(part, np.float64) for part in (accuracies, coverage, windows))
    fill_half_widths(p, c, rows, n_classes, filled, half)
    return half


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


@inner
def disagreement(x: float, n_classes: int) -> float:
    """Return g of the formula above."""
    return (1.0 + (n_classes - 2.0) * x) / (n_classes - 1.0)


@jit
def fill_half_widths(
    accuracies: Floats, coverage: Floats, windows: Floats, n_classes: int, filled: bool, half: Floats
) -> None:
    """Fill in half the 95% range of noise of each accuracy; see `half_width`. `half` holds skills on the way."""
    scale, n = (n_classes - 1.0) / n_classes, half.shape[1]
    for line in range(half.shape[0]):
        rows = max(windows[line], 1.0)
        first, second, third = -1, -1, -1  # the strongest labelers: others are judged through them
        top, next_top, last_top = -1.0, -1.0, -1.0
        for h in range(n):
            # An estimate of exactly 1 is not certain: two more votes on either side, as Agresti and Coull do.
            votes = coverage[line, h] * rows
            cautious = (accuracies[line, h] * votes + 2.0) / (votes + 4.0)
            skill = min(max((cautious - 1.0 / n_classes) / scale, 0.0), 1.0)
            half[line, h] = skill * coverage[line, h] if filled else skill
            strength = skill * coverage[line, h]
            if strength > top:
                first, second, third = h, first, second
                top, next_top, last_top = strength, top, next_top
            elif strength > next_top:
                second, third = h, second
                next_top, last_top = strength, next_top
            elif strength > last_top:
                third, last_top = h, strength
        best, good, fair = half[line, first], half[line, second], half[line, third]
        for h in range(n):
            i = second if h == first else first
            j = third if h == first or h == second else second
            q = half[line, h]
            qi = max(good if h == first else best, _LEAST)
            qj = max(fair if h == first or h == second else good, _LEAST)
            c, ci, cj = 1.0, 1.0, 1.0
            if not filled:
                c, ci, cj = (
                    max(coverage[line, h], _LEAST),
                    max(coverage[line, i], _LEAST),
                    max(coverage[line, j], _LEAST),
                )
            # Everything times q_h^2, so that a labeler without skill divides by nothing.
            pairs = (
                disagreement(q * qi, n_classes) / (c * ci * (qi * qi))
                + disagreement(q * qj, n_classes) / (c * cj * (qj * qj))
                + (q * q) * disagreement(qi * qj, n_classes) / (ci * cj * ((qi * qj) * (qi * qj)))
            )
            shared = 2.0 * disagreement(q, n_classes) / c - 2.0 * (q * q) * (
                disagreement(qi, n_classes) / (ci * (qi * qi)) + disagreement(qj, n_classes) / (cj * (qj * qj))
            )
            error = math.sqrt(max(pairs + shared - q * q, 0.0) / (4.0 * rows)) * Z95 * scale
            if filled:
                error /= max(coverage[line, h], _LEAST)
            half[line, h] = min(error, 1.0)
