"""Plots of the performance page; no section, no plot."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

# Okabe and Ito's palette, as in the other figures of the documentation.
BLUE, ORANGE, GREEN, BLACK = "#0072B2", "#D55E00", "#009E73", "#000000"
SETTINGS: Any = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#E5E5E5",
    "axes.axisbelow": True,
    "legend.frameon": False,
}


@contextmanager
def figure(path: Path, **grid: Any) -> Iterator[Any]:
    """Axes to draw on; saved as a PNG without a date, so that equal figures are equal files."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    with plt.rc_context(SETTINGS):
        drawn, axes = plt.subplots(layout="constrained", **grid)
        yield axes
        path.parent.mkdir(parents=True, exist_ok=True)
        drawn.savefig(path, dpi=110, metadata={"Software": None})
        plt.close(drawn)


def speed(axes: dict[str, list[dict[str, Any]]], path: Path) -> None:
    """Nanoseconds a row over rows and over labelers, beside the majority line."""
    with figure(path, ncols=2, figsize=(9, 3.4)) as (left, right):
        for plot, axis in ((left, "rows"), (right, "labelers")):
            lines = axes[axis]
            places = [line[axis] for line in lines]
            for key, label, colour in (
                ("seconds", "label_stream, all outputs", ORANGE),
                ("majority_seconds", "np.sign(V.sum(axis=1))", BLACK),
            ):
                plot.plot(places, [line[key] / line["rows"] * 1e9 for line in lines], "o-", color=colour, label=label)
            plot.set(xscale="log", yscale="log", xlabel=axis, ylabel="nanoseconds a row")
        right.set_xticks([line["labelers"] for line in axes["labelers"]])
        right.set_xticklabels([str(line["labelers"]) for line in axes["labelers"]])
        right.minorticks_off()
        left.legend(fontsize=9)


def memory(axes: dict[str, list[dict[str, Any]]], chunked: dict[str, Any] | None, path: Path) -> None:
    """Peak memory over rows: one call that returns everything, and a stream in chunks."""
    with figure(path, figsize=(5.6, 3.4)) as plot:
        lines = axes["rows"]
        rows = [line["rows"] for line in lines]
        plot.plot(rows, [line["peak_mb"] for line in lines], "o-", color=BLUE, label="one array, all outputs held")
        if chunked:
            rows = [line["rows"] for line in chunked["lines"]]
            peaks = [line["peak_mb"] for line in chunked["lines"]]
            plot.plot(rows, peaks, "s-", color=ORANGE, label=f"in chunks of {chunked['chunk']:,} rows")
        plot.set(xscale="log", yscale="log", xlabel="rows", ylabel="MB above the idle process")
        plot.legend(fontsize=9)


def latency(found: dict[str, Any], path: Path) -> None:
    """Median, percentiles and largest time of one row, for both numbers of labelers."""
    colours = {"update": ORANGE, "update, all outputs read": GREEN, "adwin": BLACK, "adwin, fed from the votes": BLUE}
    with figure(path, ncols=len(found["lines"]), figsize=(9, 3.4), sharey=True) as plots:
        for plot, line in zip(plots, found["lines"], strict=True):
            for name, spread in line["distribution"].items():
                plot.plot(list(spread), list(spread.values()), "o-", color=colours[name], label=name)
            plot.set(yscale="log", title=f"{line['labelers']} labelers, {line['pairs']} pairs")
        plots[0].set_ylabel("microseconds a row")
        plots[0].legend(fontsize=9)


def draw(sections: dict[str, Any], folder: Path) -> list[tuple[str, str]]:
    """Draw what was measured; file and caption of each figure."""
    made = []
    if "axes" in sections:
        speed(sections["axes"], folder / "performance-speed.png")
        made.append(("performance-speed.png", "Time of a row over the number of rows and of labelers."))
        memory(sections["axes"], sections.get("chunked"), folder / "performance-memory.png")
        made.append(("performance-memory.png", "Peak memory over the number of rows."))
    if "latency" in sections:
        latency(sections["latency"], folder / "performance-latency.png")
        made.append(("performance-latency.png", "Time of one row online: median, 90%, 99%, largest."))
    return made
