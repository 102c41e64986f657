"""Scenarios: by hand where the world is written down, by statistics where it is drawn."""

from __future__ import annotations

import numpy as np
import pytest

from driftvote import SettingError
from driftvote.streams import SCENARIOS, paper_blocks, scenario, simulate, swap
from driftvote.streams.scenarios import COPYING

NAMES = list(SCENARIOS)


def test_the_ones_that_people_ask_for_are_there():
    assert set(NAMES) >= {
        "stationary", "swap", "abrupt", "gradual", "recurring", "abstaining", "many-classes", "paper", "one-fails",
        "class-balance", "coverage", "sinusoids",
    }  # fmt: skip
    for name, made in SCENARIOS.items():
        assert made.name == name
        assert made.drift.endswith(".")
        assert made.drift.count(".") - made.drift.count("0.") == 1, "one sentence"


@pytest.mark.parametrize("name", NAMES)
class TestEveryScenario:
    def test_usual_size(self, name):
        usual, stream = SCENARIOS[name], scenario(name)
        assert stream.votes.shape == (usual.n_rows, usual.n_labelers)
        assert stream.n_classes == usual.n_classes

    def test_the_accuracies_are_what_the_votes_show(self, name):
        """Per labeler and per tenth of the stream, hits and accuracies differ by noise only."""
        stream = scenario(name, seed=4)
        voted = stream.votes >= 0
        right = (stream.votes == stream.truth[:, None]) & voted
        for part in np.array_split(np.arange(len(right)), 10):
            hits, votes = right[part].sum(axis=0), voted[part].sum(axis=0)
            expected = (stream.accuracies[part] * voted[part]).sum(axis=0)
            assert (np.abs(hits - expected) < 4.5 * np.sqrt(votes / 4)).all()

    def test_other_sizes_and_seeds(self, name):
        first = scenario(name, n_rows=403, n_labelers=4, n_classes=3, seed=5)
        again = scenario(name, n_rows=403, n_labelers=4, n_classes=3, seed=5)
        assert first.votes.shape == first.accuracies.shape == (403, 4)
        assert first.truth.max() == 2
        assert (first.votes == again.votes).all()
        assert (first.accuracies == again.accuracies).all()
        other = scenario(name, n_rows=403, n_labelers=4, n_classes=3, seed=6)
        assert (first.votes != other.votes).any()
        assert len(scenario(name, n_rows=1).votes) == 1
        for wide in (3, 12):
            assert scenario(name, n_rows=50, n_labelers=wide).votes.shape[1] == wide

    def test_errors_are_independent_unless_it_says_otherwise(self, name):
        """Given the class, the errors of two labelers that both vote are uncorrelated."""
        stream = scenario(name, n_rows=20_000, seed=2)
        wrong = (stream.votes != stream.truth[:, None]).astype(float)
        both = (stream.votes >= 0)[:, :, None] & (stream.votes >= 0)[:, None, :]
        # What a class or a stretch of time does to all alike is no dependence: it is taken out.
        expected = np.zeros_like(wrong)
        edges = sorted({0, *stream.borders, *range(0, 20_001, 500)})
        for first, last in zip(edges, edges[1:], strict=False):
            for label in range(stream.n_classes):
                rows = np.arange(first, last)[stream.truth[first:last] == label]
                voted = stream.votes[rows] >= 0
                expected[rows] = (wrong[rows] * voted).sum(axis=0) / np.maximum(voted.sum(axis=0), 1)
        rest = wrong - expected
        products = (rest[:, :, None] * rest[:, None, :] * both).sum(axis=0)
        scale = np.sqrt((rest[:, :, None] ** 2 * rest[:, None, :] ** 2 * both).sum(axis=0))
        z = np.abs(products / scale)[np.triu_indices(wrong.shape[1], 1)]
        if SCENARIOS[name].independent:
            assert z.max() < 4.5
        else:
            assert z.max() > 20

    def test_it_drifts_if_it_says_so(self, name):
        stream = scenario(name)
        coverage = [(part >= 0).mean(axis=0) for part in np.array_split(stream.votes, 10)]
        moves = (stream.accuracies != stream.accuracies[0]).any() or np.ptp(coverage, axis=0).max() > 0.1
        assert moves == SCENARIOS[name].drifts


def test_old_friends_are_the_same_streams():
    assert (scenario("swap", n_rows=3_000, seed=3).votes == swap(3_000, 3).votes).all()
    paper, blocks = scenario("paper", seed=1), paper_blocks(seed=1)
    assert (paper.votes == blocks.votes).all()
    assert paper.borders == blocks.borders


