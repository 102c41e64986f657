"""Drift events in the models: every row goes to the drift detector as well as to the engine."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from driftvote.drift.bands import AccuracyEstimate
from driftvote.drift.dependence import Dependence
from driftvote.drift.detector import DriftDetector
from driftvote.drift.diagnosis import Change
from driftvote.drift.events import DriftEvent, DriftWarning
from driftvote.drift.statistics import BLOCK
from driftvote.errors import DriftvoteError
from driftvote.kernels.layout import Codes
from driftvote.models.engine import Engine, Labeled
from driftvote.models.estimates import Estimates
from driftvote.models.id_book import Marks
from driftvote.times import Times
from driftvote.votes import Roster, VoteFormat

SLICE = 1 << 16
"""Rows that are learned from at once, so that labels that are thrown away take little memory."""

BESIDE = 1 << 15
"""Rows from which a worker thread looks for drift while this one labels, if there are threads."""


def estimate_by_engine(engine: Engine, rows: Codes) -> AccuracyEstimate:
    """Return the accuracies of all labelers by these rows alone, as the engine of a model estimates them."""
    accuracies = engine.accuracies_of(rows)
    return AccuracyEstimate.of_rows(accuracies, rows, engine.n_classes, engine.fills_in, engine.estimator)


class Watching:
    """The part of a model that owns the drift detector."""

    _form: VoteFormat
    _roster: Roster
    _engine: Engine | None
    _last_time: tuple[str, Any] | None
    n_jobs = 1
    _detector: DriftDetector | None = None
    _ahead: tuple[DriftDetector, list[Change]] | None = None  # a copy that has seen the rows that are being labeled
    false_event_rate: float | None = None
    on_event: Callable[[DriftEvent], Any] | None = None

    @property
    def events(self) -> list[DriftEvent]:
        """The latest drift events, oldest first (at most 256 are remembered)."""
        return [] if self._detector is None else self._detector.events

    @property
    def n_detections(self) -> int:
        """ADWIN's word: how many events there were."""
        return 0 if self._detector is None else self._detector.n_events

    @property
    def drift_detected(self) -> bool:
        """ADWIN's word: whether an event was detected at the last row."""
        return bool(self.events and self.events[-1].row == self.n_rows - 1)  # type: ignore[attr-defined]

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
        return found.warnings(int(self.n_rows))  # type: ignore[attr-defined]

    def new_warnings(self) -> list[DriftWarning]:
        """The warnings that have not been given before: each is given once, and again only after it was gone."""
        return self.warnings if self._detector is None else self._detector.new_warnings(self.warnings)

    def _new_detector(self, engine: Engine, names: tuple[str, ...], first_row: int = 0) -> DriftDetector:
        assert self.false_event_rate is not None
        return DriftDetector(
            engine.n_labelers,
            self._form.n_classes,
            false_event_rate=self.false_event_rate,
            labelers=names,
            classes=self._form.classes,
            first_row=first_row,
            estimate=partial(estimate_by_engine, engine),
        )

    def _resume_detector(self, header: dict[str, Any] | None, arrays: dict[str, Any]) -> None:
        """Resume from a state file; without a detector in it, one begins at the next row."""
        if header is None or self._engine is None or self.false_event_rate is None:
            return
        self._detector = self._new_detector(self._engine, self._roster.names)
        self._detector.restore(header, arrays)

    def _become(self, other: Any) -> None:
        """Take over the stream of another model of the same settings."""
        self._roster, self._engine, self._last_time = other._roster, other._engine, other._last_time
        self._families, self._detector = other._families, other._detector

    def _ready_to_watch(self, engine: Engine, names: tuple[str, ...]) -> None:
        """Make the detector, or widen it, before rows of these labelers come."""
        if self.false_event_rate is None:
            return
        if self._detector is None:
            self._detector = self._new_detector(engine, names, engine.n_rows)
        elif self._detector.n_labelers < len(names):
            self._detector.add_labelers(names[self._detector.n_labelers :])
        self._detector.estimate = partial(estimate_by_engine, engine)

    def _labeled(self, engine: Engine, rows: Codes, draws: Any, marks: Marks | None, names: tuple[str, ...]) -> Labeled:
        self._ready_to_watch(engine, names)
        self._ahead = None
        if marks is not None:
            return engine.label_marked(rows, draws, marks)
        if self._detector is None or self.n_jobs == 1 or len(rows) < BESIDE:
            return engine.label(rows, draws)
        # A copy of the detector sees the rows while they are labeled, and takes its place when both are through.
        detector = self._detector.copy()
        changes: list[Change] = []
        said = engine.label_beside(rows, draws, lambda: changes.extend(detector.scan(rows)))
        self._ahead = detector, changes
        return said

    def _noticed(self, rows: Codes, estimates: Estimates, times: Times | None) -> list[DriftEvent]:
        """Return the events of rows that went through the engine, in order."""
        if self._detector is None:
            return []
        if self._ahead is None:
            changes = self._detector.scan(rows)
        else:
            (self._detector, changes), self._ahead = self._ahead, None
        ends_block = self._detector.n_rows % BLOCK < len(rows)
        return self._detector.report(changes, estimates.windows if ends_block else None, times)

    def _learn(self, engine: Engine, rows: Codes, marks: Marks | None, times: Times | None) -> list[DriftEvent]:
        """Learn from rows and label none; the detector needs to know the windows all the same."""
        if marks is None and self.false_event_rate is None:
            engine.learn(rows)
            return []
        found = []
        for begin in range(0, len(rows), SLICE):
            part = slice(begin, begin + SLICE)
            here = None if marks is None else marks[part]
            said = self._labeled(engine, rows[part], np.zeros(0), here, self._roster.names)
            found += self._noticed(rows[part], said.estimates, None if times is None else times[part])
        return found

    def _if_watched(self, found: list[DriftEvent]) -> list[DriftEvent] | None:
        """The events, or None where nobody looks for them."""
        return None if self.false_event_rate is None else found

    def _tell(self, found: list[DriftEvent]) -> None:
        """Call back, once everything is in its place: what the callback raises leaves a whole state behind."""
        for event in found if self.on_event is not None else ():
            self.on_event(event)  # type: ignore[misc]
