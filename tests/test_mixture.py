"""The default label model on streams that are hard to read: nothing breaks, and no class or labeler is special."""

from __future__ import annotations

import warnings
from itertools import product

import numpy as np
import pytest

from driftvote import AdaptiveLabelModel
from experiments.quality.scoring import credit_labels, credit_majority

from streams_for_tests import random_stream

ROWS = 700


def draw_votes(seed, accuracies, k, n_rows=ROWS, shares=None, abstain=0.0):
    """Truth and votes of independent labelers, wrong in every other class alike."""
    rng = np.random.default_rng([seed, 16])
    truth = rng.choice(k, size=n_rows, p=shares)
    right = rng.random((n_rows, len(accuracies))) < accuracies
    votes = np.where(right, truth[:, None], (truth[:, None] + rng.integers(1, k, right.shape)) % k)
    votes[rng.random(votes.shape) < abstain] = -1
    return truth, votes


def nobody_disagrees(k):
    return draw_votes(1, [1.0] * 4, k)[1]


def one_class_only(k):
    return np.ones((ROWS, 4), int)


def votes_always_the_same(k):
    votes = draw_votes(2, [0.8] * 5, k)[1]
    votes[:, 2] = 1
    return votes


def all_vote_always_the_same(k):
    return np.tile(np.arange(5) % k, (ROWS, 1))


def a_late_class(k):
    votes = draw_votes(3, [0.8] * 5, k)[1]
    late = ROWS // 2
    votes[:late][votes[:late] == k - 1] = 0
    return votes


def two_of_three_are_copies(k):
    votes = draw_votes(4, [0.7, 0.7, 0.8], k)[1]
    votes[:, 1] = votes[:, 0]
    return votes


def one_labeler_each(k):
    """Labeler h votes for class h, or abstains."""
    votes = draw_votes(5, [0.7] * max(3, k), k)[1]
    return np.where(votes == np.arange(max(3, k)) % k, votes, -1)


def workers(k):
    """240 workers, of whom five vote on a row."""
    votes = draw_votes(6, [0.75] * 240, k)[1]
    keep = np.argsort(np.random.default_rng(6).random(votes.shape), axis=1) < 5
    return np.where(keep, votes, -1)


def one_never_votes(k):
    votes = draw_votes(7, [0.8] * 4, k)[1]
    votes[:, 1] = -1
    return votes


def one_votes_alone(k):
    votes = draw_votes(8, [0.8] * 4, k)[1]
    return np.where(np.random.default_rng(8).random((ROWS, 1)) < 0.5, np.where(np.arange(4) < 1, votes, -1), votes)


def no_votes_at_first(k):
    votes = draw_votes(9, [0.8] * 4, k)[1]
    votes[:100] = -1
    votes[300:350] = -1
    return votes


def no_votes_at_all(k):
    return np.full((ROWS, 4), -1)


def one_vote_at_all(k):
    votes = np.full((ROWS, 4), -1)
    votes[50, 2] = 1
    return votes


def worse_than_chance(k):
    return draw_votes(10, [0.1] * 5, k)[1]


STREAMS = [
    nobody_disagrees,
    one_class_only,
    votes_always_the_same,
    all_vote_always_the_same,
    a_late_class,
    two_of_three_are_copies,
    one_labeler_each,
    workers,
    one_never_votes,
    one_votes_alone,
    no_votes_at_first,
    no_votes_at_all,
    one_vote_at_all,
    worse_than_chance,
]


