"""Toys worked by hand: numbers a reader can check with a pencil."""

from __future__ import annotations

import math

import numpy as np
import pytest

from driftvote import AdaptiveLabelModel, FixedWindowLabelModel, MajorityLabelModel, WindowRule, theory


def test_three_labelers_two_rows():
    """Row 1: all say 1. Row 2: labeler 2 differs.

    Agreements over both rows: C01 = (1 + 1) / 2 = 1, C02 = C12 = (1 - 1) / 2 = 0.
    Labeler 2: strongest pair without it is (0, 1): q = sqrt(0 * 0 / 1) = 0, p = 1/2.
    Labelers 0 and 1: strongest pair without them has C = 0, so p = 1/2. All weights are 0: a tie.
    """
    out = FixedWindowLabelModel(window=2).label_stream([[1, 1, 1], [1, 1, 0]])
    assert out.accuracies[1].tolist() == [0.5, 0.5, 0.5]
    assert out.labels.tolist() == [1, -1]
    assert out.proba[1].tolist() == [0.5, 0.5]


def test_four_rows_with_one_slip_each():
    """Sums over four rows: S01 = 2, S02 = 2, S12 = 0 (0 and 1 differ once, 0 and 2 once, 1 and 2 twice).

    h = 0: pair (1, 2) has C = 0: p = 1/2.
    h = 1: pair (0, 2) has C = 1/2; C01 C12 / C02 = (1/2 * 0) / (1/2) = 0: p = 1/2. h = 2 likewise.
    """
    votes = [[1, 1, 1], [0, 0, 0], [1, 0, 1], [1, 1, 0]]
    assert FixedWindowLabelModel(window=4).fit(votes).accuracies.tolist() == [0.5, 0.5, 0.5]


def test_known_skills():
    """Five rows, S01 = 5, S02 = S12 = 3: C = 1, 0.6, 0.6.

    q0 = sqrt(1 * 0.6 / 0.6) = 1, q1 = 1, q2 = sqrt(0.6 * 0.6 / 1) = 0.6; p = 1, 1, 0.8.
    Clipped to 0.9, 0.9, 0.8 the weights are ln 9, ln 9, ln 4, and the last row (1, 1, 0) has odds 81 / 4.
    """
    model = FixedWindowLabelModel(window=None)
    out = model.label_stream([[1, 1, 1], [0, 0, 0], [1, 1, 1], [0, 0, 0], [1, 1, 0]])
    np.testing.assert_allclose(model.accuracies, [1.0, 1.0, 0.8], atol=1e-15)
    np.testing.assert_allclose(out.weights[-1], [math.log(9), math.log(9), math.log(4)], atol=1e-12)
    assert out.labels[-1] == 1
    assert out.proba[-1, 1] == pytest.approx(81 / 85, abs=1e-12)


def test_abstentions_dilute_and_are_taken_out_again():
    """Labeler 2 votes on two rows of four and is right there; 0 and 1 always agree.

    S01 = 4, S02 = S12 = 2: q2 = sqrt(1/2 * 1/2 / 1) = 1/2, diluted accuracy 3/4.
    Its coverage is 1/2, so its accuracy when it votes is (1 + (1/2) / (1/2)) / 2 = 1.
    """
    model = FixedWindowLabelModel(window=4).fit([[1, 1, 1], [0, 0, 0], [1, 1, -1], [0, 0, -1]])
    assert model.diluted_accuracies.tolist() == [1.0, 1.0, 0.75]
    assert model.accuracies.tolist() == [1.0, 1.0, 1.0]
    assert model.coverage.tolist() == [1.0, 1.0, 0.5]


