"""Window and accuracies over time on the synthetic stream."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from experiments.style import ADAPTIVE, COLOURS, figure, legend_below, mark_borders, thousands


def draw(numbers: dict[str, Any], folder: Path) -> list[str]:
    rows = np.arange(len(numbers["windows"])) * numbers["step"] + 1
    draws = len(numbers["seeds"])
    with figure(folder, "synthetic", ncols=2, figsize=(10, 4.2)) as (left, right):
        left.plot(rows, numbers["windows"], color=ADAPTIVE, label=f"window, mean of {draws} draws")
        left.set(xlabel="row", ylabel="window size (rows)", title="Window chosen by the adaptive model")
        for place, curve in enumerate(numbers["accuracies"]):
            right.plot(rows, curve, color=COLOURS[place], label=f"labeler {place + 1}")
        for level in (0.6, 0.9):
            right.axhline(
                level, color="#999999", linewidth=0.9, linestyle=":", label="true accuracies" if level == 0.6 else None
            )
        right.set(xlabel="row", ylabel="accuracy", ylim=(0.5, 1.02), title="Estimated accuracies")
        for axes in (left, right):
            mark_borders(axes, numbers["borders"])
            thousands(axes)
            legend_below(axes, 3)
    return ["synthetic"]
