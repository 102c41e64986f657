"""Accuracy and F1 by window, chosen windows, and what goes over time, for the video streams."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from experiments.paper.video import DATASETS, SETUPS
from experiments.style import (
    ADAPTIVE,
    COLOURS,
    MAJORITY,
    SETUP_COLOURS,
    figure,
    legend_below,
    mark_borders,
    short,
    thousands,
)


def draw(numbers: dict[str, Any], folder: Path) -> list[str]:
    names = []
    for dataset in DATASETS:
        part = numbers[dataset]
        names += [_by_window(part, dataset, folder), _f1(part, dataset, folder)]
    names.append(_accuracy_over_time(numbers["tennis"]["permute"]["trace"], numbers["span"], folder))
    names += [_weights(numbers[dataset], dataset, folder) for dataset in ("tennis", "commercial")]
    return names


def _strategies(axes: Any, part: dict[str, Any], measure: str) -> None:
    """Fixed windows as points with their spread; the adaptive model and majority as lines across."""
    for shift, setup in zip((-0.12, 0.12), SETUPS, strict=True):
        table = part[setup][measure]
        fixed = [name for name in table if name.isdigit()] + ["all past"]
        at = np.arange(len(fixed)) + shift
        colour = SETUP_COLOURS[setup]
        axes.errorbar(
            at,
            [table[name]["mean"] for name in fixed],
            yerr=[table[name]["sd"] for name in fixed],
            fmt="o",
            markersize=4,
            capsize=2,
            color=colour,
            label=f"fixed window, {setup}",
        )
        axes.axhline(table["adaptive"]["mean"], color=colour, linewidth=2, label=f"adaptive, {setup}")
        axes.axhline(table["majority"]["mean"], color=colour, linewidth=1.2, linestyle=":", label=f"majority, {setup}")
        axes.set_xticks(range(len(fixed)), [short(name) for name in fixed], rotation=60)
    axes.grid(visible=False, axis="x")


def _by_window(part: dict[str, Any], dataset: str, folder: Path) -> str:
    name = f"video-{dataset}-accuracy"
    with figure(folder, name, ncols=2, figsize=(11, 4.6)) as (left, right):
        _strategies(left, part, "accuracy")
        runs = part["permute"]["runs"]
        left.set(xlabel="window size (rows)", ylabel="accuracy (%)")
        left.set_title(f"{dataset.title()}: mean and standard deviation of {runs} runs", fontsize=10)
        sizes = sorted({int(size) for setup in SETUPS for size in part[setup]["window_share"]})
        for shift, setup in zip((-0.2, 0.2), SETUPS, strict=True):
            share = [100 * part[setup]["window_share"].get(str(size), 0.0) for size in sizes]
            right.bar(np.arange(len(sizes)) + shift, share, 0.4, color=SETUP_COLOURS[setup], label=setup)
        right.set_xticks(range(len(sizes)), [short(str(size)) for size in sizes], rotation=60)
        right.set(xlabel="window size (rows)", ylabel="share of rows (%)")
        right.set_title("Windows that the adaptive model chose", fontsize=10)
        right.grid(visible=False, axis="x")
        left.legend(loc="upper center", bbox_to_anchor=(0.5, -0.28), ncols=2, fontsize=8)
        right.legend(loc="upper center", bbox_to_anchor=(0.5, -0.28), ncols=2, fontsize=8)
    return name


def _f1(part: dict[str, Any], dataset: str, folder: Path) -> str:
    name = f"video-{dataset}-f1"
    with figure(folder, name, figsize=(6.4, 4.6)) as axes:
        _strategies(axes, part, "f1")
        axes.set(xlabel="window size (rows)", ylabel="F1 (%)", title=f"{dataset.title()}: F1 score")
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.28), ncols=2, fontsize=8)
    return name


def _accuracy_over_time(trace: dict[str, Any], span: int, folder: Path) -> str:
    name = "video-tennis-over-time"
    with figure(folder, name, figsize=(9, 4.4)) as axes:
        curves = trace["accuracy"]
        fixed = [key for key in curves if key != "adaptive"]
        for place, key in enumerate(fixed):
            rows = np.linspace(1, trace["rows"] - span, len(curves[key]))
            axes.plot(rows, curves[key], color=COLOURS[(0, 2, 3, 4)[place]], linewidth=0.9, label=f"window {key}")
        rows = np.linspace(1, trace["rows"] - span, len(curves["adaptive"]))
        axes.plot(rows, curves["adaptive"], color=ADAPTIVE, linewidth=1.8, label="adaptive")
        mark_borders(axes, trace["shuffles"], "names shuffled")
        axes.set(xlabel="row", ylabel=f"accuracy of the next {span} rows (%)", title="Tennis, permuted, one run")
        thousands(axes)
        legend_below(axes, 6)
    return name


def _weights(part: dict[str, Any], dataset: str, folder: Path) -> str:
    name = f"video-{dataset}-weights"
    with figure(folder, name, ncols=2, sharey=True, figsize=(11, 4.2)) as pair:
        for axes, setup in zip(pair, SETUPS, strict=True):
            trace = part[setup]["trace"]
            for place, curve in enumerate(trace["weights"]):
                rows = np.linspace(1, trace["rows"], len(curve))
                axes.plot(rows, curve, color=COLOURS[place], linewidth=0.9, label=f"labeler {place + 1}")
            for row in trace["shuffles"]:
                axes.axvline(row, color=MAJORITY, linewidth=0.4, alpha=0.35)
            axes.set(xlabel="row", title=f"{dataset.title()}, {setup}")
            thousands(axes)
            legend_below(axes, 3)
        pair[0].set_ylabel("weight (log-odds)")
    return name
