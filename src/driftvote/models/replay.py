"""`start_at`: a model in the middle of a stream, from the rows before.

The label of a row depends on the last `reach` rows and on the row's number, on nothing older. So a block of a stream
can be labeled alone, given the rows before it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from driftvote.errors import SettingError
from driftvote.inputs import Batch
from driftvote.kernels.agreements import recount
from driftvote.kernels.layout import Codes, Rule
from driftvote.models.base import LabelModel
from driftvote.models.committee import CommitteeEngine
from driftvote.models.engine import WindowEngine
from driftvote.models.equal_engine import EqualEngine
from driftvote.models.tally_engine import ConfusionEngine
from driftvote.randomness import fill_abstentions
from driftvote.tallies import recounted


def start_at(model: LabelModel, row: int, before: Codes) -> None:
    """Bring a model that has seen nothing to row `row` of a stream, of which `before` are the last rows before it.

    `before` holds class codes, -1 for an abstention, with a column for each declared labeler (with `groups`, for each
    member): all rows of the stream so far, or at least as many as `model.reach`.

    >>> from driftvote import FixedWindowLabelModel
    >>> votes = np.random.default_rng(0).integers(0, 2, (100, 3)).astype(np.int8)
    >>> whole = FixedWindowLabelModel(window=8).label_stream(votes)
    >>> model = FixedWindowLabelModel(window=8, labelers=["a", "b", "c"])
    >>> start_at(model, 50, votes[42:50])
    >>> bool((model.label_stream(votes[50:]).proba == whole.proba[50:]).all())
    True
    """
    if model.n_rows:
        raise SettingError(f"the model has seen {model.n_rows} rows; only a new one can start in the middle")
    reach = model.reach
    if len(before) < row and (reach is None or len(before) < reach):
        needed = "all" if reach is None else f"{min(row, reach)}"
        raise SettingError(f"{len(before)} rows before row {row} are not enough: {needed} are needed")
    if not row:
        return
    codes = np.ascontiguousarray(before[-(row if reach is None else min(row, reach)) :])
    families = model._families
    if families.family:
        members = Batch(families.members.names, codes, literal=False)
        codes = families._collapsed(members, model._form.n_classes, model._roster).codes
    if model.abstentions == "random":
        codes = fill_abstentions(codes, model.seed, row - len(codes), model._form.n_classes)
    fresh: Any = model._engine_for(model._roster.for_width(codes.shape[1]))
    if reach is None:  # all rows are there
        fresh.learn(codes)
        model._engine = fresh
    else:
        model._engine = _engine_at(fresh, row, codes)


def _engine_at(fresh: Any, row: int, before: Codes) -> Any:
    """The engine after `row` rows, of which `before` are the last; `fresh` has the same settings and no rows."""
    if isinstance(fresh, EqualEngine):
        fresh.clock[:] = row
        fresh.last[:] = before[-1]
        return fresh
    if isinstance(fresh, WindowEngine):
        return window_engine_at(fresh.rule, before, row, fresh.n_labelers)
    if isinstance(fresh, CommitteeEngine):
        searched = fresh.plan.last_search(row)
        past, since = before[: len(before) - (row - searched)], before[len(before) - (row - searched) :]
        past = past[-int(fresh.rule.sizes[-1]) :]
        there = CommitteeEngine(window_engine_at(fresh.rule, past, searched, fresh.n_labelers), fresh.plan)
        there.search()
        if len(since):
            there.learn(since)
        return there
    # `first` is the last row at which every window is fitted: rows older than the largest window there do not matter.
    period = int(fresh.plan.periods[-1]) if isinstance(fresh, ConfusionEngine) else 1
    first = (row - 1) // period * period if isinstance(fresh, ConfusionEngine) else row
    past = before[: len(before) - (row - first)]
    known = np.full(len(past), -1, np.int64)
    fresh.tally = recounted(past, known, first, fresh.watch.sizes, fresh.tally)
    if row > first:
        fresh.learn(before[len(past) :])
    return fresh


def window_engine_at(rule: Rule, past: Codes, row: int, n_labelers: int) -> WindowEngine:
    """Return a window engine as of a row, given the last rows up to it. Windows that need more rows are not used."""
    engine = WindowEngine(rule, n_labelers, 1)
    memory = engine.state.memory
    memory.clock[0] = row
    engine.state.set_recent_rows(past)
    recount(past, rule.n_classes, rule.sizes, memory.sums, memory.votes)
    return engine
