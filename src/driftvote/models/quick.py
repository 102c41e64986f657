"""The short way for single rows: an array or a list of whole numbers, known labelers, nothing unusual.

Most of what `update` costs is Python between the door and the kernel. Here the row goes into an array that is there
already, the kernel checks it, and what comes back is worked out when it is read. Whatever is unusual (another shape or
type, a value without a meaning, a name) is left to the long way, which says what is wrong with it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from driftvote.agreements import StreamState
from driftvote.drift.detector import DriftDetector
from driftvote.drift.statistics import BLOCK
from driftvote.kernels import single
from driftvote.kernels.layout import Codes, Floats, Ints, Memory, Rule, code_dtype
from driftvote.kernels.single import CODE, TAIL, WINDOW, label_one
from driftvote.labels import tie_draws
from driftvote.models.estimates import WindowEstimates
from driftvote.models.families import Families
from driftvote.models.results import LabeledStream
from driftvote.models.step import Step
from driftvote.models.watched import Watching
from driftvote.times import Times, read_time
from driftvote.votes import BAD, Roster, VoteFormat

WIDEST = 1 << 16
"""Class values further apart than this go the long way: the table of their codes would be larger than the rows."""

AHEAD = 256
"""Draws for ties that are made at once."""


class QuickRows:
    """A stream's state and settings as one array of integers, and the names that its rows come back with."""

    def __init__(
        self, state: StreamState, rule: Rule, form: VoteFormat, labelers: tuple[str, ...], ties: tuple[str, int]
    ) -> None:
        self.rule = rule
        self._form = form
        self.labelers = labelers
        self._ties = ties
        self._draws: list[float] = []
        self._first_draw = 0
        self._state = state
        n = len(labelers)
        self._shape = (n,)
        self._row = np.empty(n, np.int64)
        self._width = TAIL + rule.n_classes + 3 * n
        self._limits = np.array([rule.clip_low, rule.clip_high])
        self.proba = slice(TAIL, TAIL + rule.n_classes)
        self.weighing = slice(self.proba.stop, self.proba.stop + n)
        self._held = _moved_in(state, rule, form)
        self._ring = state.memory.ring

    def label(self, row: Any) -> Step | None:
        """Learn from the row and label it; None, and nothing learned, if it must go the long way."""
        kind = type(row)
        if kind is np.ndarray:
            if row.dtype.kind != "i" or row.shape != self._shape:
                return None
        elif (kind is not list and kind is not tuple) or len(row) != self._shape[0] or set(map(type, row)) != {int}:
            return None
        try:
            self._row[:] = row
        except OverflowError:
            return None
        said = np.empty(self._width)
        draw = -1.0 if self._ties[0] == "abstain" else self._draw()
        if not label_one(self._row, self._ring, self._held, self._limits, draw, said):
            return None
        return Step(self, 0, said)

    def codes(self, step: Step) -> Codes:
        """The class codes of a row that `label` has just labeled."""
        said: Floats = step._said  # type: ignore[assignment]
        return said[-self._shape[0] :].astype(self._ring.dtype)

    def _draw(self) -> float:
        """The draw of the coming row, should it be tied."""
        place = self._state.n_rows - self._first_draw
        if not 0 <= place < len(self._draws):
            self._first_draw, place = self._state.n_rows, 0
            self._draws = tie_draws(*self._ties, self._first_draw, AHEAD).tolist()
        return self._draws[place]

    def stream(self, said: Floats) -> LabeledStream:
        """What the kernel said of a row, in the words of a batch of one row."""
        k, n = self.rule.n_classes, len(self.labelers)
        proba, weighing, votes, codes = np.split(said[TAIL:], [k, k + n, k + 2 * n])
        windows = said[WINDOW : WINDOW + 1].astype(np.int64)
        estimates = WindowEstimates(weighing[None], votes[None].astype(np.int64), windows, self.rule)
        label = said[CODE : CODE + 1].astype(np.int64)
        row = codes[None].astype(code_dtype(k))
        return LabeledStream(label, proba[None], estimates, row, self._form, self.labelers)


