"""A model that begins in the middle of a stream, or begins again.

By the finite-memory rule what a model says of a row depends on the last `reach` rows and on the row's number. So a
block of a stream can be labeled anywhere: given the rows before it, `start_at` brings a model to where it would be.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from driftvote.errors import SettingError
from driftvote.kernels.layout import Codes
from driftvote.models.base import LabelModel
from driftvote.models.committee_engine import CommitteeEngine, window_engine_at
from driftvote.models.engine import WindowEngine
from driftvote.models.equal_engine import EqualEngine
from driftvote.models.tally_engine import ConfusionEngine, TallyEngine, TripletEngine, room_for_fits
from driftvote.models.watched import NEVER
from driftvote.randomness import fill_abstentions
from driftvote.tallies import recounted


def start_at(model: LabelModel, row: int, before: Codes) -> None:
    """Bring a model that has seen nothing to row `row` of a stream whose last rows are `before`.

    `before` holds class codes, -1 for an abstention, a column for each of `model.labelers`: all rows there were, or at
    least as many as `model.reach`.

    >>> from driftvote import FixedWindowLabelModel
    >>> votes = np.random.default_rng(0).integers(0, 2, (100, 3)).astype(np.int8)
    >>> whole = FixedWindowLabelModel(window=8).label_stream(votes)
    >>> model = FixedWindowLabelModel(window=8, labelers=["a", "b", "c"])
    >>> start_at(model, 50, votes[42:50])
    >>> bool((model.label_stream(votes[50:]).proba == whole.proba[50:]).all())
    True
    """
    if model.n_rows:
        raise SettingError(f"the model has seen {model.n_rows} rows; only a fresh one can start in the middle")
    reach = model.reach
    if len(before) < row and (reach is None or len(before) < reach):
        needed = "all" if reach is None else f"{min(row, reach)}"
        raise SettingError(f"{len(before)} rows before row {row} are not enough: {needed} are needed")
    if not row:
        return
    codes = np.ascontiguousarray(before[-(row if reach is None else min(row, reach)) :])
    if model.abstentions == "random":
        codes = fill_abstentions(codes, model.seed, row - len(codes), model._form.n_classes)
    fresh: Any = model._engine_for(model._roster.for_width(codes.shape[1]))
    if reach is None:  # everything counts, and everything is there
        fresh.learn(codes)
        model._engine = fresh
    else:
        model._engine = _engine_at(fresh, row, codes)


def _engine_at(fresh: Any, row: int, before: Codes) -> Any:
    """The engine after `row` rows, of which these are the last; `fresh` is like it and has seen nothing."""
    if isinstance(fresh, EqualEngine):
        fresh.clock[:] = row
        fresh.last[:] = before[-1]
        return fresh
    if isinstance(fresh, WindowEngine):
        return window_engine_at(fresh.rule, before, row, fresh.n_labelers)
    if isinstance(fresh, CommitteeEngine):
        there = CommitteeEngine(window_engine_at(fresh.rule, before, row, fresh.n_labelers), fresh.plan)
        there.search_again(before)
        return there
    # The last row at which every window is fitted: nothing older than its largest window matters.
    period = int(fresh.plan.periods[-1]) if isinstance(fresh, ConfusionEngine) else 1
    first = (row - 1) // period * period if isinstance(fresh, ConfusionEngine) else row
    past = before[: len(before) - (row - first)]
    known = np.full(len(past), -1, np.int64)
    fresh.tally = recounted(past, known, first, fresh.watch.sizes, fresh.tally)
    if row > first:
        fresh.learn(before[len(past) :])
    return fresh


def begin_again(model: LabelModel) -> None:
    """Forget every row, as `reset` does, and keep the memory that the engine has: many short streams, one after the
    other, would spend most of their time on getting memory from the system. For models with declared labelers."""
    model._last_time, model._quick = None, (None, None)
    model._record, model._rows_left = None, NEVER
    engine: Any = model._engine
    if engine is None:
        return
    if isinstance(engine, CommitteeEngine):
        _empty(engine.inner)
        model._engine = CommitteeEngine(engine.inner, engine.plan)
    elif isinstance(engine, (WindowEngine, ConfusionEngine, TripletEngine)):
        _empty(engine)
    else:
        model._engine = None


def _empty(engine: WindowEngine | TallyEngine) -> None:
    """Rows in the ring may stay: none is looked at that is older than the clock."""
    if isinstance(engine, WindowEngine):
        memory = engine.state.memory
        memory.sums[:] = 0
        memory.votes[:] = 0
        memory.clock[:] = 0
        if engine._long is not None:
            engine._long.forget()
        return
    tally = engine.tally
    tally.known[: engine.remembered()] = -1
    for part in (tally.now, tally.lags, tally.stats, tally.clock):
        part[:] = 0
    if isinstance(engine, ConfusionEngine):
        engine.fit = room_for_fits(1, engine.n_labelers, engine.n_classes)
        engine.ids = type(engine.ids)()
        engine.stale = False
