"""The time axis that charts share: times where they grow, row numbers elsewhere."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from driftvote.kernels.layout import Ints
from driftvote.report.parts import Time, Timeline
from driftvote.report.values import brief, rounded


@dataclass(frozen=True)
class Columns:
    """A table over time with few columns: their places on the axis, and a line of values for each line."""

    x: list[Any]
    values: list[list[Any]]


class TimeAxis:
    """Where rows and buckets stand on the axis."""

    def __init__(self, line: Timeline) -> None:
        self.line = line
        self.by_time = line.by_time
        self.x: list[Any] = [
            self.between(first, last, line.first_time[t] if line.first_time else None)
            for t, (first, last) in enumerate(zip(line.first_row, line.last_row, strict=True))
        ]

    def between(self, first: int, last: int, time: Time) -> Any:
        """The place of a stretch of rows: its middle, or the time at which it begins."""
        if self.by_time:
            return time
        middle = (first + last) / 2
        return int(middle) if middle.is_integer() else middle

    def at(self, row: int) -> Any:
        """The place of a row: its bucket's."""
        if not self.by_time:
            return row
        return self.line.first_time[max(0, bisect_right(self.line.first_row, row) - 1)]

    def layout(self) -> dict[str, Any]:
        """Plotly's settings of the axis."""
        title = "time" if self.by_time else "row"
        ticks = self._time_ticks()
        if ticks:
            title = "time, and row"
        form = (
            {}
            if self.by_time
            else {"tickformat": "~s" if self.line.last_row[-1] >= 100_000 else ",d", "hoverformat": ",d"}
        )
        kind = {"type": "date"} if self.by_time and isinstance(self.x[0], str) else {}
        said = "%{x}" if self.by_time else "row %{x:,d}"
        ends = [self.x[0], self.x[-1]] if self.by_time else [self.line.first_row[0], self.line.last_row[-1]]
        span = {"range": ends, "autorange": False} if len(self.x) > 1 else {}
        return {"title": {"text": title}, "unifiedhovertitle": {"text": said}, **kind, **form, **span, **ticks}

    def _time_ticks(self) -> dict[str, Any]:
        """Times that stand still for a while, such as dates with many rows each, are written below the row numbers."""
        line = self.line
        if self.by_time or len(set(line.first_time)) < 2:
            return {}
        places = np.unique(np.linspace(0, len(line.first_row) - 1, min(8, len(line.first_row))).astype(int)).tolist()
        texts = [f"{escape(brief(str(line.first_time[t]), 16), quote=False)}<br>{line.first_row[t]:,}" for t in places]
        return {"tickvals": [line.first_row[t] for t in places], "ticktext": texts}

    def ribbon(self, low: list[Any], high: list[Any]) -> tuple[list[Any], list[Any]]:
        """The outline between two lines: there and back again, one outline for each stretch without a gap.

        A single point between two gaps has no area and is left out.
        """
        x: list[Any] = []
        y: list[Any] = []
        start = 0
        while start < len(low):
            end = start
            while end < len(low) and low[end] is not None:
                end += 1
            if end > start + 1:
                gap: list[Any] = [None] if x else []
                x += gap + self.x[start:end] + self.x[start:end][::-1]
                y += gap + low[start:end] + high[start:end][::-1]
            start = max(end, start + 1)
        return x, y

    def grouped(self, table: list[list[Any]], most: int) -> Columns:
        """Means over neighbouring buckets, so that at most `most` columns are left."""
        n = len(self.x)
        starts = stretches(n, -(-n // most))
        rows = np.array(self.line.last_row) - np.array(self.line.first_row) + 1
        weights = np.add.reduceat(rows, starts)
        values = np.add.reduceat(np.array(table, np.float64) * rows, starts, axis=1) / weights
        ends = np.append(starts[1:], n) - 1
        x = [
            self.between(
                self.line.first_row[a], self.line.last_row[b], self.line.first_time[a] if self.by_time else None
            )
            for a, b in zip(starts.tolist(), ends.tolist(), strict=True)
        ]
        return Columns(x, rounded(values))


def stretches(n: int, per: int) -> Ints:
    """Where stretches of `per` buckets begin; a last one of less than half joins the one before.

    >>> stretches(9, 4), stretches(11, 4)
    (array([0, 4]), array([0, 4, 8]))
    """
    starts = np.arange(0, n, per)
    return starts[:-1] if len(starts) > 1 and 2 * (n - int(starts[-1])) < per else starts
