"""Measures of labels and probabilities. Every one of them says what it does with ties.

A row whose label is a tie counts one part for each of the tied classes: 1/2 with two of them. Where a model draws
ties at random the same is counted, and not the luck of the draw.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from driftvote.kernels.layout import Codes, Floats, Ints

BINS = 20  # of calibration, from 0 to 1
BLOCKS = 30  # stretches of time behind a confidence interval
T_30 = 2.045  # 97.5% quantile of Student's t with BLOCKS - 1 degrees of freedom
LEAST = 1e-6  # a probability of 0 would make the log-loss infinite

Numbers = dict[str, Any]


def shares(codes: Ints, proba: Floats, drawn: bool) -> Floats:
    """What each class gets of each row: all for a label, equal parts of a tie (of all classes if none is ahead).

    >>> shares(np.array([1, -1]), np.array([[0.2, 0.8], [0.5, 0.5]]), drawn=False)
    array([[0. , 1. ],
           [0.5, 0.5]])
    """
    n_classes = proba.shape[1]
    tied = proba >= proba.max(axis=1, keepdims=True) - 1e-12
    count = tied.sum(axis=1)
    parts = tied / count[:, None]
    parts[(codes < 0) & (count == 1)] = 1.0 / n_classes  # it abstained for another reason than a tie
    decided = (codes >= 0) & ~(drawn & (count > 1))
    parts[decided] = np.eye(n_classes)[codes[decided]]
    return parts


def majority_shares(votes: Codes, n_classes: int) -> Floats:
    """Plain majority, abstentions ignored; a row without votes is a tie of all classes.

    >>> majority_shares(np.array([[1, 1, 0], [0, 1, -1]]), 2)
    array([[0. , 1. ],
           [0.5, 0.5]])
    """
    counts = np.stack([(votes == label).sum(axis=1) for label in range(n_classes)], axis=1)
    top = counts == counts.max(axis=1, keepdims=True)
    return top / top.sum(axis=1, keepdims=True)


def credits_of(parts: Floats, truth: Ints) -> Floats:
    """How right each row is, from 0 to 1."""
    return parts[np.arange(len(truth)), truth]


def macro_f1(parts: Floats, truth: Ints) -> float:
    """F1 averaged over the classes that occur.

    >>> macro_f1(np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), np.array([0, 1, 1])).__round__(4)
    0.6667
    """
    found = []
    for label in np.unique(truth):
        hits = parts[truth == label, label].sum()
        found.append(2 * hits / (parts[:, label].sum() + (truth == label).sum()))
    return float(np.mean(found))


def log_loss(proba: Floats, truth: Ints) -> float:
    """Mean of -ln(probability of the truth); probabilities are taken to be at least 1e-6."""
    return float(-np.log(np.maximum(proba[np.arange(len(truth)), truth], LEAST)).mean())


def reliability(proba: Floats, right: Floats) -> Numbers:
    """By bins of the label's probability: rows, their mean probability, the share that is right."""
    top = proba.max(axis=1)
    place = np.minimum((top * BINS).astype(np.int64), BINS - 1)
    rows = np.bincount(place, minlength=BINS)
    seen = rows > 0
    said = np.bincount(place, weights=top, minlength=BINS)[seen] / rows[seen]
    true = np.bincount(place, weights=right, minlength=BINS)[seen] / rows[seen]
    return {"rows": rows[seen].tolist(), "said": said.tolist(), "right": true.tolist()}


def calibration_error(curve: Numbers) -> float:
    """Expected calibration error: mean gap between what is said and what is right, by rows."""
    rows = np.array(curve["rows"])
    gaps = np.abs(np.array(curve["said"]) - np.array(curve["right"]))
    return float((rows * gaps).sum() / rows.sum())


def auroc(score: Floats, right: Floats) -> float | None:
    """Chance that a row labeled right has a higher score than one labeled wrong; None if all are alike.

    Rows that are partly right count as partly one and partly the other.

    >>> auroc(np.array([0.9, 0.8, 0.6]), np.array([1.0, 0.0, 0.0]))
    1.0
    """
    values, place = np.unique(score, return_inverse=True)
    good = np.bincount(place, weights=right, minlength=len(values))
    bad = np.bincount(place, weights=1 - right, minlength=len(values))
    if good.sum() < 1e-9 or bad.sum() < 1e-9:
        return None
    below = np.cumsum(bad) - bad
    return float((good * (below + bad / 2)).sum() / (good.sum() * bad.sum()))


def found_by_review(score: Floats, right: Floats, share: float = 0.1) -> float | None:
    """Share of the errors among the rows with the lowest score; equal scores are met in any order, on average."""
    wrong = 1 - right
    if wrong.sum() < 1e-9:
        return None
    values, place, rows = np.unique(score, return_inverse=True, return_counts=True)
    errors = np.bincount(place, weights=wrong, minlength=len(values))
    taken = np.clip(share * len(score) - (np.cumsum(rows) - rows), 0, rows)
    return float((errors * taken / rows).sum() / wrong.sum())


def mean_by_blocks(values: Floats) -> tuple[float, float]:
    """Mean, and its standard error from blocks of time: neighbouring rows are not independent."""
    blocks = [part.mean() for part in np.array_split(values, min(BLOCKS, len(values)))]
    error = float(np.std(blocks, ddof=1) / math.sqrt(len(blocks))) if len(blocks) > 1 else 0.0
    return float(values.mean()), error


def true_weight_vote(votes: Codes, accuracies: Floats, n_classes: int) -> tuple[Ints, Floats]:
    """Labels and probabilities by the true accuracies, in the one-coin model with balanced classes."""
    inside = np.clip(accuracies, 1e-6, 1 - 1e-6)
    weights = np.log((n_classes - 1) * inside / (1 - inside))
    scores = np.stack([(weights * (votes == label)).sum(axis=1) for label in range(n_classes)], axis=1)
    odds = np.exp(scores - scores.max(axis=1, keepdims=True))
    proba = odds / odds.sum(axis=1, keepdims=True)
    tied = (proba >= proba.max(axis=1, keepdims=True) - 1e-12).sum(axis=1) > 1
    return np.where(tied, -1, proba.argmax(axis=1)), proba
