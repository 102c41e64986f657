"""Markdown tables, and figures in one style."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from driftvote.models.show import COLOURS, EVENT, INK, STYLE

__all__ = [
    "BLACK",
    "BLUE",
    "COLOURS",
    "EVENT",
    "GREY",
    "ORANGE",
    "Cells",
    "Table",
    "draw_gains",
    "draw_weights",
    "figure",
    "label_windows",
    "legend_below",
    "mark_rows",
    "markdown",
    "set_title",
    "thousands",
]

Cells = list[Any]
Table = tuple[Cells, list[Cells]]
"""Header and rows."""

BLUE, ORANGE, BLACK, GREY = COLOURS[0], COLOURS[1], INK, "#8a94a0"

WEIGHT_COLUMNS = 160
"""Columns of a map of weights, each a median over rows: more show single rows, not labelers."""

LETTERS_PER_INCH = 10.5
"""Letters of a title that fit into an inch."""

_SETTINGS: Any = {
    **STYLE,
    "svg.hashsalt": "driftvote",  # the same figure gives the same file
    "svg.fonttype": "none",
}


def markdown(header: Cells, rows: list[Cells]) -> str:
    """A Markdown table; floats have two decimals.

    >>> print(markdown(["window", "accuracy"], [["2", 57.218]]))
    | window | accuracy |
    |---|---|
    | 2 | 57.22 |
    """
    lines = [header, *rows]
    shown = ["| " + " | ".join(f"{v:.2f}" if isinstance(v, float) else str(v) for v in line) + " |" for line in lines]
    return "\n".join([shown[0], "|" + "---|" * len(header), *shown[1:]])


@contextmanager
def figure(folder: Path, name: str, svg: bool = True, **grid: Any) -> Iterator[Any]:
    """Axes to draw on; on leaving, the figure is saved as `name`.png and, if asked for, `name`.svg."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    with plt.rc_context(_SETTINGS):
        drawn, axes = plt.subplots(layout="constrained", **grid)
        try:
            yield axes
            folder.mkdir(parents=True, exist_ok=True)
            drawn.savefig(folder / f"{name}.png", dpi=130, metadata={"Software": None})
            if svg:
                drawn.savefig(folder / f"{name}.svg", metadata={"Date": None})
        finally:
            plt.close(drawn)


def mark_rows(axes: Any, rows: Iterable[float], label: str = "distribution changes") -> None:
    """Draw vertical lines at rows where something changed."""
    for place, row in enumerate(rows):
        axes.axvline(row, color=EVENT, linewidth=0.9, linestyle=":", label=label if place == 0 else None)


def legend_below(axes: Any, columns: int = 4, distance: float = 0.16, fontsize: int = 9) -> None:
    """Put a legend under the plot, where it hides no data."""
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -distance), ncols=columns, fontsize=fontsize)


def set_title(drawn: Any, text: str) -> None:
    """Write a title over all panels of a figure, from its left edge, in as many lines as it needs."""
    lines = textwrap.fill(text, int(LETTERS_PER_INCH * drawn.get_figwidth()))
    drawn.suptitle(lines, x=0.01, ha="left", fontsize=11, fontweight="bold")


def thousands(axes: Any) -> None:
    """Write rows on the x axis as 5,000 and not 5000."""
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(5))  # labels with thousands are wide
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")


def draw_gains(axes: Any, rows: Any, curves: dict[str, Any], borders: Iterable[float]) -> str:
    """Draw how far `curves["adaptive"]` is ahead of the others between borders, as cells; return the finding.

    `rows` are those of the points of the curves; NaN is left out. The mean over all rows stands beside the name.
    """
    edges = np.array([rows[0], *borders, rows[-1]])
    names = [name for name in curves if name != "adaptive"]
    gaps = np.array([np.asarray(curves["adaptive"]) - np.asarray(curves[name]) for name in names])
    inside = [(rows >= low) & (rows <= high) for low, high in pairwise(edges)]
    cells = np.array(
        [[np.nanmean(gap[part]) if np.isfinite(gap[part]).any() else np.nan for part in inside] for gap in gaps]
    )
    limit = max(2.0, float(np.nanpercentile(np.abs(cells), 90)))
    mesh = axes.pcolormesh(
        edges, np.arange(len(names) + 1), cells, cmap="RdBu", vmin=-limit, vmax=limit, edgecolor="white"
    )
    for (place, part), value in np.ndenumerate(cells):
        if np.isfinite(value) and edges[part + 1] - edges[part] > 0.05 * (edges[-1] - edges[0]):
            colour = "white" if abs(value) > 0.6 * limit else INK
            middle = (edges[part] + edges[part + 1]) / 2
            axes.text(middle, place + 0.5, f"{value:+.1f}", ha="center", va="center", color=colour, fontsize=9)
    labels = [f"{name}\n({np.nanmean(gap):+.1f} overall)" for name, gap in zip(names, gaps, strict=True)]
    axes.set_yticks(np.arange(len(names)) + 0.5, labels)
    axes.grid(visible=False)
    axes.figure.colorbar(mesh, ax=axes, label="points that adaptive is ahead", pad=0.02)
    overall = [float(np.nanmean(gap)) for gap in gaps]
    ahead = sum(value > 0 for value in overall)
    which = f"all {ahead}" if ahead == len(overall) else f"{ahead} of {len(overall)}"
    return f"adaptive is ahead of {which} fixed windows ({min(overall):+.1f} to {max(overall):+.1f} points)"


def draw_weights(axes: Any, rows: Any, weights: Any) -> Any:
    """Draw weights of labelers over time as a line of colour for each labeler, dark where it counts much."""
    lines = np.asarray(weights)
    size = -(-lines.shape[1] // WEIGHT_COLUMNS)
    lines = np.array([[np.median(line[at : at + size]) for at in range(0, len(line), size)] for line in lines])
    axes.invert_yaxis()
    axes.grid(visible=False)
    axes.set_yticks(np.arange(len(lines)) + 0.5, [f"labeler {place + 1}" for place in range(len(lines))])
    edges = np.linspace(rows[0], rows[-1], lines.shape[1] + 1)
    return axes.pcolormesh(edges, np.arange(len(lines) + 1), lines, cmap="Blues", vmin=0, vmax=2.2, rasterized=True)


def label_windows(axes: Any, sizes: list[str]) -> None:
    """Write window sizes below the x axis, powers of two as people write them."""
    shown = [f"{int(size) // 1024}k" if size.isdigit() and int(size) >= 1024 else size for size in sizes]
    axes.set_xticks(range(len(sizes)), shown, rotation=60)
    axes.grid(visible=False, axis="x")
