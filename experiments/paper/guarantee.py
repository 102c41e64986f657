"""The constant Phi of the guarantee over beta, for powers of two and for the best ratio."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from driftvote import theory
from experiments.runs import Numbers, Run

BETAS = np.geomspace(0.02, 3.0, 200)


def runs(data: Path, n_runs: int) -> list[Run]:
    """One: there is nothing random about it."""
    return [Run("paper.guarantee", "phi", {})]


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
