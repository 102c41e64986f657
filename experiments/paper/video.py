"""Tennis, Basketball and Commercial, as they are and with labelers that change places ("permute")."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from driftvote.kernels.layout import Codes
from driftvote.models import AdaptiveLabelModel, FixedWindowLabelModel, MajorityLabelModel
from driftvote.streams.permute import permuted
from driftvote.streams.wrench import WrenchDataset, load_wrench
from experiments.paper.measures import (
    PROTOCOL,
    accuracy,
    best_fixed,
    f1,
    label_all,
    mean_and_spread,
    mean_of_next,
    ordered,
    thinned,
)
from experiments.runs import Numbers, Run

DATASETS = ("tennis", "basketball", "commercial")
SETUPS = ("no permute", "permute")
RATE, SPAN = 1e-3, 128
TRACED_WINDOWS = ("16", "64", "256", "1024")


@cache
def dataset(data: str, name: str) -> WrenchDataset:
    return load_wrench(Path(data) / "wrench" / name)


def votes_of(data: str, name: str, setup: str, seed: int) -> Codes:
    """The stream of one run: the file's votes, with names shuffled now and then under "permute"."""
    votes = dataset(data, name).votes
    return permuted(votes, seed, RATE)[0] if setup == "permute" else votes


def runs(data: Path, n_runs: int) -> list[Run]:
    """A run for each dataset, set-up and seed, and one that keeps what goes over time."""
    made = []
    for name in DATASETS:
        for setup in SETUPS:
            stem = f"{name}-{setup.replace(' ', '-')}"
            shared = {"data": str(data), "name": name, "setup": setup}
            made.append(Run("paper.video", f"{stem}-trace", {**shared, "seed": 0, "trace": True}))
            made += [
                Run("paper.video", f"{stem}-{seed}", {**shared, "seed": seed, "trace": False}) for seed in range(n_runs)
            ]
    return made


def run(data: str, name: str, setup: str, seed: int, trace: bool) -> Numbers:
    votes = votes_of(data, name, setup, seed)
    return _over_time(data, name, setup, seed) if trace else _scores(votes, dataset(data, name), seed)


def _scores(votes: Codes, gold: WrenchDataset, seed: int) -> Numbers:
    codes = label_all(votes, seed)
    # What a user would write in one line: abstentions do not vote; ties are drawn.
    codes["plain majority"] = MajorityLabelModel(tie_break_policy="random", seed=seed).label_stream(votes).codes
    windows = AdaptiveLabelModel.paper(seed=seed).label_stream(votes).windows
    sizes, counts = np.unique(windows, return_counts=True)
    return {
        "accuracy": {key: accuracy(found, gold.truth) for key, found in codes.items()},
        "f1": {key: f1(found, gold.truth) for key, found in codes.items()},
        "windows": {str(size): int(count) for size, count in zip(sizes, counts, strict=True)},
    }


def _over_time(data: str, name: str, setup: str, seed: int) -> Numbers:
    votes, gold = votes_of(data, name, setup, seed), dataset(data, name)
    out = AdaptiveLabelModel.paper(seed=seed).label_stream(votes)
    codes = {"adaptive": out.codes}
    for size in TRACED_WINDOWS:
        model = FixedWindowLabelModel(window=int(size), **PROTOCOL, seed=seed)
        codes[size] = model.label_stream(votes).codes
    shuffles = permuted(gold.votes, seed, RATE)[1] if setup == "permute" else np.zeros(0, np.int64)
    return {
        "rows": len(votes),
        "labelers": votes.shape[1],
        "shuffles": shuffles.tolist(),
        "accuracy": {key: thinned(100 * mean_of_next(found == gold.truth, SPAN)) for key, found in codes.items()},
        "weights": [thinned(out.weights[:, place]) for place in range(votes.shape[1])],
        "windows": thinned(out.windows),
    }


def collect(results: dict[str, Numbers]) -> dict[str, Any]:
    found: dict[str, Any] = {"rate": RATE, "span": SPAN}
    for name in DATASETS:
        found[name] = {}
        for setup in SETUPS:
            stem = f"{name}-{setup.replace(' ', '-')}"
            parts = [r for key, r in results.items() if key.startswith(f"{stem}-") and not key.endswith("trace")]
            found[name][setup] = {**_summary(parts), "trace": results[f"{stem}-trace"]}
    return found


def _summary(parts: list[Numbers]) -> dict[str, Any]:
    names = ordered([name for name in parts[0]["accuracy"] if name != "plain majority"])
    tables = {
        measure: {key: mean_and_spread(part[measure][key] for part in parts) for key in [*names, "plain majority"]}
        for measure in ("accuracy", "f1")
    }
    name, _ = best_fixed(tables["accuracy"])
    rows = sum(parts[0]["windows"].values())
    sizes = sorted({int(size) for part in parts for size in part["windows"]})
    share = {str(size): np.mean([part["windows"].get(str(size), 0) for part in parts]) / rows for size in sizes}
    return {
        "runs": len(parts),
        "seeds": list(range(len(parts))),
        **tables,
        "best_fixed": name,
        # The same draws in both, so the difference is steadier than either figure.
        "behind_best_fixed": mean_and_spread(p["accuracy"][name] - p["accuracy"]["adaptive"] for p in parts),
        "window_share": {size: float(value) for size, value in share.items()},
    }
