"""The weighted vote of one row."""

from __future__ import annotations

import math

from driftvote.kernels._jit import jit
from driftvote.kernels.agreements import vote_of
from driftvote.kernels.layout import Codes, Floats, Ints


@jit
def add_scores(row: Codes, weights: Floats, scores: Floats, support: Ints) -> None:
    """Summed weight and number of votes of each class."""
    scores[:] = 0.0
    support[:] = 0
    for i in range(row.shape[0]):
        vote = vote_of(row[i])
        if vote >= 0:
            scores[vote] += weights[i]
            support[vote] += 1


@jit
def pick_class(scores: Floats, support: Ints, draw: float) -> int:
    """The class with the largest score among those that somebody voted for.

    Only voted classes compete, so a unanimous row keeps its class even when its voters carry no
    weight. A tie is settled by `draw` in [0, 1), or by abstaining (-1) when `draw` is negative.
    """
    tied = 0
    best = -1
    for c in range(scores.shape[0]):
        if support[c] == 0:
            continue
        if best < 0 or scores[c] > scores[best]:
            best = c
            tied = 1
        elif scores[c] == scores[best]:
            tied += 1
    if tied <= 1:
        return best
    if draw < 0.0:
        return -1
    rank = int(draw * tied)
    for c in range(scores.shape[0]):
        if support[c] > 0 and scores[c] == scores[best]:
            if rank == 0:
                best = c
                break
            rank -= 1
    return best


@jit
def softmax(scores: Floats, out: Floats) -> None:
    """Class probabilities under a uniform prior; the largest score is taken out first."""
    top = scores.max()
    total = 0.0
    for c in range(scores.shape[0]):
        out[c] = math.exp(scores[c] - top)
        total += out[c]
    for c in range(scores.shape[0]):
        out[c] /= total


@jit
def vote_shares(support: Ints, out: Floats) -> None:
    """Share of the row's votes that each class got; uniform when nobody voted."""
    total = support.sum()
    for c in range(support.shape[0]):
        out[c] = support[c] / total if total > 0 else 1.0 / support.shape[0]