@pytest.mark.parametrize("k", [2, 3, 10, 40])
@pytest.mark.parametrize("stream", STREAMS)
def test_hard_streams_break_nothing(stream, k):
    votes = stream(k)
    if k == 40:
        votes = votes[:120]
    model = AdaptiveLabelModel(n_classes=k, votes="snorkel")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        out = model.label_stream(votes)
        sure = out.proba.max(axis=1)
    assert np.isfinite(out.proba).all()
    assert (out.proba >= 0).all()
    np.testing.assert_allclose(out.proba.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    for values in (out.accuracies, out.coverage, model.estimated_class_balance):
        assert np.isfinite(values).all()
        assert values.min() >= 0
        assert values.max() <= 1 + 1e-12
    top = votes.max(axis=1)
    unanimous = (top >= 0) & ((votes == top[:, None]) | (votes < 0)).all(axis=1)
    assert np.array_equal(out.codes[unanimous], top[unanimous])
    labeled = out.codes >= 0
    assert (out.proba[labeled, out.codes[labeled]] >= sure[labeled] - 1e-12).all()
    np.testing.assert_allclose(model.confusions.sum(axis=2), 1.0, rtol=0, atol=1e-9)
    assert np.isfinite(model.predict_proba(votes[:20])).all()


def test_where_nobody_disagrees_labels_are_sure():
    votes = nobody_disagrees(3)
    out = AdaptiveLabelModel(n_classes=3).label_stream(votes)
    assert np.array_equal(out.codes, votes[:, 0])
    assert out.proba[100:].max(axis=1).min() > 0.93  # four votes and half of one more, of five
    assert out.accuracies[-1].min() > 0.95


def test_a_class_that_appears_late_is_found():
    truth, votes = draw_votes(3, [0.85] * 6, 4)
    early = truth[: ROWS // 2] == 3
    votes[: ROWS // 2][early] = -1  # nobody knows the class yet
    votes[: ROWS // 2][votes[: ROWS // 2] == 3] = 0
    out = AdaptiveLabelModel(n_classes=4).label_stream(votes)
    late = truth[ROWS // 2 :] == 3
    assert (out.codes[ROWS // 2 :][late] == 3).mean() > 0.9


def gain_over_majority(truth, votes, k):
    """Points by which labels are more often right than the majority."""
    codes = AdaptiveLabelModel(n_classes=k, votes="snorkel").label_stream(votes).codes
    of_majority = credit_majority(votes, truth, k)
    return 100 * (credit_labels(codes, truth, of_majority) - of_majority).mean()


def mean_gain(accuracies, k, abstain, balance, n_rows, n_seeds):
    shares = None if balance == "even" else np.array([0.7, *[0.3 / (k - 1)] * (k - 1)])
    streams = (draw_votes(seed, accuracies, k, n_rows, shares, abstain) for seed in range(n_seeds))
    return np.mean([gain_over_majority(*stream, k) for stream in streams])


@pytest.mark.slow
@pytest.mark.parametrize(("low", "high", "n_rows"), [(0.6, 0.6, 3000), (0.8, 0.8, 800), (0.6, 0.9, 800)])
def test_not_below_the_majority_where_labelers_are_independent_and_better_than_chance(low, high, n_rows):
    bad, best = {}, -100.0
    for n, k, abstain, balance in product([3, 5, 11], [2, 5], [0.0, 0.4], ["even", "lopsided"]):
        gain = mean_gain(np.linspace(low, high, n), k, abstain, balance, n_rows, 2)
        best = max(best, gain)
        if gain < -1.0:
            bad[n, k, abstain, balance] = round(float(gain), 2)
    assert not bad, bad
    assert best > (1.0 if low < high else -1.0)  # there is something to gain


@pytest.mark.slow
@pytest.mark.parametrize("accuracy", [0.55, 0.6])
def test_close_to_chance_and_in_few_rows_little_is_lost(accuracy):
    """Equal votes are the best there is, and it takes more rows than these to see that labelers are equal."""
    cases = [(n, abstain) for n in (5, 11) for abstain in (0.0, 0.4)]
    gains = [mean_gain(np.full(n, accuracy), 2, abstain, "even", 800, 3) for n, abstain in cases]
    assert min(gains) > -3, gains


@pytest.mark.parametrize(("n", "k", "abstain"), [(5, 2, 0.0), (4, 3, 0.3), (6, 5, 0.5), (24, 4, 0.8)])
def test_class_codes_do_not_matter(n, k, abstain):
    """Permuted classes: permuted labels and probabilities, the same windows and accuracies."""
    votes = random_stream(n, 500, n, k, abstain, blocks=2)
    order = np.random.default_rng(n).permutation(k)
    moved = np.where(votes >= 0, order[votes], -1)
    out = AdaptiveLabelModel(n_classes=k, votes="snorkel").label_stream(votes)
    other = AdaptiveLabelModel(n_classes=k, votes="snorkel").label_stream(moved)
    np.testing.assert_allclose(other.proba[:, order], out.proba, rtol=0, atol=1e-9)
    assert np.array_equal(other.codes, np.where(out.codes >= 0, order[out.codes], -1))
    assert np.array_equal(other.windows, out.windows)
    np.testing.assert_allclose(other.accuracies, out.accuracies, rtol=0, atol=1e-9)


@pytest.mark.parametrize(("n", "k", "abstain"), [(5, 2, 0.0), (4, 3, 0.3), (6, 5, 0.5), (24, 4, 0.8)])
def test_the_order_of_labelers_does_not_matter(n, k, abstain):
    votes = random_stream(n, 500, n, k, abstain, blocks=2)
    order = np.random.default_rng(n + 1).permutation(n)
    out = AdaptiveLabelModel(n_classes=k, votes="snorkel").label_stream(votes)
    other = AdaptiveLabelModel(n_classes=k, votes="snorkel").label_stream(votes[:, order])
    np.testing.assert_allclose(other.proba, out.proba, rtol=0, atol=1e-9)
    assert np.array_equal(other.codes, out.codes)
    assert np.array_equal(other.windows, out.windows)
    np.testing.assert_allclose(other.accuracies, out.accuracies[:, order], rtol=0, atol=1e-9)