class ShortWay(Watching):
    """The part of a model that knows of the short way; it belongs to one engine and goes with it."""

    _form: VoteFormat
    _roster: Roster
    _engine: Any
    _families: Families
    tie_break_policy: str
    seed: int
    _quick: tuple[Any, QuickRows | None] = (None, None)

    def __getstate__(self) -> dict[str, Any]:
        """Copies and pickles look for it again: it shares memory with the engine of this model.

        They do not call back either: two models that report the same stream would be one too many.
        """
        return {name: value for name, value in self.__dict__.items() if name not in ("_quick", "on_event")}

    def _by_short_way(self, row: Any, time: Any = None) -> Step | None:
        engine, quick = self._quick
        if quick is None or engine is not self._engine:
            return None
        latest = None if time is None else _check_time(time, self._last_time)
        step = quick.label(row)
        if step is not None:
            if latest is not None:
                self._last_time = latest
            if self._detector is not None:
                self._watch_short_row(self._detector, step, quick)
        return step

    def _watch_short_row(self, detector: DriftDetector, step: Step, quick: QuickRows) -> None:
        """Show a row to the detector; an event can come at the end of a block only."""
        times = None if self._last_time is None else Times(self._last_time[0], [self._last_time[1]])
        events = detector.report(detector.scan(quick.codes(step)), [step.window], times)
        if detector.n_rows % BLOCK == 0:
            step._event = events[0] if events else None
            self._tell(events)

    def _look_for_short_way(self) -> None:
        """After a row that went the long way."""
        engine = self._engine
        if self._quick[0] is engine:
            return
        quick = None
        if engine.has_short_way and not self._families.family and not engine.rule.by_logs and takes(self._form):
            ties = (self.tie_break_policy, self.seed)
            quick = QuickRows(engine.state, engine.rule, self._form, self._roster.names, ties)
        self._quick = engine, quick


def _check_time(time: Any, latest: Any) -> Any:
    kind, value = read_time(time)
    return Times(kind, [value]).check_order(latest)


def takes(form: VoteFormat) -> bool:
    """Whether a table can hold the codes of the declared values: whole numbers, not too far apart."""
    values = [value for value in (*form.classes, form.abstain) if value is not None]
    return all(type(value) is int for value in values) and max(values) - min(values) < WIDEST  # type: ignore[type-var, operator]


def _moved_in(state: StreamState, rule: Rule, form: VoteFormat) -> Ints:
    """Everything in one array; from now on the state's memory is part of it."""
    numbers: dict[Any, int] = {value: code for value, code in form.codes.items() if value is not None}
    lowest = min(numbers)
    codes = np.full(max(numbers) - lowest + 1, BAD, np.int64)
    for value, code in numbers.items():
        codes[value - lowest] = code
    old, m, n = state.memory, len(rule.sizes), state.n_labelers
    head = np.zeros(single.HEAD, np.int64)
    head[single.LABELERS], head[single.CLASSES], head[single.WINDOWS] = n, rule.n_classes, m
    head[single.DILUTED] = head[single.FILLS] = rule.diluted
    head[single.LOWEST], head[single.VALUES] = lowest, len(codes)
    known = np.zeros(m - 1, np.int64)
    parts = [head, codes, old.clock, old.sums.ravel(), old.votes.ravel()]
    parts += [rule.sizes, rule.near, rule.far, rule.limit, rule.certain.astype(np.int64), known]
    held = np.concatenate(parts)
    begin = len(head) + len(codes)
    clock, sums, votes, _ = np.split(held[begin:], np.cumsum([1, old.sums.size, old.votes.size]))
    state.memory = Memory(old.ring, sums.reshape(old.sums.shape), votes.reshape(old.votes.shape), clock)
    return held