def test_three_classes():
    """K = 3: agreeing counts 1, differing -1/2.

    Four rows; 0 and 1 agree always (C = 1), labeler 2 agrees with them on three: C = (3 - 1/2) / 4 = 5/8.
    q2 = 5/8, p2 = (1 + 2 * 5/8) / 3 = 3/4. Weights ln(2 * 0.9 / 0.1) = ln 18 and ln(2 * 0.75 / 0.25) = ln 6.
    The last row votes 2, 2, 0: scores ln 324 for class 2, ln 6 for class 0, 0 for class 1.
    """
    model = FixedWindowLabelModel(window=4, n_classes=3)
    out = model.label_stream([[0, 0, 0], [1, 1, 1], [2, 2, 2], [2, 2, 0]])
    np.testing.assert_allclose(model.accuracies, [1.0, 1.0, 0.75], atol=1e-15)
    np.testing.assert_allclose(out.proba[-1], np.array([6, 1, 324]) / 331, atol=1e-12)
    assert out.labels[-1] == 2


def test_the_first_of_equal_pairs_wins():
    """S01 = S23 = 3 and S02 = S13 = 1, S03 = S12 = 1 over three rows would tie; here h = 2 sees (0, 1) first.

    Rows: labelers 0 and 1 agree always, 2 and 3 agree always, the two camps agree on two rows of three:
    S01 = S23 = 3, all four cross sums = 1. h = 0: pairs without 0 are (1,2)=1, (1,3)=1, (2,3)=3: q0 =
    sqrt((1/3 * 1/3) / 1) = 1/3. h = 2: (0,1)=3 first: q2 = 1/3. Everybody has p = 2/3.
    """
    model = FixedWindowLabelModel(window=3).fit([[1, 1, 1, 1], [0, 0, 0, 0], [1, 1, 0, 0]])
    np.testing.assert_allclose(model.accuracies, [2 / 3] * 4, atol=1e-15)


def test_a_jump_is_refused_at_the_window_that_spans_it():
    """Labelers 0 and 1 agree on 512 rows and differ on the next 512; labeler 2 copies labeler 0.

    After 1,024 rows, C01 is -1 over every window up to 512 and 0 over 1,024. n = 3, m = 11:
    A = sqrt(2 ln(21 * 6 / 0.1)) = 3.778, T(512 -> 1024) = A (0.2 + sqrt(1/2)) / sqrt(512) = 0.151 < 1.
    At 600 rows (88 after the jump) windows up to 64 hold only the new regime, and 128 holds 40 old rows:
    C01 = (40 - 88) / 128 = -0.375, a change of 0.625, against T(64 -> 128) = 3.778 * 0.9071 / 8 = 0.428: refused.
    """
    same = [[1, 1, 1], [0, 0, 0]] * 256
    differ = [[1, 0, 1], [0, 1, 0]] * 256
    model = AdaptiveLabelModel.paper(windows=[2**k for k in range(11)])
    out = model.label_stream(np.array(same + differ))
    assert out.windows[511] == 512
    assert out.windows[599] == 64
    assert out.windows[1023] == 512
    last = model.why_window()[-1]
    assert (last.window, last.next_window, last.accepted) == (512, 1024, False)
    assert last.difference == 1.0
    assert last.threshold == pytest.approx(0.1515, abs=1e-4)
    assert last.pair == ("labeler_0", "labeler_1")


def test_dyadic_limits_are_floor_2rt():
    sizes = [2**k for k in range(20)]
    tests = WindowRule(sizes, bound="mcdiarmid").tests(6, 2)
    factor = theory.deviation_factor(6, 20, 0.1)
    for k in range(19):
        assert (tests.near[k], tests.far[k]) == (1, 2)
        exact = 2 * sizes[k] * theory.threshold(factor, 0.1, sizes[k], sizes[k + 1])
        assert tests.limit[k] == min(math.floor(exact), 2 * sizes[k])
    # With six labelers and the paper's settings every window up to 16 passes, and 32 can fail.
    assert tests.n_certain == 4


def test_majority_counts_votes():
    out = MajorityLabelModel().label_stream([[1, 1, 0], [1, 0, -1], [-1, -1, -1], [-1, -1, 0]])
    assert out.labels.tolist() == [1, -1, -1, 0]
    assert out.proba[2].tolist() == [0.5, 0.5]
    assert out.n_votes.tolist() == [3, 2, 0, 1]
