"""One style for every figure: colour-blind-safe, readable in print, PNG and SVG."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

# Okabe and Ito's palette: distinct for every common kind of colour vision.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
ADAPTIVE, MAJORITY, FIXED, BORDER = "#D55E00", "#000000", "#0072B2", "#7F7F7F"
SETUP_COLOURS = {"no permute": "#0072B2", "permute": "#E69F00"}

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


@contextmanager
def figure(folder: Path, name: str, **grid: Any) -> Iterator[Any]:
    """Axes to draw on; on leaving, the figure is saved as `name`.png and `name`.svg."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    with plt.rc_context(_SETTINGS):
        drawn, axes = plt.subplots(layout="constrained", **grid)
        try:
            yield axes
            folder.mkdir(parents=True, exist_ok=True)
            drawn.savefig(folder / f"{name}.png", dpi=130, metadata={"Software": None})
            drawn.savefig(folder / f"{name}.svg", metadata={"Date": None})
        finally:
            plt.close(drawn)


def mark_borders(axes: Any, rows: Iterable[float], label: str = "distribution changes") -> None:
    """Vertical lines where something changed."""
    for place, row in enumerate(rows):
        axes.axvline(row, color=BORDER, linewidth=0.9, linestyle="--", label=label if place == 0 else None)


def legend_below(axes: Any, columns: int = 4) -> None:
    """A legend under the plot, where it hides no data."""
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=columns, fontsize=9)


def thousands(axes: Any) -> None:
    """Rows on the x axis as 5,000 and not 5000."""
    axes.xaxis.set_major_locator(_locator())
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")


def _locator() -> Any:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(5)  # labels with thousands are wide


def short(size: str) -> str:
    """Window sizes as people write powers of two."""
    return f"{int(size) // 1024}k" if size.isdigit() and int(size) >= 1024 else size
