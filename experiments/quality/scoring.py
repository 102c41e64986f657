"""How labels and probabilities are scored.

A row labeled right counts 1. A row that a label model leaves unlabeled (a tie) counts as the majority of its votes
does: one part for each of the tied classes. Gains are in points (per cent of the rows) over the plain majority.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from experiments.quality.streams import Codes, Floats, GoldStream, Ints
from experiments.runs import Numbers

BLOCK, LEAST_BLOCKS = 50, 30  # consecutive rows that are drawn together; short streams have shorter blocks
DRAWS = 1000
BINS = 15
REVIEWED = 0.1
FOLDS, PRIOR_ROWS = 10, 2.0  # of an order by hindsight; rows of the stream's error rate that each group begins with
CLIP = 5.0
CLASS_SORTED = ("basketball",)  # its file holds all positives, then all negatives


def majority_shares(votes: Codes, n_classes: int) -> Floats:
    """What each class gets of each row: all for the majority, equal parts of a tie (of all classes without votes).

    >>> majority_shares(np.array([[1, 1, 0], [0, 1, -1], [-1, -1, -1]]), 2)
    array([[0. , 1. ],
           [0.5, 0.5],
           [0.5, 0.5]])
    """
    counts = count_votes(votes, n_classes)
    top = counts == counts.max(axis=1, keepdims=True)
    return top / top.sum(axis=1, keepdims=True)


def count_votes(votes: Codes, n_classes: int) -> Ints:
    """Votes for each class on each row."""
    return np.stack([(votes == label).sum(axis=1) for label in range(n_classes)], axis=1)


def credit_majority(votes: Codes, truth: Ints, n_classes: int) -> Floats:
    """How right the majority is on each row, from 0 to 1."""
    return majority_shares(votes, n_classes)[np.arange(len(truth)), truth]


def credit_labels(codes: Ints, truth: Ints, of_majority: Floats) -> Floats:
    """How right labels are on each row; -1 is a row without a label.

    >>> credit_labels(np.array([1, 0, -1]), np.array([1, 1, 0]), np.array([0.0, 1.0, 0.5]))
    array([1. , 0. , 0.5])
    """
    return np.where(codes >= 0, codes == truth, of_majority)


def labels_of(proba: Floats) -> Ints:
    """The likeliest class of each row; -1 where several are equally likely or a row has no probabilities.

    >>> labels_of(np.array([[0.2, 0.8], [0.5, 0.5], [np.nan, np.nan]]))
    array([ 1, -1, -1])
    """
    known = np.nan_to_num(proba, nan=0.0)
    top = known.max(axis=1, keepdims=True)
    tied = (known >= top - 1e-9).sum(axis=1) > 1
    return np.where(tied, -1, known.argmax(axis=1))


def gain_interval(gains: Floats, seed: int = 0) -> tuple[float, float]:
    """95% confidence interval of the mean gain of rows, in points: blocks of consecutive rows drawn with replacement.

    Rows come in runs, so neighbours are drawn together.
    """
    block = min(BLOCK, max(1, len(gains) // LEAST_BLOCKS))
    starts = np.arange(0, len(gains), block)
    sums, sizes = np.add.reduceat(gains, starts), np.diff(np.append(starts, len(gains)))
    drawn = np.random.default_rng([seed, 16]).integers(len(starts), size=(DRAWS, len(starts)))
    means = 100 * sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


def calibration_error(said: Floats, right: Floats) -> float:
    """Expected calibration error: the mean gap between the probability said and the share right, over 15 bins.

    >>> round(calibration_error(np.array([0.9, 0.9, 0.6, 0.6]), np.array([1.0, 1.0, 0.5, 0.5])), 4)
    0.1
    """
    place = np.minimum((said * BINS).astype(np.int64), BINS - 1)
    gaps = np.bincount(place, weights=said - right, minlength=BINS)
    return float(np.abs(gaps).sum() / len(said))


def review_lift(said: Floats, right: Floats) -> float:
    """Share of the errors among the least certain tenth of the rows, over that tenth.

    Rows that are equally certain are met in any order, on average. 0 errors count as found.

    >>> review_lift(np.linspace(0.5, 1, 10), np.array([0, 1, 1, 1, 1, 1, 1, 1, 1, 0.0]))
    5.0
    """
    wrong = 1 - right
    if wrong.sum() < 1e-9:
        return 1 / REVIEWED
    _, place = np.unique(said, return_inverse=True)
    rows, errors = np.bincount(place), np.bincount(place, weights=wrong)
    before = np.cumsum(rows) - rows
    taken = np.clip((REVIEWED * len(said) - before) / rows, 0, 1)
    return float((taken * errors).sum() / wrong.sum() / REVIEWED)


def review_limit(right: Floats, n_classes: int) -> float:
    """The largest `review_lift` of probabilities that say how often a label is right.

    The label is the likeliest of K classes, so its probability is 1 / K at least, and rows that are wrong more often
    than 1 - 1 / K do not exist: such a label would be another one.

    >>> review_limit(np.array([0, 0, 1, 1, 1.0]), 2)
    1.25
    """
    wrong = float(1 - right.mean())
    return min(1 / REVIEWED, (1 - 1 / n_classes) / wrong) if wrong > 1e-9 else 1 / REVIEWED


def review_hindsight(groups: Codes, right: Floats) -> float:
    """The `review_lift` of an order that knows how often labels are right on the other rows of a row's group.

    `groups` has a line for each row; rows with equal lines are a group. Each tenth of the rows, drawn at random, is
    ordered by the error rates in the other nine tenths: what gold labels would teach, and votes alone cannot.
    """
    _, place = np.unique(groups, axis=0, return_inverse=True)
    place, wrong = place.ravel(), 1 - right
    fold = np.random.default_rng(16).permutation(len(right)) % FOLDS
    said = np.empty(len(right))
    for one in range(FOLDS):
        other, own = fold != one, fold == one
        rows = np.bincount(place[other], minlength=place.max() + 1)
        errors = np.bincount(place[other], weights=wrong[other], minlength=place.max() + 1)
        rates = (errors + PRIOR_ROWS * wrong.mean()) / (rows + PRIOR_ROWS)
        said[own] = 1 - rates[place[own]]
    return review_lift(said, right)


def score(stream: GoldStream, codes: Ints, proba: Floats | None = None) -> Numbers:
    """Figures of one label model on one stream."""
    of_majority = credit_majority(stream.votes, stream.truth, stream.n_classes)
    right = credit_labels(codes, stream.truth, of_majority)
    low, high = gain_interval(right - of_majority)
    figures: Numbers = {
        "accuracy": 100 * float(right.mean()),
        "gain": 100 * float((right - of_majority).mean()),
        "low": low,
        "high": high,
    }
    if proba is not None:
        voted = (stream.votes >= 0).any(axis=1)
        counts = count_votes(stream.votes[voted], stream.n_classes)
        figures["calibration"] = calibration_error(proba[voted].max(axis=1), right[voted])
        figures["calibration_share"] = calibration_error(counts.max(axis=1) / counts.sum(axis=1), of_majority[voted])
        said = proba[voted].max(axis=1)
        figures["review"] = review_lift(said, right[voted])
        figures["review_limit"] = review_limit(right[voted], stream.n_classes)
        tenths = np.digitize(said, np.quantile(said, np.arange(0.1, 1, 0.1)))
        known = (stream.votes[voted], counts, tenths[:, None])
        figures["review_hindsight"] = max(
            review_hindsight(np.column_stack([groups, codes[voted]]), right[voted]) for groups in known
        )
    return figures


def describe(stream: GoldStream) -> Numbers:
    """The size of a stream and how often its majority is right."""
    rows, labelers = stream.votes.shape
    of_majority = credit_majority(stream.votes, stream.truth, stream.n_classes)
    return {
        "rows": rows,
        "labelers": labelers,
        "classes": stream.n_classes,
        "coverage": float((stream.votes >= 0).mean()),
        "majority": 100 * float(of_majority.mean()),
    }


def summarize(gains: Mapping[str, float]) -> Numbers:
    """Mean, clipped mean, loss and worst of gains by stream.

    >>> summarize({"a": 9.0, "b": -1.0, "basketball": -4.0})
    {'mean': 1.3333333333333333, 'clipped': 0.0, 'loss': -1.6666666666666667, 'worst': -1.0, 'worst_stream': 'b'}
    """
    values = np.array(list(gains.values()))
    judged = {name: gain for name, gain in gains.items() if name not in CLASS_SORTED}
    worst = min(judged, key=judged.__getitem__) if judged else ""
    return {
        "mean": float(values.mean()),
        "clipped": float(np.minimum(values, CLIP).mean()),
        "loss": float(np.minimum(values, 0).mean()),
        "worst": judged.get(worst, 0.0),
        "worst_stream": worst,
    }
