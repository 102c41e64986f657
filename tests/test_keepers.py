"""Engines that are put away and taken up again with part of their rows say the same as one that never rests."""

from __future__ import annotations

import numpy as np
import pytest

from driftvote import AdaptiveLabelModel, CommitteeLabelModel, FixedWindowLabelModel, MajorityLabelModel
from driftvote.inputs import Batch
from driftvote.models.engine import WindowEngine
from driftvote.models.keepers import Keeper, Past, TallyKeeper, WindowKeeper, keeper_for, merged
from driftvote.models.tally_engine import ConfusionEngine

from streams_for_tests import random_chunks, random_stream, rows_for

NAMES = ["a", "b", "c", "d"]

MODELS = {
    "default": lambda: AdaptiveLabelModel(labelers=NAMES, windows=[1, 2, 4, 8, 16, 32, 64, 128, 256, 512], refresh=8),
    "odd grid": lambda: AdaptiveLabelModel(labelers=NAMES, windows=[3, 10, 45, 133, 500], refresh=7),
    "triplet": lambda: AdaptiveLabelModel(labelers=NAMES, windows=[2, 8, 64, 512], estimator="triplet"),
    "paper": lambda: AdaptiveLabelModel.paper(labelers=NAMES, windows=[1, 2, 4, 8, 16, 32, 64, 128, 256, 512]),
    "fixed": lambda: FixedWindowLabelModel(window=300, labelers=NAMES),
    "all past": lambda: FixedWindowLabelModel(window=None, labelers=NAMES),
    "committee": lambda: CommitteeLabelModel(labelers=NAMES, windows=[4, 16, 64, 256], refresh=50),
    "majority": lambda: MajorityLabelModel(labelers=NAMES),
}


class Drawer:
    """All rows of a stream by their numbers, and the small arrays: what a store holds."""

    def __init__(self, keeper: Keeper) -> None:
        self.keeper, self.small = keeper, keeper.fresh
        self.rows, self.known = np.zeros((0, len(NAMES)), np.int8), np.zeros(0, np.int64)
        self.clock = self.asked = 0

    def label(self, codes: np.ndarray, spoiled: bool = True) -> list:
        keeper = self.keeper
        ranges = keeper.needed(self.clock, len(codes)) if len(self.rows) else []
        self.asked += sum(last - first for first, last in ranges)
        if spoiled:
            poison(keeper)
        keeper.resume(
            self.small,
            [Past(first, self.rows[first:last], self.known[first:last]) for first, last in ranges],
            len(codes),
        )
        piece = keeper.piece(self.clock, len(codes))
        parts = [codes[first : first + piece] for first in range(0, len(codes), piece)]
        said = [keeper.model._label(Batch(None, part, literal=False)) for part in parts]
        self.small = keeper.small_arrays()
        new = keeper.remembered(len(codes))
        self.clock += len(codes)
        if len(new.rows):
            gone = max(0, new.first - len(self.rows))  # more came than is remembered
            self.rows = np.concatenate([self.rows[: new.first], np.ones((gone, len(NAMES)), np.int8), new.rows])
            self.known = np.concatenate([self.known[: new.first], np.full(gone, 1), new.known])
        return said


def poison(keeper: Keeper) -> None:
    """Whatever lies in the arrays of an engine that somebody else used before."""
    rng = np.random.default_rng(5)
    if isinstance(keeper.engine, ConfusionEngine) or hasattr(keeper.engine, "tally"):
        tally = keeper.engine.tally
        for part in (tally.keys, tally.known, tally.totals, tally.stats, tally.now, tally.lags):
            part[:] = rng.integers(-9, 10**6, part.shape)
        tally.ring[:] = rng.integers(-1, 2, tally.ring.shape)
    elif isinstance(keeper.engine, WindowEngine):
        memory = keeper.engine.state.memory
        for part in (memory.sums, memory.votes):
            part[:] = rng.integers(-9, 10**6, part.shape)
        memory.ring[:] = rng.integers(-1, 2, memory.ring.shape)


