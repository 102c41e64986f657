"""Models that start in the middle of a stream: all of them, found by introspection."""

from __future__ import annotations

import numpy as np
import pytest

from driftvote import AdaptiveLabelModel, SettingError

from streams_for_tests import random_stream
from test_contract import VARIANTS, same

NAMES = ["a", "b", "c", "d", "e"]
SMALL = {"windows": [1, 2, 4, 8, 16, 32]}


def with_names(model):
    return type(model)(**(model.get_params(deep=False) | {"labelers": NAMES}))


@pytest.fixture(params=VARIANTS, ids=[repr(model)[:90] for model in VARIANTS])
def model(request):
    return with_names(request.param)


@pytest.fixture
def votes(model):
    return random_stream(3, 400, 5, len(model.classes), 0.25).astype(np.int8)


@pytest.mark.parametrize("row", [0, 1, 31, 33, 64, 200, 256, 399])
def test_a_block_given_the_rows_before_it(model, votes, row):
    whole = model.clone().label_stream(votes)
    memory = row if model.memory_rows is None else min(row, model.memory_rows)
    model.start_at(row, votes[row - memory : row])
    assert model.n_rows == row
    if row:
        there = model.clone().partial_fit(votes[:row])
        assert np.array_equal(model.accuracies, there.accuracies)
        assert np.array_equal(model.predict_proba(votes[-5:]), there.predict_proba(votes[-5:]))
    same(model.label_stream(votes[row:]), whole[row:])


def test_one_row_too_few_is_refused(model, votes):
    if model.memory_rows is None or model.memory_rows > 100:
        pytest.skip("this model remembers more than the test stream holds")
    with pytest.raises(SettingError, match="not enough"):
        model.start_at(300, votes[300 - model.memory_rows + 1 : 300])


def test_the_rows_before_a_block_matter():
    """So that the tests above can fail: one labeler wrong in a row that is just within reach is seen."""
    model = with_names(AdaptiveLabelModel.paper(**SMALL))
    votes = random_stream(3, 400, 5, 2, 0.0).astype(np.int8)
    whole = model.clone().label_stream(votes)
    before = votes[200 - 32 : 200].copy()
    before[1] = 1 - before[1]
    before[1, :2] = votes[200 - 31, :2]
    model.start_at(200, before)
    assert not np.array_equal(model.label_stream(votes[200:]).accuracies, whole.accuracies[200:])


def test_rows_of_group_members():
    model = AdaptiveLabelModel(labelers=NAMES, groups={"a": "ab", "b": "ab"}, **SMALL)
    votes = random_stream(3, 400, 5, 2, 0.2).astype(np.int8)
    whole = model.clone().label_stream(votes)
    model.start_at(200, votes[:200])
    same(model.label_stream(votes[200:]), whole[200:])
