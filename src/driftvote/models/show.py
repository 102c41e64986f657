"""How models and results show themselves: HTML for notebooks, and the figure of `LabeledStream.plot`.

The HTML inherits font and colours, so it fits light and dark notebooks, and escapes everything that users named.
`STYLE` and the colours are also those of the figures in the documentation.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np

from driftvote.errors import MissingExtraError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from driftvote.models.results import LabeledStream

INK, MUTED, GRID, EVENT = "#16202b", "#5a6775", "#e3e7ec", "#8a1c4a"
SHADES = ("#31475c", "#6f8396", "#a3b1bf", "#cdd6de", "#4d4436", "#8a7a62", "#b9a98c", "#ddd2bf")
"""Colours of classes: other than those of labelers."""

COLOURS = ("#0072b2", "#c2410c", "#008a63", "#b8509a", "#3aa0dc", "#a07400", "#6d55c9", "#54730d")
"""Colours that people with any colour vision tell apart, the strongest first."""

STYLE: Any = {
    "figure.facecolor": "white",
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelcolor": MUTED,
    "axes.edgecolor": MUTED,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "lines.linewidth": 1.8,
    "legend.frameon": False,
    "figure.dpi": 100,
}
"""Settings of matplotlib for every figure."""

LABELERS_DRAWN = 8
POINTS_DRAWN = 1000


def html_note(title: str, *lines: str, after: str = "") -> str:
    """A bold title with lines of text below; `after` is HTML."""
    text = "".join(f"<br>{escape(line)}" for line in lines)
    return f"<div><b>{escape(title)}</b>{text}</div>{after}"


def html_table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table; numbers stand right."""

    def cell(value: Any, tag: str = "td") -> str:
        number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
        text = (
            f"{value:,}"
            if isinstance(value, (int, np.integer)) and number
            else f"{value:.3f}"
            if number
            else str(value)
        )
        return f'<{tag} style="text-align: {"right" if number else "left"}">{escape(text)}</{tag}>'

    body = "".join(f"<tr>{''.join(cell(value) for value in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{''.join(cell(name, 'th') for name in head)}</tr></thead><tbody>{body}</tbody></table>"


def plot_stream(out: LabeledStream) -> Figure:
    """The figure of `LabeledStream.plot`."""
    try:
        import matplotlib.pyplot as plt
        from matplotlib.dates import ConciseDateFormatter
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("plot() needs matplotlib; pip install 'driftvote[plots]'") from None

    class ShownFigure(Figure):
        """A figure that a notebook shows by itself; it knows others only after the first one of pyplot."""

        def _repr_png_(self) -> bytes:
            buffer = BytesIO()
            self.savefig(buffer, format="png")
            return buffer.getvalue()

    rows = np.unique(np.linspace(0, max(0, len(out) - 1), min(POINTS_DRAWN, len(out))).astype(int))
    times = out.times
    x = (np.arange(len(out)) + out.first_row if times is None else times)[rows]
    with plt.rc_context(STYLE):
        figure = ShownFigure(figsize=(9.0, 6.4), layout="constrained")
        top, middle, bottom = figure.subplots(3, 1, sharex=True, height_ratios=(3, 1, 1))
        _draw_accuracies(top, out, rows, x)
        middle.plot(x, out.windows[rows], color=INK)
        middle.set(title="Window: rows that the estimates come from", yscale="log", ylabel="rows")
        middle.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        _draw_labels(bottom, out, rows, x)
        for axes in (top, middle, bottom):
            axes.margins(x=0)
            for event in out.events:  # from where it happened to where it was noticed
                first, last = (min(max(row - out.first_row, 0), len(out) - 1) for row in (event.about, event.row))
                ends = (first + out.first_row, last + out.first_row) if times is None else (times[first], times[last])
                axes.axvspan(*ends, color=EVENT, alpha=0.12, linewidth=0)
                axes.axvline(ends[0], color=EVENT, linestyle=":")
        bottom.set_xlabel("row" if times is None else "time")
        if times is None:
            bottom.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        elif times.dtype.kind == "M":
            bottom.xaxis.set_major_formatter(ConciseDateFormatter(bottom.xaxis.get_major_locator()))  # type: ignore[no-untyped-call]
    return figure


def _draw_accuracies(axes: Any, out: LabeledStream, rows: Any, x: Any) -> None:
    """A line and a band for the labelers that changed and those with the most weight; the others in grey."""
    low, high = out.bands()
    changed = dict.fromkeys(name for event in reversed(out.events) for name in event.names)
    weight = np.abs(out.weights).sum(axis=0) if len(out) else np.zeros(len(out.labelers))
    names = [*changed, *(out.labelers[place] for place in np.argsort(-weight, kind="stable"))]
    drawn = list(dict.fromkeys(names))[:LABELERS_DRAWN]
    others = [place for place, name in enumerate(out.labelers) if name not in drawn]
    for place in others:
        axes.plot(
            x,
            out.accuracies[rows, place],
            color="#c3ccd5",
            linewidth=0.8,
            label="others" if place == others[0] else None,
        )
    for name, colour in zip((name for name in out.labelers if name in drawn), COLOURS, strict=False):
        place, strong = out.labelers.index(name), not changed or name in changed
        axes.plot(x, out.accuracies[rows, place], color=colour, linewidth=2 if strong else 1, label=name)
        if strong:
            axes.fill_between(x, low[rows, place], high[rows, place], color=colour, alpha=0.12, linewidth=0)
    event = out.events[-1].sentence if out.events else ""
    title = f"{event[0].upper()}{event[1:]}" if event else "Estimated accuracy of labelers"
    if out.looked_for_events and not event:
        title += ": no lasting change"
    axes.set_title(title, wrap=True)
    axes.set_ylabel("estimated accuracy")
    shown = out.accuracies[rows[len(rows) // 50 :]]  # the first estimates are of few rows
    axes.set_ylim(min([1 / len(out.classes), *shown.ravel()]) - 0.03, 1.01)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))


def _draw_labels(axes: Any, out: LabeledStream, rows: Any, x: Any) -> None:
    """The share of the labels of each class among the rows around each point; ties are the rest."""
    half = max(25, len(out) // 60)
    first, last = np.maximum(rows - half, 0), np.minimum(rows + half + 1, len(out))
    counts = np.bincount(out.codes[out.codes >= 0], minlength=len(out.classes))
    shown = np.sort(np.argsort(-counts, kind="stable")[:LABELERS_DRAWN])
    sums = np.cumsum(np.vstack([np.zeros(len(shown), int), out.codes[:, None] == shown]), axis=0)
    shares = (sums[last] - sums[first]) / np.maximum(last - first, 1)[:, None]
    names = [str(out.classes[code]) for code in shown]
    axes.stackplot(x, shares.T, labels=names, colors=SHADES, linewidth=0)
    axes.set(title="Labels by class", ylabel="share", ylim=(0, 1))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
