"""Markdown tables, and figures in one style."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

Cells = list[Any]
Table = tuple[Cells, list[Cells]]
"""Header and rows."""

# Okabe and Ito's palette: distinct for every common kind of colour vision.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
BLUE, ORANGE, BLACK, GREY = "#0072B2", "#D55E00", "#000000", "#7F7F7F"

_SETTINGS: Any = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#E5E5E5",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "lines.linewidth": 1.4,
    "legend.frameon": False,
    "figure.dpi": 100,
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
        axes.axvline(row, color=GREY, linewidth=0.9, linestyle="--", label=label if place == 0 else None)


def legend_below(axes: Any, columns: int = 4, distance: float = 0.16, fontsize: int = 9) -> None:
    """Put a legend under the plot, where it hides no data."""
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -distance), ncols=columns, fontsize=fontsize)


def thousands(axes: Any) -> None:
    """Write rows on the x axis as 5,000 and not 5000."""
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(5))  # labels with thousands are wide
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")


def label_windows(axes: Any, sizes: list[str]) -> None:
    """Write window sizes below the x axis, powers of two as people write them."""
    shown = [f"{int(size) // 1024}k" if size.isdigit() and int(size) >= 1024 else size for size in sizes]
    axes.set_xticks(range(len(sizes)), shown, rotation=60)
    axes.grid(visible=False, axis="x")
