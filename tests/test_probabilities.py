"""Probabilities of the default label model: shares of the votes and of one more, and the label is still the mixture's."""

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
def test_probabilities_are_shares_of_the_votes_and_one_more(n, k, coverage):
    votes, _ = stream(n, n, k, coverage)
    out = AdaptiveLabelModel(n_classes=k).label_stream(votes)
    counts, proba = count_votes(votes, k), out.proba
    cast = counts.sum(axis=1, keepdims=True)
    assert np.allclose(proba.sum(axis=1), 1.0)
    labeled = out.codes >= 0
    assert (proba[labeled, out.codes[labeled]] == proba[labeled].max(axis=1)).all()
    # What is left of a row after its votes is what the mixture and nobody say: half a vote at most, and at least 1 / 2k.
    more = proba * (cast + 1) - counts
    tempered = (
        labeled & (cast[:, 0] > 0) & (more >= 0.5 / k - 1e-9).all(axis=1) & (more <= 0.5 + 0.5 / k + 1e-9).all(axis=1)
    )
    leads = counts[np.arange(len(counts)), out.codes] > np.where(np.arange(k) == out.codes[:, None], -1, counts).max(
        axis=1
    )
    assert tempered[labeled & leads].all()
    overruled = labeled & (cast[:, 0] > 0) & ~tempered
    assert (counts[overruled, out.codes[overruled]] < counts[overruled].max(axis=1)).all()
    unanimous = labeled & ((counts > 0).sum(axis=1) == 1)
    assert tempered[unanimous].all()
    assert (proba[unanimous].max(axis=1) < 1.0).all()


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
