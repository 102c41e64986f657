"""The constants, and the guarantee as a statement about probability."""

from __future__ import annotations

import math

import numpy as np
import pytest

from driftvote import AdaptiveLabelModel, theory
from driftvote.streams import simulate

from streams_for_tests import PAPERS_RULE, rows_for

N, ROWS, DELTA, BETA = 4, 2048, 0.1, 0.1
SIZES = [2**k for k in range(12)]
FACTOR = theory.deviation_factor(N, len(SIZES), DELTA)
HIGH, LOW = np.array([0.9, 0.8, 0.7, 0.9]), np.array([0.6, 0.8, 0.9, 0.65])


def drifting(kind: str) -> np.ndarray:
    """True accuracies, row by row."""
    share = {
        "stationary": np.zeros(ROWS),
        "jump": (np.arange(ROWS) >= ROWS - 300).astype(float),
        "slow": np.linspace(0, 1, ROWS),
    }[kind]
    return (1 - share)[:, None] * HIGH + share[:, None] * LOW


def truth_of(accuracies: np.ndarray) -> np.ndarray:
    """C(u) for every row: products of skills."""
    q = 2 * accuracies - 1
    return q[:, :, None] * q[:, None, :]


def window_means(rows: np.ndarray) -> list[np.ndarray]:
    return [rows[-size:].mean(axis=0) for size in SIZES]


def off_diagonal(matrix: np.ndarray) -> float:
    return float(np.abs(matrix[np.triu_indices(N, 1)]).max())


def event_holds(votes: np.ndarray, truth: np.ndarray, factor: float) -> bool:
    """The event of the paper's corollary at the last row."""
    signed = 2 * votes.astype(float) - 1
    found = window_means(signed[:, :, None] * signed[:, None, :])
    means = window_means(truth)
    for k, size in enumerate(SIZES):
        drift = off_diagonal(truth[-1] - means[k])
        if off_diagonal(truth[-1] - found[k]) > factor / math.sqrt(size) + drift:
            return False
        if k + 1 < len(SIZES):
            gap = off_diagonal(means[k] - means[k + 1] - found[k] + found[k + 1])
            if gap > factor * math.sqrt((1 - size / SIZES[k + 1]) / size):
                return False
    return True


@pytest.mark.parametrize("kind", ["stationary", "jump", "slow"])
def test_the_guarantee_over_many_streams(kind):
    runs = rows_for(300, 12)
    accuracies = drifting(kind)
    truth = truth_of(accuracies)
    steps = [off_diagonal(truth[u] - truth[u + 1]) for u in range(ROWS - 1)]
    drift_sums = np.concatenate([[0.0], np.cumsum(steps[::-1])])
    bound = theory.agreement_bound(SIZES, BETA, FACTOR, drift_sums.tolist())
    assert bound == pytest.approx(
        theory.phi(SIZES, BETA) * min(FACTOR / math.sqrt(r) + drift_sums[r - 1] for r in range(1, ROWS + 1))
    )
    held, tight = 0, 0
    for seed in range(runs):
        votes = simulate(accuracies, seed).votes
        model = AdaptiveLabelModel(windows=SIZES, beta=BETA, delta=DELTA, **PAPERS_RULE).fit(votes)
        error = off_diagonal(model.agreements - truth[-1])
        tight += event_holds(votes, truth, FACTOR / 4)
        if event_holds(votes, truth, FACTOR):
            held += 1
            assert error <= bound
            # B(r) bounds the error of the window that was chosen, too.
            drift = off_diagonal(truth[-1] - truth[-model.window :].mean(axis=0))
            assert error <= theory.window_bound(SIZES, BETA, FACTOR, model.window, drift)
    assert held >= (1 - DELTA) * runs
    # The event is not one that always holds: a quarter of the factor breaks it most of the time.
    assert tight < 0.5 * runs


def test_the_window_follows_the_drift():
    windows = {}
    for kind in ("stationary", "jump", "slow"):
        found = []
        for seed in range(rows_for(20, 2)):
            votes = simulate(drifting(kind), seed).votes
            found.append(AdaptiveLabelModel(windows=SIZES, **PAPERS_RULE).fit(votes).window)
        windows[kind] = np.median(found)
    assert windows["stationary"] == ROWS
    assert windows["jump"] < ROWS / 2


def test_phi_at_the_best_choice():
    best = theory.phi([theory.BEST_RATIO**k for k in range(8)], theory.BEST_BETA)
    assert best == pytest.approx(7 + 4 * math.sqrt(2), rel=1e-12)
    assert theory.phi([2.0**k for k in range(20)], 0.1) == pytest.approx(76.1, abs=0.05)
    # No other choice on a grid of choices does better.
    others = [theory.phi([g**k for k in range(8)], b) for g in np.linspace(2, 12, 60) for b in np.linspace(0.05, 2, 60)]
    assert min(others) >= best - 1e-9
    assert theory.phi([16], 0.1) == 1.0


def test_the_general_factor_is_the_pair_factor():
    assert theory.statistics_factor(15, 20, 0.1) == theory.deviation_factor(6, 20, 0.1)
    assert theory.deviation_factor(6, 20, 0.1) == math.sqrt(2 * math.log(39 * 30 / 0.1))


def test_drift_of_agreements_is_at_most_twelve_times_that_of_accuracies():
    rng = np.random.default_rng(0)
    for _ in range(200):
        p, s = rng.random(N), rng.random(N)
        change = off_diagonal(truth_of(p[None])[0] - truth_of(s[None])[0])
        assert change <= 12.0 * np.abs(p - s).max()
