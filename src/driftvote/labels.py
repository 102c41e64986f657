"""6 LABEL: the weighted vote of a row, its probabilities, and what happens on a tie.

The class with the largest summed weight wins among the classes that somebody voted for, so a
unanimous row keeps its class. Ties abstain, or are drawn from a seeded hash of the row's number.
"""

from __future__ import annotations

import numpy as np

from driftvote.kernels.chunk import majority_chunk, vote_chunk
from driftvote.kernels.layout import Codes, Floats, Ints, Rule
from driftvote.randomness import uniforms

TIE_POLICIES = ("abstain", "random")
_TIE_STREAM = -1  # no labeler has this place, so ties and fills never share a draw


def tie_draws(policy: str, seed: int, first_row: int, n_rows: int) -> Floats:
    """One number a row for the kernel: a draw in [0, 1); or none at all, to abstain on ties."""
    if policy == "abstain":
        return np.zeros(0)
    rows = np.arange(first_row, first_row + n_rows)
    return uniforms(seed, rows, np.array(_TIE_STREAM))


def weighted_vote(rows: Codes, accuracies: Floats, draws: Floats, rule: Rule) -> tuple[Ints, Floats]:
    """Labels and probabilities of encoded rows under one set of accuracies."""
    labels = np.empty(len(rows), np.int64)
    proba = np.empty((len(rows), rule.n_classes))
    vote_chunk(rows, draws, np.ascontiguousarray(accuracies), rule, labels, proba)
    return labels, proba


def plain_vote(rows: Codes, draws: Floats, n_classes: int) -> tuple[Ints, Floats]:
    """Majority of each row, with the vote shares as probabilities.

    >>> plain_vote(np.array([[1, 0, 0, -1], [1, 0, -1, -1]], np.int8), np.full(2, -1.0), 2)
    (array([ 0, -1]), array([[0.66666667, 0.33333333],
           [0.5       , 0.5       ]]))
    """
    labels = np.empty(len(rows), np.int64)
    proba = np.empty((len(rows), n_classes))
    majority_chunk(rows, draws, labels, proba)
    return labels, proba
