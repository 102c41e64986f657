"""The charts of the page as plain Plotly figures, made from the fields of the report alone.

The page chooses the colours (each trace names one in `slots`), so that light, dark and print differ in the style
sheet only.
"""

from __future__ import annotations

from bisect import bisect_right
from html import escape
from itertools import groupby
from math import log10
from typing import Any

import numpy as np

from driftvote.drift.events import Time
from driftvote.report.data import Report, Timeline, group_starts, rounded
from driftvote.report.findings import brief

Figure = dict[str, Any]

DASHES = ("solid", "dash", "dot")
COLOURS = 8
MAX_COLUMNS = 96  # columns of a heat map over time, and points of a share: more show noise
MAX_MARKED_DROPS = 5
MAX_NUMBERED_EVENTS = 30
MAX_LABELERS_WITH_TEXT = 10  # up to so many labelers the cells of the agreement heat map contain their number


class TimeAxis:
    """The horizontal axis of the charts: times if they grow, else row numbers."""

    def __init__(self, line: Timeline) -> None:
        self.line = line
        self.by_time = line.by_time
        self.times: list[Time] = line.first_time or [None] * len(line.first_row)
        self.x = [self.place(*bucket) for bucket in zip(line.first_row, line.last_row, self.times, strict=True)]

    def place(self, first: int, last: int, time: Time) -> Any:
        """The place of consecutive rows: the time of the first one, or their middle."""
        if self.by_time:
            return time
        total = first + last
        return total / 2 if total % 2 else total // 2

    def at(self, row: int) -> Any:
        """The place of a row."""
        if not self.by_time:
            return row
        return self.line.first_time[max(0, bisect_right(self.line.first_row, row) - 1)]

    def layout(self) -> Figure:
        """Plotly's settings of the axis."""
        line = self.line
        if self.by_time:
            ends = [self.x[0], self.x[-1]]
            layout: Figure = {"title": {"text": "time"}, "unifiedhovertitle": {"text": "%{x}"}}
            layout |= {"type": "date"} if isinstance(self.x[0], str) else {}
        else:
            ends = [line.first_row[0], line.last_row[-1]]
            layout = {"title": {"text": "row"}, "unifiedhovertitle": {"text": "row %{x:,d}"}}
            layout |= {"tickformat": "~s" if line.last_row[-1] >= 100_000 else ",d", "hoverformat": ",d"}
            if len(set(line.first_time)) > 1:
                # Times that repeat, such as dates with many rows each, are written above the row numbers.
                n = len(line.first_row)
                places = np.unique(np.linspace(0, n - 1, min(8, n)).astype(int)).tolist()
                times = [escape(brief(str(line.first_time[t]), 16), quote=False) for t in places]
                rows = [line.first_row[t] for t in places]
                texts = [f"{time}<br>{row:,}" for time, row in zip(times, rows, strict=True)]
                layout |= {"title": {"text": "time, and row"}, "tickvals": rows, "ticktext": texts}
        return layout | ({"range": ends, "autorange": False} if len(self.x) > 1 else {})

    def ribbon(self, low: list[Any], high: list[Any]) -> Figure:
        """The outline between two lines, one for each run without gaps; a single point has no area and is left out."""
        x: list[Any] = []
        y: list[Any] = []
        for known, run in groupby(range(len(low)), key=lambda t: low[t] is not None):
            places = list(run)
            if known and len(places) > 1:
                gap = [None] if x else []
                x += gap + [self.x[t] for t in places + places[::-1]]
                y += gap + [low[t] for t in places] + [high[t] for t in places[::-1]]
        return {"x": x, "y": y, "fill": "toself", "showlegend": False, "hoverinfo": "skip"}

    def grouped(self, table: list[list[Any]]) -> tuple[list[Any], list[list[Any]]]:
        """Places and means over neighbouring buckets: few in short streams, at most `MAX_COLUMNS`."""
        n, first, last = len(self.x), self.line.first_row, self.line.last_row
        most = max(6, min(MAX_COLUMNS, (last[-1] + 1) // 40))
        starts = group_starts(n, -(-n // most))
        rows = np.array(last) - np.array(first) + 1
        means = np.add.reduceat(np.array(table, np.float64) * rows, starts, axis=1) / np.add.reduceat(rows, starts)
        ends = np.append(starts[1:], n) - 1
        pairs = zip(starts.tolist(), ends.tolist(), strict=True)
        return [self.place(first[a], last[b], self.times[a]) for a, b in pairs], rounded(means)


def short(name: str, most: int = 22) -> str:
    """A name for an axis or a legend, escaped for Plotly, which reads some tags in text.

    >>> short("<b>judge</b>"), short("a very long name of a labeler")
    ('&lt;b&gt;judge&lt;/b&gt;', 'a very long name of a…')
    """
    return escape(brief(name, most), quote=False)


def charts(report: Report) -> dict[str, Figure]:
    """Every chart of the page by name; charts without data are left out."""
    if not report.tally.rows:
        return {}
    axis = TimeAxis(report.timeline)
    over_time = {
        "accuracy": accuracy_chart(report, axis),
        "window": window_chart(report, axis),
        "coverage": coverage_chart(report, axis),
        "shares": shares_chart(report, axis),
    }
    if report.gold is not None:
        over_time["gold"] = gold_chart(report, axis)
    if report.events or report.window_drops:
        for chart in over_time.values():
            chart["layout"]["shapes"] = marks(report, axis)
    return over_time | {"agreement": agreement_chart(report)}


def figure(data: list[Figure], slots: list[str], height: int, axis: TimeAxis | None = None, **layout: Any) -> Figure:
    """A chart: traces, the colour slot of each, its height, and whether its axis is `axis`, which all zoom together."""
    if axis is not None:
        layout = {"xaxis": axis.layout(), "hovermode": "x unified", **layout}
    return {"data": data, "slots": slots, "height": height, "time": axis is not None, "layout": layout}


def marks(report: Report, axis: TimeAxis) -> list[Figure]:
    """Numbered lines and shaded ranges at drift events; without events, lines at sharp falls of the window."""
    whole: Figure = {"xref": "x", "yref": "paper", "y0": 0, "y1": 1, "layer": "below"}
    dotted = {"width": 1.5, "dash": "dot"}
    if not report.events:
        places = [axis.at(drop.row) for drop in report.window_drops[:MAX_MARKED_DROPS]]
        return [{**whole, "type": "line", "x0": x, "x1": x, "line": dotted} for x in places]
    shapes = []
    for number, event in enumerate(report.events, 1):
        first, last, about = (axis.at(row) for row in (*event.since, event.about))
        shapes.append({**whole, "type": "rect", "x0": first, "x1": last, "line": {"width": 0}, "name": "event"})
        mark: Figure = {**whole, "type": "line", "x0": about, "x1": about, "line": dotted, "name": "event"}
        if len(report.events) <= MAX_NUMBERED_EVENTS:
            place = {"textposition": "end", "textangle": 0, "xanchor": "left", "yanchor": "top"}
            mark["label"] = {"text": str(number), **place}
        shapes.append(mark)
    return shapes


def accuracy_chart(report: Report, axis: TimeAxis) -> Figure:
    """A band and a line for each labeler; the table of labelers shows and hides them.

    All bands come first, so that no band covers a line: labeler i has traces i and n + i.
    """
    line, n = report.timeline, len(report.labelers)
    bands, lines = [], []
    # Labelers that are shown when the page opens get the first colours.
    order = sorted(range(n), key=lambda place: not report.labelers[place].shown)
    rank = {place: rank for rank, place in enumerate(order)}
    for place, labeler in enumerate(report.labelers):
        shared: Figure = {
            "type": "scatter",
            "mode": "lines",
            "legendgroup": f"labeler-{place}",
            "visible": labeler.shown,
        }
        bands.append({**shared, **axis.ribbon(line.band_low[place], line.band_high[place]), "line": {"width": 0}})
        ends = zip(line.accuracy_low[place], line.accuracy_high[place], strict=True)
        span = {"customdata": [list(pair) for pair in ends]} if line.step > 1 else {}
        lines.append({
            **shared, "name": short(labeler.name), "x": axis.x, "y": line.accuracy[place], "connectgaps": False, **span,
            "line": {"width": 2, "dash": DASHES[rank[place] // COLOURS % len(DASHES)]},
            "hovertemplate": "%{y:.1%}" + (", %{customdata[0]:.0%} to %{customdata[1]:.0%}" if span else ""),
        })  # fmt: skip
    slots = [f"{kind}-{rank[place] % COLOURS}" for kind in ("fill", "line") for place in range(n)]
    chance = 1.0 / max(2, len(report.classes))
    yaxis = {"range": [max(0.0, chance - 0.03), 1.015], "tickformat": ".0%", "title": {"text": "estimated accuracy"}}
    return figure(bands + lines, slots, 400, axis, yaxis=yaxis, showlegend=True)


def window_chart(report: Report, axis: TimeAxis) -> Figure:
    """Window lengths; logarithmic, because windows double."""
    line = report.timeline
    ribbon = {
        "type": "scatter",
        "mode": "lines",
        **axis.ribbon(line.window_low, line.window_high),
        "line": {"width": 1},
    }
    mean = {
        "type": "scatter", "mode": "lines", "x": axis.x, "y": line.window_mean, "name": "window",
        "line": {"width": 2, "shape": "linear"}, "showlegend": False,
        "customdata": [[low, high] for low, high in zip(line.window_low, line.window_high, strict=True)],
        "hovertemplate": "mean %{y:,.0f} rows, from %{customdata[0]:,} to %{customdata[1]:,}<extra></extra>",
    }  # fmt: skip
    longest = max(line.window_high)
    ticks = [4**power for power in range(16) if 4**power <= 4 * longest]
    yaxis = {
        "type": "log", "tickvals": ticks, "ticktext": [f"{tick:,}" for tick in ticks], "title": {"text": "rows"},
        "range": [log10(min(line.window_low)) - 0.1, log10(longest) + 0.15],
    }  # fmt: skip
    return figure([ribbon, mean], ["fill-0", "line-0"], 240, axis, yaxis=yaxis)


def coverage_chart(report: Report, axis: TimeAxis) -> Figure:
    """Share of the rows on which each labeler voted, as a heat map of labelers and time."""
    x, values = axis.grouped(report.timeline.coverage)
    n = len(report.labelers)
    most = max(value for row in values for value in row)
    trace = {
        "type": "heatmap", "x": x, "y": list(range(n)), "z": values, "zmin": 0,
        "zmax": next(end for end in (0.1, 0.25, 0.5, 1.0) if most <= end),
        "text": [[escape(labeler.name, quote=False)] * len(x) for labeler in report.labelers],
        "hovertemplate": "%{text}: voted on %{z:.0%} of these rows<extra></extra>",
        "colorbar": colour_bar("voted"), "xgap": 0, "ygap": 1 if n <= 80 else 0,
    }  # fmt: skip
    height = 110 + max(60, min(1100, n * (22 if n <= 20 else 14)))
    return figure([trace], ["heat"], height, axis, yaxis=names_axis(report), hovermode="closest")


def shares_chart(report: Report, axis: TimeAxis) -> Figure:
    """Share of the rows that differ from the majority, and that are doubtful, over time."""
    x, values = axis.grouped([report.timeline.differs, report.timeline.doubtful])
    data = [
        {
            "type": "scatter", "mode": "lines", "x": x, "y": y, "name": name, "line": {"width": 2},
            "hovertemplate": "%{y:.1%}",
        }
        for name, y in zip(("label differs from majority", "label is doubtful"), values, strict=True)
    ]  # fmt: skip
    yaxis = {"tickformat": ".0%", "rangemode": "tozero", "title": {"text": "share of rows"}}
    return figure(data, ["line-1", "line-0"], 260, axis, yaxis=yaxis, showlegend=True)


def agreement_chart(report: Report) -> Figure:
    """How often each pair of labelers casts the same vote, as a heat map."""
    n = len(report.labelers)
    share = [[None if i == j else value for j, value in enumerate(row)] for i, row in enumerate(report.agreement.share)]
    names = [short(labeler.name, 40) for labeler in report.labelers]
    trace: Figure = {
        "type": "heatmap", "x": list(range(n)), "y": list(range(n)), "z": share,
        "customdata": [[[names[i], names[j], report.agreement.rows[i][j]] for j in range(n)] for i in range(n)],
        "zmin": min([0.5, *(value for row in share for value in row if value is not None)]), "zmax": 1,
        "hovertemplate": "%{customdata[0]}, %{customdata[1]}: %{z:.1%} alike on %{customdata[2]:,} rows<extra></extra>",
        "hoverongaps": False, "colorbar": colour_bar("alike"), "xgap": 1, "ygap": 1,
    }  # fmt: skip
    with_text = n <= MAX_LABELERS_WITH_TEXT
    trace |= {"texttemplate": "%{z:.0%}"} if with_text else {}
    height = 150 + max(150, min(900, n * (40 if with_text else 13)))
    down = names_axis(report)
    across = down | {"autorange": True, "tickangle": -45 if n <= 12 else -90, "side": "bottom"}
    across |= {"showticklabels": False} if n > 40 else {}  # the vertical axis has the names, and there is no room
    return figure([trace], ["heat"], height, xaxis=across, yaxis=down, hovermode="closest")


def gold_chart(report: Report, axis: TimeAxis) -> Figure:
    """Accuracy against the true labels over time."""
    assert report.gold is not None
    x = [axis.place(part.first_row, part.last_row, part.time) for part in report.gold.stretches]
    data = [
        {
            "type": "scatter", "mode": "lines" if len(x) > 1 else "markers", "x": x, "y": score.over_time,
            "name": f"{score.name} {score.accuracy:.1%}",
            "line": {"width": 2.5 if place == 0 else 1.75, "dash": DASHES[place % 3]}, "hovertemplate": "%{y:.1%}",
        }
        for place, score in enumerate(report.gold.scores)
    ]  # fmt: skip
    yaxis = {"tickformat": ".0%", "title": {"text": "labeled right"}}
    return figure(data, ["line-0", "line-1", "line-6"], 320, axis, yaxis=yaxis, showlegend=True)


def names_axis(report: Report) -> Figure:
    """An axis of labelers by place (shortened names may be equal); of many labelers, every few have their name."""
    n = len(report.labelers)
    places = list(range(0, n, max(1, -(-n // 80))))
    texts = [short(report.labelers[place].name, 16) for place in places]
    return {"tickvals": places, "ticktext": texts, "autorange": "reversed", "showgrid": False, "ticks": ""}


def colour_bar(title: str) -> Figure:
    """A colour bar above a heat map."""
    return {
        "title": {"text": title, "side": "top"}, "tickformat": ".0%", "thickness": 8, "outlinewidth": 0,
        "orientation": "h", "y": 1, "yanchor": "bottom", "x": 0, "xanchor": "left", "len": 0.4,
    }  # fmt: skip
