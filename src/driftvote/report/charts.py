"""The charts of the page as plain data, made from the fields of the report alone. `templates/report.js` draws them.

A chart names the colours of its lines, and the style sheet has them, so light, dark and print differ there only. A
labeler has the same colour everywhere on the page; driftvote and the methods that it is compared with have others.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

import numpy as np

from driftvote.drift.events import Time
from driftvote.report.data import Report, Timeline, group_starts, rounded
from driftvote.report.findings import brief

Chart = dict[str, Any]

COLOURS = 8
MAX_POINTS = 96  # points of a share over time: more show noise
MAX_MARKED_DROPS = 5
METHOD_COLOURS = ("ours", "majority", "past")


class TimeAxis:
    """The horizontal axis of the charts: times if they grow, else row numbers. Dates are milliseconds since 1970."""

    def __init__(self, line: Timeline) -> None:
        self.line = line
        self.dates = line.by_time and isinstance(line.first_time[0], str)
        first, last = (
            self._numbers(ends) for ends in ((line.first_row, line.first_time), (line.last_row, line.last_time))
        )
        self.first, self.last = first, last
        self.x = [(a + b) / 2 for a, b in zip(first, last, strict=True)]

    def _numbers(self, ends: tuple[list[int], list[Time]]) -> list[float]:
        rows, times = ends
        if not self.line.by_time:
            return [float(row) for row in rows]
        if self.dates:
            return [float(ms) for ms in np.array(times, "datetime64[ms]").astype(np.int64).tolist()]
        return [float(str(time)) for time in times]

    def at(self, row: int) -> float:
        """The place of a row."""
        return float(row) if not self.line.by_time else self.first[max(0, bisect_right(self.line.first_row, row) - 1)]

    def to_dict(self) -> Chart:
        """Kind and ends of the axis. Times that repeat, such as days with many rows each, are written at some rows."""
        line, kind = self.line, "date" if self.dates else "number" if self.line.by_time else "row"
        axis: Chart = {"kind": kind, "low": self.first[0], "high": self.last[-1]}
        if not line.by_time and len(set(line.first_time)) > 1:
            n = len(line.first_row)
            places = np.unique(np.linspace(0, n - 1, min(8, n)).astype(int)).tolist()
            axis["times"] = [[line.first_row[t], brief(str(line.first_time[t]), 16)] for t in places]
        return axis

    def grouped(self, table: list[list[Any]]) -> tuple[list[float], list[list[Any]]]:
        """Places and means over neighbouring buckets: few in short streams, at most `MAX_POINTS`."""
        n, first, last = len(self.x), self.line.first_row, self.line.last_row
        most = max(6, min(MAX_POINTS, (last[-1] + 1) // 40))
        starts = group_starts(n, -(-n // most))
        rows = np.array(last) - np.array(first) + 1
        means = np.add.reduceat(np.array(table, np.float64) * rows, starts, axis=1) / np.add.reduceat(rows, starts)
        ends = np.append(starts[1:], n) - 1
        return [
            (self.first[a] + self.last[b]) / 2 for a, b in zip(starts.tolist(), ends.tolist(), strict=True)
        ], rounded(means)


def labeler_colours(report: Report) -> list[str]:
    """The colour of each labeler: labelers that the chart shows when the page opens get the first ones."""
    order = sorted(range(len(report.labelers)), key=lambda place: not report.labelers[place].shown)
    rank = {place: rank for rank, place in enumerate(order)}
    return [f"c{rank[place] % COLOURS}" for place in range(len(order))]


def charts(report: Report) -> Chart:
    """The axis of all charts, the marks on it, and every chart by name; charts without data are left out."""
    if not report.tally.rows:
        return {"charts": {}}
    axis = TimeAxis(report.timeline)
    found = {"accuracy": accuracy_chart(report), "shares": shares_chart(report, axis)}
    if max(report.timeline.window_high) > 1:  # a model without windows
        found["window"] = window_chart(report)
    if report.gold is not None:
        found["gold"] = gold_chart(report, axis)
    return {"axis": axis.to_dict(), "x": axis.x, "marks": marks(report, axis), "charts": found}


def marks(report: Report, axis: TimeAxis) -> list[Chart]:
    """Drift events, numbered, from where they happened to where they were noticed; else sharp falls of the window."""
    if report.events is None:
        places = [axis.at(drop.row) for drop in report.window_drops[:MAX_MARKED_DROPS]]
        return [{"at": place, "noticed": place, "text": ""} for place in places]
    return [
        {
            "at": axis.at(event.about),
            "noticed": axis.at(event.row),
            "number": number,
            "text": event.sentence,
        }
        for number, event in enumerate(report.events, 1)
    ]


def accuracy_chart(report: Report) -> Chart:
    """A line and a band for each labeler; those that changed are drawn strong. Values are in tenths of a percent."""
    line, colours = report.timeline, labeler_colours(report)
    changed = {name for event in report.events or () for name in event.names}
    lines: list[Chart] = [
        {
            "name": labeler.name,
            "colour": colours[place],
            "shown": labeler.shown,
            "strong": not changed or labeler.name in changed,
            "values": tenths(line.accuracy[place]),
            "low": tenths(line.band_low[place]),
            "high": tenths(line.band_high[place]),
        }
        for place, labeler in enumerate(report.labelers)
    ]
    chance = 1.0 / max(2, len(report.classes))
    known = [value for one in lines if one["shown"] for value in one["values"] if value is not None]
    low = min([1000 * chance, *known]) // 100 * 100
    return {"height": 330, "unit": "percent", "low": low, "high": 1000, "lines": lines}


def tenths(values: list[Any]) -> list[int | None]:
    """Shares as whole tenths of a percent, which take less room in the page."""
    return [None if value is None else round(1000 * value) for value in values]


def window_chart(report: Report) -> Chart:
    """Window lengths, drawn on a logarithmic axis because windows double."""
    line = report.timeline
    lines = [{"name": "window", "colour": "ours", "shown": True, "strong": True,
              "values": line.window_mean, "low": line.window_low, "high": line.window_high}]  # fmt: skip
    return {"height": 220, "unit": "rows", "low": min(line.window_low), "high": max(line.window_high), "lines": lines}


def shares_chart(report: Report, axis: TimeAxis) -> Chart:
    """Share of the rows that differ from the majority, and that should be reviewed, over time."""
    x, values = axis.grouped([report.timeline.differs, report.timeline.review])
    names = (("not the majority's", "ours"), ("to review", "review"))
    lines: list[Chart] = [
        {"name": name, "colour": colour, "shown": True, "strong": True, "values": tenths(one)}
        for (name, colour), one in zip(names, values, strict=True)
    ]
    highest = max([10, *(value for one in lines for value in one["values"])])
    return {"height": 230, "unit": "percent", "low": 0, "high": highest, "x": x, "lines": lines}


def gold_chart(report: Report, axis: TimeAxis) -> Chart:
    """Accuracy against the true labels over time."""
    assert report.gold is not None
    parts = report.gold.ranges
    if axis.line.by_time:
        starts = [axis.at(part.first_row) for part in parts]
        x = [(a + b) / 2 for a, b in zip(starts, [*starts[1:], axis.last[-1]], strict=True)]
    else:
        x = [(part.first_row + part.last_row) / 2 for part in parts]
    lines: list[Chart] = [
        {
            "name": f"{score.name} {score.accuracy:.1%}",
            "colour": colour,
            "shown": True,
            "strong": colour == "ours",
            "values": tenths(score.over_time),
        }
        for score, colour in zip(report.gold.scores, METHOD_COLOURS, strict=False)
    ]
    known = [value for one in lines for value in one["values"] if value is not None]
    return {"height": 280, "unit": "percent", "low": min(known) // 100 * 100, "high": 1000, "x": x, "lines": lines}
