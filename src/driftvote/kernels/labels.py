"""The weighted vote of one row: products of odds, or sums of their logarithms where products could overflow."""

from __future__ import annotations

import math

from driftvote.kernels._jit import jit
from driftvote.kernels.agreements import vote_of
from driftvote.kernels.layout import Codes, Floats, Ints

# Products of the same odds in another order differ in their last bits; scores this close are a tie.
TIE = 1.0 - 2.0**-36


@jit
def draw_of(draws: Floats, row: int) -> float:
    """The draw of a row for a tie: in [0, 1), or -1 to abstain. An empty array abstains on every row."""
    return draws[row] if draws.shape[0] > 0 else -1.0


@jit
def multiply_odds(row: Codes, odds: Floats, scores: Floats, support: Ints) -> None:
    """Product of the odds, and number of votes, of each class; labelers in order."""
    scores[:] = 1.0
    support[:] = 0
    for i in range(row.shape[0]):
        vote = vote_of(row[i])
        if vote >= 0:
            scores[vote] *= odds[i]
            support[vote] += 1


@jit
def add_logs(row: Codes, weights: Floats, scores: Floats, support: Ints) -> None:
    """The same for very many labelers: sums of weights, then taken back to odds against the best class."""
    scores[:] = 0.0
    support[:] = 0
    for i in range(row.shape[0]):
        vote = vote_of(row[i])
        if vote >= 0:
            scores[vote] += weights[i]
            support[vote] += 1
    best = scores.max()
    for c in range(scores.shape[0]):
        scores[c] = math.exp(scores[c] - best)


@jit
def pick_class(scores: Floats, support: Ints, draw: float) -> int:
    """The class with the largest score among those that somebody voted for.

    Only voted classes compete, so a unanimous row keeps its class even when its voters carry no
    weight. A tie is settled by `draw` in [0, 1), or by abstaining (-1) when `draw` is negative.
    """
    best = -1
    for c in range(scores.shape[0]):
        if support[c] > 0 and (best < 0 or scores[c] > scores[best]):
            best = c
    if best < 0:
        return -1
    least = scores[best] * TIE
    tied = 0
    for c in range(scores.shape[0]):
        if support[c] > 0 and scores[c] >= least:
            tied += 1
    if tied == 1:
        return best
    if draw < 0.0:
        return -1
    rank = int(draw * tied)
    for c in range(scores.shape[0]):
        if support[c] > 0 and scores[c] >= least:
            if rank == 0:
                best = c
                break
            rank -= 1
    return best


@jit
def normalise(scores: Floats, out: Floats) -> None:
    """Class probabilities under a uniform prior."""
    total = 0.0
    for c in range(scores.shape[0]):
        total += scores[c]
    for c in range(scores.shape[0]):
        out[c] = scores[c] / total


@jit
def vote_shares(support: Ints, out: Floats) -> None:
    """Share of the row's votes that each class got; uniform when nobody voted."""
    total = support.sum()
    for c in range(support.shape[0]):
        out[c] = support[c] / total if total > 0 else 1.0 / support.shape[0]
