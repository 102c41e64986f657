"""The sweep of beta on Basketball and Tennis, both set-ups."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from driftvote import theory
from driftvote.models import AdaptiveLabelModel
from experiments.paper.measures import accuracy, f1, mean_and_spread
from experiments.paper.video import SETUPS, dataset, votes_of
from experiments.runs import Numbers, Run

DATASETS = ("basketball", "tennis")
BETAS = (0.001, 0.01, 0.05, 0.1, 0.2, theory.BEST_BETA, 0.6, 0.8, 1.0, 1.5, 2.0)


def runs(data: Path, n_runs: int) -> list[Run]:
    """A run for each dataset, set-up and seed; it goes through every beta."""
    return [
        Run(
            "paper.sensitivity",
            f"{name}-{setup.replace(' ', '-')}-{seed}",
            {"data": str(data), "name": name, "setup": setup, "seed": seed},
        )
        for name in DATASETS
        for setup in SETUPS
        for seed in range(n_runs)
    ]


def run(data: str, name: str, setup: str, seed: int) -> Numbers:
    votes, truth = votes_of(data, name, setup, seed), dataset(data, name).truth
    found = [AdaptiveLabelModel.paper(beta=beta, seed=seed).label_stream(votes).codes for beta in BETAS]
    return {"accuracy": [accuracy(codes, truth) for codes in found], "f1": [f1(codes, truth) for codes in found]}


def collect(results: dict[str, Numbers]) -> dict[str, Any]:
    table: dict[str, Any] = {"betas": list(BETAS)}
    for name in DATASETS:
        table[name] = {}
        for setup in SETUPS:
            stem = f"{name}-{setup.replace(' ', '-')}-"
            parts = [part for key, part in results.items() if key.startswith(stem)]
            table[name][setup] = {
                measure: [mean_and_spread(part[measure][place] for part in parts) for place in range(len(BETAS))]
                for measure in ("accuracy", "f1")
            }
            table[name][setup]["runs"] = len(parts)
    return table
