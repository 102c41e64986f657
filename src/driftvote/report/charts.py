"""The charts, as plain Plotly figures: everything that is drawn comes from the report's fields.

Colours are left to the page (`slots` names one for each trace), so that light, dark and print differ in its style
sheet alone.
"""

from __future__ import annotations

from html import escape
from math import log10
from typing import Any

from driftvote.report.axis import TimeAxis
from driftvote.report.context import Report
from driftvote.report.values import brief

Figure = dict[str, Any]

DASHES = ("solid", "dash", "dot")
COLOURS = 8
MOST_COLUMNS = 96
"""Columns of a heat map over time, and points of a share: more than that is noise and no picture."""

MOST_MARKS = 5
"""Falls of the window that are marked: the largest ones."""

MOST_NUMBERS = 30
"""Events up to which their marks are numbered."""

TEXT_UP_TO = 10
"""Labelers up to which the cells of the agreement heat map carry their number."""


def short(name: str, most: int = 22) -> str:
    """A name for an axis or a legend, escaped for Plotly, which reads some tags in text.

    >>> short("<b>judge</b>"), short("a very long name of a labeler")
    ('&lt;b&gt;judge&lt;/b&gt;', 'a very long name of a…')
    """
    return escape(brief(name, most), quote=False)


def charts(report: Report) -> dict[str, Figure]:
    """Every chart of the page by name; those without data are left out."""
    if not report.tally.rows:
        return {}
    axis = TimeAxis(report.timeline)
    found = {
        "accuracy": accuracy_chart(report, axis),
        "window": window_chart(report, axis),
        "coverage": coverage_chart(report, axis),
        "shares": shares_chart(report, axis),
        "agreement": agreement_chart(report),
    }
    if report.gold is not None:
        found["gold"] = gold_chart(report, axis)
    if report.events or report.window_drops:
        for name in ("accuracy", "window", "coverage", "shares", "gold"):
            if name in found:
                found[name]["layout"]["shapes"] = marks(report, axis)
    return found


def figure(data: list[Figure], slots: list[str], height: int, time: bool, **layout: Any) -> Figure:
    """Traces, the colour slot of each, and how tall the chart is."""
    return {"data": data, "slots": slots, "height": height, "time": time, "layout": layout}


def marks(report: Report, axis: TimeAxis) -> list[Figure]:
    """Vertical lines where something changed or, where nothing looked for it, where the window fell sharply.

    Of an event also the stretch in which it happened, and its number in the table of events.
    """
    whole: Figure = {"xref": "x", "yref": "paper", "y0": 0, "y1": 1, "layer": "below"}
    line = {"width": 1.5, "dash": "dot"}
    if not report.events:
        places = [axis.at(drop.row) for drop in report.window_drops[:MOST_MARKS]]
        return [{**whole, "type": "line", "x0": x, "x1": x, "line": line} for x in places]
    shapes = []
    for number, event in enumerate(report.events, 1):
        first, last = (axis.at(row) for row in event.since)
        shapes.append({**whole, "type": "rect", "x0": first, "x1": last, "line": {"width": 0}, "name": "event"})
        x = axis.at(event.about)
        label = {"text": str(number), "textposition": "end", "textangle": 0, "xanchor": "left", "yanchor": "top"}
        told = {"label": label} if len(report.events) <= MOST_NUMBERS else {}
        shapes.append({**whole, "type": "line", "x0": x, "x1": x, "line": line, "name": "event", **told})
    return shapes


