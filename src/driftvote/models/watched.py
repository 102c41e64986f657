"""Drift events in the models: rows go to the watch beside the engine, and what it notices is put into words."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from driftvote.dependence import Dependence
from driftvote.drift import DriftEvent, DriftWarning
from driftvote.errors import DriftvoteError
from driftvote.kernels.counting import BLOCK
from driftvote.kernels.layout import Codes
from driftvote.models.block_book import BlockBook, ends_of_blocks
from driftvote.models.engine import Engine, Labeled
from driftvote.models.estimates import Estimates
from driftvote.models.id_book import Marks
from driftvote.models.telling import Weighed, told_event, weighed
from driftvote.times import Times, format_time
from driftvote.votes import Roster, VoteFormat
from driftvote.watching import Watcher

MOST_EVENTS = 256
"""Events that a model remembers: the latest ones."""

SLICE = 1 << 16
"""Rows that are learned from at once, so that what is said of them and dropped takes little memory."""

BESIDE = 1 << 15
"""Rows from which the watch goes beside the labels, where there are threads."""

NEVER = 1 << 62


class WatchRecord:
    """All that a stream remembers for its events."""

    def __init__(self, watcher: Watcher) -> None:
        self.watcher = watcher
        self.book = BlockBook()
        self.events: list[DriftEvent] = []
        self.n_events = 0
        self.warned: list[str] = []

    @property
    def nbytes(self) -> int:
        return self.watcher.nbytes

    def to_plain(self) -> dict[str, Any]:
        """What a state file holds beside the arrays."""
        events = [event.as_dict() for event in self.events]
        return {"events": events, "n_events": self.n_events, "book": self.book.to_plain(), "warned": self.warned}

    def take(self, plain: dict[str, Any], arrays: dict[str, Any]) -> None:
        """Resume from a state file."""
        self.watcher.restore(arrays)
        self.events = [DriftEvent.from_dict(event) for event in plain["events"]]
        self.n_events, self.warned = int(plain["n_events"]), list(plain["warned"])
        self.book = BlockBook(**plain["book"])


class Watching:
    """The part of a model that tells when something changed, and who."""

    _form: VoteFormat
    _roster: Roster
    _engine: Engine | None
    _last_time: tuple[str, Any] | None
    n_jobs = 1
    _record: WatchRecord | None = None
    _ahead: tuple[Watcher, list[Weighed]] | None = None  # a watch that has seen rows beside the engine
    _rows_left = NEVER  # until the watch wants to see the rows that went the short way
    false_event_rate: float | None = None
    on_event: Callable[[DriftEvent], Any] | None = None

    # -- what people read ----------------------------------------------------------------------

    @property
    def events(self) -> list[DriftEvent]:
        """The latest drift events, oldest first (at most 256 are remembered)."""
        return [] if self._record is None else list(self._record.events)

    @property
    def n_detections(self) -> int:
        """ADWIN's word: how many events there were."""
        return 0 if self._record is None else self._record.n_events

    @property
    def drift_detected(self) -> bool:
        """ADWIN's word: whether an event was noticed at the last row."""
        record = self._record
        return bool(record and record.events and record.events[-1].row == self.n_rows - 1)  # type: ignore[attr-defined]

    @property
    def width(self) -> int:
        """ADWIN's word for `window`."""
        return int(self.window)  # type: ignore[attr-defined]

    @property
    def warnings(self) -> list[DriftWarning]:
        """What is wrong with the panel now, by the agreements of the current window: labelers that err together."""
        try:
            found: Dependence = self.dependence()  # type: ignore[attr-defined]
        except (AttributeError, DriftvoteError):  # a model without agreements, or without rows
            return []
        agreement = {pair.pair: pair.agreement for pair in found.pairs}
        row = int(self.n_rows)  # type: ignore[attr-defined]
        told = [DriftWarning("near copies", pair, agreement[pair], row) for pair in found.near_copies]
        few, n = found.effective_labelers, len(found.labelers)
        if few is not None and few < 0.75 * n:
            told.append(DriftWarning("few independent labelers", found.labelers, few, row))
        return told

    def new_warnings(self) -> list[DriftWarning]:
        """The warnings that have not been given before: each is given once, and again only after it was gone."""
        now = self.warnings
        if self._record is None:
            return now
        keys = [f"{one.kind}: {', '.join(one.labelers)}" for one in now]
        new = [one for one, key in zip(now, keys, strict=True) if key not in self._record.warned]
        self._record.warned = keys
        return new

    def _watch_record(self) -> WatchRecord | None:
        """All that is remembered for events, up to the last row."""
        if self._record is not None and self._engine is not None:
            self._catch_up(self._engine)
        return self._record

    def _resume_watch(self, plain: dict[str, Any] | None, arrays: dict[str, Any]) -> None:
        """From a state file; one that knows nothing of events begins to watch where it ends."""
        if plain is None or self._engine is None or self.false_event_rate is None:
            return
        watcher = Watcher(self._engine.n_labelers, self._form.n_classes, self.false_event_rate)
        self._record = WatchRecord(watcher)
        self._record.take(plain, arrays)
        self._rows_left = 1  # the next row says when to look

    def _become(self, other: Any) -> None:
        """Take over the stream of another model of the same settings."""
        self._roster, self._engine, self._last_time = other._roster, other._engine, other._last_time
        self._families = other._families
        self._record, self._rows_left = other._record, other._rows_left

    # -- rows on their way ---------------------------------------------------------------------

    def _ready_to_watch(self, engine: Engine, n_rows: int) -> None:
        """Before rows reach the engine: the watch is there, and has seen what went by without it."""
        if self.false_event_rate is None:
            return
        if self._record is None:
            first = Watcher(engine.n_labelers, self._form.n_classes, self.false_event_rate, engine.n_rows)
            self._record = WatchRecord(first)
        record = self._record
        joining = engine.n_labelers - record.watcher.n_labelers
        if joining:
            record.watcher = record.watcher.joined_by(joining)
        if not self._can_wait(engine, n_rows):
            self._catch_up(engine)

    def _can_wait(self, engine: Engine, n_rows: int) -> bool:
        """Whether these rows end no block and will still be remembered when one ends."""
        seen = engine.n_rows
        return seen // BLOCK == (seen + n_rows) // BLOCK and engine.remembers(BLOCK)

    def _catch_up(self, engine: Engine) -> None:
        """Show the watch the rows of an unfinished block that it has not seen."""
        assert self._record is not None
        missing = engine.n_rows - self._record.watcher.n_rows
        if missing:
            self._record.watcher.feed(engine.recent(missing))

    def _noticed(self, engine: Engine, rows: Codes, estimates: Estimates, times: Times | None) -> list[DriftEvent]:
        """After rows went through the engine: events, in order."""
        record = self._record
        if record is None:
            return []
        first, n_rows = engine.n_rows - len(rows), len(rows)
        self._rows_left = self._next_look(engine)
        if engine.remembers(BLOCK) and first // BLOCK == engine.n_rows // BLOCK:
            return []  # the rows wait for the end of their block
        ends = ends_of_blocks(first, n_rows)
        record.book.add(first // BLOCK, estimates[ends].windows.tolist(), _at(times, range(n_rows)[ends]))
        seen = self._seen(record, engine, rows)
        found = [told_event(one, record.book, self._form, self._roster) for one in seen]
        record.book.trim()
        return self._remembered(found)

    def _next_look(self, engine: Engine) -> int:
        """Rows until the watch must see those that went the short way."""
        return BLOCK - engine.n_rows % BLOCK if engine.remembers(BLOCK) else 1

    def _remembered(self, found: list[DriftEvent]) -> list[DriftEvent]:
        if found:
            assert self._record is not None
            self._record.n_events += len(found)
            self._record.events = (self._record.events + found)[-MOST_EVENTS:]
        return found

    def _end_of_block(self, window: int) -> list[DriftEvent]:
        """After rows that went the short way, the last of which ends a block (or must be seen before it is gone)."""
        engine, record = self._engine, self._record
        assert engine is not None
        assert record is not None
        seen = engine.n_rows
        self._rows_left = self._next_look(engine)
        if seen % BLOCK == 0:
            record.book.add(seen // BLOCK - 1, [window], [format_time(self._last_time)])
        noticed = weighed(record.watcher, engine.recent(seen - record.watcher.n_rows), engine)
        found = [told_event(one, record.book, self._form, self._roster) for one in noticed]
        record.book.trim()
        return self._remembered(found)

    def _learn(self, engine: Engine, rows: Codes, marks: Marks | None, times: Times | None) -> list[DriftEvent]:
        """Learn from rows and label none; the watch needs to know the windows all the same."""
        if marks is None and self.false_event_rate is None:
            engine.learn(rows)
            return []
        found = []
        for begin in range(0, len(rows), SLICE):
            part = slice(begin, begin + SLICE)
            said = self._labeled(engine, rows[part], np.zeros(0), None if marks is None else marks[part])
            found += self._noticed(engine, rows[part], said.estimates, None if times is None else times[part])
        return found

    def _labeled(self, engine: Engine, rows: Codes, draws: Any, marks: Marks | None) -> Labeled:
        self._ready_to_watch(engine, len(rows))
        self._ahead = None
        if marks is not None:
            return engine.label_marked(rows, draws, marks)
        if self._record is None or self.n_jobs == 1 or len(rows) < BESIDE:
            return engine.label(rows, draws)
        # A copy of the watch sees the rows while they are labeled, and takes its place when both are through.
        watcher = copy.deepcopy(self._record.watcher)
        found: list[Weighed] = []
        said = engine.label_beside(rows, draws, lambda: found.extend(weighed(watcher, rows, engine)))
        self._ahead = watcher, found
        return said

    def _seen(self, record: WatchRecord, engine: Engine, rows: Codes) -> list[Weighed]:
        """What the watch notices in rows that it has not seen, or has just seen beside the engine."""
        if self._ahead is None:
            return weighed(record.watcher, rows, engine)
        (record.watcher, noticed), self._ahead = self._ahead, None
        return noticed

    def _if_watched(self, found: list[DriftEvent]) -> list[DriftEvent] | None:
        """The events, or None where nobody looks for them."""
        return None if self.false_event_rate is None else found

    def _tell(self, found: list[DriftEvent]) -> None:
        """Call back, once everything is in its place: what the callback raises leaves a whole state behind."""
        for event in found if self.on_event is not None else ():
            self.on_event(event)  # type: ignore[misc]


def _at(times: Times | None, places: range) -> list[Any]:
    """Times of some rows, as events hold them."""
    if times is None:
        return [None] * len(places)
    return [format_time((times.kind, times.at(place))) for place in places]
