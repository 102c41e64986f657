"""Admission: what a batch must pass before a model learns from it, and what it then becomes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from driftvote.doors import Batch, Times
from driftvote.errors import LabelerError, OrderError
from driftvote.kernels.layout import Codes
from driftvote.votes import Roster

LastTime = tuple[str, Any] | None
"""Kind and value of the latest time seen; None while no time column was declared."""


Part = tuple[slice, Roster]
"""Rows that the same labelers know of, and who they are."""


@dataclass(frozen=True)
class Admitted:
    """A batch that has passed every check, cut where labelers join."""

    batch: Batch
    parts: list[Part]
    last_time: LastTime


def parts_by_roster(roster: Roster, batch: Batch) -> list[Part]:
    """The batch cut at the rows where new names appear, so that it does not matter how rows are cut into batches.

    A frame names its labelers for all its rows; of dicts, each names its own.
    """
    n_rows = len(batch.codes)
    if batch.names is None:
        return [(slice(0, n_rows), roster.for_width(batch.codes.shape[1]))]
    if not batch.first_rows:
        return [(slice(0, n_rows), roster.joined_by(batch.names))]
    known = set(roster.names)
    joins = {first for name, first in zip(batch.names, batch.first_rows, strict=True) if name not in known}
    borders = sorted({0, *joins})
    parts = []
    for begin, end in zip(borders, [*borders[1:], n_rows], strict=True):
        named = [n for n, first in zip(batch.names, batch.first_rows, strict=True) if first <= begin]
        roster = roster.joined_by(named)
        parts.append((slice(begin, end), roster))
    return parts


def refuse_newcomers(roster: Roster, after: Roster) -> None:
    """All the past with random abstentions: a newcomer's random past would need rows that are gone."""
    if len(after) > len(roster):
        raise LabelerError(
            f"{after.names[len(roster)]!r} cannot join: with window=None and abstentions='random' its random past would"
            " need rows that are no longer kept; declare all labelers with labelers=[...]"
        )


def aligned(batch: Batch, roster: Roster) -> Codes:
    """The batch's columns in the order of the roster; names it does not have are left out."""
    codes = np.full((len(batch.codes), len(roster)), -1, batch.codes.dtype)
    places = roster.places(batch.names or ())
    codes[:, places[places >= 0]] = batch.codes[:, places >= 0]
    return codes


def rows_by_roster(batch: Batch, roster: Roster) -> Codes:
    """The batch's rows with a column for each labeler of the roster."""
    return batch.codes if batch.names in (None, roster.names) else aligned(batch, roster)


def aligned_for_prediction(batch: Batch, roster: Roster) -> Codes:
    """The batch's columns for a prediction; names that nobody knows are left out, unless they had to be declared."""
    if batch.names is None:
        roster.for_width(batch.codes.shape[1])
        return batch.codes
    if roster.closed:
        roster.joined_by(batch.names)  # refuses unknown names
    return aligned(batch, roster if roster.names else Roster(batch.names))


def timed(batch: Batch, value: Any) -> Batch:
    """A batch of one row with its time."""
    from driftvote.times import one_time

    return replace(batch, times=one_time(value))


def time_after(value: Any, latest: LastTime) -> LastTime:
    """The time of one row, or an error if it goes back."""
    from driftvote.times import one_time  # brings narwhals, which not everybody needs

    times = one_time(value)
    if latest is not None and (latest[0] != times.kind or not times.values[0] >= latest[1]):
        _check_times(times, latest)
    return times.kind, times.values[0]


def checked_times(batch: Batch, latest: LastTime) -> LastTime:
    """The latest time once the batch is in, or an error for the first row that goes back."""
    times = batch.times
    if batch.origin.door == "long" and times is None:
        raise OrderError(
            "a long frame needs time=, the column that says when each vote was cast; if its lines are in time order"
            " already, add a column that counts them"
        )
    return latest if times is None else _check_times(times, latest)


def _check_times(times: Times, latest: LastTime) -> LastTime:
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
