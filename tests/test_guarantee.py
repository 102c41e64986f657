"""The guarantee as numbers, against the formulas written out."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import driftvote
from driftvote import AdaptiveLabelModel, SettingError, theory
from driftvote.theory import make_guarantee

from streams_for_tests import PAPERS_RULE


def test_numbers_by_hand():
    model = AdaptiveLabelModel(**PAPERS_RULE)
    model.label_stream(np.tile([[1, 1, 1, 0], [0, 0, 0, 1]], (1024, 1)))
    found = model.guarantee(tau=0.25)
    factor = math.sqrt(2 * math.log(39 * 4 * 3 / 0.1))
    assert (found.rows, found.window, found.delta, found.tau) == (2048, 2048, 0.1, 0.25)
    assert found.factor == pytest.approx(factor)
    assert found.phi == pytest.approx(theory.phi(model.windows.grid, 0.1))
    assert found.agreement_error == pytest.approx(factor / math.sqrt(2048))
    assert found.best_error == pytest.approx(found.phi * factor / math.sqrt(2048))
    assert found.accuracy_error == min(1.0, 5 / (2 * 0.25**2) * found.agreement_error)
    assert len(found.thresholds) == 19
    size, after, limit = found.thresholds[4]
    assert (size, after) == (16, 32)
    assert limit == pytest.approx(factor * (0.2 / 4 + math.sqrt(0.5 / 16)))
    text = str(found)
    assert "Unknown: how much the labelers drifted" in text
    assert "not bounded yet" in text
    assert json.loads(json.dumps(found.to_dict()))["thresholds"][4][:2] == [16, 32]


def test_a_sharper_bound_says_that_it_is_not_the_theorems():
    votes = np.tile([[1, 1, 1, 0], [0, 0, 0, 1]], (64, 1))
    for settings, proved in (({}, False), (PAPERS_RULE, True), ({"bound": "mcdiarmid"}, True)):
        found = AdaptiveLabelModel(**settings).fit(votes).guarantee(0.25)
        assert found.proved == proved
        assert ("use bound='mcdiarmid'" in str(found)) != proved


def test_many_classes_scale_ranges_and_skills():
    found = make_guarantee([2**18], 4, 5, beta=0.1, delta=0.1, rows=2**18, window=2**18, tau=0.6)
    assert found.phi == 1.0
    assert found.agreement_error == pytest.approx(0.625 * found.factor / 512)
    # Skills of at least 0.75: the lemma with tau = 0.375 bounds q by 2 (5 / (2 tau^2)), and p moves 4/5 as much.
    assert found.accuracy_error == pytest.approx(0.8 * 2 * 5 / (2 * 0.375**2) * found.agreement_error)
    assert "within" in str(found)


def test_nonsense_is_refused():
    model = AdaptiveLabelModel()
    with pytest.raises(driftvote.DriftvoteError, match="no rows"):
        model.guarantee()
    model.update([1, 0, 1])
    for tau in (0, -0.1, 0.6, "much"):
        with pytest.raises(SettingError, match="tau"):
            model.guarantee(tau)
