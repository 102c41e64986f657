"""The confusion and one-coin models against their definitions, toys, and the schedule of fits."""

from __future__ import annotations

import numpy as np
import pytest

from driftvote import AdaptiveLabelModel, Confusion, OneCoin, SettingError, Triplet, WindowRule
from driftvote.streams import simulate

import naive_label_models as naive
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
        np.testing.assert_allclose(table.coin[place], found.coin, rtol=0, atol=1e-9)
        np.testing.assert_allclose(table.misfit[place], found.misfit, rtol=0, atol=1e-7)
        np.testing.assert_allclose(table.evidence[place], found.evidence, rtol=0, atol=1e-7)
        np.testing.assert_allclose(out.accuracies[row], found.accuracy, rtol=0, atol=1e-9)
        last = fits[number + 1][0] if number + 1 < len(fits) else len(votes)
        for t in range(row, last):
            code, proba = naive.label(votes[t].tolist(), found)
            np.testing.assert_allclose(out.proba[t], proba, rtol=0, atol=1e-7)
            assert out.codes[t] == code
            np.testing.assert_allclose(out.weights[t], naive.vote_weights(votes[t].tolist(), found), rtol=0, atol=1e-6)


def test_the_comparison_sees_misfits_and_both_kinds_of_labelers():
    """Hollow otherwise: rows with a misfit, with evidence for classes, and with neither."""
    misfit, evidence = [], []
    for seed, n, k, abstain, refresh in CASES:
        votes = stream_of(seed, n, k, abstain, 260)
        out = AdaptiveLabelModel(n_classes=k, votes="snorkel", refresh=refresh).label_stream(votes)
        misfit.append(out._estimates.fits.misfit[1:])
        evidence.append(out._estimates.fits.evidence[1:])
    assert (np.concatenate(misfit) > 0.03).mean() > 0.2
    assert (np.concatenate(evidence) > 0.9).any()
    assert (np.concatenate(evidence) < 0.1).any()


ONE_COIN_CASES = [  # seed, labelers, classes, abstentions, refresh, share of verified rows
    (1, 5, 2, 0.0, 1, 0.0),
    (2, 4, 3, 0.3, 1, 0.0),
    (3, 6, 2, 0.6, 8, 0.0),
    (4, 24, 3, 0.9, 32, 0.0),  # so many labelers that keys are not unique
    (5, 4, 3, 0.2, 4, 0.1),
]


@pytest.mark.parametrize(("seed", "n", "k", "abstain", "refresh", "share"), ONE_COIN_CASES)
def test_one_coin_equals_its_definition_after_every_row(seed, n, k, abstain, refresh, share):
    votes = stream_of(seed, n, k, abstain, rows_for(220, 60))
    rng = np.random.default_rng(seed)
    truth = np.where(rng.random(len(votes)) < share, rng.integers(k, size=len(votes)), -1)
    known = {"verified": truth.tolist()} if share else {}
    rule = WindowRule([1, 2, 4, 8, 16, 32, 64, 128], beta=0.05, delta=0.5)
    model = AdaptiveLabelModel(n_classes=k, votes="snorkel", estimator=OneCoin(refresh), windows=rule)
    out = model.label_stream(votes, **known)
    fits = fits_of(out)
    assert len(fits) >= (len(votes) / 8 if refresh == 1 else 4)
    for (row, window, _), last in zip(fits, [row for row, _, _ in fits[1:]] + [len(votes)], strict=True):
        seen = slice(row + 1 - window, row + 1)
        found = naive.fit_one_coin(votes[seen], k, truth[seen].tolist())
        for t in range(row, last):
            np.testing.assert_allclose(out.accuracies[t], found.accuracy, rtol=0, atol=1e-9)
            if truth[t] >= 0:
                assert out.codes[t] == truth[t]
                continue
            code, proba = naive.label_by_one_coin(votes[t].tolist(), found, k)
            np.testing.assert_allclose(out.proba[t], proba, rtol=0, atol=1e-9)
            assert out.codes[t] == code
            weights = [
                naive.log_odds(p, k) if vote >= 0 else 0.0 for p, vote in zip(found.accuracy, votes[t], strict=True)
            ]
            np.testing.assert_allclose(out.weights[t], weights, rtol=0, atol=1e-8)
    confusion = AdaptiveLabelModel(n_classes=k, votes="snorkel", estimator=Confusion(refresh), windows=rule)
    assert np.array_equal(out.windows, confusion.label_stream(votes).windows)  # the rule does not depend on the model


