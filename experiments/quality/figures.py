"""Figures of the quality page, from its figures in numbers alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from experiments.quality.models import ALL_PAST_DEFAULT, DEFAULT, MAJORITY, PAPER_ZERO
from experiments.quality.streams import PERMUTED, PLAIN, SHUFFLED, SYNTHETIC
from experiments.style import BORDER, COLOURS, figure
from experiments.style import MAJORITY as BLACK

# The paper's method without its dice: with them it falls so far behind on sparse votes that nothing else could be read.
SHOWN = {ALL_PAST_DEFAULT: COLOURS[2], PAPER_ZERO: COLOURS[0], DEFAULT: COLOURS[1]}
CURVES = {MAJORITY: BLACK, PAPER_ZERO: COLOURS[0], DEFAULT: COLOURS[1]}
CAPTIONS = {
    "quality-gain": (PLAIN, "Gain over majority on each real stream, with 95% confidence intervals."),
    "quality-permuted": (PERMUTED, "Gain over majority when labelers change places."),
    "quality-shuffled": (SHUFFLED, "Gain over majority in random order, where there is nothing to adapt to."),
    "quality-errors": (SYNTHETIC, "Error of the estimated accuracies, by scenario; to the left is better."),
    "quality-reliability": (
        "probabilities",
        "Rows by the probability of their label: the share that is right. On the dotted line, it is what was said.",
    ),
}


def draw(results: dict[str, Any], folder: Path) -> list[str]:
    """Draw what the results hold; returns the names."""
    streams, drawn = results["streams"], []
    for group, name in ((PLAIN, "quality-gain"), (PERMUTED, "quality-permuted"), (SHUFFLED, "quality-shuffled")):
        if group in streams:
            _gains(streams[group], folder, name, CAPTIONS[name][1].split(",")[0].rstrip("."))
            drawn.append(name)
    if SYNTHETIC in streams:
        _errors(streams[SYNTHETIC], folder)
        drawn.append("quality-errors")
    if PLAIN in streams:
        _reliability(streams[PLAIN], folder)
        drawn.append("quality-reliability")
    return drawn


def _gains(streams: dict[str, Any], folder: Path, name: str, title: str) -> None:
    names = list(streams)
    with figure(folder, name, figsize=(8, 1.6 + 0.36 * len(names))) as axes:
        for place, (model, colour) in enumerate(SHOWN.items()):
            found = [streams[stream]["models"][model] for stream in names]
            axes.errorbar(
                [row["gain"] for row in found],
                [line - 0.2 * (place - 1) for line in range(len(names))],
                xerr=[row["gain_to"] - row["gain"] for row in found],
                fmt="o",
                markersize=6 if model == DEFAULT else 4,
                capsize=2,
                color=colour,
                label=model,
            )
        _rows_by_name(axes, names)
        axes.axvline(0, color=BLACK, linewidth=1)
        axes.set(xlabel="points above majority", title=title)
        axes.legend(loc="best", fontsize=9)


def _rows_by_name(axes: Any, names: list[str]) -> None:
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")


def _errors(streams: dict[str, Any], folder: Path) -> None:
    names = list(streams)
    with figure(folder, "quality-errors", figsize=(8, 1.6 + 0.36 * len(names))) as axes:
        for model, colour in SHOWN.items():
            errors = [streams[name]["models"][model]["accuracy_error"] for name in names]
            axes.plot(
                errors, range(len(names)), "o", color=colour, markersize=7 if model == DEFAULT else 5, label=model
            )
        _rows_by_name(axes, names)
        axes.set_xscale("log")
        axes.set_xticks([0.01, 0.02, 0.05, 0.1, 0.2], ["0.01", "0.02", "0.05", "0.1", "0.2"])
        axes.minorticks_off()
        axes.set(xlabel="mean error of an accuracy", title="Error of the estimated accuracies")
        axes.legend(loc="best", fontsize=9)


def _reliability(streams: dict[str, Any], folder: Path) -> None:
    names = list(streams)
    across = min(5, len(names))
    down = -(-len(names) // across)
    size = (2.3 * across, 2.3 * down + 0.5)
    with figure(folder, "quality-reliability", nrows=down, ncols=across, figsize=size, squeeze=False) as axes:
        for place, panel in enumerate(axes.flat):
            if place >= len(names):
                panel.set_axis_off()
                continue
            entry = streams[names[place]]
            panel.plot([0, 1], [0, 1], color=BORDER, linestyle=":", linewidth=1)
            for model, colour in CURVES.items():
                curve = entry["models"][model]["curve"]
                # A bin with a handful of rows says nothing about what is said in it.
                solid = [row for row in zip(*curve.values(), strict=True) if row[0] >= 0.005 * entry["rows"]]
                panel.plot([r[1] for r in solid], [r[2] for r in solid], "o-", color=colour, markersize=3, label=model)
            low = 1 / entry["classes"] - 0.05
            panel.set(xlim=(low, 1.02), ylim=(0, 1.02))
            panel.set_title(names[place], fontsize=9)
        axes[0, 0].set_ylabel("share right")
        axes[-1, 0].set_xlabel("probability said")
        lines, labels = axes[0, 0].get_legend_handles_labels()
        axes[0, 0].figure.legend(lines, labels, loc="outside lower center", ncols=len(CURVES))
