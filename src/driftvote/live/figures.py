"""What is counted while a stream is watched, and one look at it all for metrics and summaries."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from driftvote._version import __version__
from driftvote.drift import KINDS
from driftvote.models import LabelModel
from driftvote.models.timelines import bands_of

MOST_CLASSES = 100
"""Classes that have a count from the start; more would fill the metrics with zeros."""


@dataclass
class Counts:
    """Counters that only grow; they are saved with the state and go on after a restart."""

    lines: int = 0
    blank_lines: int = 0
    malformed_lines: int = 0
    late_lines: int = 0
    unknown_votes: int = 0
    doubtful_rows: int = 0
    tied_rows: int = 0
    verified_rows: int = 0
    warnings: int = 0
    labels: dict[str, int] = field(default_factory=dict)
    events: dict[str, int] = field(default_factory=dict)  # by kind
    last_event_row: int | None = None
    last_event_at: float | None = None  # seconds since 1970, when it was noticed
    last_line_at: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """For the header of a state."""
        return {entry.name: getattr(self, entry.name) for entry in fields(self)}

    @classmethod
    def of(cls, saved: dict[str, Any]) -> Counts:
        """From the header of a state; what it does not know begins at nothing."""
        known = {entry.name for entry in fields(cls)}
        return cls(**{name: value for name, value in saved.items() if name in known})

    def event(self, kind: str, row: int) -> None:
        self.events[kind] = self.events.get(kind, 0) + 1
        self.last_event_row, self.last_event_at = row, time.time()


@dataclass(frozen=True)
class Labeler:
    """How one labeler stands."""

    name: str
    accuracy: float
    accuracy_low: float
    accuracy_high: float
    coverage: float
    weight: float


@dataclass(frozen=True)
class Figures:
    """One look at a stream: everything that metrics show, taken at one moment."""

    model: str
    version: str
    rows: int
    window: int
    labelers: tuple[Labeler, ...]
    labels: dict[str, int]
    events: dict[str, int]
    counts: dict[str, Any]
    posts: dict[str, int] = field(default_factory=dict)
    saved_at: float | None = None


def look_at(
    model: LabelModel, counts: Counts, posts: dict[str, int] | None = None, saved_at: float | None = None
) -> Figures:
    """The figures now."""
    now = model._current()
    low, high = bands_of(now, len(model.classes), "calibrated", 0.1, 0.1)
    each = zip(model.labelers, now.accuracies[0], low[0], high[0], now.coverage[0], now.weights[0], strict=True)
    labelers = tuple(Labeler(name, *(float(value) for value in values)) for name, *values in each)
    every = {str(value): 0 for value in model.classes[:MOST_CLASSES]}
    return Figures(
        model=type(model).__name__,
        version=__version__,
        rows=model.n_rows,
        window=int(now.windows[0]),
        labelers=labelers,
        labels=every | counts.labels,
        events=dict.fromkeys(kinds(), 0) | counts.events,
        counts=counts.as_dict(),
        posts=posts or {},
        saved_at=saved_at,
    )


def kinds() -> Sequence[str]:
    """Kinds of events, so that each has a series from the start: a rate over one that begins with 1 sees no event."""
    return KINDS