def accuracy_chart(report: Report, axis: TimeAxis) -> Figure:
    """A band and a line for each labeler; those that are not shown at first wait for a tick in the table.

    All bands come first, so that no band covers a line: labeler i has traces i and n + i.
    """
    line = report.timeline
    bands, lines = [], []
    # Who is shown at first gets the first colours.
    order = sorted(range(len(report.labelers)), key=lambda place: not report.labelers[place].shown)
    slot = {place: rank for rank, place in enumerate(order)}
    for place, who in enumerate(report.labelers):
        shared: Figure = {"type": "scatter", "mode": "lines", "legendgroup": f"labeler-{place}", "visible": who.shown}
        x, y = axis.ribbon(line.band_low[place], line.band_high[place])
        bands.append(
            {**shared, "x": x, "y": y, "fill": "toself", "line": {"width": 0}, "showlegend": False, "hoverinfo": "skip"}
        )
        ends = zip(line.accuracy_low[place], line.accuracy_high[place], strict=True)
        span = {"customdata": [list(pair) for pair in ends]} if line.step > 1 else {}
        lines.append({
            **shared, "name": short(who.name), "x": axis.x, "y": line.accuracy[place], "connectgaps": False, **span,
            "line": {"width": 2, "dash": DASHES[slot[place] // COLOURS % len(DASHES)]},
            "hovertemplate": "%{y:.1%}" + (", %{customdata[0]:.0%} to %{customdata[1]:.0%}" if span else ""),
        })  # fmt: skip
    hues = [slot[place] % COLOURS for place in range(len(report.labelers))]
    slots = [f"fill-{hue}" for hue in hues] + [f"line-{hue}" for hue in hues]
    chance = 1.0 / max(2, len(report.classes))
    yaxis = {"range": [max(0.0, chance - 0.03), 1.015], "tickformat": ".0%", "title": {"text": "estimated accuracy"}}
    return figure(
        bands + lines, slots, 400, True, xaxis=axis.layout(), yaxis=yaxis, showlegend=True, hovermode="x unified"
    )


def window_chart(report: Report, axis: TimeAxis) -> Figure:
    """How many of the last rows counted; logarithmic, because windows double."""
    line = report.timeline
    x, y = axis.ribbon(line.window_low, line.window_high)
    ribbon = {"type": "scatter", "mode": "lines", "x": x, "y": y, "fill": "toself", "line": {"width": 1},
              "showlegend": False, "hoverinfo": "skip"}  # fmt: skip
    mean = {
        "type": "scatter", "mode": "lines", "x": axis.x, "y": line.window_mean, "name": "window",
        "line": {"width": 2, "shape": "linear"}, "showlegend": False,
        "customdata": [[low, high] for low, high in zip(line.window_low, line.window_high, strict=True)],
        "hovertemplate": "mean %{y:,.0f} rows, from %{customdata[0]:,} to %{customdata[1]:,}<extra></extra>",
    }  # fmt: skip
    most = max(line.window_high)
    ticks = [4**power for power in range(16) if 4**power <= 4 * most]
    yaxis = {
        "type": "log", "tickvals": ticks, "ticktext": [f"{tick:,}" for tick in ticks], "title": {"text": "rows"},
        "range": [log10(min(line.window_low)) - 0.1, log10(most) + 0.15],
    }  # fmt: skip
    return figure(
        [ribbon, mean], ["fill-0", "line-0"], 240, True, xaxis=axis.layout(), yaxis=yaxis, hovermode="x unified"
    )


def columns_for(report: Report) -> int:
    """How many stretches a share over time is taken in: in short streams few, because few rows make no share."""
    return max(6, min(MOST_COLUMNS, report.tally.rows // 40))


def coverage_chart(report: Report, axis: TimeAxis) -> Figure:
    """Share of the rows on which each labeler voted, as a heat map of labelers and time."""
    columns = axis.grouped(report.timeline.coverage, columns_for(report))
    n = len(report.labelers)
    most = max(value for row in columns.values for value in row)
    top = next(end for end in (0.1, 0.25, 0.5, 1.0) if most <= end)
    trace = {
        "type": "heatmap", "x": columns.x, "y": list(range(n)), "z": columns.values, "zmin": 0, "zmax": top,
        "text": [[escape(who.name, quote=False)] * len(columns.x) for who in report.labelers],
        "hovertemplate": "%{text}: voted on %{z:.0%} of these rows<extra></extra>",
        "colorbar": bar_of("voted", ".0%"), "xgap": 0, "ygap": 1 if n <= 80 else 0,
    }  # fmt: skip
    return figure(
        [trace], ["heat"], 110 + max(60, min(1100, n * (22 if n <= 20 else 14))), True,
        xaxis=axis.layout(), yaxis=names_axis(report), hovermode="closest",
    )  # fmt: skip


def shares_chart(report: Report, axis: TimeAxis) -> Figure:
    """Share of the rows that differ from the majority and that are doubtful, over time."""
    line = report.timeline
    data, slots = [], []
    for name, values, slot in (
        ("label differs from majority", line.differs, "line-1"),
        ("label is doubtful", line.doubtful, "line-0"),
    ):
        columns = axis.grouped([values], columns_for(report))
        data.append({
            "type": "scatter", "mode": "lines", "x": columns.x, "y": columns.values[0], "name": name,
            "line": {"width": 2}, "hovertemplate": "%{y:.1%}",
        })  # fmt: skip
        slots.append(slot)
    yaxis = {"tickformat": ".0%", "rangemode": "tozero", "title": {"text": "share of rows"}}
    return figure(data, slots, 260, True, xaxis=axis.layout(), yaxis=yaxis, showlegend=True, hovermode="x unified")


def agreement_chart(report: Report) -> Figure:
    """How often each pair of labelers votes alike."""
    n = len(report.labelers)
    share = [[None if i == j else value for j, value in enumerate(row)] for i, row in enumerate(report.agreement.share)]
    rows = [
        [[short(a.name, 40), short(b.name, 40), report.agreement.rows[i][j]] for j, b in enumerate(report.labelers)]
        for i, a in enumerate(report.labelers)
    ]
    known = [value for row in share for value in row if value is not None]
    trace: Figure = {
        "type": "heatmap", "x": list(range(n)), "y": list(range(n)), "z": share, "customdata": rows,
        "zmin": min([0.5, *known]), "zmax": 1,
        "hovertemplate": "%{customdata[0]}, %{customdata[1]}: %{z:.1%} alike on %{customdata[2]:,} rows<extra></extra>",
        "hoverongaps": False, "colorbar": bar_of("alike", ".0%"), "xgap": 1, "ygap": 1,
    }  # fmt: skip
    if n <= TEXT_UP_TO:
        trace |= {"texttemplate": "%{z:.0%}"}
    height = 150 + max(150, min(900, n * (40 if n <= TEXT_UP_TO else 13)))
    across = names_axis(report) | {"autorange": True, "tickangle": -45 if n <= 12 else -90, "side": "bottom"}
    if n > 40:
        across["showticklabels"] = False  # the same names as beside it, and no room for them
    return figure([trace], ["heat"], height, False, xaxis=across, yaxis=names_axis(report), hovermode="closest")


def gold_chart(report: Report, axis: TimeAxis) -> Figure:
    """Accuracy against the true labels over time."""
    assert report.gold is not None
    gold = report.gold
    x = [axis.between(part.first_row, part.last_row, part.time) for part in gold.stretches]
    data = [
        {
            "type": "scatter", "mode": "lines" if len(x) > 1 else "markers", "x": x, "y": score.over_time,
            "name": f"{score.name} {score.accuracy:.1%}",
            "line": {"width": 2.5 if place == 0 else 1.75, "dash": DASHES[place % 3]}, "hovertemplate": "%{y:.1%}",
        }
        for place, score in enumerate(gold.scores)
    ]  # fmt: skip
    yaxis = {"tickformat": ".0%", "title": {"text": "labeled right"}}
    slots = ["line-0", "line-1", "line-6"]
    return figure(data, slots, 320, True, xaxis=axis.layout(), yaxis=yaxis, showlegend=True, hovermode="x unified")


def names_axis(report: Report) -> Figure:
    """Labelers by place; names may be equal once they are cut."""
    n = len(report.labelers)
    every = max(1, -(-n // 80))
    places = list(range(0, n, every))
    return {
        "tickvals": places,
        "ticktext": [short(report.labelers[place].name, 16) for place in places],
        "autorange": "reversed",
        "showgrid": False,
        "ticks": "",
    }


def bar_of(title: str, tickformat: str) -> Figure:
    """A colour bar above a heat map."""
    return {
        "title": {"text": title, "side": "top"}, "tickformat": tickformat, "thickness": 8, "outlinewidth": 0,
        "orientation": "h", "y": 1, "yanchor": "bottom", "x": 0, "xanchor": "left", "len": 0.4,
    }  # fmt: skip
