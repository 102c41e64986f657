"""The class-conditional estimator against its definition, toys, and the schedule of its fits."""

from __future__ import annotations

import numpy as np
import pytest

import naive_confusion as naive
from driftvote import AdaptiveLabelModel
from driftvote.errors import SettingError
from driftvote.streams import simulate

from streams_for_tests import random_chunks, random_stream, rows_for

CASES = [  # seed, labelers, classes, abstentions, refresh
    (1, 5, 2, 0.0, 32),
    (2, 6, 2, 0.4, 16),
    (3, 4, 3, 0.2, 8),
    (4, 8, 4, 0.7, 32),
    (5, 24, 2, 0.9, 32),  # keys do not tell all
]


def stream_of(seed, n, k, abstain, n_rows):
    """Two labelers that repeat each other (a misfit), and in the first case two that lean to class 0 (classes matter)."""
    votes = random_stream(seed, n_rows, n, k, abstain, blocks=3)
    votes[:, 1] = np.where(votes[:, 0] >= 0, votes[:, 0], votes[:, 1])
    if seed == 1:
        lean = np.random.default_rng(0).random((n_rows, 2)) < 0.6
        votes[:, 2:4] = np.where(lean, 0, votes[:, 2:4])
    return votes


def fits_of(out):
    """First row, window and number of every fit that labeled rows."""
    places = out._estimates.places
    firsts = np.flatnonzero(np.diff(places, prepend=-1))
    return [(int(row), int(out.windows[row]), int(places[row])) for row in firsts]


@pytest.mark.parametrize(("seed", "n", "k", "abstain", "refresh"), CASES)
def test_every_fit_and_every_row_equal_the_definition(seed, n, k, abstain, refresh):
    votes = stream_of(seed, n, k, abstain, rows_for(260, 70))
    balance = [0.6, *[0.4 / (k - 1)] * (k - 1)] if seed == 3 else None
    model = AdaptiveLabelModel(n_classes=k, votes="snorkel", refresh=refresh, class_balance=balance)
    out = model.label_stream(votes)
    table = out._estimates.fits
    fits = fits_of(out)
    for number, (row, window, place) in enumerate(fits):
        found = naive.fit(votes[row + 1 - window : row + 1], k, balance)
        np.testing.assert_allclose(table.theta[place], found.theta, rtol=0, atol=1e-9)
        np.testing.assert_allclose(table.balance[place], found.balance, rtol=0, atol=1e-9)
        np.testing.assert_allclose(table.doubts[place], [found.misfit, found.evidence], rtol=0, atol=1e-7)
        np.testing.assert_allclose(out.accuracies[row], found.accuracy, rtol=0, atol=1e-9)
        last = fits[number + 1][0] if number + 1 < len(fits) else len(votes)
        for t in range(row, last):
            code, proba = naive.label(votes[t].tolist(), found)
            np.testing.assert_allclose(out.proba[t], proba, rtol=0, atol=1e-7)
            assert out.codes[t] == code


def test_the_comparison_sees_misfits_and_both_kinds_of_labelers():
    """Hollow otherwise: rows with a misfit, with evidence for classes, and with neither."""
    doubts = []
    for seed, n, k, abstain, refresh in CASES:
        votes = stream_of(seed, n, k, abstain, 260)
        out = AdaptiveLabelModel(n_classes=k, votes="snorkel", refresh=refresh).label_stream(votes)
        doubts.append(out._estimates.fits.doubts[1:])
    misfit, evidence = np.concatenate(doubts).T
    assert (misfit > 0.03).mean() > 0.2
    assert (evidence > 0.9).any()
    assert (evidence < 0.1).any()


def test_fits_come_at_rows_by_their_numbers():
    """The first 32 rows each; then every 32, and every sixteenth of a window once that is more."""
    votes = simulate(np.full((6000, 4), 0.8), seed=3).votes
    rows = [row for row, _, _ in fits_of(AdaptiveLabelModel().label_stream(votes))]
    assert rows[:34] == [*range(33), 64]
    assert all(row % 32 == 0 for row in rows[32:])
    late = [row for row in rows if row > 4200]
    assert np.diff(late).tolist() == [256] * (len(late) - 1)


