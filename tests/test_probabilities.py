"""Probabilities of the default label model: between the mixture's and the shares of the votes."""

from __future__ import annotations

import numpy as np
import pytest

from driftvote import AdaptiveLabelModel
from experiments.quality.scoring import calibration_error, count_votes


def stream(seed: int, n: int, k: int, coverage: float, rows: int = 1500) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    truth = rng.choice(k, rows, p=np.arange(1, k + 1) / np.arange(1, k + 1).sum())
    right = rng.random((rows, n)) < rng.uniform(0.5, 0.95, n)
    votes = np.where(right, truth[:, None], (truth[:, None] + rng.integers(1, k, (rows, n))) % k)
    votes[rng.random((rows, n)) >= coverage] = -1
    return votes, truth


@pytest.mark.parametrize(("n", "k", "coverage"), [(3, 2, 1.0), (6, 2, 0.6), (5, 4, 0.7), (12, 3, 0.3)])
def test_the_label_is_the_likeliest_class_and_nothing_is_certain(n, k, coverage):
    votes, _ = stream(n, n, k, coverage)
    out = AdaptiveLabelModel(n_classes=k).label_stream(votes)
    counts, proba = count_votes(votes, k), out.proba
    assert np.allclose(proba.sum(axis=1), 1.0)
    labeled = out.codes >= 0
    assert (proba[labeled, out.codes[labeled]] == proba[labeled].max(axis=1)).all()
    unanimous = labeled & ((counts > 0).sum(axis=1) == 1)
    assert (proba[unanimous].max(axis=1) < 1.0).all()


def test_independent_labelers_are_believed():
    """Shares of the votes alone would say 0.76 where 0.94 is true."""
    errors = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        truth = rng.integers(0, 2, 4000)
        right = rng.random((4000, 6)) < np.linspace(0.6, 0.9, 6)
        out = AdaptiveLabelModel().label_stream(np.where(right, truth[:, None], 1 - truth[:, None]))
        errors.append(out.proba.max(axis=1)[1000:].mean() - (out.codes == truth)[1000:].mean())
    assert abs(np.mean(errors)) < 0.06


def test_labelers_that_find_the_same_rows_difficult_are_not_taken_for_certain():
    errors = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        truth, rows = rng.integers(0, 2, 3000), 3000
        skill = rng.beta(3.0, 1.0, (rows, 1))  # of a row: the same for all labelers
        votes = np.where(rng.random((rows, 8)) < skill, truth[:, None], 1 - truth[:, None])
        out = AdaptiveLabelModel().label_stream(votes)
        errors.append(calibration_error(out.probability, (out.codes == truth).astype(float)))
    assert np.mean(errors) < 0.06  # 0.12 for the mixture's own probabilities
