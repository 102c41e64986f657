"""Three labelers, blocks of T, 2T and T rows, another one of them poor in each (the paper's synthetic figure)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from driftvote.models import AdaptiveLabelModel
from driftvote.streams import paper_blocks
from experiments.output import COLOURS, ORANGE, Table, figure, legend_below, mark_rows, thousands
from experiments.paper.measures import Claim, mean_and_spread, thin_out, verdict_of
from experiments.runs import Numbers, Run

HEADING = "Synthetic data"
FIGURES = {
    "synthetic": "Synthetic stream: chosen window and estimated accuracies over time, means of the draws. The title"
    " gives the mean error of the worst block."
}
BLOCK, DRAWS = 5_000, 10
POINTS = 1_000


def plan(data: Path, n_runs: int) -> list[Run]:
    """A run for each draw of the stream; the paper averages ten."""
    code = ("paper.synthetic", "paper.measures")
    return [Run("paper.synthetic", f"draw-{seed}", {"seed": seed}, code) for seed in range(min(DRAWS, n_runs))]


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
        "windows": thin_out(out.windows, POINTS),
        "accuracies": [thin_out(out.accuracies[:, place], POINTS) for place in range(3)],
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


def claims(numbers: dict[str, Any]) -> list[Claim]:
    blocks = numbers["blocks"]
    windows = [block["window"]["mean"] for block in blocks]
    dips = [block["lowest_window_after_border"]["mean"] for block in blocks[1:]]
    errors = [block["error"]["mean"] for block in blocks]
    return [
        Claim(
            "The window shrinks at every change of distribution",
            "shown in a figure",
            f"from {windows[0]:,.0f} and {windows[1]:,.0f} rows before the borders"
            f" down to {dips[0]:,.0f} and {dips[1]:,.0f}",
            verdict_of(dips[0] < windows[0] / 4 and dips[1] < windows[1] / 4),
        ),
        Claim(
            "It uses data mostly from the current block",
            "shown in a figure",
            "mean window in the last quarter of the blocks of 5,000, 10,000 and 5,000 rows: "
            + ", ".join(f"{window:,.0f}" for window in windows),
            verdict_of(all(1000 < w < block["length"] for w, block in zip(windows, blocks, strict=True))),
        ),
        Claim(
            "The accuracies are estimated very well",
            "shown in a figure",
            "mean absolute error at the ends of the blocks: " + ", ".join(f"{error:.3f}" for error in errors),
            verdict_of(max(errors) < 0.03),
        ),
    ]


def tables(numbers: dict[str, Any]) -> dict[str, Table]:
    header = ["block", "rows", "mean window in its last quarter", "error of the accuracies at its end", "spread (sd)"]
    rows = []
    for place, block in enumerate(numbers["blocks"], 1):
        error = [f"{block['error'][name]:.4f}" for name in ("mean", "sd")]
        rows.append([place, block["length"], block["window"]["mean"], *error])
    return {"synthetic": (header, rows)}


def draw(numbers: dict[str, Any], folder: Path) -> None:
    rows = np.arange(len(numbers["windows"])) * numbers["step"] + 1
    with figure(folder, "synthetic", ncols=2, figsize=(10, 4.2)) as (left, right):
        draws = len(numbers["seeds"])
        worst = max(block["error"]["mean"] for block in numbers["blocks"])
        left.plot(rows, numbers["windows"], color=ORANGE, label=f"window, mean of {draws} draws")
        left.set(xlabel="row", ylabel="window size (rows)", title="The window shrinks after each change")
        for place, curve in enumerate(numbers["accuracies"]):
            right.plot(rows, curve, color=COLOURS[place], label=f"labeler {place + 1}")
        for level, label in ((0.6, "true accuracies"), (0.9, None)):
            right.axhline(level, color="#999999", linewidth=0.9, linestyle=":", label=label)
        right.set(
            xlabel="row",
            ylabel="accuracy",
            ylim=(0.5, 1.02),
            title=f"At block ends, estimates are off by {worst:.3f} at most",
        )
        for axes in (left, right):
            mark_rows(axes, numbers["borders"])
            thousands(axes)
            legend_below(axes, 3)
