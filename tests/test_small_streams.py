"""Rare ways through the kernels on streams of a few dozen rows, small enough to run without the compiler."""

from __future__ import annotations

import numpy as np
import pytest

import driftvote
from driftvote import AdaptiveLabelModel, FixedWindowLabelModel, MajorityLabelModel
from driftvote.core import state

from streams_for_tests import random_stream

SMALL = [1, 2, 4, 8, 16, 32]


def same(left, right):
    for name in ("codes", "proba", "windows", "accuracies", "coverage"):
        assert np.array_equal(getattr(left, name), getattr(right, name)), name


def test_a_prediction_is_the_label_that_the_last_row_got():
    votes = random_stream(1, 45, 5, 3, 0.2)
    for model in (
        AdaptiveLabelModel(n_classes=3, windows=SMALL),
        AdaptiveLabelModel(n_classes=3, windows=SMALL, estimator="one_coin"),
        AdaptiveLabelModel.paper(3, abstentions="zero", tie_break_policy="abstain"),
        MajorityLabelModel(n_classes=3),
    ):
        out = model.label_stream(votes)
        labels, proba = model.predict(votes[-1:], return_probs=True)
        assert labels[0] == out.codes[-1]
        assert np.array_equal(proba[0], out.proba[-1])


def test_drawn_ties_belong_to_their_rows():
    votes = np.array([[0, 0, 1, 1], [0, 1, -1, -1], [-1, -1, -1, -1], [1, 1, 1, 0]] * 10)
    for make, n_tied in ((MajorityLabelModel, 20), (AdaptiveLabelModel, 1)):  # accuracies differ after a few rows
        abstaining = make().label_stream(votes)
        drawn = make(tie_break_policy="random", seed=3).label_stream(votes)
        tied = (abstaining.codes < 0) & (drawn.n_votes > 0)
        assert tied.sum() == n_tied
        assert (drawn.codes[tied] >= 0).all()
        assert np.array_equal(drawn.codes[~tied & (drawn.n_votes > 0)], abstaining.codes[~tied & (drawn.n_votes > 0)])
        model = make(tie_break_policy="random", seed=3)
        assert [model.update(row).code for row in votes] == drawn.codes.tolist()


def test_verified_rows_can_overrule_labelers_that_copy_each_other():
    """Three copies of a poor labeler outvote two good ones; verified rows say who is right."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 96)
    votes = np.where(rng.random((96, 2)) < 0.97, truth[:, None], 1 - truth[:, None])
    votes = np.column_stack([votes, *[np.where(rng.random(96) < 0.55, truth, 1 - truth)] * 3])
    verified = [int(value) if row % 2 == 0 else None for row, value in enumerate(truth)]
    alone = AdaptiveLabelModel(windows=[96]).label_stream(votes)
    model = AdaptiveLabelModel(windows=[96])
    parts = [
        model.label_stream(votes[:50], verified=verified[:50]),
        model.label_stream(votes[50:], verified=verified[50:]),
    ]
    codes, proba = (np.concatenate([getattr(part, name) for part in parts]) for name in ("codes", "proba"))
    assert np.array_equal(codes[::2], truth[::2])
    assert (proba[np.arange(0, 96, 2), truth[::2]] == 1.0).all()
    late = np.arange(51, 96, 2)  # rows that were not verified
    assert (codes[late] == truth[late]).mean() > (alone.codes[late] == truth[late]).mean() + 0.2


def test_hundreds_of_labelers_are_summed_by_logarithms():
    """The odds of 320 labelers, multiplied, leave the range of a double."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 6)
    votes = np.where(rng.random((6, 320)) < 0.9, truth[:, None], 1 - truth[:, None])
    out = FixedWindowLabelModel(window=6).label_stream(votes)
    assert np.isfinite(out.proba).all()
    assert out.codes[1:].tolist() == truth[1:].tolist()


@pytest.mark.parametrize("settings", [{}, {"estimator": "triplet", "bound": "mcdiarmid"}])
def test_windows_too_large_for_stored_totals_are_followed_row_by_row(settings, monkeypatch, tmp_path):
    votes = random_stream(5, 90, 4, 2, 0.3)
    near = AdaptiveLabelModel(windows=SMALL, **settings).label_stream(votes)
    monkeypatch.setattr(state, "TOTALS_BYTES", 1 << 8)
    model = AdaptiveLabelModel(windows=SMALL, **settings)
    same(model.label_stream(votes[:60]), near[:60])
    model.save(tmp_path / "state.npz")
    same(driftvote.load(tmp_path / "state.npz").label_stream(votes[60:]), near[60:])
