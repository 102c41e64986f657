"""Measures of labels and probabilities, for one run and averaged over runs.

A row whose label is a tie counts one part for each of the tied classes: 1/2 with two of them. Where a model draws
ties at random the same is counted, and not the luck of the draw.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from experiments.quality.streams import Codes, Floats, GoldStream, Ints, StreamSpec
from experiments.runs import Numbers

BINS = 20  # of calibration, from 0 to 1
BLOCKS = 30  # blocks of rows behind a confidence interval
T_30 = 2.045  # 97.5% quantile of Student's t with BLOCKS - 1 degrees of freedom
LEAST = 1e-6  # a probability of 0 would make the log-loss infinite
AVERAGED = ("accuracy", "f1", "log_loss", "calibration", "auroc", "review", "gain", "accuracy_error", "window")


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


def credit(parts: Floats, truth: Ints) -> Floats:
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


def measure_labels(
    stream: GoldStream, codes: Ints, proba: Floats, estimates: Floats | None = None, drawn: bool = False
) -> Numbers:
    """All measures of the labels of a stream; accuracies and differences are in per cent."""
    parts = shares(codes, proba, drawn)
    right = credit(parts, stream.truth)
    gain, gain_se = mean_by_blocks(right - credit(majority_shares(stream.votes, stream.n_classes), stream.truth))
    curve = reliability(proba, right)
    top = proba.max(axis=1)
    unanimous = unanimous_class(stream)
    error = None
    if stream.accuracies is not None and estimates is not None:
        error = float(np.abs(estimates - stream.accuracies).mean())
    return {
        "rows": len(right),
        "accuracy": 100 * float(right.mean()),
        "f1": 100 * macro_f1(parts, stream.truth),
        "log_loss": log_loss(proba, stream.truth),
        "calibration": calibration_error(curve),
        "auroc": auroc(top, right),
        "review": found_by_review(top, right),
        "gain": 100 * gain,
        "gain_se": 100 * gain_se,
        "accuracy_error": error,
        "against_unanimous": int(((unanimous >= 0) & (codes != unanimous)).sum()),
        "curve": curve,
    }


def unanimous_class(stream: GoldStream) -> Ints:
    """The class that every vote of a row names, -1 where votes differ or there is none."""
    votes = stream.votes.astype(np.int64)
    highest = votes.max(axis=1)
    lowest = np.where(votes < 0, highest[:, None], votes).min(axis=1)
    return np.where(highest == lowest, highest, -1)


def unanimity(stream: GoldStream) -> Numbers:
    """Per cent of the rows that are unanimous, and that are unanimous and wrong: no label can be right there."""
    unanimous = unanimous_class(stream)
    wrong = (unanimous >= 0) & (unanimous != stream.truth)
    return {"unanimous": 100 * float((unanimous >= 0).mean()), "unanimous_wrong": 100 * float(wrong.mean())}


def average(spec: StreamSpec, runs: Sequence[Numbers]) -> Numbers:
    """Means over the seeds of one stream, their spread, and a confidence interval of the gain over majority.

    Seeds that draw other rows make the mean more certain. Seeds that only put the same rows in another order do
    not: there the standard error of one run stays, and the variance over the orders is added to it.
    """
    made: Numbers = {"seeds": len(runs), "rows": runs[0]["rows"]}
    for measure in AVERAGED:
        values = [run[measure] for run in runs if run.get(measure) is not None]
        made[measure] = float(np.mean(values)) if values else None
    accuracies = [run["accuracy"] for run in runs]
    made["spread"] = float(np.std(accuracies, ddof=1)) if len(runs) > 1 else None
    made["lowest"] = min(accuracies)
    made["gain_se"] = _standard_error(spec, runs)
    made["gain_from"] = made["gain"] - T_30 * made["gain_se"]
    made["gain_to"] = made["gain"] + T_30 * made["gain_se"]
    made["against_unanimous"] = sum(run["against_unanimous"] for run in runs)
    made["curve"] = _join_curves([run["curve"] for run in runs])
    return made


def _standard_error(spec: StreamSpec, runs: Sequence[Numbers]) -> float:
    blocks = float(np.mean([run["gain_se"] ** 2 for run in runs]))
    seeds = float(np.var([run["gain"] for run in runs], ddof=1)) / len(runs) if len(runs) > 1 else 0.0
    if spec.fresh_rows:
        return math.sqrt(max(blocks / len(runs), seeds))  # both see the same chance, one of them in few draws
    return math.sqrt(blocks + seeds)  # which rows there are, and what was drawn for them


def _join_curves(curves: Sequence[Numbers]) -> Numbers:
    """One reliability curve from several, weighted by rows."""
    rows, said, right = np.zeros(BINS), np.zeros(BINS), np.zeros(BINS)
    for curve in curves:
        count = np.array(curve["rows"], np.float64)
        place = np.minimum((np.array(curve["said"]) * BINS).astype(np.int64), BINS - 1)
        np.add.at(rows, place, count)
        np.add.at(said, place, count * curve["said"])
        np.add.at(right, place, count * curve["right"])
    seen = rows > 0
    return {
        "rows": rows[seen].astype(int).tolist(),
        "said": (said[seen] / rows[seen]).tolist(),
        "right": (right[seen] / rows[seen]).tolist(),
    }