def same(parts: list, whole) -> None:
    for name in ("codes", "proba", "windows", "accuracies", "weights", "coverage"):
        found = np.concatenate([getattr(part, name) for part in parts])
        assert np.array_equal(found, getattr(whole, name)), name


@pytest.mark.parametrize("name", MODELS)
def test_in_parts_as_at_once(name):
    n_rows = rows_for(6_000, 700)
    votes = random_stream(3, n_rows, len(NAMES), abstain=0.2, blocks=5)
    drawer = Drawer(keeper_for(MODELS[name]()))
    said = []
    for part in random_chunks(4, n_rows, largest=60):
        said += drawer.label(votes[part])
    same(said, MODELS[name]().label_stream(votes))


def test_chunks_as_long_as_the_past_and_longer():
    n_rows = rows_for(9_000, 1_500)
    votes = random_stream(8, n_rows, len(NAMES), abstain=0.1)
    for name in ("default", "paper"):
        drawer = Drawer(keeper_for(MODELS[name]()))
        said = []
        for part in random_chunks(9, n_rows, largest=900):
            said += drawer.label(votes[part])
        same(said, MODELS[name]().label_stream(votes))


def test_streams_of_one_length_that_take_turns():
    """One engine serves both; what it remembers of the one must not be taken for the other's."""
    streams = [random_stream(seed, 1800, len(NAMES)) for seed in (1, 2)]
    keeper = keeper_for(MODELS["paper"]())
    drawers = [Drawer(keeper), Drawer(keeper)]
    said: list[list] = [[], []]
    for first in range(0, 1800, 600):
        for place, drawer in enumerate(drawers):
            said[place] += drawer.label(streams[place][first : first + 600], spoiled=False)
    for parts, votes in zip(said, streams, strict=True):
        same(parts, MODELS["paper"]().label_stream(votes))


def test_few_rows_are_asked_for():
    """A ring of 8,192 rows; hundred rows at a time ask for a part of it."""
    votes = random_stream(2, rows_for(20_000, 800), len(NAMES))
    grid = [2**k for k in range(14)]
    for model in (
        AdaptiveLabelModel(labelers=NAMES, windows=grid),
        AdaptiveLabelModel.paper(labelers=NAMES, windows=grid),
    ):
        drawer = Drawer(keeper_for(model))
        for first in range(0, len(votes), 20):
            drawer.label(votes[first : first + 20])
        limit = 1500 if model.estimator == "confusion" else 20 * len(grid)
        assert drawer.asked / (len(votes) / 20) <= limit


def test_verified_rows_are_kept():
    model = AdaptiveLabelModel(labelers=NAMES, windows=[1, 4, 16, 64, 256], refresh=4)
    votes = random_stream(6, 500, len(NAMES), abstain=0.1)
    model.label_stream(votes[:200], verified=[1 if row % 9 == 0 else None for row in range(200)])
    drawer = Drawer(keeper_for(model.clone()))
    drawer.keeper.engine = model._engine
    drawer.small, past = drawer.keeper.small_arrays(), drawer.keeper.remembered(200)
    drawer.rows, drawer.known, drawer.clock = past.rows, past.known, 200
    assert (past.known == 1).sum() == 23
    drawer.keeper.engine = drawer.keeper.model._new_engine(len(NAMES))
    said = [part for first in range(200, 500, 13) for part in drawer.label(votes[first : first + 13])]
    same(said, model.label_stream(votes[200:]))


def test_an_engine_with_an_array_that_nobody_knows_is_taken_up_whole(monkeypatch):
    assert type(keeper_for(MODELS["fixed"]())) is WindowKeeper
    assert type(keeper_for(MODELS["default"]())) is TallyKeeper
    assert type(keeper_for(MODELS["committee"]())) is Keeper  # no keeper of its own
    known = WindowEngine.arrays
    monkeypatch.setattr(WindowEngine, "arrays", lambda engine: known(engine) | {"more": np.zeros(1)})
    assert type(keeper_for(MODELS["fixed"]())) is Keeper


def test_ranges_are_merged():
    assert merged([(3, 3), (7, 9), (1, 4), (4, 6)]) == [(1, 6), (7, 9)]
