"""From accuracy to weight."""

from __future__ import annotations

import math

from driftvote.kernels._jit import jit
from driftvote.kernels.accuracies import accuracy_when_voting, diluted_accuracy
from driftvote.kernels.layout import Floats, Ints, Rule

# Weights are rounded to a multiple of 2^-42 (2e-13). Sums of weights below 2^11 are then exact in a
# double, so their order does not matter and a tie is a tie.
GRAIN = 2.0**42


@jit
def log_odds(accuracy: float, n_classes: int, low: float, high: float) -> float:
    """Weight ln((K - 1) p / (1 - p)) of the clipped accuracy, on the exact grid."""
    p = min(max(accuracy, low), high)
    return round(math.log((n_classes - 1) * p / (1.0 - p)) * GRAIN) / GRAIN


@jit
def weigh(skills: Floats, votes: Ints, window: int, rule: Rule, out: Floats) -> None:
    """Weight of every labeler for one row."""
    for h in range(skills.shape[0]):
        if rule.diluted:
            accuracy = diluted_accuracy(skills[h], rule.n_classes)
        else:
            accuracy = accuracy_when_voting(skills[h], votes[h], window, rule.n_classes)
        out[h] = log_odds(accuracy, rule.n_classes, rule.clip_low, rule.clip_high)


@jit
def weigh_rows(skills: Floats, votes: Ints, windows: Ints, rule: Rule, out: Floats) -> None:
    """Weights of a whole chunk, the same bits as the ones its labels were made with."""
    for t in range(skills.shape[0]):
        weigh(skills[t], votes[t], windows[t], rule, out[t])
