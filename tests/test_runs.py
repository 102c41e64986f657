"""Truth that comes in runs, labelers that never change: windows stay long, and there is next to nothing to report."""

from __future__ import annotations

import numpy as np
import pytest

from driftvote import AdaptiveLabelModel, DriftDetector

from streams_for_tests import COMPILED

pytestmark = pytest.mark.skipif(not COMPILED, reason="long streams")
RUNS = [10, 50, 200, 5000]


def in_runs(seed: int, length: int, n_rows: int, right: tuple[float, float] = (0.95, 0.7), n: int = 6) -> np.ndarray:
    """Votes of labelers that are right so often on either class; the truth comes in runs of random lengths."""
    rng = np.random.default_rng(seed)
    n_runs = 3 * n_rows // length + 50
    lengths = np.ones(n_rows, int) if length == 1 else rng.geometric(1 / length, n_runs)
    truth = np.repeat(rng.integers(0, 2, len(lengths)), lengths)[:n_rows, None]
    accuracy = np.where(truth == 0, *right) + np.where(np.arange(n) % 2, 0.01, -0.01) * np.arange(n)
    return np.where(rng.random((n_rows, n)) < accuracy, truth, 1 - truth).astype(np.int8)


@pytest.mark.parametrize("length", RUNS)
@pytest.mark.parametrize("right", [(0.95, 0.7), (0.82, 0.82)], ids=["better at one class", "alike"])
def test_at_most_one_event_in_100_000_rows(length, right):
    n_events = sum(len(DriftDetector(6).update(in_runs(seed, length, 400_000, right))) for seed in range(3))
    assert n_events <= 12


@pytest.mark.parametrize("length", RUNS)
def test_the_median_window_is_that_of_a_stream_without_runs(length):
    found = []
    for seed in range(2):
        plain, runs = (
            AdaptiveLabelModel(estimator="confusion").label_stream(in_runs(seed, one, 30_000)).windows
            for one in (1, length)
        )
        found.append(np.median(runs) / np.median(plain))
    assert min(found) >= 0.5
    assert max(found) <= 2.0


@pytest.mark.parametrize("length", [1, 50, 200])
def test_a_labeler_that_changes_is_noticed_all_the_same(length):
    """One of six begins to err, in the middle of runs."""
    noticed = []
    for seed in range(6):
        votes = in_runs(seed, length, 24_000, (0.9, 0.8))
        wrong = np.random.default_rng(seed).random(4000) < 0.5
        votes[20_000:, 0] = np.where(wrong, 1 - votes[20_000:, 0], votes[20_000:, 0])
        model = AdaptiveLabelModel(estimator="confusion")
        out = model.label_stream(votes)
        named = [event.row for event in out.events if "labeler_0" in event.names and event.row >= 20_000]
        noticed.append(bool(named) and named[0] < 21_500)
        assert (out.windows[-1000:] <= 4000).all() or not named
    assert sum(noticed) >= 5


@pytest.mark.parametrize("seed", range(3))
def test_a_balance_that_stays_elsewhere_is_news_and_its_return_is_not(seed):
    rng = np.random.default_rng(seed)
    share = np.where(np.arange(24_000) // 6000 % 2, 0.8, 0.4)
    truth = (rng.random(24_000) < share).astype(int)[:, None]
    votes = np.where(rng.random((24_000, 6)) < 0.85, truth, 1 - truth).astype(np.int8)
    events = DriftDetector(6).update(votes)
    assert [event.kind for event in events] == ["class balance"]
    assert 6000 <= events[0].row < 7000
