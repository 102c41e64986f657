"""The constant Phi of the guarantee over beta, for powers of two and for the best ratio."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from driftvote import theory
from experiments.output import BLACK, BLUE, ORANGE, Table, figure, legend_below
from experiments.paper.measures import Claim, verdict_of
from experiments.runs import Numbers, Run

HEADING = "The guarantee"
FIGURES = {"guarantee-phi": "The constant Φ of the guarantee by beta."}
BETAS = np.geomspace(0.02, 3.0, 200)


def plan(data: Path, n_runs: int) -> list[Run]:
    """One run: nothing is random."""
    return [Run("paper.theory", "phi", {}, ("paper.theory",))]


def run() -> Numbers:
    def curve(ratio: float) -> list[float]:
        return [theory.phi([ratio**k for k in range(3)], float(beta)) for beta in BETAS]

    return {
        "betas": BETAS.tolist(),
        "powers of two": curve(2.0),
        "best ratio": curve(theory.BEST_RATIO),
        "paper_setting": theory.phi([2.0**k for k in range(20)], 0.1),
        "optimum": theory.phi([theory.BEST_RATIO**k for k in range(3)], theory.BEST_BETA),
        "best_beta": theory.BEST_BETA,
        "best_ratio": theory.BEST_RATIO,
    }


def collect(results: dict[str, Numbers]) -> dict[str, Any]:
    return results["phi"]


def claims(numbers: dict[str, Any]) -> list[Claim]:
    optimum, setting = numbers["optimum"], numbers["paper_setting"]
    least = min(min(numbers["powers of two"]), min(numbers["best ratio"]))
    return [
        Claim(
            "The bound is best for powers of 1/(√2-1)² and beta = √2-1",
            "Φ = 7 + 4√2 = 12.66 (worked out)",
            f"{optimum:.2f}; nothing lower on either curve ({least:.2f})",
            verdict_of(abs(optimum - 12.6569) < 1e-3 and least > optimum - 1e-6),
            "The ratio terms must read 1/√g for r_i = g^i; the paper prints 1/g.",
        ),
        Claim(
            "The experiments use powers of two and beta = 0.1",
            "Φ = 76.1 (worked out)",
            f"{setting:.1f}",
            verdict_of(abs(setting - 76.11) < 0.01),
        ),
    ]


def tables(numbers: dict[str, Any]) -> dict[str, Table]:
    columns = [numbers[name] for name in ("betas", "powers of two", "best ratio")]
    return {"phi": (["beta", "powers of two", "best ratio"], [list(row) for row in zip(*columns, strict=True)])}


def draw(numbers: dict[str, Any], folder: Path) -> None:
    setting, best = (0.1, numbers["paper_setting"]), (numbers["best_beta"], numbers["optimum"])
    with figure(folder, "guarantee-phi", figsize=(7, 4.4)) as axes:
        axes.plot(numbers["betas"], numbers["powers of two"], color=BLUE, label="powers of two")
        label = f"powers of {numbers['best_ratio']:.2f} (best ratio)"
        axes.plot(numbers["betas"], numbers["best ratio"], color=ORANGE, label=label)
        axes.plot(*setting, "o", color=BLUE)
        near = {"xytext": (8, 6), "textcoords": "offset points"}
        axes.annotate(f"the paper's setting: {setting[1]:.1f}", setting, **near)
        axes.plot(*best, "o", color=ORANGE)
        axes.annotate(f"optimum 7 + 4√2 = {best[1]:.2f}", best, **{**near, "xytext": (-4, -16)}, color=BLACK)
        axes.set(xscale="log", yscale="log", xlabel="beta", ylabel="Φ", ylim=(6, 500))
        axes.set_title(f"Constant of the guarantee: {setting[1]:.0f} in the paper's setting, {best[1]:.1f} at best")
        for one in (axes.xaxis, axes.yaxis):
            one.set_major_formatter(lambda value, _: f"{value:g}")
        legend_below(axes, 2)
