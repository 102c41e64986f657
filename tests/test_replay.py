"""Models that begin in the middle of a stream, and models that begin again: every one of them, found by introspection."""

from __future__ import annotations

import numpy as np
import pytest

from driftvote import AdaptiveLabelModel, FixedWindowLabelModel, SettingError
from driftvote.models.replay import begin_again, start_at
from driftvote.streams.synthetic import swap

from streams_for_tests import random_stream
from test_contract import VARIANTS, assert_state_is, same

NAMES = ["a", "b", "c", "d", "e"]
SMALL = {"windows": [1, 2, 4, 8, 16, 32]}


def with_names(model):
    return type(model)(**(model.get_params() | {"labelers": NAMES}))


@pytest.fixture(params=VARIANTS, ids=[repr(model)[:90] for model in VARIANTS])
def model(request):
    return with_names(request.param)


@pytest.fixture
def votes(model):
    return random_stream(3, 400, 5, len(model.classes), 0.25).astype(np.int8)


@pytest.mark.parametrize("row", [0, 1, 31, 33, 64, 200, 256, 399])
def test_a_block_given_the_rows_before_it(model, votes, row):
    whole = model.clone().label_stream(votes)
    reach = row if model.reach is None else min(row, model.reach)
    start_at(model, row, votes[row - reach : row])
    assert model.n_rows == row
    if row:
        there = model.clone().partial_fit(votes[:row])
        assert np.array_equal(model.accuracies, there.accuracies)
        assert np.array_equal(model.predict_proba(votes[-5:]), there.predict_proba(votes[-5:]))
    same(model.label_stream(votes[row:]), whole[row:])


def test_one_row_too_few_is_refused(model, votes):
    if model.reach is None or model.reach > 100:
        pytest.skip("this model remembers more than the test stream holds")
    with pytest.raises(SettingError, match="not enough"):
        start_at(model, 300, votes[300 - model.reach + 1 : 300])


def test_the_rows_before_a_block_matter():
    """So that the tests above can fail: one labeler wrong in a row that is just within reach is seen."""
    model = with_names(AdaptiveLabelModel.paper(**SMALL))
    votes = random_stream(3, 400, 5, 2, 0.0).astype(np.int8)
    whole = model.clone().label_stream(votes)
    before = votes[200 - 32 : 200].copy()
    before[1] = 1 - before[1]
    before[1, :2] = votes[200 - 31, :2]
    start_at(model, 200, before)
    assert not np.array_equal(model.label_stream(votes[200:]).accuracies, whole.accuracies[200:])


@pytest.mark.parametrize("lengths", [(5, 300, 40, 1, 400, 20)])
def test_streams_one_after_the_other_in_the_same_memory(model, votes, lengths):
    again = model.clone()
    for length in lengths:
        begin_again(again)
        assert again.n_rows == 0
        if again._engine is not None:
            assert_state_is(again, again.clone()._engine_for(again._roster).arrays())
        rows = votes[-length:]
        same(again.label_stream(rows), model.clone().label_stream(rows))


def test_memory_is_kept():
    model = with_names(FixedWindowLabelModel(window=50))
    model.label_stream(random_stream(1, 10, 5, 2, 0.0))
    ring = model._engine.state.memory.ring
    begin_again(model)
    assert model._engine.state.memory.ring is ring


def test_the_history_of_a_former_stream_is_not_taken_for_this_one():
    """Long chunks keep a history of the stream; the new stream comes to where the old one ended by short ones."""
    model = with_names(FixedWindowLabelModel(window=50))
    former, votes = (random_stream(seed, 1300, 5, 2, 0.1).astype(np.int8) for seed in (1, 2))
    model.label_stream(former[:600])
    begin_again(model)
    for first in range(0, 600, 100):
        model.label_stream(votes[first : first + 100])
    same(model.label_stream(votes[600:]), with_names(FixedWindowLabelModel(window=50)).label_stream(votes)[600:])


def test_events_of_a_former_stream_are_forgotten():
    model, votes = with_names(AdaptiveLabelModel()), swap(4000, 1).votes
    first = model.label_stream(votes).events
    begin_again(model)
    assert not model.n_detections
    assert model.label_stream(votes).events == first
    assert len(first) == model.n_detections > 0
