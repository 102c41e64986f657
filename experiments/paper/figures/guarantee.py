"""Phi over beta."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from experiments.style import ADAPTIVE, FIXED, MAJORITY, figure, legend_below


def draw(numbers: dict[str, Any], folder: Path) -> list[str]:
    with figure(folder, "guarantee-phi", figsize=(7, 4.4)) as axes:
        axes.plot(numbers["betas"], numbers["powers of two"], color=FIXED, label="powers of two")
        ratio = numbers["best_ratio"]
        axes.plot(numbers["betas"], numbers["best ratio"], color=ADAPTIVE, label=f"powers of {ratio:.2f} (best ratio)")
        axes.plot(0.1, numbers["paper_setting"], "o", color=FIXED)
        axes.annotate(
            f"the paper's setting: {numbers['paper_setting']:.1f}", (0.1, numbers["paper_setting"]), (0.14, 90)
        )
        axes.plot(numbers["best_beta"], numbers["optimum"], "o", color=ADAPTIVE)
        axes.annotate(
            f"optimum 7 + 4√2 = {numbers['optimum']:.2f}",
            (numbers["best_beta"], numbers["optimum"]),
            (0.2, 7.2),
            color=MAJORITY,
        )
        axes.set(
            xscale="log", yscale="log", xlabel="beta", ylabel="Φ", title="Constant of the guarantee", ylim=(6, 500)
        )
        legend_below(axes, 2)
    return ["guarantee-phi"]
