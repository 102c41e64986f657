"""The sweep of beta on Basketball and Tennis, both set-ups."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from driftvote import theory
from driftvote.models import AdaptiveLabelModel
from experiments.output import GREY, Table, figure, legend_below, set_title
from experiments.paper.measures import Claim, accuracy, f1, mean_and_spread, verdict_of
from experiments.paper.video import PERMUTE, SETUP_COLOURS, SETUPS, load_dataset, name_of, votes_of
from experiments.runs import Numbers, Run

HEADING = "Sensitivity to beta"
FIGURES = {
    "beta-basketball": "Basketball: accuracy and F1 by beta.",
    "beta-tennis": "Tennis: accuracy and F1 by beta.",
}
DATASETS = ("basketball", "tennis")
BETAS = (0.001, 0.01, 0.05, 0.1, 0.2, theory.BEST_BETA, 0.6, 0.8, 1.0, 1.5, 2.0)
MEASURES = ("accuracy", "f1")


def plan(data: Path, n_runs: int) -> list[Run]:
    """A run for each dataset, set-up and seed; it goes through every beta."""
    code = ("paper.beta", "paper.video", "paper.measures")
    return [
        Run(
            "paper.beta",
            name_of(name, setup, seed),
            {"data": str(data), "name": name, "setup": setup, "seed": seed},
            code,
        )
        for name in DATASETS
        for setup in SETUPS
        for seed in range(n_runs)
    ]


def run(data: str, name: str, setup: str, seed: int) -> Numbers:
    votes, truth = votes_of(data, name, setup, seed), load_dataset(data, name).truth
    found = [AdaptiveLabelModel.paper(beta=beta, seed=seed).label_stream(votes).codes for beta in BETAS]
    return {"accuracy": [accuracy(codes, truth) for codes in found], "f1": [f1(codes, truth) for codes in found]}


def collect(results: dict[str, Numbers]) -> dict[str, Any]:
    table: dict[str, Any] = {"betas": list(BETAS)}
    for name in DATASETS:
        table[name] = {}
        for setup in SETUPS:
            parts = [part for key, part in results.items() if key.startswith(name_of(name, setup, ""))]
            table[name][setup] = {
                measure: [mean_and_spread(part[measure][place] for part in parts) for place in range(len(BETAS))]
                for measure in MEASURES
            } | {"runs": len(parts)}
    return table


def claims(numbers: dict[str, Any]) -> list[Claim]:
    betas = numbers["betas"]
    small = sum(beta <= 0.1 for beta in betas)
    judged = []
    for name in DATASETS:
        means = {setup: [row["mean"] for row in numbers[name][setup]["accuracy"]] for setup in SETUPS}
        gap = max(max(curve[:small]) - min(curve[:small]) for curve in means.values())
        usual, last = means[PERMUTE][betas.index(0.1)], means[PERMUTE][-1]
        judged += [
            Claim(
                f"{name.title()}: small beta (up to 0.1) gives similar results",
                "shown in a figure",
                f"accuracies within {gap:.2f} points of each other",
                verdict_of(gap < 1.0),
            ),
            Claim(
                f"{name.title()}: under permute, large beta loses",
                "shown in a figure",
                f"{usual:.2f} at 0.1, {last:.2f} at {betas[-1]:g}",
                verdict_of(last < usual),
            ),
        ]
    return judged


def tables(numbers: dict[str, Any]) -> dict[str, Table]:
    keys = [(name, setup, measure) for name in DATASETS for setup in SETUPS for measure in MEASURES]
    columns = [[row["mean"] for row in numbers[name][setup][measure]] for name, setup, measure in keys]
    header = ["beta", *(f"{name} {measure}, {setup}" for name, setup, measure in keys)]
    return {"beta": (header, [[f"{beta:.3f}", *row] for beta, *row in zip(numbers["betas"], *columns, strict=True)])}


def draw(numbers: dict[str, Any], folder: Path) -> None:
    for name in DATASETS:
        with figure(folder, f"beta-{name}", ncols=2, figsize=(10, 4.4)) as pair:
            for axes, measure, title in zip(pair, MEASURES, ("accuracy", "F1"), strict=True):
                _draw_measure(axes, numbers, name, measure)
                axes.set(xscale="log", xlabel="beta", ylabel=f"{title} (%)")
                legend_below(axes, 4, distance=0.18, fontsize=8)
            set_title(pair[0].figure, _describe(numbers, name))


def _describe(numbers: dict[str, Any], name: str) -> str:
    """The finding that the figure of a dataset shows."""
    table = numbers[name][PERMUTE]
    means = [row["mean"] for row in table["accuracy"]]
    usual, last = means[numbers["betas"].index(0.1)], means[-1]
    return (
        f"{name.title()}: with permute, beta = {numbers['betas'][-1]:g} labels {last:.1f}% of the rows correctly and"
        f" beta = 0.1 {usual:.1f}% ({table['runs']} runs)"
    )


def _draw_measure(axes: Any, numbers: dict[str, Any], name: str, measure: str) -> None:
    betas = np.array(numbers["betas"])
    for setup, colour in SETUP_COLOURS.items():
        rows = numbers[name][setup][measure]
        mean, sd = (np.array([row[key] for row in rows]) for key in ("mean", "sd"))
        axes.plot(betas, mean, "o-", markersize=4, color=colour, label=setup)
        axes.fill_between(betas, mean - sd, mean + sd, color=colour, alpha=0.15, linewidth=0)
    axes.axvline(theory.BEST_BETA, color=GREY, linestyle="--", linewidth=0.9, label="√2 - 1")
    axes.axvline(0.1, color=GREY, linestyle=":", linewidth=0.9, label="0.1 (the paper's)")
