"""From runs to figures: means over seeds, each with what it is uncertain by."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from experiments.quality.measures import BINS, T_30, Numbers
from experiments.quality.streams import Spec

MEASURES = ("accuracy", "f1", "log_loss", "calibration", "auroc", "review", "gain", "accuracy_error", "window")


def averaged(spec: Spec, runs: Sequence[Numbers]) -> Numbers:
    """Means over the seeds of one stream, their spread, and a confidence interval of the gain over majority.

    Seeds that draw other rows make the mean more certain. Seeds that only put the same rows in another order do
    not: there the standard error of one run stays, and the luck of the order is added to it.
    """
    made: dict[str, Any] = {"seeds": len(runs), "rows": runs[0]["rows"]}
    for measure in MEASURES:
        values = [run[measure] for run in runs if run.get(measure) is not None]
        made[measure] = float(np.mean(values)) if values else None
    accuracies = [run["accuracy"] for run in runs]
    made["spread"] = float(np.std(accuracies, ddof=1)) if len(runs) > 1 else None
    made["lowest"] = min(accuracies)
    made["gain_se"] = _standard_error(spec, runs)
    made["gain_from"] = made["gain"] - T_30 * made["gain_se"]
    made["gain_to"] = made["gain"] + T_30 * made["gain_se"]
    made["against_unanimous"] = sum(run["against_unanimous"] for run in runs)
    made["curve"] = _joined([run["curve"] for run in runs])
    return made


def _standard_error(spec: Spec, runs: Sequence[Numbers]) -> float:
    blocks = float(np.mean([run["gain_se"] ** 2 for run in runs]))
    seeds = float(np.var([run["gain"] for run in runs], ddof=1)) / len(runs) if len(runs) > 1 else 0.0
    if spec.fresh_rows:
        return math.sqrt(max(blocks / len(runs), seeds))  # both see the same chance, one of them in few draws
    return math.sqrt(blocks + seeds)  # which rows there are, and what was drawn for them


def _joined(curves: Sequence[Numbers]) -> Numbers:
    """One reliability curve from several, weighted by rows."""
    rows, said, right = np.zeros(BINS), np.zeros(BINS), np.zeros(BINS)
    for curve in curves:
        count = np.array(curve["rows"], np.float64)
        place = np.minimum((np.array(curve["said"]) * BINS).astype(np.int64), BINS - 1)
        np.add.at(rows, place, count)
        np.add.at(said, place, count * curve["said"])
        np.add.at(right, place, count * curve["right"])
    seen = rows > 0
    return {
        "rows": rows[seen].astype(int).tolist(),
        "said": (said[seen] / rows[seen]).tolist(),
        "right": (right[seen] / rows[seen]).tolist(),
    }
