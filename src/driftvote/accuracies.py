"""4 ACCURACIES: from how labelers agree to how often each is right.

If errors are independent given the truth, the agreement of two labelers is the product of their
skills, C_ij = q_i q_j, where q = (K p - 1) / (K - 1) is 0 for a blind guess and 1 for a labeler that is
always right. Three labelers then give q_h = sqrt(C_ih C_jh / C_ij) (Algorithm 1, lines 8 to 12).
"""

from __future__ import annotations

import numpy as np

from driftvote.errors import LabelerError
from driftvote.kernels.accuracies import triplet_accuracies
from driftvote.kernels.layout import Floats, Ints

MIN_LABELERS = 3
"""With two labelers only the product of their skills can be seen, not either of them."""


def check_enough_labelers(n_labelers: int, way_out: str = "add labelers") -> None:
    """Refuse a panel whose accuracies no method could identify."""
    if n_labelers < MIN_LABELERS:
        raise LabelerError(
            f"at least {MIN_LABELERS} labelers are needed to tell from their agreement who is right, not"
            f" {n_labelers}; {way_out}"
        )


def accuracies_from_sums(sums: Ints, n_labelers: int, window: int, n_classes: int = 2) -> Floats:
    """Accuracy of each labeler from pair sums (times K - 1, pairs in lexicographic order), nobody abstaining.

    Four rows; labelers 0 and 1 always agree, labeler 2 agrees with each of them three times in four:

    >>> accuracies_from_sums(np.array([4, 2, 2]), 3, 4)
    array([1.  , 1.  , 0.75])
    """
    check_enough_labelers(n_labelers)
    out = np.empty(n_labelers)
    votes = np.full(n_labelers, window)
    triplet_accuracies(np.ascontiguousarray(sums, np.int64), votes, window, n_classes, False, out)
    return out


def undiluted(diluted: Floats, coverage: Floats, n_classes: int) -> Floats:
    """Accuracy on the rows where a labeler votes, from the one with abstentions counted as blind guesses.

    >>> undiluted(np.array([0.7, 0.5]), np.array([0.5, 0.0]), 2)
    array([0.9, 0.5])
    """
    chance = 1.0 / n_classes
    votes = coverage > 0
    spread = np.where(votes, (diluted - chance) / np.where(votes, coverage, 1.0), 0.0)
    # Who always votes keeps the accuracy to the last bit.
    return np.where(coverage == 1.0, diluted, np.minimum(1.0, chance + spread))


def diluted(accuracies: Floats, coverage: Floats, n_classes: int) -> Floats:
    """Accuracy with every abstention counted as a blind guess.

    >>> diluted(np.array([0.9]), np.array([0.5]), 2)
    array([0.7])
    """
    chance = 1.0 / n_classes
    return np.where(coverage == 1.0, accuracies, chance + coverage * (accuracies - chance))
