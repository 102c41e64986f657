"""Every model against the restatement by definition, after every row, through every path."""

from __future__ import annotations

import numpy as np
import pytest

import driftvote
from driftvote import AdaptiveLabelModel, FixedWindowLabelModel, MajorityLabelModel
from driftvote.randomness import fill_abstentions

import naive
from streams_for_tests import PAPERS_RULE, random_chunks, random_stream, rows_for

DYADIC = tuple(2**k for k in range(20))
STREAMS = [
    # seed, labelers, classes, abstaining, windows, beta
    (1, 3, 2, 0.0, DYADIC, 0.1),
    (2, 6, 2, 0.3, DYADIC, 0.1),
    (3, 12, 2, 0.6, DYADIC, 0.02),
    (4, 5, 5, 0.2, DYADIC, 0.1),
    (5, 8, 3, 0.6, (3, 7, 20, 61, 150, 333, 1000, 2600), 0.05),
    (6, 4, 4, 0.0, (1, 6, 34, 198, 1155), 0.414),
    (7, 9, 2, 0.1, (10, 11, 12, 500, 501, 1024), 0.01),
    (8, 7, 5, 0.4, (16, 32, 64, 128, 256, 512), 0.1),
]


def outputs(results):
    """Concatenate LabeledStreams and Steps."""
    return {
        "windows": np.concatenate([np.atleast_1d(getattr(r, "windows", getattr(r, "window", None))) for r in results]),
        "codes": np.concatenate([np.atleast_1d(getattr(r, "codes", getattr(r, "code", None))) for r in results]),
        **{
            key: np.concatenate([np.atleast_2d(getattr(r, key)) for r in results])
            for key in ("proba", "accuracies", "diluted_accuracies", "coverage", "weights")
        },
    }


def by_rows(model, votes):
    return outputs([model.update(row) for row in votes])


def by_chunks(model, votes, seed):
    return outputs([model.label_stream(votes[part]) for part in random_chunks(seed, len(votes))])


def by_chunks_saved(model, votes, seed, path):
    """Save and load between chunks, now and then."""
    found = []
    for place, part in enumerate(random_chunks(seed, len(votes))):
        if place % 5 == 3:
            model.save(path)
            model = driftvote.load(path)
        found.append(model.label_stream(votes[part]))
    return outputs(found)


def assert_same_bits(left, right):
    for key, value in left.items():
        assert np.array_equal(value, right[key]), key


def assert_close_to_naive(found, rows):
    np.testing.assert_array_equal(found["windows"], [row.window for row in rows])
    np.testing.assert_array_equal(found["codes"], [row.label for row in rows])
    for key, name in [
        ("accuracies", "accuracies"),
        ("diluted_accuracies", "diluted"),
        ("coverage", "coverage"),
        ("weights", "vote_weights"),
        ("proba", "proba"),
    ]:
        expected = np.array([getattr(row, name) for row in rows])
        np.testing.assert_allclose(found[key], expected, rtol=0, atol=1e-12, err_msg=key)


@pytest.mark.parametrize(("seed", "n", "k", "abstain", "windows", "beta"), STREAMS)
def test_adaptive_equals_the_definition_on_every_path(tmp_path, seed, n, k, abstain, windows, beta):
    votes = random_stream(seed, rows_for(5000, 600), n, k, abstain, blocks=4)
    settings = naive.Settings(n_classes=k, windows=windows, beta=beta)
    model = AdaptiveLabelModel(n_classes=k, windows=windows, beta=beta, **PAPERS_RULE)
    rows = naive.adaptive(votes, votes, settings)
    assert naive.windows_of_stream(votes, settings).tolist() == [row.window for row in rows]
    whole = outputs([model.clone().label_stream(votes)])
    assert_close_to_naive(whole, rows)
    assert_same_bits(by_rows(model.clone(), votes), whole)
    assert_same_bits(by_chunks(model.clone(), votes, seed), whole)
    assert_same_bits(by_chunks_saved(model.clone(), votes, seed, tmp_path / "state.npz"), whole)


def test_the_streams_make_the_rule_refuse_windows():
    """The comparison above would be hollow if no window were ever refused."""
    refused = 0
    for seed, n, k, abstain, windows, beta in STREAMS:
        votes = random_stream(seed, rows_for(5000, 600), n, k, abstain, blocks=4)
        model = AdaptiveLabelModel(n_classes=k, windows=windows, beta=beta, **PAPERS_RULE)
        found = model.label_stream(votes).windows
        reach = np.array([max([w for w in windows if w <= t] or [t]) for t in range(1, len(votes) + 1)])
        refused += (found < reach).any()
    assert refused >= (6 if rows_for(1, 0) else 1)


@pytest.mark.parametrize("seed", [11, 12])
def test_random_abstentions_equal_the_definition_on_the_filled_votes(tmp_path, seed):
    votes = random_stream(seed, rows_for(2500, 200), 5, 3, 0.4)
    filled = fill_abstentions(votes, seed, 0, 3)
    counted = np.where(filled < -1, -2 - filled, filled)
    model = AdaptiveLabelModel(n_classes=3, abstentions="random", seed=seed, **PAPERS_RULE)
    whole = outputs([model.clone().label_stream(votes)])
    assert_close_to_naive(whole, naive.adaptive(counted, votes, naive.Settings(3, random_abstentions=True)))
    assert_same_bits(by_rows(model.clone(), votes), whole)
    assert_same_bits(by_chunks_saved(model.clone(), votes, seed, tmp_path / "state.npz"), whole)


@pytest.mark.parametrize("window", [1, 2, 7, 64, 1000, None])
def test_fixed_windows_equal_the_definition(tmp_path, window):
    votes = random_stream(21, rows_for(2000, 150), 6, 3, 0.25)
    model = FixedWindowLabelModel(window=window, n_classes=3)
    whole = outputs([model.clone().label_stream(votes)])
    assert_close_to_naive(whole, naive.fixed(votes, votes, window, naive.Settings(3)))
    assert_same_bits(by_rows(model.clone(), votes), whole)
    assert_same_bits(by_chunks_saved(model.clone(), votes, 3, tmp_path / "state.npz"), whole)


@pytest.mark.parametrize(("n_classes", "abstain"), [(2, 0.0), (2, 0.6), (5, 0.4)])
def test_majority_equals_the_definition(n_classes, abstain):
    votes = random_stream(31, 400, 6, n_classes, abstain)
    out = MajorityLabelModel(n_classes=n_classes).label_stream(votes)
    expected = naive.majority(votes, n_classes)
    np.testing.assert_array_equal(out.codes, [label for label, _ in expected])
    np.testing.assert_allclose(out.proba, [shares for _, shares in expected], rtol=0, atol=1e-15)
    assert (out.windows == 1).all()
    assert np.array_equal(out.weights, votes >= 0)
