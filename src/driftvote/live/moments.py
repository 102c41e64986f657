"""The times of rows, which never go back."""

from __future__ import annotations

import datetime
from typing import Any

from driftvote.live.reading import LineError
from driftvote.models import LabelModel
from driftvote.times import UTC, to_python


class Moments:
    """What time each row has: that of its line, of its arrival, or none.

    `late` says what becomes of a line whose time is before that of an earlier one: `"take"` it as it comes, with the
    time of the row before it, or `"refuse"`. With `arrival` a line without a time gets the present one.
    """

    def __init__(self, latest: Any, late: str = "take", arrival: bool = False) -> None:
        self._latest = latest
        self._late = late
        self._arrival = arrival

    def of(self, given: Any) -> tuple[Any, bool]:
        """The time of a row whose line says `given`, and whether it was late."""
        moment = datetime.datetime.now(UTC) if given is None and self._arrival else given
        if moment is None or self._latest is None:
            return moment, False
        kind, before = kind_of(moment), kind_of(self._latest)
        if kind != before:
            raise LineError(f'"time" is a {kind}, and was a {before} in the lines before; keep to one kind')
        if moment >= self._latest:
            return moment, False
        if self._late == "refuse":
            raise LineError(
                f"its time {moment} is before {self._latest} of the row before it; send lines in the order of time, or"
                " pass --late take"
            )
        return self._latest, given is not None

    def keep(self, moment: Any) -> None:
        """The row was taken."""
        if moment is not None:
            self._latest = moment


def kind_of(moment: Any) -> str:
    """The kind of a time, as models tell them apart."""
    if isinstance(moment, datetime.datetime):
        return "date and time"
    return "text" if isinstance(moment, str) else "number"


def latest_time(model: LabelModel) -> Any:
    """The time of the last row that a model has seen, as lines write it."""
    return to_python(model._last_time)
