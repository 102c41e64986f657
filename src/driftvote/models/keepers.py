"""Engines put away and taken up again, without all of their rows where that is possible.

A ring of half a million rows is a few megabytes; the next hundred rows look at a few kilobytes of it: at the rows that
leave each window, and where the labelers are fitted again at those of the window. A keeper says which rows those are,
takes an engine up from them and from its small arrays, and puts the small arrays away again. What the engine then says
is the same to the last bit; rows that were not asked for are never looked at, and may be anything.

An engine that no keeper knows, or that has got an array which its keeper does not know, is taken up from all its rows
by its own `restore`: that costs more, and is never wrong.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from driftvote.kernels.confusion import Fit
from driftvote.kernels.layout import Codes, Ints
from driftvote.kernels.resuming import fitted_from, note_keys, note_totals, sum_up_all
from driftvote.models.base import LabelModel
from driftvote.models.engine import LONG, Arrays, WindowEngine
from driftvote.models.id_book import IdBook
from driftvote.models.tally_engine import ConfusionEngine, TripletEngine

Ranges = list[tuple[int, int]]
"""Rows by their numbers, counted from 0: from the first to before the last."""

ROWWISE = ("rows", "known")
"""Arrays with an entry for each remembered row; all others are small."""

_IDS = {
    "id_rows",
    "id_numbers",
    "id_ends",
    "id_letters",
}  # names for `feedback`, which nobody gives to an engine in here
_FIT = {f"fit_{name}" for name in Fit._fields}


class Past(NamedTuple):
    """Rows of the past, one after the other."""

    first: int  # number of the first one
    rows: Codes
    known: Ints  # verified classes, -1 where nobody has said


class Keeper:
    """Any engine, from all its rows."""

    def __init__(self, model: LabelModel) -> None:
        # The model labels many streams in turn: what it would keep of one beside its engine, to tell events, is off.
        vars(model).update(false_event_rate=None)
        self.model = model
        self.engine: Any = model._new_engine(len(model._roster))
        self.fresh = {name: array.copy() for name, array in self.engine.arrays().items()}

    @property
    def capacity(self) -> int:
        """Rows that are remembered at most."""
        return self.model.reach or 0

    def needed(self, clock: int, n_rows: int) -> Ranges:
        """Which rows of the past must be there for so many further ones, after `clock` of them."""
        return merged([(max(0, clock - self.capacity), clock)])

    def piece(self, clock: int, n_rows: int) -> int:
        """How many of the further rows may be labeled at once."""
        return n_rows

    def resume(self, small: Arrays, past: list[Past], n_rows: int) -> None:
        """Let the model go on from there, for at most so many rows."""
        self.engine = self.model._new_engine(len(self.model._roster))
        if past:
            small = small | {"rows": np.concatenate([part.rows for part in past])}
            if "known" in self.fresh:
                small["known"] = np.concatenate([part.known for part in past])
        self.engine.restore(small)
        self.model._engine = self.engine

    def small_arrays(self) -> Arrays:
        """Everything but the rows that are remembered."""
        arrays: Arrays = self.engine.arrays()
        if self.engine.remembered():
            arrays = {name: array for name, array in arrays.items() if name not in ROWWISE}
        return arrays

    def remembered(self, n_rows: int) -> Past:
        """The latest rows, as many as are asked for and remembered."""
        kept = min(n_rows, self.engine.remembered())
        arrays = self.engine.arrays()
        rows = arrays["rows"][len(arrays["rows"]) - kept :]
        known = arrays["known"][-kept:] if kept and "known" in arrays else np.full(kept, -1, np.int64)
        return Past(self.engine.n_rows - kept, rows, known)


class SparseKeeper(Keeper):
    """What the keepers share that ask for the rows they need."""

    @property
    def sizes(self) -> Ints:
        """Window sizes, increasing."""
        raise NotImplementedError

    def _is_whole(self, clock: int, n_rows: int) -> bool:
        """Whether so many rows come that all of the past is little beside them."""
        return 16 * n_rows >= min(clock, self.capacity)

    def piece(self, clock: int, n_rows: int) -> int:
        # Longer chunks may be worth a history of the whole ring; see `LONG`.
        return n_rows if self._is_whole(clock, n_rows) else LONG - 1

    def needed(self, clock: int, n_rows: int) -> Ranges:
        if self._is_whole(clock, n_rows):
            return super().needed(clock, n_rows)
        oldest = max(0, clock - self.capacity)
        ranges = [(max(oldest, first), min(clock, last)) for first, last in self._looked_at(clock, n_rows)]
        return merged(ranges)

    def _looked_at(self, clock: int, n_rows: int) -> Ranges:
        raise NotImplementedError


class WindowKeeper(SparseKeeper):
    """The paper's rule, and fixed windows: a row comes, and one leaves each window."""

    @property
    def sizes(self) -> Ints:
        return np.asarray(self.engine.rule.sizes)

    @property
    def capacity(self) -> int:
        return len(self.engine.state.memory.ring)

    def _looked_at(self, clock: int, n_rows: int) -> Ranges:
        return [(clock - size, clock - size + n_rows) for size in self.sizes.tolist()]

    def resume(self, small: Arrays, past: list[Past], n_rows: int) -> None:
        memory = self.engine.state.memory
        for name in ("sums", "votes", "clock"):
            getattr(memory, name)[:] = small[name]
        for part in past:
            memory.ring[np.arange(part.first, part.first + len(part.rows)) % self.capacity] = part.rows
        self.engine._long = None  # the history of another stream
        self.model._engine = self.engine

    def small_arrays(self) -> Arrays:
        memory = self.engine.state.memory
        return {name: getattr(memory, name).copy() for name in ("sums", "votes", "clock")}

    def remembered(self, n_rows: int) -> Past:
        memory, clock = self.engine.state.memory, self.engine.n_rows
        kept = min(n_rows, clock, self.capacity)
        slots = np.arange(clock - kept, clock) % max(1, self.capacity)
        return Past(clock - kept, memory.ring[slots], np.full(kept, -1, np.int64))


