"""Accuracy and F1 over beta."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from driftvote import theory
from experiments.paper.sensitivity import DATASETS
from experiments.paper.video import SETUPS
from experiments.style import BORDER, SETUP_COLOURS, figure


def draw(numbers: dict[str, Any], folder: Path) -> list[str]:
    return [_sweep(numbers, dataset, folder) for dataset in DATASETS]


def _sweep(numbers: dict[str, Any], dataset: str, folder: Path) -> str:
    name = f"beta-{dataset}"
    betas = np.array(numbers["betas"])
    with figure(folder, name, ncols=2, figsize=(10, 4.4)) as pair:
        for axes, measure, title in zip(pair, ("accuracy", "f1"), ("accuracy", "F1"), strict=True):
            for setup in SETUPS:
                rows = numbers[dataset][setup][measure]
                mean, sd = np.array([row["mean"] for row in rows]), np.array([row["sd"] for row in rows])
                axes.plot(betas, mean, "o-", markersize=4, color=SETUP_COLOURS[setup], label=setup)
                axes.fill_between(betas, mean - sd, mean + sd, color=SETUP_COLOURS[setup], alpha=0.15, linewidth=0)
            axes.axvline(theory.BEST_BETA, color=BORDER, linestyle="--", linewidth=0.9, label="√2 - 1")
            axes.axvline(0.1, color=BORDER, linestyle=":", linewidth=0.9, label="0.1 (the paper's)")
            axes.set(xscale="log", xlabel="beta", ylabel=f"{title} (%)")
            axes.set_title(f"{dataset.title()}: {title}, {numbers[dataset]['permute']['runs']} runs", fontsize=10)
            axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=4, fontsize=8)
    return name
