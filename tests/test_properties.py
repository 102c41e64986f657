"""Properties that must hold whatever the votes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from driftvote import AdaptiveLabelModel, FixedWindowLabelModel, MajorityLabelModel, Mixture

import naive
from streams_for_tests import COMPILED, PAPERS_RULE, random_stream

common = settings(
    max_examples=150 if COMPILED else 15, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
GRID = [1, 2, 4, 8, 16, 32, 64, 128]


@st.composite
def streams(draw, classes=st.integers(2, 5)):
    """Either every vote drawn by hypothesis (short), or a simulated stream (longer)."""
    n_classes, n = draw(classes), draw(st.integers(3, 7))
    if draw(st.booleans()):
        rows = draw(st.integers(1, 30))
        votes = draw(hnp.arrays(np.int8, (rows, n), elements=st.integers(-1, n_classes - 1)))
    else:
        votes = random_stream(
            draw(st.integers(0, 10**6)), draw(st.integers(30, 300)), n, n_classes, draw(st.floats(0, 0.9))
        )
    return votes, n_classes


def models(n_classes):
    return [
        AdaptiveLabelModel(n_classes=n_classes, windows=GRID, beta=0.01, delta=0.9, votes="snorkel"),
        AdaptiveLabelModel.paper(n_classes, votes="snorkel"),
        FixedWindowLabelModel(window=5, n_classes=n_classes, votes="snorkel"),
        MajorityLabelModel(n_classes=n_classes, votes="snorkel"),
    ]


@common
@given(streams())
def test_no_nan_and_every_number_in_its_range(case):
    votes, n_classes = case
    for model in models(n_classes):
        out = model.label_stream(votes)
        for values, low, high in [
            (out.proba, 0, 1),
            (out.accuracies, 0, 1),
            (out.diluted_accuracies, 0, 1),
            (out.coverage, 0, 1),
            (out.weights, -10, 10),  # below 0: worse than a blind guess, which only class-conditional fits can find
            (out.codes, -1, n_classes - 1),
            (out.windows, 1, len(votes)),
        ]:
            assert np.isfinite(values).all()
            assert values.min() >= low
            assert values.max() <= high
        np.testing.assert_allclose(out.proba.sum(axis=1), 1, rtol=0, atol=1e-12)


@common
@given(streams())
def test_a_unanimous_row_is_never_overturned(case):
    votes, n_classes = case
    top = votes.max(axis=1)
    unanimous = (top >= 0) & ((votes == top[:, None]) | (votes < 0)).all(axis=1)
    for model in models(n_classes):
        if model.abstentions == "zero":
            assert np.array_equal(model.label_stream(votes).codes[unanimous], top[unanimous])
    full = unanimous & (votes >= 0).all(axis=1)
    assert np.array_equal(
        AdaptiveLabelModel.paper(n_classes, votes="snorkel").label_stream(votes).codes[full], top[full]
    )


@common
@given(streams(), st.integers(0, 10**6))
def test_chunk_borders_change_nothing(case, seed):
    votes, n_classes = case
    rng = np.random.default_rng(seed)
    borders = np.unique(np.concatenate([[0, len(votes)], rng.integers(0, len(votes) + 1, 5)]))
    for model in models(n_classes):
        whole = model.clone().label_stream(votes)
        parts = [model.label_stream(votes[a:b]) for a, b in zip(borders, borders[1:], strict=False)]
        for name in ("codes", "proba", "windows", "accuracies", "weights", "coverage"):
            assert np.array_equal(np.concatenate([getattr(part, name) for part in parts]), getattr(whole, name))


@common
@given(streams(classes=st.just(2)))
def test_flipping_the_classes_mirrors_the_output(case):
    votes, _ = case
    flipped = np.where(votes >= 0, 1 - votes, votes)
    for model in models(2):
        if model.abstentions == "zero":
            out, mirror = model.clone().label_stream(votes), model.label_stream(flipped)
            assert np.array_equal(mirror.codes, np.where(out.codes >= 0, 1 - out.codes, out.codes))
            # The mixture adds up what the classes say in their order: alike beyond the last bits.
            rounding = 1e-10 if isinstance(getattr(model, "estimator", None), Mixture) else 0.0
            np.testing.assert_allclose(mirror.proba, out.proba[:, ::-1], rtol=0, atol=rounding)
            np.testing.assert_allclose(mirror.accuracies, out.accuracies, rtol=0, atol=rounding)
            assert np.array_equal(mirror.windows, out.windows)


def the_strongest_pairs_are_unique(votes, window, n_classes):
    sums = naive.agreement_table(votes, n_classes)[-window:].sum(axis=0)
    n = len(sums)
    for h in range(n):
        sizes = [abs(sums[i, j]) for i in range(n) for j in range(i + 1, n) if h not in (i, j)]
        if sizes.count(max(sizes)) > 1:
            return False
    return True


@common
@given(streams(), st.integers(0, 10**6))
def test_reordering_the_labelers_permutes_the_accuracies(case, seed):
    """Windows follow always; accuracies too unless two pairs are equally strong (the first one then wins)."""
    votes, n_classes = case
    order = np.random.default_rng(seed).permutation(votes.shape[1])
    model = AdaptiveLabelModel(n_classes=n_classes, windows=GRID, beta=0.01, delta=0.9, votes="snorkel", **PAPERS_RULE)
    out, moved = model.clone().label_stream(votes), model.label_stream(votes[:, order])
    assert np.array_equal(out.windows, moved.windows)
    assert np.array_equal(out.coverage[:, order], moved.coverage)
    if the_strongest_pairs_are_unique(votes, int(out.windows[-1]), n_classes):
        assert np.array_equal(out.accuracies[-1, order], moved.accuracies[-1])
        assert np.array_equal(out.weights[-1, order], moved.weights[-1])
        assert out.codes[-1] == moved.codes[-1]


@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_order_of_the_labelers_moves_a_fit_by_rounding_only(n_classes):
    for seed in range(4):
        votes = random_stream(seed, 500, 6, n_classes, 0.2)
        order = np.random.default_rng(seed).permutation(6)
        model = AdaptiveLabelModel(n_classes=n_classes, votes="snorkel")
        out, moved = model.clone().label_stream(votes), model.label_stream(votes[:, order])
        assert np.array_equal(out.windows, moved.windows)
        np.testing.assert_allclose(out.accuracies[:, order], moved.accuracies, rtol=0, atol=1e-9)
        np.testing.assert_allclose(out.proba, moved.proba, rtol=0, atol=1e-7)


def test_reordering_is_put_to_the_test_often_enough():
    """The condition above must not swallow the property."""
    unique = [the_strongest_pairs_are_unique(random_stream(seed, 300, 5, 2, 0.1), 128, 2) for seed in range(50)]
    assert sum(unique) >= 25


def test_relabeling_classes_permutes_the_probabilities():
    votes = random_stream(5, 400, 6, 4, 0.3)
    order = np.array([2, 0, 3, 1])
    renamed = np.where(votes >= 0, order[votes], -1)
    out = AdaptiveLabelModel(n_classes=4).label_stream(votes)
    other = AdaptiveLabelModel(n_classes=4).label_stream(renamed)
    np.testing.assert_allclose(other.proba[:, order], out.proba, rtol=0, atol=1e-14)
    assert np.array_equal(other.codes, np.where(out.codes >= 0, order[out.codes], -1))


@pytest.mark.parametrize("policy", ["abstain", "random"])
def test_ties_are_settled_as_the_policy_says(policy):
    votes = np.array([[1, 1, 0, 0], [0, 0, 1, 1]] * 500, np.int8)
    out = MajorityLabelModel(tie_break_policy=policy, seed=1).label_stream(votes)
    if policy == "abstain":
        assert (out.codes == -1).all()
    else:
        assert set(out.codes) == {0, 1}
        assert abs(out.codes.mean() - 0.5) < 0.06
        other = MajorityLabelModel(tie_break_policy=policy, seed=2).label_stream(votes)
        assert not np.array_equal(out.codes, other.codes)
