"""Dependence diagnostics: no false alarms, copies and shared errors found, limits said."""

from __future__ import annotations

import json

import numpy as np
import pytest

import driftvote
from driftvote import AdaptiveLabelModel, FixedWindowLabelModel, MajorityLabelModel
from driftvote.drift.dependence import dependence
from driftvote.streams import simulate

from streams_for_tests import rows_for


def diagnose(votes, n_classes=2):
    """From votes, with the sums by definition."""
    n, sums = votes.shape[1], []
    for i in range(n):
        for j in range(i + 1, n):
            both = (votes[:, i] >= 0) & (votes[:, j] >= 0)
            equal = votes[both, i] == votes[both, j]
            sums.append(((n_classes - 1) * equal - ~equal).sum())
    names = [f"l{i}" for i in range(n)]
    return dependence(np.array(sums), (votes >= 0).sum(axis=0), len(votes), n_classes, names)


def test_independent_labelers_raise_no_alarm_and_scores_are_normal(monkeypatch):
    monkeypatch.setattr("driftvote.drift.dependence.NOTABLE", 0.0)
    rng = np.random.default_rng(0)
    streams, alarms, scores = rows_for(120, 30), 0, []
    for seed in range(streams):
        n, k = int(rng.integers(4, 9)), int(rng.choice([2, 2, 4]))
        coverage = rng.uniform(0.5, 1.0, n) if seed % 2 else 1.0
        accuracy = np.tile(rng.uniform(1 / k + 0.15, 0.95, n), (2000, 1))
        found = diagnose(simulate(accuracy, seed, k, coverage).votes, k)
        alarms += bool(found.notable)
        scores += [pair.z for pair in found.pairs]
    assert alarms <= 0.06 * streams
    assert np.std(scores) == pytest.approx(1.0, abs=0.1)
    assert np.mean(scores) == pytest.approx(0.0, abs=0.1)


def test_a_copy_and_a_shared_error_are_found():
    for seed in range(10):
        votes = simulate(np.full((3000, 6), 0.8), seed).votes
        rng = np.random.default_rng(seed)
        copying = rng.random(3000) < 0.97
        votes[copying, 1] = votes[copying, 0]
        sharing = rng.random(3000) < 0.5
        votes[sharing, 3] = votes[sharing, 2]
        found = diagnose(votes)
        assert found.near_copies == (("l0", "l1"),)
        assert {pair.pair for pair in found.notable} == {("l0", "l1"), ("l2", "l3")}
        assert found.effective_labelers == pytest.approx(36 / (6 + 2 * (0.97 + 0.5)), abs=0.35)
        shared = found.notable[1]
        assert shared.residual == pytest.approx(0.5 * (1 - 0.36), abs=0.08)
        assert shared.expected == pytest.approx(0.36, abs=0.08)


def test_a_clique_of_judges_counts_less():
    """Two of eight judges follow a third one on half of the rows."""
    votes = simulate(np.full((20_000, 8), 0.8), seed=3).votes
    following = np.random.default_rng(0).random(20_000) < 0.5
    votes[following, 1:3] = votes[following, :1]
    found = diagnose(votes)
    assert {pair.pair for pair in found.notable} == {("l0", "l1"), ("l0", "l2"), ("l1", "l2")}
    assert found.effective_labelers == pytest.approx(64 / (8 + 2 * 1.5), abs=0.5)
    assert "8 labelers count like" in str(found)


def test_a_contrary_labeler_is_named():
    votes = simulate(np.full((2000, 5), 0.8), seed=1).votes
    votes[:, 2] = 1 - votes[:, 2]
    found = diagnose(votes)
    assert found.contrary == ("l2",)
    assert found.skills["l2"] == pytest.approx(-0.6, abs=0.08)
    assert not found.notable


def test_what_cannot_be_told_is_said():
    three = diagnose(simulate(np.full((500, 3), 0.8), seed=1).votes)
    assert three.effective_labelers is None
    assert not three.notable
    assert "unknown" in str(three)
    one_row = diagnose(np.array([[1, 1, 0, 1, 0]]))
    assert one_row.effective_labelers is None
    silent = diagnose(np.full((50, 5), -1))
    assert silent.effective_labelers is None
    blind = diagnose(np.random.default_rng(0).integers(0, 2, size=(300, 5)))
    assert blind.effective_labelers in (None, 5.0)


@pytest.mark.parametrize("abstentions", ["zero", "random"])
def test_every_model_with_agreements_has_it(abstentions):
    votes = simulate(np.full((1000, 5), 0.8), seed=2, coverage=0.9).votes
    votes[:, 4] = votes[:, 3]
    models = [
        AdaptiveLabelModel(abstentions=abstentions),
        FixedWindowLabelModel(window=800, abstentions=abstentions),
        FixedWindowLabelModel(window=None, abstentions=abstentions),
        driftvote.CommitteeLabelModel(abstentions=abstentions),
    ]
    for model in models:
        model.label_stream(votes)
        found = model.dependence()
        # Every row counts for the default here, also those that came after its last fit.
        assert found.window == (1000 if type(model) is AdaptiveLabelModel else model.window)
        assert "dependence: 5 labelers" in model.describe()
        told = json.loads(json.dumps(found.to_dict()))
        assert len(told["pairs"]) == 10
        if abstentions == "zero":
            assert found.near_copies == (("labeler_3", "labeler_4"),)
    wide = AdaptiveLabelModel()
    wide.label_stream(np.random.default_rng(0).integers(0, 2, size=(50, 35)))
    assert "dependence() looks at all pairs of 35" in wide.describe()
    majority = MajorityLabelModel()  # its window is one row, which says nothing about dependence
    majority.label_stream(votes)
    assert majority.dependence().effective_labelers is None
    assert majority.warnings == []
    with pytest.raises(driftvote.DriftvoteError, match="no rows"):
        AdaptiveLabelModel().dependence()
