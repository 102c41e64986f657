"""Admission: what a batch must pass before a model learns from it, and what it then becomes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from driftvote.doors import Batch, Times
from driftvote.errors import OrderError
from driftvote.kernels.layout import Codes
from driftvote.labelers import Roster
from driftvote.models.engine import Engine

LastTime = tuple[str, Any] | None
"""Kind and value of the latest time seen; None while no time column was declared."""


@dataclass(frozen=True)
class Admitted:
    """A batch that has passed every check, with what the model will be once it is learned."""

    codes: Codes
    roster: Roster
    engine: Engine
    last_time: LastTime


def roster_after(roster: Roster, batch: Batch) -> Roster:
    """The labelers once the batch is in."""
    if batch.names is None:
        return roster.for_width(batch.codes.shape[1])
    return roster.joined_by(batch.names)


def aligned(batch: Batch, roster: Roster) -> Codes:
    """The batch's columns in the order of the roster; names it does not have are left out."""
    codes = np.full((len(batch.codes), len(roster)), -1, batch.codes.dtype)
    places = roster.places(batch.names or ())
    codes[:, places[places >= 0]] = batch.codes[:, places >= 0]
    return codes


def checked_times(times: Times | None, latest: LastTime) -> LastTime:
    """The latest time once the batch is in, or an error for the first row that goes back."""
    if times is None:
        return latest
    kind, last = latest or (times.kind, times.values[0])
    if kind != times.kind:
        raise OrderError(f"the time column held {kind}s so far and holds {times.kind}s now; keep to one kind")
    for row, value in enumerate(times.values):
        if not value >= last:
            before = f"row {row - 1}" if row else "the row before this batch"
            raise OrderError(
                f"row {row} of this batch (counting from 0): time {times.show(value)} is before {times.show(last)}"
                f" of {before}; sort the rows by time"
            )
        last = value
    return times.kind, last
