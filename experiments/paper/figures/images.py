"""Accuracy by window and over time, and windows over time, on the image stream."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from experiments.style import (
    ADAPTIVE,
    COLOURS,
    FIXED,
    MAJORITY,
    figure,
    legend_below,
    mark_borders,
    short,
    thousands,
)


def draw(numbers: dict[str, Any], folder: Path) -> list[str]:
    return [_by_window(numbers, folder), _over_time(numbers, folder), _windows(numbers, folder)]


def _by_window(numbers: dict[str, Any], folder: Path) -> str:
    table = numbers["accuracy"]
    fixed = [name for name in table if name.isdigit()] + ["all past"]
    with figure(folder, "images-accuracy", figsize=(7.5, 4.6)) as axes:
        axes.errorbar(
            range(len(fixed)),
            [table[name]["mean"] for name in fixed],
            yerr=[table[name]["se"] for name in fixed],
            fmt="o",
            capsize=3,
            color=FIXED,
            label="fixed window (mean and standard error of 3 streams)",
        )
        axes.axhline(table["adaptive"]["mean"], color=ADAPTIVE, linewidth=2, label="adaptive (Algorithm 1)")
        axes.axhline(numbers["authors_code"]["mean"], color=ADAPTIVE, linestyle="--", label="adaptive, authors' code")
        axes.axhline(table["majority"]["mean"], color=MAJORITY, linestyle=":", label="majority")
        axes.set_xticks(range(len(fixed)), [short(name) for name in fixed], rotation=60)
        axes.set(xlabel="window size (rows)", ylabel="accuracy (%)", title="AwA2: accuracy by window")
        axes.grid(visible=False, axis="x")
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.27), ncols=2, fontsize=9)
    return "images-accuracy"


def _over_time(numbers: dict[str, Any], folder: Path) -> str:
    with figure(folder, "images-over-time", figsize=(9, 4.4)) as axes:
        curves = numbers["over_time"]
        for place, name in enumerate([key for key in curves if key != "adaptive"]):
            rows = np.linspace(1, numbers["rows"] - numbers["span"], len(curves[name]))
            shown = rows >= int(name)  # a window is reported once it can be full
            axes.plot(
                rows[shown],
                np.array(curves[name])[shown],
                color=COLOURS[(0, 2, 3)[place]],
                linewidth=0.9,
                label=f"window {name}",
            )
        rows = np.linspace(1, numbers["rows"] - numbers["span"], len(curves["adaptive"]))
        axes.plot(rows, curves["adaptive"], color=ADAPTIVE, linewidth=1.8, label="adaptive")
        mark_borders(axes, numbers["borders"])
        axes.set(xlabel="row", ylabel=f"accuracy of the next {numbers['span']} rows (%)", title="AwA2, one stream")
        thousands(axes)
        legend_below(axes, 5)
    return "images-over-time"


def _windows(numbers: dict[str, Any], folder: Path) -> str:
    with figure(folder, "images-windows", figsize=(7.5, 4.2)) as axes:
        rows = np.linspace(1, numbers["rows"], len(numbers["windows"]))
        axes.plot(rows, numbers["windows"], color=ADAPTIVE, label="window, mean of 3 streams")
        mark_borders(axes, numbers["borders"])
        axes.set(xlabel="row", ylabel="window size (rows)", title="AwA2: window chosen by the adaptive model")
        thousands(axes)
        legend_below(axes, 2)
    return "images-windows"
