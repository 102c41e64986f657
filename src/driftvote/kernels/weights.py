"""From accuracy to odds and weight."""

from __future__ import annotations

import math

from driftvote.kernels._jit import jit
from driftvote.kernels.layout import Floats, Rule

# Where sums of weights decide (many labelers), weights are rounded to a multiple of 2^-42 (2e-13): sums below 2^11
# are then exact in a double, their order does not matter, and a tie is a tie.
GRAIN = 2.0**42


@jit
def odds_of(accuracy: float, rule: Rule) -> float:
    """(K - 1) p / (1 - p) of the clipped accuracy: how much a vote multiplies the odds of its class."""
    p = min(max(accuracy, rule.clip_low), rule.clip_high)
    return (rule.n_classes - 1) * p / (1.0 - p)


@jit
def weight_of(accuracy: float, rule: Rule) -> float:
    """The logarithm of the odds, on the exact grid."""
    return round(math.log(odds_of(accuracy, rule)) * GRAIN) / GRAIN


@jit
def weigh_rows(estimates: Floats, rule: Rule, out: Floats) -> None:
    """Weights of a whole chunk."""
    for t in range(estimates.shape[0]):
        for h in range(estimates.shape[1]):
            out[t, h] = weight_of(estimates[t, h], rule)