class TallyKeeper(SparseKeeper):
    """The sharper rules: sums over every window stand for the running totals, which are counted on from there."""

    def __init__(self, model: LabelModel) -> None:
        super().__init__(model)
        self.fresh = self.small_arrays()

    @property
    def sizes(self) -> Ints:
        return np.asarray(self.engine.watch.sizes)

    @property
    def capacity(self) -> int:
        return len(self.engine.tally.ring)

    def _looked_at(self, clock: int, n_rows: int) -> Ranges:
        # A window's sum is taken at the next moment at which totals are kept, and the rows before are counted.
        more = n_rows + self.engine.tally.stride
        ends = [(max(0, clock - size), max(0, clock - size) + more) for size in self.sizes.tolist()]
        if isinstance(self.engine, ConfusionEngine):
            ends.append((fitted_from(clock, n_rows, self.sizes, self.engine.plan), clock))
        return ends

    def resume(self, small: Arrays, past: list[Past], n_rows: int) -> None:
        tally, sizes, sums = self.engine.tally, self.sizes, small["windows"]
        clock, near = int(small["clock"][0]), len(sums) - len(tally.lags)
        tally.clock[:] = clock
        for part in past:
            slots = np.arange(part.first, part.first + len(part.rows)) % self.capacity
            tally.ring[slots], tally.known[slots] = part.rows, part.known
            note_keys(part.first, part.first + len(part.rows), tally)
        # Totals may begin anywhere, because only differences count: here, at the far end of the largest window.
        tally.now[:] = sums[-1]
        tally.lags[:] = sums[-1] - sums[near:]
        for level in range(near):
            first = max(0, clock - int(sizes[level]))
            note_totals(first, min(clock, first + n_rows + tally.stride), sums[-1] - sums[level], tally)
        if isinstance(self.engine, ConfusionEngine):
            self.engine.fit = Fit(*(small[f"fit_{name}"].copy() for name in Fit._fields))
            self.engine.ids, self.engine.stale = IdBook(), False
        self.model._engine = self.engine

    def small_arrays(self) -> Arrays:
        tally = self.engine.tally
        sum_up_all(self.engine.watch.sizes, tally)
        small = {"windows": tally.stats.copy(), "clock": tally.clock.copy()}
        if isinstance(self.engine, ConfusionEngine):
            small |= {f"fit_{name}": part.copy() for name, part in self.engine.fit._asdict().items()}
        return small

    def remembered(self, n_rows: int) -> Past:
        tally, clock = self.engine.tally, self.engine.n_rows
        kept = min(n_rows, clock, self.capacity)
        slots = np.arange(clock - kept, clock) % self.capacity
        return Past(clock - kept, tally.ring[slots], tally.known[slots])


_KEEPERS: dict[type, tuple[type[Keeper], set[str]]] = {
    WindowEngine: (WindowKeeper, {"rows", "sums", "votes", "clock"}),
    TripletEngine: (TallyKeeper, {"rows", "known", "clock"}),
    ConfusionEngine: (TallyKeeper, {"rows", "known", "clock"} | _FIT | _IDS),
}
"""By kind of engine: its keeper, and the arrays that this one knows."""


def keeper_for(model: LabelModel) -> Keeper:
    """The keeper for a model that has seen nothing."""
    anybody = Keeper(model)
    kind, known = _KEEPERS.get(type(anybody.engine), (Keeper, set()))
    return kind(model) if set(anybody.fresh) == known else anybody


def adopt(keeper: Keeper, model: LabelModel) -> None:
    """Make the state of another model, which has seen rows, that of the keeper's; names of rows are left behind."""
    engine = model._engine
    if isinstance(engine, ConfusionEngine):
        engine._catch_up()
    keeper.engine = keeper.model._engine = engine


def merged(ranges: Ranges) -> Ranges:
    """The same rows, each once, in order.

    >>> merged([(5, 9), (0, 3), (8, 10), (4, 4)])
    [(0, 3), (5, 10)]
    """
    found: Ranges = []
    for first, last in sorted(ranges):
        if first >= last:
            continue
        if found and first <= found[-1][1]:
            found[-1] = (found[-1][0], max(last, found[-1][1]))
        else:
            found.append((first, last))
    return found