def test_a_window_that_is_not_full_is_fitted_as_often_as_one_of_its_rows():
    """Previously a lone large window was fitted at row 31 and then not before a sixteenth of its full size."""
    votes = simulate(np.full((6000, 4), 0.8), seed=3).votes
    rows = [row for row, _, _ in fits_of(AdaptiveLabelModel(windows=[2**19]).label_stream(votes))]
    assert rows[:34] == [*range(33), 64]
    assert np.diff([row for row in rows if 64 <= row <= 1024]).tolist() == [32] * 30
    assert np.diff([row for row in rows if row > 4200]).tolist() == [256] * 6


def test_chunks_do_not_show():
    votes = random_stream(9, 900, 6, 3, 0.3, blocks=4)
    whole = AdaptiveLabelModel(n_classes=3).label_stream(votes)
    model = AdaptiveLabelModel(n_classes=3)
    parts = [model.label_stream(votes[part]) for part in random_chunks(4, len(votes))]
    for name in ("codes", "proba", "windows", "accuracies", "coverage"):
        assert np.array_equal(np.concatenate([getattr(part, name) for part in parts]), getattr(whole, name)), name


def test_class_conditional_labelers_are_found():
    """Two labelers that are right on one class only; one coin cannot say so, a confusion table can."""
    truth = np.random.default_rng(0).integers(0, 2, 6000)
    right = np.array([[0.95, 0.55], [0.55, 0.95], [0.9, 0.6], [0.6, 0.9], [0.85, 0.65]])
    draws = np.random.default_rng(1).random((6000, 5))
    votes = np.where(draws < right[:, truth].T, truth[:, None], 1 - truth[:, None])
    model = AdaptiveLabelModel()
    model.label_stream(votes)
    table = model.confusions
    assert table.shape == (5, 2, 3)
    np.testing.assert_allclose(table[:, [0, 1], [0, 1]], right, atol=0.08)
    np.testing.assert_allclose(table.sum(axis=2), 1.0, atol=1e-12)


def test_a_known_class_balance_is_kept():
    votes = simulate(np.full((3000, 5), 0.75), seed=1).votes
    model = AdaptiveLabelModel(class_balance=[0.9, 0.1])
    out = model.label_stream(votes)
    assert model.estimated_class_balance.tolist() == [0.9, 0.1]
    assert (out.codes == 1).mean() < (AdaptiveLabelModel().label_stream(votes).codes == 1).mean()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"class_balance": [0.5]}, "2 shares, one for each class"),
        ({"class_balance": [0.5, 0.6]}, "add up to 1"),
        ({"class_balance": [0.0, 1.0]}, "above 0"),
        ({"class_balance": "ab"}, "2 shares"),
        ({"class_balance": [0.5, 0.5], "estimator": "triplet"}, "goes with estimator='confusion'"),
        ({"estimator": "magic"}, "estimator must be 'confusion' or 'triplet'"),
        ({"bound": "hoeffding"}, "bound must be 'normal'"),
        ({"watch": "nothing"}, "watch must be"),
        ({"refresh": 0}, "refresh must be a number of rows from 1"),
    ],
)
def test_settings_are_checked(settings, message):
    with pytest.raises(SettingError, match=message):
        AdaptiveLabelModel(**settings)


@pytest.mark.slow
def test_hundreds_of_sparse_labelers_cost_what_they_vote():
    rng = np.random.default_rng(2)
    truth = rng.integers(0, 3, rows_for(3000, 200))
    votes = np.where(rng.random((len(truth), 120)) < 0.7, truth[:, None], rng.integers(0, 3, (len(truth), 120)))
    votes[rng.random(votes.shape) < 0.95] = -1
    out = AdaptiveLabelModel(n_classes=3).label_stream(votes)
    assert np.isfinite(out.proba).all()
    assert (out.codes == truth).mean() > 0.85