def test_worlds_by_hand():
    assert scenario("stationary", n_labelers=4).accuracies[[0, -1]].tolist() == [[0.9, 0.8, 0.7, 0.6]] * 2
    gradual = scenario("gradual", n_rows=4, n_labelers=3).accuracies
    assert gradual.tolist() == [[0.95, 0.75, 0.55], [0.85, 0.75, 0.65], [0.75, 0.75, 0.75], [0.65, 0.75, 0.85]]
    recurring = scenario("recurring", n_rows=16)
    assert recurring.borders == (2, 4, 6, 8, 10, 12, 14)
    assert recurring.accuracies[:, 0].tolist() == [0.9, 0.9, 0.55, 0.55] * 4
    fails = scenario("one-fails", n_rows=10, n_classes=4)
    assert fails.accuracies[[4, 5], 0].tolist() == [0.9, 0.25]
    assert (fails.accuracies[:, 1:] == fails.accuracies[0, 1:]).all()
    waves = scenario("sinusoids", n_rows=4_001)
    assert waves.accuracies[[0, 1000, 3000, 4000], 0].tolist() == [0.7, 0.85, 0.55, 0.7]
    together = scenario("together", n_rows=10)
    assert together.accuracies[[0, 5]].tolist() == [[0.9] * 5, [0.6] * 5]


def test_who_is_heard():
    stream = scenario("coverage", seed=1)
    first, second, third = np.split(stream.votes >= 0, stream.borders)
    often = [0.9, 0.9, 0.9, 0.2, 0.2]
    assert first.mean(axis=0) == pytest.approx(often, abs=0.02)
    assert second.mean(axis=0) == pytest.approx([0.2, 0.2, 0.2, 0.9, 0.9], abs=0.02)
    assert third.mean(axis=0) == pytest.approx(often, abs=0.02)
    abstaining = scenario("abstaining", seed=1)
    assert (abstaining.votes >= 0).mean(axis=0) == pytest.approx([0.2, 0.35, 0.5, 0.65, 0.8], abs=0.02)


def test_class_balance_drifts_and_labelers_know_some_classes_better():
    stream = scenario("class-balance", seed=1)
    start, middle, end = (stream.truth[part] == 0 for part in (slice(1000), slice(9500, 10500), slice(-1000, None)))
    assert [start.mean(), middle.mean(), end.mean()] == pytest.approx([0.2, 0.8, 0.2], abs=0.05)
    for place, (at_zero, at_one) in enumerate([(0.9, 0.65), (0.65, 0.9)]):
        for label, accuracy in ((0, at_zero), (1, at_one)):
            votes = stream.votes[stream.truth == label, place]
            assert (votes == label).mean() == pytest.approx(accuracy, abs=0.02)
    assert stream.accuracies[10_000, :2].tolist() == pytest.approx([0.85, 0.70])


def test_copies_repeat_and_their_accuracy_says_so():
    stream = scenario("copies", seed=1)
    same = (stream.votes[:, :1] == stream.votes).mean(axis=0)
    by_chance = 0.65**2 + 0.35**2
    assert same[1:3] == pytest.approx([COPYING + (1 - COPYING) * by_chance] * 2, abs=0.01)
    assert same[3:] == pytest.approx([0.65 * 0.8 + 0.35 * 0.2] * 4, abs=0.02)


def test_regimes_are_drawn_anew_with_the_seed():
    first, second = (scenario("many-classes", seed=seed) for seed in (0, 1))
    assert len(first.borders) == 7
    regimes = np.unique(first.accuracies, axis=0)
    assert regimes.shape == (8, 7)
    assert 0.4 <= regimes.min() < regimes.max() <= 0.85
    assert not np.isin(np.unique(second.accuracies), regimes).any()


def test_bad_settings_are_named():
    with pytest.raises(SettingError, match="there is no scenario 'chaos'; choose stationary, swap"):
        scenario("chaos")
    with pytest.raises(SettingError, match="n_labelers must be a whole number of at least 3, not 2"):
        scenario("swap", n_labelers=2)
    with pytest.raises(SettingError, match="n_rows must be a whole number of at least 1, not 0"):
        scenario("swap", n_rows=0)
    with pytest.raises(SettingError, match="n_classes must be a whole number of at least 2, not 1"):
        scenario("swap", n_classes=1)
    with pytest.raises(SettingError, match="seed must be a whole number of at least 0, not -1"):
        scenario("swap", seed=-1)
    with pytest.raises(SettingError, match="class_balance must be a table of rows x classes"):
        simulate(np.full((2, 3), 0.9), 0, class_balance=np.full((2, 2), 0.6))
    with pytest.raises(SettingError, match="accuracies by class must have 2 classes, not 3"):
        simulate(np.full((2, 3, 3), 0.9), 0)


def test_accuracies_by_class_without_a_balance():
    accuracies = np.tile(np.array([[1.0, 0.5]] * 3), (4_000, 1, 1))
    stream = simulate(accuracies, seed=0)
    assert (stream.accuracies == 0.75).all()
    assert (stream.votes == stream.truth[:, None]).mean() == pytest.approx(0.75, abs=0.02)
    assert (stream.votes[stream.truth == 0] == 0).all()
