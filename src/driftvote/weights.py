"""5 WEIGHTS: how much a labeler's vote counts.

With independent errors the best vote weighs each labeler by the log-odds of its accuracy,
ln((K - 1) p / (1 - p)); the accuracy is clipped first, so that no labeler is ever beyond doubt.
"""

from __future__ import annotations

import math

import numpy as np

from driftvote.kernels.layout import Floats, Rule
from driftvote.kernels.weights import weigh_rows

EQUAL_WEIGHT = 1.0
"""The weight of everybody as long as nothing is known of anybody."""


def weights_of(accuracies: Floats, rule: Rule) -> Floats:
    """Weight of every labeler on every row, from the accuracies at those rows."""
    out = np.empty(accuracies.shape)
    weigh_rows(np.ascontiguousarray(accuracies), rule, out)
    return out


def products_may_overflow(n_labelers: int, high: float, n_classes: int) -> bool:
    """Whether the odds of all labelers, multiplied, could leave the range of a double."""
    return n_labelers * math.log((n_classes - 1) * high / (1.0 - high)) > 600.0


def accuracy_at_weight(weight: float, n_classes: int) -> float:
    """The accuracy whose log-odds weight this is.

    >>> round(accuracy_at_weight(math.log(9), 2), 12)
    0.9
    """
    return math.exp(weight) / (n_classes - 1 + math.exp(weight))


def effective_clip(clip: tuple[float, float], n_classes: int) -> tuple[float, float]:
    """The clip that kernels use: its lower end never lifts a labeler above blind guessing.

    >>> effective_clip((0.1, 0.9), 2), effective_clip((0.1, 0.9), 20)
    ((0.1, 0.9), (0.05, 0.9))
    """
    return min(clip[0], 1.0 / n_classes), clip[1]
