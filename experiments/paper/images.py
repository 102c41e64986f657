"""The image stream (AwA2): six attribute detectors, two groups of animals whose mix alternates."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from driftvote.kernels.layout import Ints
from driftvote.streams.awa2 import BLOCK, RATIOS, Awa2
from experiments.paper.measures import accuracy, baselines, mean_and_spread, mean_of_next, ordered, thinned
from experiments.runs import Numbers, Run

SEEDS, SPAN = (0, 1, 2), 256
TRACED = ("adaptive", "16", "256", "1024")


@cache
def images(data: str) -> Awa2:
    return Awa2.load(Path(data) / "awa2")


def runs(data: Path, n_runs: int) -> list[Run]:
    """Always the authors' three streams: they are what the paper's table is made of."""
    return [Run("paper.images", f"seed-{seed}", {"data": str(data), "seed": seed}) for seed in SEEDS]


def run(data: str, seed: int) -> Numbers:
    votes, truth = images(data).stream(seed)
    outs = {name: model.label_stream(votes) for name, model in baselines(len(votes), seed).items()}
    windows = outs["adaptive"].windows
    theirs = authors_windows(windows)
    picked = np.array([outs[str(size)].codes[row] for row, size in enumerate(theirs)])
    return {
        "accuracy": {name: accuracy(out.codes, truth) for name, out in outs.items()},
        # Tied rows are coin tosses: how many there are says how far a figure can move with the draw.
        "tied": {name: float((out.proba.max(axis=1) == 0.5).mean()) for name, out in outs.items()},
        "authors_code": accuracy(picked, truth),
        "over_time": {name: thinned(100 * mean_of_next(outs[name].codes == truth, SPAN)) for name in TRACED},
        "windows": thinned(windows),
    }


def authors_windows(windows: Ints) -> Ints:
    """The windows that the authors' public code picks on the same votes.

    It compares sizes with `<` instead of `<=` and, when no window was refused, returns the one before the largest
    that it reached. Where a window was refused it picks the same as Algorithm 1.
    """
    theirs = windows.copy()
    for row, window in enumerate(windows):
        seen = row + 1
        reached = 1 << (seen.bit_length() - 1)  # largest power of two within the rows seen
        if window < reached and (reached < seen or 2 * window < reached):
            continue  # a window was refused, in their loop too
        end = reached if reached < seen else reached // 2
        theirs[row] = max(1, end // 2)
    return theirs


def collect(results: dict[str, Numbers]) -> dict[str, Any]:
    parts = [results[f"seed-{seed}"] for seed in SEEDS]
    return {
        "seeds": list(SEEDS),
        "borders": [BLOCK * place for place in range(1, len(RATIOS))],
        "rows": BLOCK * len(RATIOS),
        "span": SPAN,
        "accuracy": {
            name: mean_and_spread(part["accuracy"][name] for part in parts)
            for name in ordered(list(parts[0]["accuracy"]))
        },
        "tied": {name: float(np.mean([part["tied"][name] for part in parts])) for name in parts[0]["tied"]},
        "authors_code": mean_and_spread(part["authors_code"] for part in parts),
        "over_time": parts[0]["over_time"],
        "windows": np.mean([part["windows"] for part in parts], axis=0).round(2).tolist(),
    }