def test_one_coin_streams_refuse_windows_and_overrule_majorities():
    """Hollow otherwise."""
    seed, n, k, abstain, refresh, _ = ONE_COIN_CASES[0]
    votes = stream_of(seed, n, k, abstain, 220)
    rule = WindowRule([1, 2, 4, 8, 16, 32, 64, 128], beta=0.05, delta=0.5)
    out = AdaptiveLabelModel(n_classes=k, votes="snorkel", estimator=OneCoin(refresh), windows=rule).label_stream(votes)
    assert any(out.windows[row] < min(128, 2 ** (row + 1).bit_length() // 2) for row in range(len(votes)))
    assert any(out.explain(row).overruled for row in range(len(votes)))


def test_one_coin_chunks_saves_and_newcomers_do_not_show(tmp_path):
    votes = random_stream(9, 500, 5, 3, 0.3, blocks=3)
    whole = AdaptiveLabelModel(n_classes=3, estimator="one_coin").label_stream(votes)
    model = AdaptiveLabelModel(n_classes=3, estimator="one_coin")
    parts = []
    for part in random_chunks(4, len(votes)):
        parts.append(model.label_stream(votes[part]))
        model.save(tmp_path / "state.npz")
        model = AdaptiveLabelModel.load(tmp_path / "state.npz")
    for name in ("codes", "proba", "windows", "accuracies", "weights"):
        assert np.array_equal(np.concatenate([getattr(part, name) for part in parts]), getattr(whole, name)), name
    rows = [
        {f"j{i}": int(v) for i, v in enumerate(row) if v >= 0 and (i < 4 or t >= 200)} for t, row in enumerate(votes)
    ]
    rows[0] |= {f"j{i}": 1 for i in range(4)}
    joined = AdaptiveLabelModel(n_classes=3, estimator="one_coin").label_stream(rows)
    steps = AdaptiveLabelModel(n_classes=3, estimator="one_coin")
    assert [steps.update(row).code for row in rows] == joined.codes.tolist()
    assert (joined.accuracies[:200, 4] == 1 / 3).all()


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


@pytest.mark.slow
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
        ({"class_balance": [0.2, 0.3, 0.5]}, "2 shares, one for each class"),
        ({"class_balance": [0.5]}, "add up to 1"),
        ({"class_balance": [0.5, 0.6]}, "add up to 1"),
        ({"class_balance": [0.0, 1.0]}, "above 0"),
        ({"class_balance": "ab"}, "shares above 0 that add up to 1"),
        (
            {"class_balance": [0.5, 0.5], "estimator": "triplet"},
            "class_balance goes with estimator='confusion', not 'triplet'",
        ),
        ({"class_balance": [0.5, 0.5], "estimator": OneCoin()}, "goes with estimator='confusion', not 'one_coin'"),
        ({"clip": (0.1, 0.9)}, "clip goes with estimator='triplet', not 'confusion'"),
        (
            {"refresh": 8, "estimator": "triplet"},
            "refresh goes with estimator='confusion' or 'one_coin', not 'triplet'",
        ),
        ({"estimator": "magic"}, "estimator must be 'confusion' or 'triplet' or 'one_coin'"),
        ({"bound": "hoeffding"}, "bound must be 'normal'"),
        ({"refresh": 0}, "refresh must be a number of rows from 1"),
    ],
)
def test_settings_are_checked(settings, message):
    with pytest.raises(SettingError, match=message):
        AdaptiveLabelModel(**settings)


@pytest.mark.parametrize("keyword", ["watch", "n_epochs"])
def test_a_keyword_that_no_part_has_is_a_type_error(keyword):
    with pytest.raises(TypeError, match=f"AdaptiveLabelModel has no setting '{keyword}'"):
        AdaptiveLabelModel(**{keyword: "agreements"})


def test_flat_keywords_are_settings_of_the_parts():
    model = AdaptiveLabelModel(
        windows=[2, 4], bound="bernstein", beta=0.2, delta=0.3, refresh=8, class_balance=[0.3, 0.7]
    )
    assert model.windows == WindowRule([2, 4], bound="bernstein", beta=0.2, delta=0.3)
    assert model.estimator == Confusion(refresh=8, class_balance=(0.3, 0.7))
    paper = AdaptiveLabelModel(estimator="triplet", clip=(0.2, 0.8))
    assert paper.estimator == Triplet((0.2, 0.8))
    changed = AdaptiveLabelModel(windows=WindowRule([2, 4], beta=0.2), delta=0.3, estimator=Confusion(8), refresh=16)
    assert (changed.windows, changed.estimator) == (WindowRule([2, 4], beta=0.2, delta=0.3), Confusion(16))
    with pytest.raises(AttributeError):
        model.estimator.refresh = 4


@pytest.mark.slow
def test_hundreds_of_sparse_labelers_cost_what_they_vote():
    rng = np.random.default_rng(2)
    truth = rng.integers(0, 3, rows_for(3000, 200))
    votes = np.where(rng.random((len(truth), 120)) < 0.7, truth[:, None], rng.integers(0, 3, (len(truth), 120)))
    votes[rng.random(votes.shape) < 0.95] = -1
    out = AdaptiveLabelModel(n_classes=3).label_stream(votes)
    assert np.isfinite(out.proba).all()
    assert (out.codes == truth).mean() > 0.85
