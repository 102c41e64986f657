"""Three labelers, blocks of T, 2T and T rows, another one of them poor in each (the paper's synthetic figure)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from driftvote.models import AdaptiveLabelModel
from driftvote.streams.synthetic import paper_blocks
from experiments.paper.measures import mean_and_spread, thinned
from experiments.runs import Numbers, Run

BLOCK, DRAWS = 5_000, 10
POINTS = 1_000


def runs(data: Path, n_runs: int) -> list[Run]:
    """A run for each draw of the stream; the paper averages ten."""
    return [Run("paper.synthetic", f"draw-{seed}", {"seed": seed}) for seed in range(min(DRAWS, n_runs))]


def run(seed: int) -> Numbers:
    stream = paper_blocks(BLOCK, seed)
    out = AdaptiveLabelModel.paper(seed=seed).label_stream(stream.votes)
    edges = [0, *stream.borders, len(out)]
    blocks = []
    for first, last in zip(edges, edges[1:], strict=False):
        quarter = slice(last - (last - first) // 4, last)
        blocks.append(
            {
                "length": last - first,
                "window": float(out.windows[quarter].mean()),
                "error": float(np.abs(out.accuracies[last - 1] - stream.accuracies[last - 1]).mean()),
                "lowest": int(out.windows[first : first + 1000].min()),
            }
        )
    return {
        "blocks": blocks,
        "windows": thinned(out.windows, POINTS),
        "accuracies": [thinned(out.accuracies[:, place], POINTS) for place in range(3)],
    }


def collect(results: dict[str, Numbers]) -> dict[str, Any]:
    draws = list(results.values())
    blocks = []
    for place in range(3):
        part = [draw["blocks"][place] for draw in draws]
        blocks.append(
            {
                "length": part[0]["length"],
                "window": mean_and_spread(b["window"] for b in part),
                "error": mean_and_spread(b["error"] for b in part),
                "lowest_window_after_border": mean_and_spread(b["lowest"] for b in part),
            }
        )
    return {
        "seeds": list(range(len(draws))),
        "rows": 4 * BLOCK,
        "borders": [BLOCK, 3 * BLOCK],
        "blocks": blocks,
        "step": 4 * BLOCK // POINTS,
        "windows": np.mean([draw["windows"] for draw in draws], axis=0).round(2).tolist(),
        "accuracies": np.mean([draw["accuracies"] for draw in draws], axis=0).round(5).tolist(),
    }
