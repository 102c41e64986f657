"""From the scores of the classes to the label of a row: counting votes, ties, probabilities, the plain majority."""

from __future__ import annotations

import math

import numpy as np

from driftvote.arrays import Codes, Floats, Ints
from driftvote.core.jit import inner, jit
from driftvote.core.state import vote_of
from driftvote.randomness import uniforms

TIE_POLICIES = ("abstain", "random")
EQUAL_WEIGHT = 1.0
"""Weight of every labeler before the first row, and in a plain majority."""

CERTAIN = 1.0 - 1e-12
"""Log-odds take no class for more likely than this: they are at most 27.6."""

NO_DRAWS: Floats = np.zeros(0)
"""Draws that make every tie abstain."""

# Products of the same odds in another order differ in their last bits; scores this close are a tie.
TIE = 1.0 - 2.0**-36
_TIE_STREAM = -1  # no labeler has this place, so ties and random votes never share a draw


@inner
def count_votes(row: Codes, support: Ints) -> int:
    """Fill `support` with the votes for each class; return how many votes there are."""
    for c in range(support.shape[0]):
        support[c] = 0
    votes = 0
    for i in range(row.shape[0]):
        vote = vote_of(row[i])
        if vote >= 0:
            support[vote] += 1
            votes += 1
    return votes


@inner
def pick_class(scores: Floats, support: Ints, draw: float) -> int:
    """Return the class with the largest score among those with a vote.

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


@inner
def pick_likeliest(support: Ints, votes: int, draw: float, proba: Floats) -> int:
    """Return the likeliest class, but on a unanimous row the class of the votes; probabilities follow."""
    best = largest(proba)
    for c in range(proba.shape[0]):
        if votes > 0 and support[c] == votes:
            # The label model doubts a unanimous row: its class wins all the same, and the probability says it is close.
            if proba[c] < best:
                proba[c] = best
                total = 0.0
                for other in range(proba.shape[0]):
                    total += proba[other]
                for other in range(proba.shape[0]):
                    proba[other] /= total
            return c
    for c in range(proba.shape[0]):
        support[c] = 1
    return pick_class(proba, support, draw)


@inner
def add_majority(support: Ints, weight: float, scores: Floats) -> None:
    """Add `weight` to the class with the most votes; classes that tie share it."""
    top, leaders = 0, 0
    for c in range(support.shape[0]):
        if support[c] > top:
            top, leaders = support[c], 0
        leaders += support[c] == top
    for c in range(support.shape[0]):
        if support[c] == top:
            scores[c] += weight / leaders


@inner
def largest(scores: Floats) -> float:
    """Return the largest of a few numbers; NumPy's own takes as long as an exponential."""
    best = scores[0]
    for c in range(1, scores.shape[0]):
        best = max(best, scores[c])
    return best


@inner
def to_probabilities(scores: Floats) -> None:
    """Turn log scores into probabilities, in place."""
    best = largest(scores)
    total = 0.0
    for c in range(scores.shape[0]):
        scores[c] = math.exp(scores[c] - best) if scores[c] < best else 1.0
        total += scores[c]
    for c in range(scores.shape[0]):
        scores[c] /= total


@inner
def majority_row(row: Codes, draw: float, support: Ints, proba: Floats) -> int:
    """Return the majority of one row; `proba` becomes the shares of the votes, uniform without votes."""
    votes = count_votes(row, support)
    for c in range(proba.shape[0]):
        proba[c] = float(support[c])
    label = pick_class(proba, support, draw)
    for c in range(proba.shape[0]):
        proba[c] = support[c] / votes if votes > 0 else 1.0 / proba.shape[0]
    return label


@jit
def majority_rows(rows: Codes, draws: Floats, support: Ints, labels: Ints, proba: Floats) -> None:
    """Fill labels and probabilities with the majority of each row."""
    for t in range(rows.shape[0]):
        labels[t] = majority_row(rows[t], draws[t] if draws.shape[0] > 0 else -1.0, support, proba[t])


def majority_vote(rows: Codes, draws: Floats, n_classes: int) -> tuple[Ints, Floats]:
    """Return the majority of each row, with the shares of the votes as probabilities.

    >>> majority_vote(np.array([[1, 0, 0, -1], [1, 0, -1, -1]], np.int8), np.full(2, -1.0), 2)
    (array([ 0, -1]), array([[0.66666667, 0.33333333],
           [0.5       , 0.5       ]]))
    """
    labels = np.empty(len(rows), np.int64)
    proba = np.empty((len(rows), n_classes))
    majority_rows(rows, draws, np.empty(n_classes, np.int64), labels, proba)
    return labels, proba


def tie_draws(policy: str, seed: int, first_row: int, n_rows: int) -> Floats:
    """Return one number a row that settles its tie: a draw in [0, 1); an empty array to abstain on ties."""
    if policy == "abstain":
        return NO_DRAWS
    rows = np.arange(first_row, first_row + n_rows)
    return uniforms(seed, rows, np.array(_TIE_STREAM))


@jit
def log_odds(p: float) -> float:
    """Return ln(p / (1 - p)), with a probability that is not closer than 1e-12 to 0 or 1."""
    p = min(max(p, 1.0 - CERTAIN), CERTAIN)
    return math.log(p / (1.0 - p))


def accuracy_at_weight(weight: float, n_classes: int) -> float:
    """Return the accuracy whose log-odds weight this is.

    >>> round(accuracy_at_weight(math.log(9), 2), 12)
    0.9
    """
    return math.exp(weight) / (n_classes - 1 + math.exp(weight))


def undilute(diluted: Floats, coverage: Floats, n_classes: int) -> Floats:
    """Return the accuracy when voting, from the one with abstentions counted as blind guesses.

    >>> undilute(np.array([0.7, 0.5]), np.array([0.5, 0.0]), 2)
    array([0.9, 0.5])
    """
    chance = 1.0 / n_classes
    votes = coverage > 0
    spread = np.where(votes, (diluted - chance) / np.where(votes, coverage, 1.0), 0.0)
    # A labeler that always votes keeps its accuracy to the last bit.
    return np.where(coverage == 1.0, diluted, np.minimum(1.0, chance + spread))


def dilute(accuracies: Floats, coverage: Floats, n_classes: int) -> Floats:
    """Return the accuracy with every abstention counted as a blind guess.

    >>> dilute(np.array([0.9]), np.array([0.5]), 2)
    array([0.7])
    """
    chance = 1.0 / n_classes
    return np.where(coverage == 1.0, accuracies, chance + coverage * (accuracies - chance))
