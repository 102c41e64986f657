"""The picture of the README: one labeler drifts, and how three ways of labeling cope (`make picture`).

Five simulated labelers, of which the best falls from 90% to 40% right half-way, in `SEEDS` streams. Labels come from a
majority vote, from the default model fitted once at the start (a static model), and from the default model as it is.
Writes docs/drift.json, and docs/figures/drift.png from it.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from driftvote import AdaptiveLabelModel, MajorityLabelModel
from driftvote.streams import simulate
from experiments.output import BLUE, EVENT, GREY, ORANGE, figure, thousands

ACCURACIES, AFTER = (0.90, 0.85, 0.70, 0.65, 0.60), 0.40
N_ROWS, CHANGE, FITTED = 6_000, 3_000, 1_500
SEEDS, BUCKET = 40, 100
MAJORITY, STATIC, OURS = "majority vote", "static model", "driftvote"
COLOURS = {MAJORITY: GREY, STATIC: ORANGE, OURS: BLUE}


def measure(n_streams: int = SEEDS) -> dict[str, Any]:
    """Label accuracy over time and on either side of the change: mean and standard deviation over the streams."""
    hits: dict[str, list[Any]] = {MAJORITY: [], STATIC: [], OURS: []}
    noticed: list[int] = []
    accuracies = np.tile(ACCURACIES, (N_ROWS, 1))
    accuracies[CHANGE:, 0] = AFTER
    for seed in range(n_streams):
        stream = simulate(accuracies, seed)
        static = AdaptiveLabelModel().fit(stream.votes[:FITTED])
        out = AdaptiveLabelModel().label_stream(stream.votes)
        labels = (MajorityLabelModel().label_stream(stream.votes).codes, static.predict(stream.votes), out.codes)
        for name, codes in zip(hits, labels, strict=True):
            hits[name].append(codes == stream.truth)
        noticed += [event.row - CHANGE for event in out.events if event.names[:1] == ("labeler_0",)][:1]
    periods = {"before": slice(FITTED, CHANGE), "after": slice(CHANGE, N_ROWS)}
    return {
        "streams": n_streams,
        "rows": N_ROWS,
        "accuracies": list(ACCURACIES),
        "change": {"row": CHANGE, "labeler": 0, "accuracy": AFTER},
        "noticed": {"streams": len(noticed), "median_rows_later": median(noticed), "most_rows_later": max(noticed)},
        "label_accuracy": {
            name: {
                period: {"mean": round(float(means.mean()), 4), "sd": round(float(means.std(ddof=1)), 4)}
                for period, rows in periods.items()
                for means in [np.array([one[rows].mean() for one in found])]
            }
            for name, found in hits.items()
        },
        "over_time": {
            name: np.round(np.array(found).reshape(n_streams, -1, BUCKET).mean(axis=(0, 2)), 4).tolist()
            for name, found in hits.items()
        },
        "spread_over_time": {
            name: np.round(np.array(found).reshape(n_streams, -1, BUCKET).mean(axis=2).std(axis=0, ddof=1), 4).tolist()
            for name, found in hits.items()
        },
    }


def draw(numbers: dict[str, Any], folder: Path) -> None:
    """Accuracy over time, with the change marked."""
    after = {name: periods["after"]["mean"] for name, periods in numbers["label_accuracy"].items()}
    change, later = numbers["change"]["row"], numbers["noticed"]["median_rows_later"]
    rows = (np.arange(len(numbers["over_time"][OURS])) + 0.5) * BUCKET
    shown = rows > FITTED - 8 * BUCKET
    with figure(folder, "drift", svg=False, figsize=(8.2, 3.9)) as axes:
        for name, curve in numbers["over_time"].items():
            middle, half = 100 * np.array(curve), 100 * np.array(numbers["spread_over_time"][name])
            width = 2.6 if name == OURS else 1.6
            axes.plot(rows[shown], middle[shown], color=COLOURS[name], linewidth=width)
            low, high = (middle - half)[shown], (middle + half)[shown]
            axes.fill_between(rows[shown], low, high, color=COLOURS[name], alpha=0.1, linewidth=0)
        ends = {name: 100 * float(np.mean(curve[-15:])) for name, curve in numbers["over_time"].items()}
        heights = {OURS: ends[OURS], MAJORITY: ends[MAJORITY] + 0.7, STATIC: ends[STATIC] - 0.9}
        for name, height in heights.items():
            weight = "bold" if name == OURS else "normal"
            place = {"xytext": (6, 0), "textcoords": "offset points", "va": "center"}
            axes.annotate(name, (rows[-1], height), color=COLOURS[name], weight=weight, **place)
        axes.axvspan(change, change + later, color=EVENT, alpha=0.15, linewidth=0)
        axes.axvline(change, color=EVENT, linestyle=":", linewidth=1.6)
        before, now = (f"{100 * share:.0f}%" for share in (numbers["accuracies"][0], numbers["change"]["accuracy"]))
        text = f"the best of five labelers falls\nfrom {before} to {now} right;\n"
        text += f"driftvote reports it {later:.0f} rows\nlater (median)"
        axes.annotate(text, (change, 76), (-8, 0), textcoords="offset points", ha="right", va="center", color=EVENT)
        axes.set(xlabel="row", ylabel="correct labels (%)", xlim=(rows[shown][0], N_ROWS), ylim=(64, 98))
        axes.set_title(
            f"After a labeler drifts, driftvote labels {100 * after[OURS]:.0f}% correctly, a majority vote"
            f" {100 * after[MAJORITY]:.0f}%,\na model fitted once {100 * after[STATIC]:.0f}%"
            f"  (mean and spread of {numbers['streams']} simulated streams)"
        )
        thousands(axes)


def main() -> None:
    parser = argparse.ArgumentParser(description="The picture of the README.")
    parser.add_argument("--docs", type=Path, default=Path("docs"), help="folder of drift.json and figures/drift.png")
    docs = parser.parse_args().docs
    path = docs / "drift.json"
    path.write_text(json.dumps(measure(), indent=1) + "\n", encoding="utf-8")
    draw(json.loads(path.read_text(encoding="utf-8")), docs / "figures")
    print(f"{path}, {docs / 'figures' / 'drift.png'}")


if __name__ == "__main__":
    main()
